"""Small plots as SVG and tables as HTML, for reports and notebooks. Nothing here knows of networks or runs.

Every chart is a function of numbers that returns a `Drawing`. A notebook shows a drawing or a table by itself; several of
them together by `notebook(...)`, which adds the style sheet `style()` once.
"""

from ssvi.plotting.calibration import ENOUGH, ReliabilityBins, reliability
from ssvi.plotting.charts import TALL, Curve, Histogram, curves, histograms
from ssvi.plotting.html import Cell, HasHTML, Table, element, notebook, style
from ssvi.plotting.numbers import PredictedNumber, coverage, errors, pit, predicted
from ssvi.plotting.rows import Bar, Dot, IntervalRow, bars, dots, intervals
from ssvi.plotting.scale import Scale, linear, log, percent, short
from ssvi.plotting.svg import Drawing, Series, sign, swatch

__all__ = [
    "ENOUGH",
    "TALL",
    "Bar",
    "Cell",
    "Curve",
    "Dot",
    "Drawing",
    "HasHTML",
    "Histogram",
    "IntervalRow",
    "PredictedNumber",
    "ReliabilityBins",
    "Scale",
    "Series",
    "Table",
    "bars",
    "coverage",
    "curves",
    "dots",
    "element",
    "errors",
    "histograms",
    "intervals",
    "linear",
    "log",
    "notebook",
    "percent",
    "pit",
    "predicted",
    "reliability",
    "short",
    "sign",
    "style",
    "swatch",
]
