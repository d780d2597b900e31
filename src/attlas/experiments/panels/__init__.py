"""What experiments show: panels, plots and tables of a labelled data set.

`from attlas.experiments import panels` is enough: `panels.Plot("title", panels.Lines(...))`.
"""

from attlas.experiments.panels.errors import within_errors
from attlas.experiments.panels.heat_map import HeatMap
from attlas.experiments.panels.histogram import Histogram
from attlas.experiments.panels.image_strip import ImageStrip
from attlas.experiments.panels.lines import Lines
from attlas.experiments.panels.palette import DASHES, INK, PALETTE
from attlas.experiments.panels.panel import Formula, Panel, Quantity
from attlas.experiments.panels.plot import Plot
from attlas.experiments.panels.points import Points
from attlas.experiments.panels.power import power_of
from attlas.experiments.panels.quantity import reduced, taken
from attlas.experiments.panels.reference import Reference
from attlas.experiments.panels.summary import (
    Band,
    at_most,
    extremes,
    geometric_extremes,
    geometric_interval,
    geometric_mean,
    geometric_mean_only,
    interval,
    largest,
    least,
    mean,
    mean_and_half_width,
    mean_and_interval,
    mean_and_range,
    mean_only,
    median,
    median_only,
    only,
    quartiles,
    stated,
    total,
)
from attlas.experiments.panels.table import Column, Derived, Printed, Row, Table, final, last_finite
