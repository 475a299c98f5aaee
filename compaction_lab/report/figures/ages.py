"""How far back an agent can still reach: scores by the age of a fact and by its place in what is sent, an arm a row."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compaction_lab.analysis.age_and_position import position_classes
from compaction_lab.analysis.misses import age_classes
from compaction_lab.report.figures.cells import coloured_cells
from compaction_lab.report.figures.layout import LABEL_WIDTH, canvas, lowest, middles, row_edges_in, thousands, titled
from compaction_lab.report.style import Look, figure_style, require

_AXES = {
    "age": ("tokens back in the untouched conversation", age_classes()),
    "position": ("place in what is sent, 0 first, 1 last", position_classes()),
}

_MANY = 5
"""Columns from which on their names are written smaller."""


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
    rows = drawable.rename(columns={"age": "class", "recall": "score", "references": "probes"})
    groups = list(rows.groupby(["model", "dataset"], sort=True))
    titles = [f"{model}, {dataset}" if len(groups) > 1 else "" for (model, dataset), _ in groups]
    xlabel = "tokens back to where it was last said"
    panels = [(title, xlabel, age_classes(), group) for title, (_, group) in zip(titles, groups, strict=True)]
    return _drawn(panels, look, _recall_title(rows, look), shared=True)


def retention(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw each arm's score by the age of the fact asked for and, below, by its place in what is sent.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.retention_by_age_and_position` returns; two panels a model and dataset.
    look
        Order and names of the arms; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows.
    """
    drawable = require(frame, "retention", ["arm", "model", "dataset", "by", "class", "score", "probes"])
    look = look or Look.of_arms(drawable["arm"])
    groups = list(drawable.groupby(["model", "dataset"], sort=True))
    panels = []
    for (model, dataset), group in groups:
        for by, (xlabel, classes) in _AXES.items():
            rows = group[group["by"] == by]
            if len(rows):
                panels.append((f"{model}, {dataset}" if len(groups) > 1 else "", xlabel, classes, rows))
    rows = drawable.assign(sum=drawable["score"] * drawable["probes"])[drawable["by"] == drawable["by"].iloc[0]]
    sums = rows.groupby("arm")[["sum", "probes"]].sum()
    return _drawn(panels, look, f"Facts answered, by age and by place: {lowest(sums['sum'] / sums['probes'], look)}")


def _drawn(
    panels: Sequence[tuple[str, str, list[str], pd.DataFrame]], look: Look, title: str, *, shared: bool = False
) -> Figure:
    arms = [arm for arm in look.arms if any(arm in set(rows["arm"]) for *_, rows in panels)]
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names)
        figure, all_axes = canvas(len(panels), max(0.9, edges[-1] + 0.35), look, sharex=shared)
        for axes, (heading, xlabel, classes, rows) in zip(all_axes, panels, strict=True):
            axes.set_title(heading)
            _table(axes, rows, arms, [name for name in classes if name in set(rows["class"].astype(str))], edges)
            axes.set_yticks(middles(edges), names, linespacing=1.0)
            axes.set_xlabel(xlabel if not shared or axes is all_axes[-1] else "")
        titled(figure, title, look)
    return figure


def _table(axes: Axes, rows: pd.DataFrame, arms: list[str], classes: list[str], edges: list[float]) -> None:
    rows = rows.assign(**{"class": rows["class"].astype(str)})
    values = rows.pivot_table("score", "arm", "class", observed=True).reindex(index=arms, columns=classes)
    coloured_cells(axes, values.to_numpy(float), edges)
    least, most = (rows.groupby("class")["probes"].agg(how).reindex(classes) for how in ("min", "max"))
    labels = [f"{name}\nn={_span(low, high)}" for name, low, high in zip(classes, least, most, strict=True)]
    axes.set_xticks([at + 0.5 for at in range(len(classes))], labels, fontsize=5.5 if len(classes) > _MANY else 6)


def _span(low: float, high: float) -> str:
    return thousands(high) if low == high else f"{thousands(low)}-{thousands(high)}"


def _recall_title(rows: pd.DataFrame, look: Look) -> str:
    sums = rows.assign(kept=rows["score"] * rows["probes"]).groupby("arm")[["kept", "probes"]].sum()
    recall = sums["kept"] / sums["probes"]
    worst = str(recall.idxmin())
    if recall.min() == 1:
        return "Everything the agent used again was still in sight, in every arm"
    return f"What the agent used again and could still read: least with {look.label(worst)} ({recall.min():.2f})"
