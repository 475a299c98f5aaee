"""Whole conversations as stacked bars: what the agent read, what it wrote, and what its summaries cost in tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from compaction_lab.report.figures.layout import (
    LABEL_WIDTH,
    canvas,
    middles,
    panels,
    row_edges_in,
    signed,
    thousands,
    titled,
)
from compaction_lab.report.style import Look, figure_style, require

_PARTS = {
    "agent_input_tokens": "agent input",
    "agent_output_tokens": "agent output",
    "summarizer_tokens": "summariser (in + out)",
}
_OUTPUT_ALPHA = 0.45
_BAR_IN = 0.15
_CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}


def total_tokens(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the tokens of a whole conversation by strategy, agent and summariser stacked.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.total_tokens` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows.
    """
    drawable = require(frame, "total_tokens", ["arm", "model", "dataset", "transcript", *_PARTS, "total_tokens"])
    look = look or Look.of_arms(drawable["arm"])
    arms = list(look.arms)  # an arm without a result keeps its row, and the row says so
    with figure_style():
        parts = panels(drawable, [*_PARTS, "total_tokens"], [])
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names)
        figure, all_axes = canvas(len(parts), max(0.7, edges[-1]), look)
        for axes, panel in zip(all_axes, parts, strict=True):
            axes.set_title(panel.title)
            _bars(axes, panel.rows.set_index("arm").reindex(arms), middles(edges), look)
            axes.set_yticks(middles(edges), names, linespacing=1.0)
        all_axes[0].set_ylim(edges[-1], edges[0])
        all_axes[0].set_xlim(right=max(float(panel.rows["total_tokens"].max()) for panel in parts) * 1.3)
        all_axes[-1].set_xlabel("tokens per conversation")
        ink = look.color(look.baseline) if look.baseline else "black"
        key = [
            Patch(facecolor=ink, label=_PARTS["agent_input_tokens"]),
            Patch(facecolor=ink, alpha=_OUTPUT_ALPHA, label=_PARTS["agent_output_tokens"]),
            Patch(facecolor="white", edgecolor=ink, hatch="//////", label=_PARTS["summarizer_tokens"]),
        ]
        titled(figure, _title(drawable, look), look, key, columns=3)
    return figure


def _bars(axes: Axes, rows: pd.DataFrame, places: Sequence[float], look: Look) -> None:
    totals = {str(arm): float(total) for arm, total in rows["total_tokens"].items()}
    base = totals.get(look.baseline or "", math.nan)
    for place, arm in zip(places, totals, strict=True):
        if math.isnan(totals[arm]):
            axes.text(0, place, " not run", va="center", fontsize=6.5, fontstyle="italic")
            continue
        color, left = look.color(arm), 0.0
        read, written, summarised = rows.loc[arm, list(_PARTS)].to_numpy(float)
        axes.barh(place, read, _BAR_IN, left=left, color=color)
        axes.barh(place, written, _BAR_IN, left=read, color=color, alpha=_OUTPUT_ALPHA, linewidth=0)
        if summarised:
            left = read + written
            axes.barh(
                place, summarised, _BAR_IN, left=left, color="white", edgecolor=color, hatch="//////", linewidth=0.6
            )
        change = "" if arm == look.baseline or math.isnan(base) else f"  {signed(100 * (totals[arm] / base - 1))}"
        words = f"{thousands(totals[arm])}{change}"
        at = (totals[arm], place)
        axes.annotate(words, at, (3, 0), textcoords="offset points", va="center", fontsize=6.5, bbox=_CLEAR)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tokens, _: thousands(tokens)))


def _title(rows: pd.DataFrame, look: Look) -> str:
    means = {str(arm): float(mean) for arm, mean in rows.groupby("arm")["total_tokens"].mean().items()}
    if look.baseline not in means or len(means) == 1:
        return "Tokens per conversation, summaries included"
    fewest = min(means, key=means.__getitem__)
    if fewest == look.baseline:
        return "Tokens per conversation: no arm sends fewer than the baseline"
    change = 100 * (1 - means[fewest] / means[look.baseline])
    return f"Tokens per conversation, summaries included: {look.label(fewest)} needs {change:.0f} % fewer"
