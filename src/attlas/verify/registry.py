"""Find claims and errata by scanning, and by name."""

import difflib
from collections.abc import Sequence
from functools import cache

import jax

from attlas.core.claim import Claim, Erratum
from attlas.core.discovery import scan
from attlas.core.errors import UserError


@cache
def _all_claims() -> tuple[Claim, ...]:
    with jax.enable_x64(True):
        claims = scan("attlas.claims", Claim)
    names = [claim.name for claim in claims]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"claims defined twice: {', '.join(twice)}")
    return claims


def find_claims(names: Sequence[str] = ()) -> tuple[Claim, ...]:
    """The claims of the atlas, all or by name.

    Args:
        names: claim names, papers, or slugs without the paper; all claims when empty.

    Returns:
        The claims in order of paper and file.

    Raises:
        UserError: for an unknown name, with the nearest ones.

    Examples:
        >>> len(find_claims(["julistiono2024optimizing/lemma-12"]))
        1
    """
    claims = _all_claims()
    if not names:
        return claims
    chosen: dict[str, Claim] = {}
    for name in names:
        found = [c for c in claims if name in (c.name, c.paper, c.name.split("/", 1)[1])]
        if not found:
            known = {c.name for c in claims} | {c.paper for c in claims}
            known |= {c.name.split("/", 1)[1] for c in claims}
            # `lemma-13` means one of `lemma-13-...` before it means a misspelt `lemma-12`.
            near = sorted((n for n in known if name and name in n), key=lambda n: (len(n), n))[:3]
            near = near or difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(near)}?" if near else "see `attlas list claims`"
            raise UserError(f"there is no claim or paper '{name}': {hint}")
        chosen |= {c.name: c for c in found}
    return tuple(chosen.values())


def find_errata() -> tuple[Erratum, ...]:
    """All errata of the papers.

    Returns:
        The errata in order of paper and file.
    """
    return scan("attlas.claims", Erratum)
