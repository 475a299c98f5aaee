"""How far back an agent could still reach: recall by the age of what it used, an arm a row."""

from __future__ import annotations

import math
from itertools import pairwise

import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from compaction_lab.analysis.misses import age_classes
from compaction_lab.report.figures.layout import LABEL_WIDTH, canvas, row_height_in, titled
from compaction_lab.report.style import Look, figure_style, require

_MAP = LinearSegmentedColormap.from_list("kept", ["#b3402a", "#f0c9a8", "#f7f5ef", "#9cc3c9", "#1f6f7f"])
_DARK = 0.13


def recall_by_age(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw reference recall by arm and age in tokens as a table of coloured cells.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.recall_by_age` returns; a panel for each model and dataset.
    look
        Order and names of the arms; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows.
    """
    drawable = require(frame, "recall_by_age", ["arm", "model", "dataset", "age", "recall", "references"])
    look = look or Look.of_arms(drawable["arm"])
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    ages = [age for age in age_classes() if age in set(drawable["age"].astype(str))]
    groups = list(drawable.groupby(["model", "dataset"], sort=True))
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = [0.0]
        for name in names:
            edges.append(edges[-1] + row_height_in([name]))
        figure, all_axes = canvas(len(groups), max(0.9, edges[-1]), look)
        for axes, ((model, dataset), group) in zip(all_axes, groups, strict=True):
            axes.set_title(f"{model}, {dataset}" if len(groups) > 1 else "")
            rows = group.assign(age=group["age"].astype(str))
            recalls = rows.pivot_table("recall", "arm", "age", observed=True)
            values = recalls.reindex(index=arms, columns=ages).to_numpy(float)
            axes.pcolormesh(range(len(ages) + 1), edges, values, cmap=_MAP, vmin=0, vmax=1, edgecolor="white")
            for row, (top, bottom) in enumerate(pairwise(edges)):
                for column, value in enumerate(values[row]):
                    ink = "white" if value < _DARK or value > 1 - _DARK else "black"
                    words = "" if math.isnan(value) else f"{value:.2f}"
                    at = (column + 0.5, (top + bottom) / 2)
                    axes.text(*at, words, ha="center", va="center", fontsize=6, color=ink)
            counts = rows.groupby("age")["references"].max()
            labels = [f"{age}\nn={int(counts.get(age, 0))}" for age in ages]
            axes.set_xticks([at + 0.5 for at in range(len(ages))], labels, fontsize=6)
            axes.set_yticks([(a + b) / 2 for a, b in pairwise(edges)], names, linespacing=1.0)
            axes.tick_params(length=0)
            axes.grid(visible=False)
            axes.set_ylim(edges[-1], 0)
        all_axes[-1].set_xlabel("tokens back to the newest message that says it")
        titled(figure, _title(drawable, look), look)
    return figure


def _title(rows: pd.DataFrame, look: Look) -> str:
    sums = rows.assign(kept=rows["recall"] * rows["references"]).groupby("arm")[["kept", "references"]].sum()
    recall = sums["kept"] / sums["references"]
    worst = str(recall.idxmin())
    if recall.min() == 1:
        return "Everything the agent used again was still in sight, in every arm"
    return f"What the agent used again and could still read: least with {look.label(worst)} ({recall.min():.2f})"
