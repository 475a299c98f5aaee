"""Lines along the turns (or calls) of a conversation: tokens, shares, cost and score, an arm a line."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from compaction_lab.analysis.arms import arm_order
from compaction_lab.analysis.run_tables import CONVERSATION
from compaction_lab.errors import FigureError
from compaction_lab.report.figures.layout import (
    LABEL_WIDTH,
    MAX_NAMED_LINES,
    MAX_PANELS,
    Panel,
    canvas,
    in_thousands,
    label_lines,
    line_key,
    lowest,
    panels,
    thousands,
    titled,
)
from compaction_lab.report.style import Look, figure_style, require

_LABEL_LINE_IN = 0.125


def _lines(
    frame: pd.DataFrame,
    value: str,
    *,
    name: str,
    title: Callable[[pd.DataFrame, Look], str],
    ylabel: str,
    look: Look | None,
    dress: Callable[[Axes], None] | None = None,
    limits: tuple[float, float | None] = (0.0, None),
) -> Figure:
    along = "call" if "call" in frame else "turn"
    drawable = require(frame, name, ["arm", "model", "dataset", "transcript", along, value])
    if drawable[along].nunique() < 2:  # noqa: PLR2004 - a line needs two points
        message = (
            f"Figure {name!r}: all rows lie at {along} {drawable[along].iloc[0]}, a line needs two. "
            "A session with a single user turn can be shown by call instead (along='call' in the analysis)."
        )
        raise FigureError(message)
    look = look or Look.of_arms(drawable["arm"])
    arms = arm_order(drawable["arm"], look.baseline)
    with figure_style():
        parts = panels(drawable, [value], [along])
        names = sum(look.label(arm, LABEL_WIDTH).count("\n") + 1 for arm in arms) if len(arms) <= MAX_NAMED_LINES else 0
        height = max(1.55 if len(parts) > 1 else 2.0, names * _LABEL_LINE_IN + 0.1)
        figure, all_axes = canvas(len(parts), height, look)
        ends = {
            axes: _draw(axes, panel, arms, (along, value), look) for axes, panel in zip(all_axes, parts, strict=True)
        }
        low, high = limits
        for axes in all_axes:
            axes.set_ylabel(ylabel)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=2))
            if dress is not None:
                dress(axes)
        first = all_axes[0]
        top = first.get_ylim()[1] if high is None else high
        least = min(low, *(float(panel.rows[value].min()) for panel in parts))
        first.set_ylim(least - 0.02 * (top - least), top)
        first.set_xlim(float(drawable[along].min()) - 0.5, float(drawable[along].max()) + 0.5)
        all_axes[-1].set_xlabel(f"{along} of the conversation")
        named = len(arms) <= MAX_NAMED_LINES
        key = [] if named else line_key(arms, look)
        columns = 2 if max(len(look.label(arm)) for arm in arms) <= LABEL_WIDTH + 6 else 1
        titled(figure, title(drawable, look), look, key, columns)
        if named:
            label_lines(figure, ends, look)
    return figure


def _draw(
    axes: Axes, panel: Panel, arms: list[str], columns: tuple[str, str], look: Look
) -> dict[str, tuple[float, float]]:
    """Draw one panel's lines, the first widest so that lines that coincide all show; return where they end."""
    along, value = columns
    axes.set_title(panel.title)
    ends = {}
    for place, arm in enumerate(arms):
        rows = panel.rows[panel.rows["arm"] == arm].sort_values(along)
        if rows.empty:
            continue
        every = max(1, len(rows) // 7)
        width = 2.0 - 1.1 * place / max(1, len(arms) - 1)
        marks = (place % every, every)
        axes.plot(rows[along], rows[value], **look.line(arm), linewidth=width, markevery=marks, zorder=3 + place / 100)
        ends[arm] = (float(rows[along].iloc[-1]), float(rows[value].iloc[-1]))
    return ends


def _percent(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0f} %".replace("-", "\N{MINUS SIGN}")))


def input_tokens_per_turn(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw input tokens a turn by strategy.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.input_tokens_per_turn` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When the frame has fewer than two rows or turns.
    """

    def title(rows: pd.DataFrame, look: Look) -> str:
        base = rows[rows["arm"] == look.baseline]
        if base.empty:
            return "Input tokens per turn"
        drawn = pd.concat(panel.rows for panel in panels(base, ["input_tokens"], ["turn"]))
        return f"Input tokens per turn: {_baseline_name(look)} reaches {thousands(float(drawn['input_tokens'].max()))}"

    return _lines(
        frame,
        "input_tokens",
        name="input_tokens_per_turn",
        title=title,
        ylabel="input tokens per turn",
        look=look,
        dress=in_thousands,
    )


def input_tokens_per_call(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw input tokens a model call by strategy, for replays of sessions with few user turns.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.input_tokens_per_call` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.
    """

    def title(rows: pd.DataFrame, look: Look) -> str:
        del rows, look
        return "Input tokens per model call"

    return _lines(
        frame,
        "input_tokens",
        name="input_tokens_per_call",
        title=title,
        ylabel="input tokens per call",
        look=look,
        dress=in_thousands,
    )


def percent_of_baseline(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw each turn's input tokens as a percentage of the baseline arm's.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.reduction_per_turn` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.
    """

    def title(rows: pd.DataFrame, look: Look) -> str:
        return f"Input tokens per {'call' if 'call' in rows else 'turn'} as % of {_baseline_name(look)}"

    return _lines(
        frame,
        "percent_of_baseline",
        name="percent_of_baseline",
        title=title,
        ylabel="% of the baseline",
        look=look,
        dress=_percent,
    )


def reduction_vs_baseline(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw how many percent fewer input tokens each turn sends than the baseline arm's.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.reduction_per_turn` returns; the baseline itself is not drawn.
    look
        Colours and margin of the run's figures; derived from the frame when absent.
    """

    def title(rows: pd.DataFrame, look: Look) -> str:
        along = "call" if "call" in rows else "turn"
        best = rows.groupby(["arm", along])["reduction_percent"].mean()
        top = best.reset_index().loc[int(best.to_numpy().argmax())]
        saving = f"{best.max():.0f} % at best ({look.label(str(top['arm']))}, {along} {top[along]})"
        return f"Reduction of input tokens vs {_baseline_name(look)}: {saving}"

    shown = look or Look.of_arms(require(frame, "reduction_vs_baseline", ["arm"], 1)["arm"])
    return _lines(
        frame[frame["arm"] != shown.baseline],
        "reduction_percent",
        name="reduction_vs_baseline",
        title=title,
        ylabel="fewer input tokens",
        look=shown,
        dress=_percent,
        limits=(0.0, 100.0),
    )


def cumulative_cost(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the cost so far, summaries included, turn by turn.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.cumulative_cost` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.
    """

    def title(rows: pd.DataFrame, look: Look) -> str:
        totals = rows.groupby(["arm", "model", "dataset", "transcript"])["cumulative_cost_usd"].max()
        means = totals.groupby("arm").mean()
        return f"Cost so far, summaries included: cheapest {look.label(str(means.idxmin()))} (${means.min():.3g})"

    drawable = require(frame, "cumulative_cost", ["cumulative_cost_usd"])
    kinds = sorted(str(kind) for kind in drawable["cost_kind"].dropna().unique()) if "cost_kind" in drawable else []
    kind = f" ({', '.join(kinds)})" if kinds else ""

    return _lines(
        _carried_forward(drawable, "cumulative_cost_usd"),
        "cumulative_cost_usd",
        name="cumulative_cost",
        title=title,
        ylabel=f"USD so far{kind}",
        look=look,
    )


def _carried_forward(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Let a conversation that has ended keep its last sum, so that a mean over many never falls when one ends."""
    along = "call" if "call" in rows else "turn"
    keys = ["arm", *CONVERSATION]
    if len(rows[CONVERSATION].drop_duplicates()) <= MAX_PANELS:
        return rows
    table = rows.pivot_table(value, keys, along, observed=True).ffill(axis="columns")
    return table.reset_index().melt(keys, var_name=along, value_name=value).dropna(subset=[value])


def rubric_per_turn(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the rubric score of each judged turn.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.rubric_per_turn` returns.
    look
        Colours and margin of the run's figures; derived from the frame when absent.
    """

    def title(rows: pd.DataFrame, look: Look) -> str:
        means = rows.groupby("arm")["score"].mean()
        return f"Rubric score per turn: {lowest(means, look)}"

    return _lines(
        frame,
        "score",
        name="rubric_per_turn",
        title=title,
        ylabel="rubric score (0 to 1)",
        look=look,
        limits=(0.0, 1.04),
    )


def _baseline_name(look: Look) -> str:
    if look.baseline is None:
        return "the baseline"
    return "Basic" if look.baseline == "none" else look.label(look.baseline)
