"""Examples with right answers, from files: lines with labels, and pairs of query and document."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from attlas._files.plain_file import printable
from attlas.audit.class_labels import class_count, class_names, class_numbers
from attlas.audit.read_batch import line_sequences, lines_of_text
from attlas.core.errors import UserError
from attlas.transformers.tokenizer import Tokenizer

SEED = 0
"""Of the draw of examples, since files are often sorted by label."""


class Batch(NamedTuple):
    """What an audit reads.

    Attributes:
        sequences: vectors of tokens, or images (C, H, W); None at level weights.
        source: what they are, for a note.
        labels: class of each, or place of its document; None where the model's own loss judges.
        documents: vectors of tokens that are looked for; None where there are none.
    """

    sequences: list[np.ndarray] | None
    source: str = ""
    labels: Int[np.ndarray, " n"] | None = None
    documents: list[np.ndarray] | None = None


def drawn_examples(number: int, most: int) -> list[int]:
    """At most `most` of the places of examples, in random order; one seed.

    Examples:
        >>> sorted(drawn_examples(3, 5)), len(drawn_examples(100, 5))
        ([0, 1, 2], 5)
    """
    return np.random.default_rng(SEED).permutation(number)[:most].tolist()


def of_all(number: int, examples: int, what: str) -> str:
    """How many of the examples of a file were drawn, as a clause.

    Examples:
        >>> of_all(2, 9, "lines"), of_all(9, 9, "lines")
        ('2 of its 9 lines, drawn at random with seed 0', 'all of its 9 lines')
    """
    if number == examples:
        return f"all of its {examples} {what}"
    return f"{number} of its {examples} {what}, drawn at random with seed {SEED}"


def label_lines(file: Path, number: int, what: str) -> list[str]:
    """The labels of a file, one a line, as many as there are examples.

    Args:
        what: the examples, in the plural, for a message.

    Raises:
        UserError: if there are more or fewer.
    """
    labels = list(lines_of_text(file))
    if len(labels) != number:
        raise UserError(
            f"{file} has {len(labels)} labels for {number} {what}: give one for each, one a line"
        )
    return labels


def labelled_text(
    tokenizer: Tokenizer,
    config: Mapping[str, Any],
    text: Path,
    labels: Path,
    *,
    length: int,
    most: int,
) -> Batch:
    """Lines of a text with their classes.

    Args:
        config: content of config.json, which names the classes.
        length: largest number of tokens of a line.
        most: largest number of lines.

    Raises:
        UserError: if there are not as many labels as lines, a label is none of the classes, a
            line has no tokens, or the model judges several classes at once.
    """
    if config.get("problem_type") == "multi_label_classification":
        raise UserError("the model gives a line several classes at once: --labels names one each")
    lines = list(lines_of_text(text))
    several = label_lines(labels, len(lines), f"lines of {text}")
    numbers = class_numbers(several, class_names(config, class_count(config)))
    places = drawn_examples(len(lines), most)
    batch = line_sequences(
        tokenizer, [lines[place] for place in places], length=length, places=places
    )
    source = f"of {text}, {of_all(len(places), len(lines), 'lines')}, with labels of {labels}"
    source = f"{source}; {batch.longer}" if batch.longer else source
    return Batch(batch.sequences, source, numbers[places])


def paired_texts(tokenizer: Tokenizer, file: Path, *, length: int, most: int) -> Batch:
    """Queries and the documents that belong to them.

    Args:
        file: a query, a tabulator and its document in every line.
        length: largest number of tokens of each.
        most: largest number of queries.

    Raises:
        UserError: if a line is no such pair, or a query is there twice.
    """
    pairs = []
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines_of_text(file), 1):
        query, *documents = (part.strip() for part in line.split("\t"))
        if not query or len(documents) != 1 or not documents[0]:
            raise UserError(
                f"{file}, line {number} is no pair: give a query, one tabulator and its document"
            )
        if query in first_lines:
            raise UserError(
                f"{file}, line {number} has the query of line {first_lines[query]} again "
                f"('{printable(query)[:40]}'): give each query once"
            )
        first_lines[query] = number
        pairs.append((query, documents[0]))
    if len(pairs) < 2:
        raise UserError(f"{file} has {len(pairs)} pairs of query and document: give at least 2")
    places = drawn_examples(len(pairs), most)
    queries, documents = zip(*(pairs[place] for place in places), strict=True)
    several = sorted(set(documents))
    labels = np.array([several.index(document) for document in documents], np.int64)
    if len(several) < 2:
        raise UserError(f"{file} has one document for all queries: give at least 2")
    batches = [line_sequences(tokenizer, texts, length=length) for texts in (queries, several)]
    source = f"of {file}, {of_all(len(places), len(pairs), 'pairs')}"
    longer = next((batch.longer for batch in reversed(batches) if batch.longer), "")
    source = f"{source}; {longer}" if longer else source
    return Batch(batches[0].sequences, source, labels, batches[1].sequences)
