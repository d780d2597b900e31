"""From a function to a claim: name, paper, statement, remark and defaults."""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Claim, Control, Source, Status
from attlas.claims.statement import inequality
from attlas.projects.loading import objects_of
from attlas.verify.check import check

HALF = [Control("half", factor=0.5)]
WRITTEN = """
import jax.numpy as jnp
from attlas import Control, Source, inequality

@inequality("Lemma 1", Source.RECALLED, controls=[Control("half", factor=0.5)],
            sample=lambda rng, count: {"x": rng.normal(size=(count, 3))})
def norms(x, *, factor=1.0):
    r"$$\\|x\\|_\\infty \\le \\|x\\|_2$$"
    return jnp.max(jnp.abs(x)), factor * jnp.linalg.norm(x)
"""


def vectors(rng, count):
    """Gaussian vectors, their squares and an index."""
    x = rng.normal(size=(count, 3))
    return {"x": x, "square": np.sum(x**2, axis=1), "k": np.arange(count)}


def norms(x, *, factor=1.0):
    r"""$$\|x\|_\infty
    \le \|x\|_2$$

    Equal for one entry, $x = e_1$,
    and its multiples.
    """
    return jnp.max(jnp.abs(x)), factor * jnp.linalg.norm(x)


def test_name_statement_remark_place_and_defaults_come_from_the_function():
    claim = inequality(sample=vectors, controls=HALF, search_over="x")(norms)
    assert isinstance(claim, Claim)
    assert (claim.name, claim.paper) == ("test_claim_maker/norms", "test_claim_maker")
    assert claim.statement == r"\|x\|_\infty \le \|x\|_2"
    assert claim.remark == "Equal for one entry, $x = e_1$, and its multiples."
    assert (claim.locator, claim.source, claim.status) == ("Norms", Source.DERIVED, Status.NEW)
    assert claim.place[0] == __file__
    assert claim.search_over == ("x",)
    left, right = claim(jnp.asarray([3.0, 4.0, 0.0]))
    assert (float(left), float(right)) == (4.0, 5.0)
    assert check(claim, challenge=1).defects == ()


def test_a_sentence_may_stand_in_place_of_a_formula():
    def positive(square, *, shift=0.0):
        """Squares are not negative."""
        return shift - square, jnp.zeros(())

    claim = inequality(sample=vectors, controls=[Control("shifted", shift=99.0)])(positive)
    assert claim.statement == r"\text{Squares are not negative.}"


def test_the_project_says_under_which_paper_a_claim_is_filed_and_whether_it_reconstructs(tmp_path):
    file = tmp_path / "claims_lemma.py"
    file.write_text(WRITTEN)
    (claim,) = objects_of(str(file), Claim)
    assert (claim.name, claim.status) == ("claims_lemma/norms", Status.NEW)
    table = '[tool.attlas]\nkey = "a2024paper"\nstatus = "reconstructed"\n'
    (tmp_path / "pyproject.toml").write_text(table)
    file.write_text(f"{WRITTEN}\n")
    (claim,) = objects_of(str(file), Claim)
    assert (claim.name, claim.paper) == ("a2024paper/norms", "a2024paper")
    assert claim.status is Status.RECONSTRUCTED
    file.write_text(WRITTEN.replace("RECALLED", "FOUND"))
    (claim,) = objects_of(str(file), Claim)
    assert claim.status is Status.AS_PRINTED
