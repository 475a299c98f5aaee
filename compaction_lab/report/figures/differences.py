"""Paired differences to the baseline with their intervals: a forest of arms, and along swept parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from compaction_lab.report.figures.cells import coloured_cells
from compaction_lab.report.figures.layout import LABEL_WIDTH, canvas, middles, row_edges_in, signed, titled
from compaction_lab.report.style import Look, figure_style, require
from compaction_lab.statistics.comparison import SIGNIFICANT

SHARES = ("score", "probe_score", "evidence_visible", "overflow", "reduction_vs_baseline")
"""Metrics whose differences are differences of shares; all others are drawn in percent of the baseline's mean."""

NAMES = {
    "whole_run_tokens": "all tokens",
    "input_tokens": "input tokens",
    "cost_usd": "cost",
    "score": "score",
    "probe_score": "probe score",
    "evidence_visible": "evidence in sight",
    "model_calls": "model calls",
}
_COLUMNS = ["arm", "baseline", "metric", "mean_baseline", "difference"]
_MINUS = "\N{MINUS SIGN}"
_LOG_FROM = 8
"""Swept values spread wider than this are drawn on a logarithmic axis."""
_MANY_TICKS = 8
_DIVERGING = LinearSegmentedColormap.from_list("less_more", ["#1b6ca8", "#b9d7ea", "#f7f5ef", "#f3c59f", "#c25400"])


def paired_differences(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw a forest: each arm's difference to the baseline with its interval, a panel a metric.

    A filled mark says that the difference was told apart from none (p adjusted over the arms).

    Parameters
    ----------
    frame
        What :func:`compaction_lab.compare` returns, several metrics below each other if wanted.
    look
        Colours and margin of the run's figures; derived from the frame when absent.

    Raises
    ------
    FigureError
        When fewer than two differences are known.
    """
    drawable = _relative(require(frame, "paired_differences", _COLUMNS))
    look = look or Look.of_arms([*drawable["baseline"], *drawable["arm"]])
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    metrics = list(dict.fromkeys(drawable["metric"]))
    with figure_style():
        names = [look.label(arm, LABEL_WIDTH) for arm in arms]
        edges = row_edges_in(names)
        places = middles(edges)
        figure, all_axes = canvas(len(metrics), max(0.7, edges[-1]) + 0.3, look, sharex=False)
        for axes, metric in zip(all_axes, metrics, strict=True):
            rows = drawable[drawable["metric"] == metric].set_index("arm")
            for arm, place in zip(arms, places, strict=True):
                if arm in rows.index:
                    _difference(axes, rows.loc[arm], place, arm, look)
            axes.axvline(0.0, color="0.4", linewidth=0.7, zorder=1)
            axes.set_yticks(places, names, linespacing=1.0)
            axes.set_ylim(edges[-1], edges[0])
            _dress(axes, axes.xaxis, metric, rows["baseline"].iloc[0], look)
            axes.set_xlabel(f"{axes.get_xlabel()}{_sessions(rows)}")
            axes.grid(visible=False, axis="y")
            axes.grid(visible=True, axis="x")
            axes.tick_params(axis="y", length=0)
        mark = partial(Line2D, [], [], color="0.3", marker="o", markersize=4)
        told = [mark(label=f"told apart (adjusted p < {SIGNIFICANT})")]
        key = [] if drawable["low"].isna().all() else [*told, mark(markerfacecolor="white", label="not told apart")]
        titled(figure, _forest_title(drawable, look), look, key)
    return figure


def parameter_sweep(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the difference to the baseline along a swept number, a line a strategy, a panel a metric and parameter.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.parameter_sweep` returns.
    look
        The run's margin; derived from the frame when absent.

    Raises
    ------
    FigureError
        When fewer than two differences are known.
    """
    drawable = _relative(require(frame, "parameter_sweep", ["strategy", "parameter", "value", "line", *_COLUMNS]))
    look = look or Look.of_arms([*drawable["baseline"], *drawable["arm"]])
    names = {
        pair: _line_name(*pair) for pair in dict.fromkeys(zip(drawable["strategy"], drawable["line"], strict=True))
    }
    lines = Look(
        tuple(dict.fromkeys([str(drawable["baseline"].iloc[0]), *names.values()])), str(drawable["baseline"].iloc[0])
    )
    groups = list(drawable.groupby(["parameter", "metric"], sort=False))
    with figure_style():
        figure, all_axes = canvas(len(groups), 1.55, look, sharex=False, sharey=False)
        for axes, ((parameter, metric), group) in zip(all_axes, groups, strict=True):
            for (strategy, line), rows in group.groupby(["strategy", "line"], sort=False):
                style = lines.line(names[strategy, line])
                ordered = rows.sort_values("value")
                axes.plot(ordered["value"], ordered["shown"], **style, markersize=3.5, zorder=3)
                axes.fill_between(
                    ordered["value"], ordered["low"], ordered["high"], color=style["color"], alpha=0.15, linewidth=0
                )
            axes.axhline(0.0, color="0.4", linewidth=0.7, zorder=1)
            _dress(axes, axes.yaxis, str(metric), str(group["baseline"].iloc[0]), look)
            _values(axes, sorted(set(group["value"])))
            axes.set_xlabel(str(parameter))
        key = [Line2D([], [], label=name, **lines.line(name)) for name in names.values()]
        columns = 2 if max(map(len, names.values())) <= LABEL_WIDTH + 6 else 1
        titled(figure, _sweep_title(drawable), look, key, columns)
    return figure


def parameter_map(frame: pd.DataFrame, look: Look | None = None) -> Figure:
    """Draw the difference to the baseline over two swept numbers as coloured cells, a panel a strategy.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.parameter_map` returns.
    look
        The run's margin; derived from the frame when absent.

    Raises
    ------
    FigureError
        When fewer than two differences are known.
    """
    places = ["row_parameter", "row_value", "column_parameter", "column_value"]
    drawable = _relative(require(frame, "parameter_map", ["strategy", *places, *_COLUMNS]))
    look = look or Look.of_arms([*drawable["baseline"], *drawable["arm"]])
    groups = list(drawable.groupby(["strategy", "metric"], sort=False))
    bound = float(drawable["shown"].abs().max()) or 1.0
    with figure_style():
        tallest = max(rows["row_value"].nunique() for _, rows in groups)
        figure, all_axes = canvas(len(groups), 0.24 * tallest + 0.5, look, sharex=False, sharey=False)
        for axes, ((strategy, metric), rows) in zip(all_axes, groups, strict=True):
            table = rows.pivot_table("shown", "row_value", "column_value")
            edges = [float(edge) for edge in range(len(table) + 1)]
            words = partial(signed, percent=str(metric) not in SHARES)
            limits = (-bound, bound)
            coloured_cells(axes, table.to_numpy(float), edges, cmap=_DIVERGING, limits=limits, words=words)
            axes.set_xticks([at + 0.5 for at in range(table.shape[1])], [f"{value:g}" for value in table.columns])
            axes.set_yticks([at + 0.5 for at in range(table.shape[0])], [f"{value:g}" for value in table.index])
            axes.set_xlabel(str(rows["column_parameter"].iloc[0]))
            axes.set_ylabel(str(rows["row_parameter"].iloc[0]))
            axes.set_title(str(strategy) if len(groups) > 1 else "")
        best = drawable.iloc[int(drawable["shown"].to_numpy().argmin())]
        name = NAMES.get(str(best["metric"]), str(best["metric"]))
        least = f"{signed(float(best['shown']), percent=str(best['metric']) not in SHARES)}"
        where = f"{best['row_parameter']}={best['row_value']:g}, {best['column_parameter']}={best['column_value']:g}"
        titled(figure, f"{name} against {look.label(str(best['baseline']))}: least {least} at {where}", look)
    return figure


def _relative(rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``shown, low, high``: in percent of the baseline's mean, or as they are for shares."""
    scale = np.where(rows["metric"].isin(SHARES), 1.0, 100.0 / rows["mean_baseline"].abs().replace(0.0, math.nan))
    ends = {name: rows.get(source, math.nan) for name, source in (("low", "ci_low"), ("high", "ci_high"))}
    made = rows.assign(shown=rows["difference"], **ends)
    for name in ("shown", "low", "high"):
        made[name] = made[name].astype(float) * scale
    return made


def _difference(axes: Axes, row: pd.Series, place: float, arm: str, look: Look) -> None:
    style = look.line(arm)
    color, marker = style["color"], style["marker"] if style["marker"] != "None" else "o"
    low, high, shown = (float(row[name]) for name in ("low", "high", "shown"))
    told = float(row.get("p_holm", math.nan)) < SIGNIFICANT
    face = color if told or math.isnan(low) else "white"
    if not math.isnan(low):
        axes.plot([low, high], [place, place], color=color, linewidth=1.2, solid_capstyle="butt", zorder=2)
    axes.plot([shown], [place], marker=marker, markersize=4.5, color=color, markerfacecolor=face, zorder=3)
    words = signed(shown, percent=str(row["metric"]) not in SHARES)
    axes.text(1.02, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=6.5)


def _dress(axes: Axes, axis: object, metric: str, baseline: str, look: Look) -> None:
    percent = metric not in SHARES
    name = NAMES.get(metric, metric)
    against = look.label(baseline) if baseline in look.arms else baseline
    words = f"{name}, {'% ' if percent else ''}against {against}"
    formatter = FuncFormatter(lambda value, _: f"{value:+g}".replace("-", _MINUS) if value else "0")
    if axis is axes.xaxis:
        axes.set_xlabel(words)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_formatter(formatter)
    else:
        axes.set_title(words)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.yaxis.set_major_formatter(formatter)


def _sessions(rows: pd.DataFrame) -> str:
    counts = sorted(set(rows["n_transcripts"].dropna().astype(int))) if "n_transcripts" in rows else []
    return f", n = {'-'.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}" if counts else ""


def _values(axes: Axes, values: Sequence[float]) -> None:
    """Put ticks at the swept values themselves, far apart ones on a logarithmic axis."""
    if values[0] > 0 and values[-1] / values[0] >= _LOG_FROM:
        axes.set_xscale("log", base=2)
    step = -(-len(values) // _MANY_TICKS)
    axes.xaxis.set_major_locator(FixedLocator(list(values[::step])))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _line_name(strategy: str, line: str) -> str:
    return f"{strategy.rsplit('/', 1)[-1]} {line}".strip()


def _forest_title(rows: pd.DataFrame, look: Look) -> str:
    baseline = str(rows["baseline"].iloc[0])
    against = look.label(baseline) if baseline in look.arms else baseline
    if "p_holm" not in rows or rows["p_holm"].isna().all():
        number = int(rows["n_transcripts"].max()) if "n_transcripts" in rows else 0
        few = f"{number} session{'s are' if number != 1 else ' is'} too few for an interval"
        return f"Differences to {against}: {few}"
    told = {
        str(
            metric
        ): f"{int((group['p_holm'] < SIGNIFICANT).sum())} of {len(group)} in {NAMES.get(str(metric), str(metric))}"
        for metric, group in rows.groupby("metric", sort=False)
    }
    return f"Arms told apart from {against}: {', '.join(told.values())}"


def _sweep_title(rows: pd.DataFrame) -> str:
    first = rows[rows["metric"] == rows["metric"].iloc[0]]
    best = first.loc[first["shown"].idxmin()]
    name = NAMES.get(str(best["metric"]), str(best["metric"]))
    at = f"{_line_name(str(best['strategy']), str(best['line']))} {best['parameter']}={best['value']:g}"
    return f"Along a parameter: least {name} with {at}"
