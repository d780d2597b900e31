"""The figures of the article on what the papers share that a reader moves by sliders.

The scripts `explorer/live_charts.js` and `explorer/live_planes.js` draw them. Without scripts a
sentence stands in their place, and the figures from experiments' records show the same.
"""

from typing import NamedTuple

from markupsafe import Markup

from attlas.site.page import environment_of_templates


class Slider(NamedTuple):
    """A slider of a figure.

    Attributes:
        id: its name within the figure.
        label: prose with $mathematics$.
        least, most, step, value: in units of the slider.
    """

    id: str
    label: str
    least: float
    most: float
    step: float
    value: float


class LiveFigure(NamedTuple):
    """A figure that its reader moves.

    Attributes:
        drawing: `chart` for curves, `plane` for a drawing of points or squares.
        sliders: in their order.
        play: the text of the button that moves one of them.
        about: what a plane shows, for a reader who does not see it.
        reset: the text of a button that puts all back; may be empty.
    """

    drawing: str
    sliders: tuple[Slider, ...]
    play: str
    about: str = ""
    reset: str = ""


LIVE = {
    "growth": LiveFigure(
        "chart",
        (
            Slider("size", "Size of the weights", 0, 20, 0.1, 4),
            Slider("turn", "Direction turned away by", 0, 120, 1, 45),
        ),
        "Let the weights grow",
    ),
    "saturation": LiveFigure(
        "chart",
        (
            Slider("lead", "Smallest lead, in logits", 0, 8, 0.1, 2),
            Slider("sample", "Sample", 1, 2, 1, 1),
        ),
        "Enlarge the lead",
    ),
    "direction": LiveFigure(
        "plane",
        (Slider("at", "Steps of training", 0, 10, 1, 0),),
        "Train from zero",
        "Four tokens in the plane; each can be dragged, or moved with the arrow keys",
        "Put the tokens back",
    ),
    "exponent": LiveFigure(
        "plane",
        (Slider("p", "Exponent $p$ of mirror descent", 1.1, 4, 0.01, 1.1),),
        "From 1.1 to 4",
        "The entries of two matrices as squares, whose area is the size of the entry",
    ),
    "factors": LiveFigure(
        "chart",
        (
            Slider("at", "Steps of training", 0, 10, 1, 10),
            Slider("start", "Size of the factors at the start", -2, 0, 0.05, -1),
        ),
        "Train both",
    ),
    "ties": LiveFigure(
        "chart",
        (
            Slider("gap", "Gap between the two best scores", 0, 1, 0.01, 0.1),
            Slider("steps", "Steps of training", 0, 4, 0.05, 3),
        ),
        "Train from zero",
    ),
}


def live_figure(name: str, caption: str) -> Markup:
    """The place of a figure, with its sliders and its caption.

    Args:
        name: of one of `LIVE`.
        caption: prose with $mathematics$.

    Examples:
        >>> str(live_figure("growth", "The loss.")).count('type="range"')
        2
    """
    template = environment_of_templates().get_template("live_figure.html.j2")
    return Markup(template.render(name=name, figure=LIVE[name], caption=caption))
