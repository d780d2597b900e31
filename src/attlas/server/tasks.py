"""What the tools do, in the child process: plain JSON in, plain JSON out.

The schemas of both are in `attlas.server.schemas`.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attlas.claims.claim import Claim
from attlas.core.errors import UserError
from attlas.experiments.challenge_document import challenge_document
from attlas.experiments.report_document import number_text, report_document, verdict_document
from attlas.experiments.store import Store
from attlas.experiments.verdicts import FOLDER, write_report
from attlas.verify.registry import find_claims, one_claim


def check(arguments: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Check claims one file after the other; those that are not of a `source` are stored."""
    from attlas.verify.check_many import planned_groups

    claims = _claims(arguments)
    groups = planned_groups(
        claims,
        seed=arguments.get("seed", 0),
        challenge=arguments.get("challenge"),
    )
    reports = [report for group in groups for report in group()]
    if "source" not in arguments:
        store = Store(results)
        store.prepare(FOLDER)
        by_name = {claim.name: claim for claim in claims}
        for report in reports:
            write_report(store, report, by_name[report.claim], None)
    return {"reports": list(map(report_document, reports))}


def challenge(arguments: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Search for a counterexample of one claim."""
    del results
    from attlas.verify.challenge import challenge as search
    from attlas.verify.shrink.shrinking import shrunk_of

    claim, seed = _claim(arguments), arguments.get("seed", 0)
    seconds = arguments.get("seconds")
    evaluations = arguments.get("evaluations")
    if seconds is None and evaluations is None:
        seconds = 10.0
    report = search(
        claim,
        method=arguments.get("method", "auto"),
        seconds=seconds,
        evaluations=evaluations,
        seed=seed,
    )
    return challenge_document(claim, report, seed, shrunk_of(claim, report))


def replay(arguments: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """The verdict of one claim on one instance."""
    del results
    from attlas.verify.challenge import replay as evaluate

    claim = _claim(arguments)
    verdict = evaluate(claim, _read(claim, arguments["witness"]))
    return {"claim": claim.name, "verdict": verdict_document(verdict)}


def power(arguments: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Which wrong constants the check of one claim would detect."""
    del results
    from attlas.verify.power import FACTORS
    from attlas.verify.power import power as sweep

    claim = _claim(arguments)
    result = sweep(claim, factors=arguments.get("factors", FACTORS), seed=arguments.get("seed", 0))
    return {
        "claim": claim.name,
        "factors": list(result.factors),
        "detects_from": list(result.smallest),
        "components": [list(row[2:]) for row in result.rows()],
        "exponents": {name: number_text(limit) for name, limit in result.exponents.items()},
    }


def coverage(arguments: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """The state of each statement of a paper that was read from LaTeX."""
    from attlas.site.coverage import coverage_document, coverage_of_project

    return coverage_document(coverage_of_project(Path(arguments["folder"]), Store(results)))


def certify(arguments: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """How often models are wrong on new examples, from files of their predictions."""
    del results
    from attlas.certificates.certify import certify as guarantee
    from attlas.certificates.columns import Columns
    from attlas.certificates.document import certification_json
    from attlas.certificates.prediction_file import read_predictions
    from attlas.certificates.predictions import baseline_name

    names = dict(arguments.get("columns", {}))
    columns = Columns(**{**names, "f_score": tuple(names.get("f_score", ()))})
    files = list(map(Path, arguments["files"]))
    stems = [file.stem for file in files]
    models = [
        read_predictions(file, columns, file.stem if stems.count(file.stem) == 1 else str(file))
        for file in files
    ]
    options = {name: arguments[name] for name in _CERTIFY_OPTIONS if name in arguments}
    baseline = baseline_name(arguments.get("baseline"), arguments["files"], models, "baseline")
    return certification_json(guarantee(models, baseline=baseline, **options))


_CERTIFY_OPTIONS = ("delta", "at_most", "at_least", "sequential", "in_order")


TASKS: dict[str, Callable[[Mapping[str, Any], Path], dict[str, Any]]] = {
    "check": check,
    "challenge": challenge,
    "replay": replay,
    "power": power,
    "coverage": coverage,
    "certify": certify,
}


def _claims(arguments: Mapping[str, Any]) -> Sequence[Claim]:
    """The claims of a text in Python, or of names and places."""
    names = arguments.get("claims", [])
    if "source" in arguments:
        file = Path(tempfile.mkdtemp(), "draft.py")
        file.write_text(arguments["source"], encoding="utf-8")
        names = [f"{file}:{name}" for name in names] or [str(file)]
    claims = find_claims(names)
    if not claims:
        raise UserError("no claim there: write one with attlas.inequality or another decorator")
    return claims


def _claim(arguments: Mapping[str, Any]) -> Claim:
    """One claim: of a name, or the only one of a text."""
    if "source" not in arguments:
        if "claim" not in arguments:
            raise UserError("give a claim, or the source of a file with one")
        return one_claim(arguments["claim"])
    names = [arguments["claim"]] if "claim" in arguments else []
    claims = _claims({"source": arguments["source"], "claims": names})
    if len(claims) > 1:
        listed = ", ".join(claim.name for claim in claims)
        raise UserError(f"the source has {len(claims)} claims ({listed}): name one as claim")
    return claims[0]


def _read(claim: Claim, witness: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A witness with the types of the claim's own instances.

    Raises:
        UserError: if an array is missing, unknown, or of other numbers or another rank.
    """
    like = claim.draw(0, 1) if claim.witness is None else {
        name: np.asarray(value)[None] for name, value in claim.witness().items()
    }  # fmt: skip
    if set(witness) != set(like):
        needed = ", ".join(f"{name} {tuple(v.shape[1:])}" for name, v in like.items())
        raise UserError(f"a witness of '{claim.name}' has the arrays {needed}")
    arrays = {}
    for name, value in witness.items():
        kind, rank = like[name].dtype, like[name].ndim - 1
        try:
            arrays[name] = (
                _floats(value).astype(kind) if kind.kind == "f" else np.array(value, kind)
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise UserError(f"'{name}' of the witness is no array of {kind}: {error}") from error
        if arrays[name].ndim != rank:
            raise UserError(
                f"'{name}' of the witness has {arrays[name].ndim} axes instead of {rank}"
            )
    return arrays


def _floats(value: Any) -> np.ndarray:
    """Lists of numbers, of which infinity and NaN are texts, as float64."""
    return np.vectorize(float, otypes=[float])(np.array(value, dtype=object))
