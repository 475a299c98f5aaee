"""Cost against recall, an arm a dot with its intervals, and the line of those that no other arm beats on both."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compaction_lab.errors import FigureError
from compaction_lab.report.figures.layout import canvas, titled
from compaction_lab.report.style import Look, figure_style, require

_CLOSE = 0.004


def frontier(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw cost as a percentage of the baseline's against recall.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.frontier` returns; a panel for each model and dataset.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When fewer than two arms have both numbers.
    """
    if len(frame) and "recall" in frame and frame["recall"].isna().all():
        raise FigureError(
            "Figure 'frontier': nothing says what was lost: in these sessions the agent used no value of an earlier "
            "message again, and no probe was asked. `compaction-lab probes FILE --out probed.jsonl` makes questions; "
            "run on what it writes."
        )
    drawable = require(frame, "frontier", ["arm", "model", "dataset", "cost_percent", "recall"])
    look = look or Look.of_arms(drawable["arm"])
    groups = list(drawable.groupby(["model", "dataset"], sort=True))
    with figure_style():
        figure, all_axes = canvas(len(groups), 2.5, look)
        for axes, ((model, dataset), group) in zip(all_axes, groups, strict=True):
            axes.set_title(f"{model}, {dataset}" if len(groups) > 1 else "")
            best = group[group["on_frontier"]].sort_values("cost_percent")
            axes.plot(best["cost_percent"], best["recall"], color="0.75", linewidth=2.5, zorder=1)
            for row in group.to_dict("records"):
                arm = str(row["arm"])
                color = look.color(arm)
                marker = "o" if arm == look.baseline else look.line(arm)["marker"]
                x, y = float(row["cost_percent"]), float(row["recall"])
                for low, high, flat in (("cost_low", "cost_high", True), ("recall_low", "recall_high", False)):
                    ends = [float(row[low]), float(row[high])]
                    if not any(map(math.isnan, ends)):
                        axes.plot(*((ends, [y, y]) if flat else ([x, x], ends)), color=color, linewidth=0.7, alpha=0.6)
                face = color if row["on_frontier"] else "white"
                axes.plot([x], [y], marker=marker, markersize=5, color=color, markerfacecolor=face, zorder=4)
            axes.set_ylabel(f"{_recall_of(group)} recall")
            axes.set_ylim(min(0.0, float(group["recall"].min())) - 0.02, 1.04)
            axes.axvline(100.0, color="0.5", linewidth=0.6, linestyle=":")
        all_axes[-1].set_xlabel("cost of a session, % of not compacting")
        arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
        key = [_entry(arm, drawable, look) for arm in arms]
        columns = 1 if max(len(look.label(arm)) for arm in arms) > 30 else 2  # noqa: PLR2004 - half a column of print
        titled(figure, _title(drawable, look), look, key, columns)
    return figure


def _recall_of(rows: pd.DataFrame) -> str:
    return str(rows["recall_of"].iloc[0]) if "recall_of" in rows else "reference"


def _entry(arm: str, rows: pd.DataFrame, look: Look) -> Line2D:
    best = bool(rows.loc[rows["arm"] == arm, "on_frontier"].any())
    color = look.color(arm)
    marker = "o" if arm == look.baseline else look.line(arm)["marker"]
    face = color if best else "white"
    label = look.label(arm)
    return Line2D([], [], color=color, marker=marker, linestyle="none", markerfacecolor=face, label=label)


def _title(rows: pd.DataFrame, look: Look) -> str:
    cheaper = rows[rows["on_frontier"] & (rows["cost_percent"] < 100 * (1 - _CLOSE))]
    if cheaper.empty:
        return "Cost against recall: no arm is cheaper than not compacting"
    names = sorted(set(cheaper["arm"]))
    few = look.label(names[0]) if len(names) == 1 else f"{len(names)} arms"
    return f"Cost against recall: {few} cheaper and beaten by none (filled)"
