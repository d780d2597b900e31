"""The prose of an experiment: a Markdown file beside its module, with note, captions and answer.

The text before the first `## ` is the note; each section has the title of a figure and holds its
caption, a Jinja template whose names are what the figure's caption function returns. The section
`## Answer` is reserved: one sentence, two at most, that answers the experiment's question.
Mathematics stands between dollar signs, as everywhere.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ANSWER = "Answer"
"""The title of the section that no figure has."""
_NO_NUMBER = re.compile(r"\b(?:nan|NaN)\b")
_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z0-9$`(])")


class Prose(NamedTuple):
    """What is said about an experiment.

    Attributes:
        note: remark for the reader: deviations from the paper.
        captions: template of each figure's caption, by the figure's title.
        answer: template of the answer to the question.
    """

    note: str
    captions: Mapping[str, str]
    answer: str


def read_prose(path: Path) -> Prose:
    """The prose beside a module; empty where there is no such file.

    Args:
        path: of the Markdown file.

    Returns:
        Note, captions and answer, each on one line.

    Examples:
        >>> read_prose(Path("no such file.md"))
        Prose(note='', captions={}, answer='')
    """
    if not path.is_file():
        return Prose("", {}, "")
    note, *sections = f"\n{path.read_text(encoding='utf-8')}".split("\n## ")
    parts = [section.partition("\n") for section in sections]
    captions = {title.strip(): _one_line(text) for title, _, text in parts}
    answer = captions.pop(ANSWER, "")
    return Prose(_one_line(note), captions, answer)


def written(template: str, values: Mapping[str, Any], *, all_used: bool = True) -> str:
    """A caption or an answer with its values.

    Args:
        template: text with `{{ name }}` and, where a sentence depends on them, `{% if name %}`.
        values: what the names stand for.
        all_used: whether the template must name all of them.

    Returns:
        The text on one line.

    Raises:
        ValueError: if the template lacks one of the values, or names another.

    Examples:
        >>> written("Does it hold? In {{ share }} of the runs{% if all %}, all{% endif %}.",
        ...         {"share": "8 of 8", "all": True})
        'Does it hold? In 8 of 8 of the runs, all.'
    """
    from jinja2 import Environment, StrictUndefined
    from jinja2.meta import find_undeclared_variables

    environment = Environment(undefined=StrictUndefined, autoescape=False)
    named = find_undeclared_variables(environment.parse(template))
    wrong = named ^ set(values) if all_used else named - set(values)
    if wrong:
        other = ", ".join(sorted(wrong))
        raise ValueError(f"a template of the prose and its values differ in: {other}")
    return _one_line(environment.from_string(template).render(values))


def without_gaps(caption: str) -> str:
    """The caption without the sentences whose numbers have not been computed.

    Args:
        caption: text with $mathematics$.

    Returns:
        The other sentences, and a word about those left out.

    Examples:
        >>> without_gaps("The slope is -1.02. At $p = 3$ it is nan.")
        'The slope is -1.02. What has not been run yet is left out.'
        >>> without_gaps("The slope is -1.02.")
        'The slope is -1.02.'
    """
    sentences = _SENTENCE_END.split(caption)
    kept = [sentence for sentence in sentences if not _NO_NUMBER.search(sentence)]
    if len(kept) == len(sentences):
        return caption
    return " ".join([*kept, "What has not been run yet is left out."])


def has_gaps(text: str) -> bool:
    """Whether a number of a text has not been computed.

    Args:
        text: with its values.

    Returns:
        True if one of them is nan.

    Examples:
        >>> has_gaps("No: the slope is nan.")
        True
    """
    return bool(_NO_NUMBER.search(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
