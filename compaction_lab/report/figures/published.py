"""Published numbers beside recomputed ones: how far each of ours lies from what was printed."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter

from compaction_lab.report.figures.layout import canvas, middles, row_edges_in, titled
from compaction_lab.report.style import Look, figure_style, require

_MARKS = {"PASS": ("o", "0072B2"), "explained": ("D", "E69F00"), "DIFFERS": ("X", "D55E00"), "no bar": ("s", "7F7F7F")}
"""Marker and colour of a verdict, most reassuring first."""
_LINEAR_PERCENT = 0.1
"""Deviations up to this are drawn to scale, larger ones by their logarithm."""
_TICKS = (-10, -1, -0.1, 0, 0.1, 1, 10)


def published_against_ours(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw how many percent each recomputed number lies from the published one, a row a study.

    Parameters
    ----------
    frame
        Lines of study tables with their ``study, published, ours, verdict``; those without both numbers are left out.
    look
        The figure's width and margin.

    Raises
    ------
    FigureError
        When fewer than two lines have both numbers.
    """
    drawable = require(frame, "published_against_ours", ["study", "published", "ours", "verdict"])
    drawable = drawable[drawable["published"] != 0]
    percent = 100.0 * (drawable["ours"] - drawable["published"]) / drawable["published"].abs()
    drawable = drawable.assign(percent=percent)
    studies = list(dict.fromkeys(drawable["study"]))
    with figure_style():
        edges = row_edges_in([str(study) for study in studies], 0.3)
        figure, (axes,) = canvas(1, edges[-1] + 0.1, look or Look(()))
        for study, middle in zip(studies, middles(edges), strict=True):
            rows = drawable[drawable["study"] == study].sort_values("percent")
            for at, (value, verdict) in enumerate(zip(rows["percent"], rows["verdict"], strict=True)):
                marker, color = _MARKS.get(str(verdict), _MARKS["no bar"])
                shift = 0.09 * (at % 3 - 1)
                axes.plot([value], [middle + shift], marker, color=f"#{color}", markersize=3, alpha=0.8)
            axes.text(1.02, middle, f"n={len(rows)}", transform=axes.get_yaxis_transform(), va="center", fontsize=6.5)
        axes.axvline(0.0, color="0.4", linewidth=0.7, zorder=1)
        axes.set_xscale("symlog", linthresh=_LINEAR_PERCENT)
        axes.xaxis.set_major_locator(FixedLocator(_TICKS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "\N{MINUS SIGN}")))
        axes.set_xlabel("difference of ours to the published number, %")
        axes.set_yticks(middles(edges), [str(study) for study in studies])
        axes.set_ylim(edges[-1], 0.0)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        mark = partial(Line2D, [], [], linestyle="none", markersize=3.5)
        used = [name for name in _MARKS if name in set(drawable["verdict"])]
        key = [mark(marker=_MARKS[name][0], color=f"#{_MARKS[name][1]}", label=name) for name in used]
        passed = int((drawable["verdict"] == "PASS").sum())
        title = f"Recomputed against published: {passed} of {len(drawable)} numbers within their bar"
        titled(figure, title, look or Look(()), key, columns=4)
    return figure
