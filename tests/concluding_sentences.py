"""Sentences of a template that conclude with no condition on the record before them.

A template is read as its author wrote it: what stands outside conditions is said of every record.
A concluding word is counted, and passes, where a value says how often or how far it holds: "falls
on {{ falls }} tasks", "{{ n }} of {{ m }} are above 1". A word of change is counted only by the
number of cases, since "falls by {{ factor }}" is wrong of a factor below 1.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from jinja2 import Environment, nodes
from perturbed_records import OF_THE_RUN, condition_names

VALUE, CHOICE = "⟨value⟩", "⟨choice⟩"
"""What stands in a sentence for a printed value, and for words that a condition chooses."""
CHANGES = """
    grow grows grew grown fall falls fell rise rises rose increase increases decrease decreases
    improve improves worsen worsens widen widens shrink shrinks vanish vanishes save saves help
    helps hurt hurts gain gains lose loses raise raises lower lowers exceed exceeds exceeded
    beat beats outperform outperforms concentrate concentrates collapse collapses
"""
"""Verbs that say in which direction a quantity goes."""
VERDICTS = """
    yes no none never always every everywhere nothing nowhere cannot neither more less fewer
    larger smaller better worse higher greater faster slower longer shorter closer farther
    nearer tighter looser wider lazier sharper denser sparser above below beyond hold holds fail
    fails agree agrees differ differs attain attains match matches converge converges diverge
    diverges certify certifies vacuous non-vacuous useful useless clearly explain explains force
    forces prove proves reproduced robust
"""
"""Words that compare, that count all or none, or that judge."""
PREDICATES = (
    r"(?:is|are|was|were|do|does|did|has|have|can|could|would|will|need) not",
    r"(?:is|are|stays?|remains?) (?:the )?(?:same|equal|identical|certified|enough|too)",
    r"all (?:are|were|have|hold)",
)
"""What concludes in a predicate alone: "the same data" are none, "is the same" is."""
MARKS = """
    areas bands bars blue circles colours curves dashed dots dotted full grey left lines maps
    marks open points right squares triangles
"""
"""Words with which a sentence begins that says what the marks of a plot stand for."""
PLACES = ("above", "below", "lower row")
"""What a colon follows where a sentence begins that says what one of several panels shows."""
DIRECTION = re.compile(r"\((?:lower|higher) is better\)|\(above\)|\(below\)")
"""How an axis is read, and in which panel a number stands."""
_FORMULA = re.compile(r"\$[^$]*\$|`[^`]*`|'[^']*'|\"[^\"]*\"")
_SENTENCE = re.compile(r"(?<=[.?;])\s+(?=\S)")
_CONCLUSIONS = "|".join((*PREDICATES, *CHANGES.split(), *VERDICTS.split()))
_WORD = re.compile(rf"(?<![\w-])(?:{_CONCLUSIONS})(?! bound)(?![\w-])", re.IGNORECASE)
_FEW_WORDS = r"(?:[^\s⟨,:]+\s+){0,4}"
_OF_CASES = re.compile(rf"\b(?:in|on)\s+{_FEW_WORDS}{VALUE}")
_MEASURED = re.compile(
    rf"^\s+{_FEW_WORDS}{VALUE}|\b(?:in|on|for|with|from|at|of|is)\s+{_FEW_WORDS}{VALUE}|:\s*{VALUE}"
)
_COUNT_BEFORE = re.compile(rf"{VALUE}\s+(?:%|of|lie|\w+\s+(?:in|of|lie)\b)")


def flattened(parts: Iterable[nodes.Node]) -> str:
    """The text of a template that stands outside conditions on the record."""
    return "".join(map(_text, parts))


def _text(part: nodes.Node) -> str:
    if isinstance(part, nodes.Output):
        return "".join(
            each.data if isinstance(each, nodes.TemplateData) else VALUE for each in part.nodes
        )
    if isinstance(part, nodes.For):
        return flattened(part.body)
    if not isinstance(part, nodes.If):
        return ""
    tests = [part.test, *(each.test for each in part.elif_)]
    bodies = [part.body, *(each.body for each in part.elif_), part.else_]
    of_record = [bool(condition_names(test) - OF_THE_RUN) for test in tests]
    of_record = [any(of_record[: place + 1]) for place in range(len(bodies))]
    texts = [CHOICE if o else flattened(body) for o, body in zip(of_record, bodies, strict=True)]
    return " ".join(texts)


def concluding_words(template: str) -> Iterator[tuple[str, str]]:
    """Every word that concludes outside a condition and is not counted, with its sentence."""
    yield from _in_sentences(flattened(Environment().parse(template).body))


def concluding_words_of_code(source: str) -> Iterator[tuple[str, str]]:
    """The same for texts with values that a module writes, outside its conditions."""
    for text in _formatted(ast.parse(source)):
        yield from _in_sentences(text)


def _formatted(part: ast.AST) -> Iterator[str]:
    if isinstance(part, ast.JoinedStr):
        yield "".join(
            str(each.value) if isinstance(each, ast.Constant) else VALUE for each in part.values
        )
    conditional = isinstance(part, ast.IfExp | ast.If | ast.BoolOp) or bool(
        isinstance(part, ast.ListComp | ast.GeneratorExp) and part.generators[-1].ifs
    )
    if not conditional:
        for each in ast.iter_child_nodes(part):
            yield from _formatted(each)


def _in_sentences(text: str) -> Iterator[tuple[str, str]]:
    for sentence in _SENTENCE.split(" ".join(text.split())):
        first = sentence.lstrip("(").split(" ")[0].strip(":,").lower()
        if sentence.endswith("?") or first in MARKS.split():
            continue
        place, _, rest = sentence.partition(":")
        text = DIRECTION.sub("", rest if place.lower() in PLACES else sentence)
        yield from ((word, sentence) for word in _uncounted(_FORMULA.sub("x", text)))


def _uncounted(sentence: str) -> Iterator[str]:
    for found in _WORD.finditer(sentence):
        counted = _OF_CASES if found[0].lower() in CHANGES.split() else _MEASURED
        before, after = sentence[: found.start()], sentence[found.end() :]
        if not (
            counted.search(after.replace(CHOICE, ""))
            or _COUNT_BEFORE.search(before.rsplit(",")[-1])
        ):
            yield found[0]
