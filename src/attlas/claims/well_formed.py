"""The error of a wrongly written claim, in one line: the claim, the argument and the remedy."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Claim, Expectation, Kind, ProofStep, Source, Status
from attlas.claims.sides import Doubling
from attlas.core.errors import UserError, in_short, refuse_misfits, refuse_unreadable
from attlas.core.names import call_by_name, nearest, parameters

_TRIED = 2
_FORMS: Mapping[str, tuple[Any, str]] = {
    "locator": (str, "a line of text such as 'Lemma 1'"),
    "source": (Source, "Source.FOUND, Source.RECALLED or Source.DERIVED"),
    "status": (Status, "a Status such as Status.NEW"),
    "expect": (Expectation, "Expectation(Outcome.VIOLATED, 'the reason')"),
    "proof_step": (ProofStep, "ProofStep('the chain', 1)"),
    "not_attacked": (str, "a text"),
    "independent": (str, "a text"),
    "count": (Integral, "a positive integer"),
    "enumerates": (Integral, "a positive integer"),
    "evaluations": (Integral, "a positive integer"),
    "roundings": (Integral, "an integer"),
    "attained": (Real, "a ratio up to 1"),
    "alike": (bool, "True or False"),
    "controls": (Iterable, "a list of Control"),
    "assumptions": (Iterable, "a list of assume('text', predicate)"),
    "domains": (Iterable, "a list of domains"),
    "parameters": (Iterable, "a list of domains"),
    "search_over": (Iterable, "the name of an array, or a list of names"),
    "quantities": (Iterable, "a name, a list of names, or functions by name"),
    "sizes": (Mapping, "numbers by name, such as {'n': 4}"),
    "sample": (Callable, "a function"),
    "project": (Callable, "a function"),
    "recertify": (Callable, "a function"),
    "witness": (Callable, "a function without parameters that returns arrays by name"),
}
"""The type of each detail, and what to give."""
_FILLED = {
    "name": "the name of the function is that of the claim",
    "paper": "the file of a claim, or its project, names the paper",
    "statement": "the docstring of the function is the statement",
    "remark": "the docstring of the function ends with the remark",
    "kind": "the decorator says the kind",
    "function": "the decorator stands above the function",
    "place": "the function has its file and line",
    "home": "the function has its file",
}
"""What the decorator itself fills in of a claim, and from where."""
_NAMES_OR_LIST = ("search_over", "quantities")
_CONTROL_CHARACTERS = dict.fromkeys(range(32))


@refuse_unreadable
def refuse_misfit(where: str, kind: Kind, details: Mapping[str, Any]) -> None:
    """Refuse a detail that a claim has not, or of another type.

    Args:
        where: the claim, with which the line begins.
        details: what its decorator was given.

    Raises:
        UserError: names the claim, the detail and the remedy.

    Examples:
        >>> refuse_misfit("claim 'a/b'", Kind.PROBABILITY, {"locator": 0.95})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: claim 'a/b': 0.95 stands in the place of the locator: ...
    """
    defaults = {field.name: field.default for field in fields(Claim)}
    for name, value in details.items():
        if name in _FILLED:
            raise UserError(f"{where}: {name}= is no detail: {_FILLED[name]}")
        if name not in defaults:
            names = _details_of(kind, defaults)
            raise UserError(f"{where}: there is no detail '{name}': {nearest(name, names)}")
        form, remedy = _FORMS.get(name, (object, ""))
        if (value is None and defaults[name] is None) or _fits(name, value, form):
            continue
        if name == "locator":
            number = isinstance(value, Real) and kind.rule.trials
            keyword = f", such as level={value} or range={value}" if number else ""
            raise UserError(
                f"{where}: {_shown(value)} stands in the place of the locator: give {remedy}, and "
                f"all else by keyword{keyword}"
            )
        raise UserError(f"{where}: {name}={_shown(value)}: give {remedy}")


def _details_of(kind: Kind, defaults: Iterable[str]) -> tuple[str, ...]:
    """The details that the decorator of a kind takes: none that it fills in, or of other kinds."""
    others = {name for each in Kind for name in each.rule.details} - {*kind.rule.details}
    return tuple({*defaults} - others - {*_FILLED} - {"worst_case"})


def _fits(name: str, value: Any, form: Any) -> bool:
    """Whether the value of a detail is of the type that its form names, and one that can be."""
    if not isinstance(value, form) or (form is Integral and isinstance(value, bool)):
        return False
    if form is Iterable and isinstance(value, str):
        return name in _NAMES_OR_LIST
    if name == "locator":
        return value == value.translate(_CONTROL_CHARACTERS)
    return name not in ("count", "evaluations") or value >= 1


def _shown(value: Any) -> str:
    """A value in a message; of what is long or has no text of its own, the type."""
    text = repr(value)
    plain = len(text) <= 40 and text.isprintable() and " at 0x" not in text
    name = type(value).__name__
    return text if plain else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


@refuse_misfits
def refuse_malformed(claim: Claim) -> None:
    """Refuse a claim whose parts do not fit, by its signatures alone.

    Raises:
        UserError: names the claim, the argument and the remedy.

    Examples:
        >>> from attlas.claims.claim import Source, Status
        >>> words = ("a/b", "a", "Lemma 1", "$x = x$", "", Kind.IDENTITY, Status.NEW, Source.FOUND)
        >>> refuse_malformed(Claim(*words, lambda x: (x, x), dict, ()))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: claim 'a/b' has no control: can its check fail? Give ...
    """
    arrays, options, takes_all = parameters(claim.function)
    where = f"claim '{claim.name}'"
    if not claim.controls:
        raise UserError(
            f"{where} has no control: can its check fail? Give controls=[Control(...)] with a "
            "false variant"
        )
    for name, parameter in inspect.signature(claim.function).parameters.items():
        if parameter.default is not parameter.empty and name in arrays:
            raise UserError(
                f"{where}: '{name}' has a default, but arrays of the instance have none: write a "
                "* before it, and a control can change it"
            )
    for control in claim.controls:
        for name in control.changes:
            if name not in options:
                raise UserError(
                    f"{where}: control '{control.description}' changes '{name}', which is no "
                    f"keyword-only parameter of the function: {nearest(name, options)}"
                )
    for name in claim.search_over:
        if not takes_all and name not in arrays and not _takes(claim.project, name):
            raise UserError(
                f"{where}: search_over names '{name}', which the function does not read, "
                f"nor project: {nearest(name, arrays)}"
            )
    if claim.status in ("as printed", "erratum") and claim.source != "found":
        raise UserError(
            f"{where}: status '{claim.status}' needs a statement that was found: give "
            "Source.FOUND, or another status"
        )
    _refuse_undeclared(claim, where)
    if claim.enumerates is not None and claim.enumerates < 1:
        raise UserError(f"{where}: enumerates={claim.enumerates}: give the number of instances")
    for role, function in {"sample": claim.sample, "project": claim.project}.items():
        if function is not None and not callable(function):
            raise UserError(f"{where}: {role} is not a function: give one")


def _refuse_undeclared(claim: Claim, where: str) -> None:
    """Refuse domains of arrays that nothing reads, and sizes that cannot change."""
    arrays, _, takes_all = parameters(claim.function)
    named = {name for domain in claim.domains for name in domain.reads()}
    for domain in claim.domains:
        if domain in claim.parameters:  # the sampler may read it alone
            continue
        if not takes_all and domain.name not in arrays and domain.name not in named:
            raise UserError(
                f"{where}: {domain} is a domain of no array that the function reads: "
                f"{nearest(domain.name, arrays)}"
            )
    for name, size in claim.sizes.items():
        if not isinstance(size, int) or size < 1:
            raise UserError(f"{where}: the size '{name}' is {size!r}: give a positive number")
        taken = inspect.signature(claim.sample).parameters
        if name not in taken and not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            raise UserError(
                f"{where}: sample takes no size '{name}': give it as a keyword-only parameter"
            )


def _takes(function: Any, name: str) -> bool:
    """Whether a function reads an array of this name."""
    if not callable(function):
        return False
    arrays, _, takes_all = parameters(function)
    return takes_all or name in arrays


@refuse_misfits
def try_out(claim: Claim) -> None:
    """Draw two instances of a claim and trace its parts, without compiling anything.

    Raises:
        UserError: names the claim, the argument and the remedy.

    Examples:
        >>> from attlas.claims.claim import Source, Status, assume
        >>> words = ("a/b", "a", "Lemma 1", "$x = x$", "", Kind.IDENTITY, Status.NEW, Source.FOUND)
        >>> draw, positive = lambda rng, n: {"x": np.ones((n, 3))}, assume("x > 0", lambda x: x > 0)
        >>> try_out(Claim(*words, lambda x: (x, x), draw, (), (positive,)))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: claim 'a/b': the assumption 'x > 0' gives no single truth ...
    """
    where = f"claim '{claim.name}'"
    with jax.enable_x64(True):
        batch = _two_instances(claim, where)
        instance = {name: jax.ShapeDtypeStruct(v.shape[1:], v.dtype) for name, v in batch.items()}
        if claim.backend == "numpy":
            instance = {name: np.asarray(v)[0] for name, v in batch.items()}
        for name in claim.declared.keys() & batch.keys():
            raise UserError(f"{where}: '{name}' is an array of the instance and the scales")
        for name in parameters(claim.function).options:
            if name in batch:
                raise UserError(
                    f"{where}: '{name}' is an array of the instance and a parameter that a control "
                    "changes: rename one"
                )
        read = _evaluated if claim.backend == "numpy" else _traced
        for condition in claim.assumptions:
            held = read(condition.predicate, instance, f"{where}: '{condition.text}'")
            boolean = isinstance(held, bool) or getattr(held, "dtype", None) == np.bool_
            if np.shape(held) != () or not boolean:
                library = "np" if claim.backend == "numpy" else "jnp"
                raise UserError(
                    f"{where}: the assumption '{condition.text}' gives no single truth value: "
                    f"reduce it by {library}.all"
                )
        _traced_sides(claim, instance, where)
        _searchable(claim, instance, where)


def _two_instances(claim: Claim, where: str) -> Mapping[str, Any]:
    if claim.witness is not None:
        return {name: np.asarray(value)[None] for name, value in claim.witness().items()}
    try:
        batch = claim.draw(0, _TRIED)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{where}: sample fails with {in_short(error)}") from error
    exact = claim.enumerates is None
    for name, value in batch.items():
        if value.ndim == 0 or (exact and len(value) != _TRIED):
            raise UserError(
                f"{where}: sample gives '{name}' the shape {value.shape}: its first axis must be "
                f"count (here {_TRIED}), one row per instance"
            )
    return batch


def _traced(
    function: Any, instance: Mapping[str, Any], where: str, scales: Mapping[str, Any] = {}
) -> Any:
    """Shapes of what a function of named arrays returns; whatever it raises becomes one line."""
    try:
        return jax.eval_shape(lambda arrays: call_by_name(function, {**arrays, **scales}), instance)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    except Exception as error:
        raise UserError(f"{where} {_failure(error, function, instance)}") from error


def _failure(error: Exception, function: Any, instance: Mapping[str, Any]) -> str:
    from attlas.claims.tracing_errors import tracing_failure  # few functions fail

    return tracing_failure(error, function, instance)


def _evaluated(
    function: Any, instance: Mapping[str, Any], where: str, scales: Mapping[str, Any] = {}
) -> Any:
    """What a function in plain NumPy returns for a drawn instance; errors become one line."""
    arrays = {name: value.copy() for name, value in {**instance, **scales}.items()}
    try:
        with np.errstate(all="ignore"):
            return call_by_name(function, arrays)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    except Exception as error:
        raise UserError(f"{where} {_failure(error, function, instance)}") from error


def _traced_sides(claim: Claim, instance: Mapping[str, Any], where: str) -> None:
    for changes in ({}, *(control.changes for control in claim.controls)):
        read = _evaluated if claim.backend == "numpy" else _traced
        value = read(partial(claim.function, **changes), instance, where, claim.declared)
        if claim.level is not None:
            continue
        if not isinstance(value, tuple) or len(value) < 2:
            pair = "return the pair (left, right)"
            if "level" in claim.kind.rule.details:
                pair = "give level=, a number such as 0.95, or return the pair (event, level)"
            raise UserError(f"{where}: the function returns {_described(value)}: {pair}")
        left, right = (np.shape(side) for side in tuple(value)[:2])
        try:
            np.broadcast_shapes(left, right)
        except ValueError as error:
            raise UserError(
                f"{where}: the sides have the shapes {left} and {right}: return arrays that "
                "broadcast"
            ) from error
        _refuse_unscaled(claim, value, np.broadcast_shapes(left, right), where)


def _refuse_unscaled(claim: Claim, value: Any, shape: tuple[int, ...], where: str) -> None:
    """Refuse a limit or rate without scales, or with another number of them than its sides have."""
    if not claim.kind.rule.scaled:
        return
    scales = claim.scales if claim.scales is not None else getattr(value, "scales", None)
    if scales is None:
        raise UserError(
            f"{where}: {claim.kind.rule.noun} needs the scales along which its sides run, the last "
            f"axis: give scales=2.0 ** np.arange(4, 12), or scales=Doubling('t', 16) and a "
            "parameter t that reads them; a computed one may return Sides(left, right, scales=t)"
        )
    if isinstance(scales, str) or callable(scales):
        return
    count = np.shape(scales.values if isinstance(scales, Doubling) else scales)[-1:]
    if shape[-1:] != count:
        raise UserError(
            f"{where}: the sides have the shape {shape} and there are {count[0] if count else 0} "
            "scales: the last axis must run over the scales"
        )


def _described(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"an array of shape {value.shape}" if hasattr(value, "shape") else f"{value!r}"


def _searchable(claim: Claim, instance: Mapping[str, Any], where: str) -> None:
    for name in claim.search_over:
        if name not in instance:
            raise UserError(
                f"{where}: search_over names '{name}', which sample does not draw: "
                f"{nearest(name, instance)}"
            )
        if not jnp.issubdtype(instance[name].dtype, jnp.floating):
            raise UserError(
                f"{where}: search_over names '{name}' of type {instance[name].dtype}: only float "
                "arrays move along a gradient"
            )
    # A search over declared domains, or in plain NumPy, climbs without derivatives.
    if not claim.search_over or claim.domains or claim.backend == "numpy":
        return
    moved = {name: instance[name] for name in claim.search_over}

    def excess(free: Mapping[str, Any], fixed: Mapping[str, Any]) -> Any:
        sides = claim.sides(claim.project_instance({**fixed, **free}))
        return jnp.sum(sides.left) - jnp.sum(sides.right)

    try:
        jax.eval_shape(jax.grad(excess), moved, instance)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    except Exception as error:
        raise UserError(
            f"{where}: search_over needs a derivative that JAX cannot take ({in_short(error)}): "
            "leave out search_over, or use differentiable operations"
        ) from error
