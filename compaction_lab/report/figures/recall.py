"""What each arm still knows: recall of planted or catalog facts with an interval, tools off."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from compaction_lab.report.figures.layout import LABEL_WIDTH, canvas, lowest, middles, row_edges_in, titled
from compaction_lab.report.style import Look, figure_style, require


def probe_recall(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw recall by arm as a dot with its interval, the evidence still in sight as an open diamond.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.probe_recall` returns; a panel for each model and dataset.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows.
    """
    drawable = require(frame, "probe_recall", ["arm", "model", "dataset", "recall", "low", "high", "probes"])
    look = look or Look.of_arms(drawable["arm"])
    arms = list(look.arms)  # an arm without a result keeps its row, and the row says so
    groups = list(drawable.groupby(["model", "dataset"], sort=True))
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names, 0.25)
        figure, all_axes = canvas(len(groups), max(0.7, edges[-1]), look)
        for axes, ((model, dataset), group) in zip(all_axes, groups, strict=True):
            axes.set_title(f"{model}, {dataset}" if len(groups) > 1 else "")
            _dots(axes, group, arms, middles(edges), look)
            axes.set_yticks(middles(edges), names, linespacing=1.0)
            axes.grid(visible=False, axis="y")
            axes.grid(visible=True, axis="x")
            axes.tick_params(axis="y", length=0)
        all_axes[0].set_ylim(edges[-1], edges[0] - 0.03)
        all_axes[0].set_xlim(-0.02, 1.02)
        all_axes[-1].xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:g}"))
        all_axes[-1].set_xlabel("share of probes, tools off")
        ink = look.color(look.baseline) if look.baseline else "black"
        intervals = ", ".join(sorted(set(drawable.get("interval", pd.Series(dtype=str)).dropna())))
        key = [
            Line2D(
                [], [], color=ink, marker="o", markersize=4.5, label=f"answered right ({intervals})".replace(" ()", "")
            ),
            Line2D([], [], color=ink, marker="d", linestyle="none", markerfacecolor="white", label="evidence in sight"),
        ]
        titled(
            figure,
            f"Facts recalled with tools off: {lowest(drawable.groupby('arm')['recall'].mean(), look)}",
            look,
            key,
        )
    return figure


def _dots(axes: Axes, group: pd.DataFrame, arms: list[str], places: list[float], look: Look) -> None:
    columns = ["recall", "low", "high", "probes", "evidence_visible"]
    rows = group.set_index("arm").reindex(index=arms, columns=columns).to_numpy(float)
    for place, arm, (recall, low, high, probes, visible) in zip(places, arms, rows, strict=True):
        if math.isnan(recall):
            axes.text(0, place, "not probed", va="center", fontsize=6.5, fontstyle="italic")
            continue
        color = look.color(arm)
        marker = "o" if arm == look.baseline else look.line(arm)["marker"]
        axes.plot([low, high], [place, place], color=color, linewidth=1.6, solid_capstyle="butt")
        axes.plot([recall], [place], color=color, marker=marker, markersize=4.5, clip_on=False)
        axes.plot([visible], [place - 0.08], "d", markersize=3.2, markerfacecolor="white", color=color, clip_on=False)
        axes.text(1.04, place, f"{recall:.2f}  n={probes:.0f}", va="center", fontsize=6.5)
