"""When each arm fired: a tick a firing along the calls of every session, an arm a strip."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from compaction_lab.report.figures.layout import LABEL_WIDTH, canvas, middles, row_edges_in, titled
from compaction_lab.report.style import Look, figure_style, require

MAX_SESSIONS = 30
"""Sessions drawn for each arm; of more, those with the most calls."""

_PITCHES_IN = (0.03, 0.055)
"""Distance of two sessions' lines: at least, at most."""
_HEIGHT_IN = 6.0
"""Height that all sessions of all arms may take before fewer are drawn."""
_STRONG = 0.5
"""Share of the context given back from which a tick is thick."""
_THICK, _THIN = 1.5, 0.5


def firing_timeline(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw each session as a line as long as its calls, a tick where the arm fired, thick where it gave half back.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.firing_timeline` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows.
    """
    unit = ["model", "dataset", "seed", "transcript", "trial"]
    drawable = require(frame, "firing_timeline", ["arm", *unit, "calls"])
    look = look or Look.of_arms(drawable["arm"])
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    lengths = drawable.groupby(unit)["calls"].max()
    count = min(MAX_SESSIONS, len(lengths), max(3, int(_HEIGHT_IN / len(arms) / _PITCHES_IN[0])))
    pitch = min(_PITCHES_IN[1], max(_PITCHES_IN[0], _HEIGHT_IN / len(arms) / count))
    sessions = list(lengths.sort_values(ascending=False, kind="stable").index[:count])
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names, pitch * (count + 1))
        figure, (axes,) = canvas(1, edges[-1], look)
        for arm, middle in zip(arms, middles(edges), strict=True):
            rows = drawable[drawable["arm"] == arm].set_index(unit)
            first = middle - pitch * (count - 1) / 2
            for place, session in enumerate(sessions):
                if session in rows.index:
                    _session(axes, rows.loc[[session]], first + place * pitch, look.color(arm), pitch * 72 * 0.65)
        axes.set_ylim(edges[-1], 0.0)
        axes.set_yticks(middles(edges), names, linespacing=1.0)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_xlim(0, float(lengths.max()) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=2))
        shown = f"the {count} longest of {len(lengths)} sessions" if len(lengths) > count else "a line a session"
        axes.set_xlabel(f"model call ({shown})")
        tick = partial(Line2D, [], [], color="0.3", marker="|", markersize=5, linestyle="none")
        key = [
            tick(markeredgewidth=_THICK, label="half or more given back"),
            tick(markeredgewidth=_THIN, label="less given back"),
        ]
        titled(figure, _title(drawable, look), look, key)
    return figure


def _session(axes: Axes, rows: pd.DataFrame, place: float, color: str, tick_pt: float) -> None:
    axes.plot([1, int(rows["calls"].iloc[0])], [place, place], color="0.82", linewidth=0.5, zorder=1)
    fired = rows.dropna(subset=["call"])
    strong = fired["reclaimed_share"].fillna(0.0) >= _STRONG
    for part, width in ((fired[strong], _THICK), (fired[~strong], _THIN)):
        at = [place] * len(part)
        axes.plot(part["call"], at, "|", color=color, zorder=2, markersize=tick_pt, markeredgewidth=width)


def _title(rows: pd.DataFrame, look: Look) -> str:
    firings = rows.dropna(subset=["call"]).groupby("arm").size()
    if firings.empty:
        return "When each arm fired: none ever did on these sessions"
    never = [arm for arm in look.arms if arm in set(rows["arm"]) and arm not in firings.index and arm != look.baseline]
    silent = f"; {len(never)} never" if never else ""
    return f"When each arm fired: most often {look.label(str(firings.idxmax()))} ({firings.max()} times){silent}"
