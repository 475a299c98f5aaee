"""The context call by call in one session, an arm a strip: what was sent, what there was, and where the arm fired."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compaction_lab.report.figures.layout import thousands, titled
from compaction_lab.report.style import Look, figure_style, require

_STRIP_IN = 0.46
_LABEL = 66
"""Characters of an arm's name that fit above its strip."""


def context_over_calls(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the size of every request of one session by arm, with a mark at each firing.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.context_over_calls` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows.
    """
    columns = ["arm", "transcript", "call", "context_tokens", "history_tokens", "fired"]
    drawable = require(frame, "context_over_calls", columns)
    look = look or Look.of_arms(drawable["arm"])
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    top = float(drawable["history_tokens"].max())
    with figure_style():
        figure = Figure(figsize=(look.width_in, _STRIP_IN * len(arms) + 0.6), layout="constrained")
        grid = figure.subplots(len(arms), 1, sharex=True, sharey=True, squeeze=False)
        for axes, arm in zip(grid[:, 0], arms, strict=True):
            rows = drawable[drawable["arm"] == arm].sort_values("call")
            color = look.color(arm)
            axes.fill_between(rows["call"], rows["whole_tokens"], color="0.92", linewidth=0, step="mid")
            axes.fill_between(rows["call"], rows["context_tokens"], color=color, alpha=0.35, linewidth=0, step="mid")
            axes.step(rows["call"], rows["context_tokens"], where="mid", color=color, linewidth=0.9)
            fired = rows[rows["fired"]]
            axes.plot(fired["call"], [top * 1.02] * len(fired), marker=7, linestyle="none", markersize=2.5, color=color)
            label = look.label(arm)
            label = label if len(label) <= _LABEL else f"{label[:_LABEL]}…"
            axes.set_title(label, loc="left", fontsize=5.8, pad=1.5, color=color)
            axes.grid(visible=False)
            axes.set_yticks([0, top], ["0", thousands(top)], fontsize=5.5)
            axes.tick_params(length=0)
        grid[0, 0].set_ylim(0, top * 1.12)
        grid[-1, 0].set_xlabel(f"model call of session {drawable['transcript'].iloc[0]}")
        key = [
            Line2D([], [], color="0.85", linewidth=5, label="not compacted"),
            Line2D([], [], color="0.3", marker=7, linestyle="none", label="fired"),
        ]
        most = drawable.groupby("arm")["fired"].sum()
        title = f"Tokens sent call by call; fires most: {look.label(str(most.idxmax()))} ({int(most.max())} times)"
        titled(figure, title, look, key)
    return figure
