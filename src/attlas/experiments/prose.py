"""The prose of an experiment: a Markdown file beside its module, with note, captions and answer.

The text before the first `## ` is the note; each section has the title of a figure and holds its
caption, a Jinja template with the names that the figure's caption function returns. The section
`## Answer` is reserved: one or two sentences that answer the experiment's question. So is
`## How to read`: the data, the model and the runs, for all figures, a template of the settings;
what follows `### How to read` inside a figure's section is for this figure alone, a list of items
such as `- Up: the loss over that of guessing.` Mathematics stands between dollar signs.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attlas.core.errors import UserError, refuse_unreadable

ANSWER = "Answer"
"""The title of the section that no figure has."""
HOW_TO_READ = "How to read"
"""The title of the section on the data, the model and the runs of all figures."""
_NO_NUMBER = re.compile(r"\b(?:nan|NaN)\b")
_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z0-9$`(])")


class Prose(NamedTuple):
    """The texts about an experiment.

    Attributes:
        note: remark for the reader, such as deviations from the paper.
        captions: template of each figure's caption, by the figure's title.
        answer: template of the answer to the question.
        readings: template of what one must know to read a figure, one item a line, by the
            figure's title; that of all figures has the title "".
    """

    note: str
    captions: Mapping[str, str]
    answer: str
    readings: Mapping[str, str]


def read_prose(path: Path) -> Prose:
    """The prose beside a module, each text on one line; empty without such a file.

    Examples:
        >>> read_prose(Path("no such file.md"))
        Prose(note='', captions={}, answer='', readings={})
    """
    if not path.is_file():
        return Prose("", {}, "", {})
    note, *sections = f"\n{path.read_text(encoding='utf-8')}".split("\n## ")
    captions: dict[str, str] = {}
    readings: dict[str, str] = {}
    for title, _, text in (section.partition("\n") for section in sections):
        caption, _, reading = text.partition(f"\n### {HOW_TO_READ}\n")
        captions[title.strip()] = _one_line(caption)
        readings[title.strip()] = _items(reading)
    answer = captions.pop(ANSWER, "")
    readings[""] = captions.pop(HOW_TO_READ, "")
    readings = {title: text for title, text in readings.items() if text}
    return Prose(_one_line(note), captions, answer, readings)


@refuse_unreadable
def written(template: str, values: Mapping[str, Any], *, all_used: bool = True) -> str:
    """Fill the template of a caption or an answer, on one line.

    Args:
        template: text with `{{ name }}` and conditions such as `{% if name %}`.
        all_used: whether the template must use all values.

    Raises:
        UserError: if the template lacks one of the values, or names an unknown one.

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
        names = ", ".join(sorted(wrong))
        raise UserError(f"a template of the prose and its values differ in the names {names}")
    return _one_line(environment.from_string(template).render(values))


def without_gaps(caption: str) -> str:
    """The caption without sentences whose numbers are not yet computed, and a remark if it has any.

    Examples:
        >>> without_gaps("The slope is -1.02. At $p = 3$ it is nan.")
        'The slope is -1.02. Results not yet computed are omitted.'
        >>> without_gaps("The slope is -1.02.")
        'The slope is -1.02.'
    """
    sentences = _SENTENCE_END.split(caption)
    complete = [sentence for sentence in sentences if not _NO_NUMBER.search(sentence)]
    if len(complete) == len(sentences):
        return caption
    return " ".join([*complete, "Results not yet computed are omitted."])


def has_gaps(text: str) -> bool:
    """Whether a number of a text has not been computed, that is, is nan.

    Examples:
        >>> has_gaps("No: the slope is nan.")
        True
    """
    return bool(_NO_NUMBER.search(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _items(text: str) -> str:
    """The items of a list, each on one line."""
    return "\n".join(filter(None, map(_one_line, f"\n{text}".split("\n- "))))
