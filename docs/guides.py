"""The guides of `docs/choose`, rendered from the published records.

`python docs/guides.py` writes all of them from the templates in `docs/guides`. A template has no
result of its own: it asks the experiments for their answers and values, and `need` stops the
rendering where the records deny a sentence.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import xarray as xr
from jinja2 import Environment, StrictUndefined

import attlas as at
from attlas.display.numbers import plain_number
from attlas.experiments.experiment import Draw, Experiment
from attlas.experiments.find import one_named
from attlas.experiments.panels import Plot

DOCS = Path(__file__).parent
TEMPLATES, PAGES = DOCS / "guides", DOCS / "choose"
RESULTS = DOCS.parent / "benchmarks" / "results"
AUDIT = DOCS / "example_audit.json"
"""What `docs/example_audit.py` keeps of an audit."""
NAMES = tuple(sorted(file.stem for file in TEMPLATES.glob("*.md")))
Load = Callable[[str], xr.Dataset]
"""The records of an experiment, by its name."""


class DeniedError(ValueError):
    """The records deny a sentence of a guide."""


def published(experiment: str) -> xr.Dataset:
    """The published records of an experiment."""
    return at.load(experiment, results="published")


class Records:
    """What a template may ask for.

    Args:
        guide: name of the template.
        load: gives the records of an experiment.
    """

    def __init__(self, guide: str, load: Load = published):
        self.guide = guide
        self._load = load
        self._data: dict[str, xr.Dataset] = {}
        self._values: dict[tuple[str, str], Mapping[str, Any]] = {}

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that a template may call."""
        names = ("answer", "row", "figure", "value", "need", "benchmark", "seconds", "audited")
        return {name: getattr(self, name) for name in names}

    def answer(self, name: str) -> str:
        """The answer of an experiment's published records."""
        text = one_named(name).answered(self._of(name))
        self.need(text, f"the published records of '{name}' have an answer")
        return text

    def row(self, name: str) -> str:
        """A row of a table: question, answer, name."""
        cells = one_named(name).question, self.answer(name)
        shown = [cell.replace(r"\|", r"\Vert ").replace("|", r"\vert ") for cell in cells]
        page = f'<a href="../atlas/experiment-{name}.html">{name}</a>'
        return f"| {' | '.join(shown)} | {page} |"

    def figure(self, name: str, text: str) -> str:
        """The picture of an experiment, with what it shows; a link leads to its page."""
        page = f'<a href="../atlas/experiment-{name}.html">{one_named(name).title}</a>'
        return f"![{text}](../pictures/{name}.svg)\n\nFrom the published records of {page}."

    def value(self, name: str, key: str, figure: str = "") -> Any:
        """A value of the answer, or of the caption of a figure."""
        if (name, figure) not in self._values:
            self._values[name, figure] = values_of(one_named(name), self._of(name), figure)
        return self._values[name, figure][key]

    def need(self, condition: object, sentence: str) -> str:
        """Print nothing, and stop where the condition of a sentence is false.

        Raises:
            DeniedError: with the guide and the sentence.
        """
        if not condition:
            raise DeniedError(f"docs/guides/{self.guide}.md: the records deny: {sentence}")
        return ""

    def benchmark(self, name: str) -> Any:
        """The cases of a file of results."""
        return cases_of(name)

    def seconds(self, case: str) -> str:
        """The time by the clock of one case of the audit's benchmark."""
        (timed,) = (each for each in cases_of("audit_speed") if each["name"] == case)
        return plain_number(timed["seconds"], 2)

    def audited(self) -> Any:
        """The example of an audit."""
        return json.loads(AUDIT.read_text(encoding="utf-8"))

    def _of(self, name: str) -> xr.Dataset:
        if name not in self._data:
            self._data[name] = self._load(name)
        return self._data[name]


def values_of(experiment: Experiment, data: xr.Dataset, figure: str = "") -> Mapping[str, Any]:
    """The values of an experiment's answer, or those of the caption of one of its figures."""
    if not figure:
        return experiment.answer(data) if experiment.answer else {}
    (values,) = (each for draw in experiment.figures for each in _captions(draw, data, figure))
    return values


def _captions(draw: Draw, data: xr.Dataset, figure: str) -> list[Mapping[str, Any]]:
    """The values of a caption, in a list that is empty where the figure has another title."""
    if isinstance(draw, Plot):
        values = draw.caption(data) if callable(draw.caption) else {}
        return [values] if draw.title == figure and not isinstance(values, str) else []
    drawn = draw(data)
    plt.close(drawn.figure)
    return [drawn.values or {}] if drawn.title == figure else []


def cases_of(benchmark: str) -> Any:
    """The cases of a file of results."""
    return json.loads((RESULTS / f"{benchmark}.json").read_text(encoding="utf-8"))["cases"]


def samples(number: float) -> str:
    """A number of samples as a power of ten.

    Examples:
        >>> samples(2.9e6)
        '$10^{6.5}$'
    """
    return f"$10^{{{math.log10(number):.1f}}}$"


def rendered(records: Records) -> str:
    """The page of the guide of some records.

    Raises:
        DeniedError: if the records deny a sentence.
    """
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    environment.globals |= records.functions()
    environment.filters |= {"samples": samples, "thousands": "{:,}".format}
    text = (TEMPLATES / f"{records.guide}.md").read_text(encoding="utf-8")
    return environment.from_string(text).render()


if __name__ == "__main__":
    for guide in NAMES:
        (PAGES / f"{guide}.md").write_text(rendered(Records(guide)), encoding="utf-8")
