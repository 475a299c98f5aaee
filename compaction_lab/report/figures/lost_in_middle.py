"""Accuracy by place, each arm and length a line with its intervals, beside the published curves when given."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from compaction_lab.analysis.lost_in_middle import published_beside, published_curves
from compaction_lab.report.figures.layout import canvas, titled
from compaction_lab.report.style import Look, figure_style, require

_HEIGHT_IN = 1.7
_PUBLISHED = "0.6"
_APART = 0.009


def accuracy_by_place(
    frame: pd.DataFrame, look: Look | None = None, *, published: pd.DataFrame | None = None
) -> Figure:
    """Draw accuracy over the place of the answer, a panel for each dataset and a line for each arm.

    Parameters
    ----------
    frame
        What :func:`compaction_lab.analysis.lost_in_middle.accuracy_by_place` returns; rows of ``shown`` ``oracle`` and
        ``none`` are drawn as level lines in every panel.
    look
        Colours and margin of the run's figures; derived from the frame when absent.
    published
        Rows of :func:`compaction_lab.analysis.lost_in_middle.published_curves` to draw in grey in every panel, instead
        of those of each panel's own task and length.

    Raises
    ------
    FigureError
        When the frame has fewer than two places.
    """
    drawable = require(frame, "accuracy_by_place", ["arm", "dataset", "place", "accuracy", "low", "high"])
    look = look or Look.of_arms(frame["arm"])
    if "reader" in drawable:
        readers = ", ".join(sorted(drawable["reader"].astype(str).unique()))
        look = replace(look, note=" · ".join(filter(None, [look.note, f"read by {readers}"])))
    arms = [arm for arm in look.arms if arm in set(drawable["arm"])]
    level = frame[frame["shown"] != "full"].dropna(subset=["accuracy"])
    if "items" in drawable:
        drawable = drawable.sort_values("items", kind="stable")
    groups = list(drawable.groupby("dataset", sort=False))
    shown = _beside(drawable) if published is None else published
    with figure_style():
        figure, all_axes = canvas(len(groups), _HEIGHT_IN, look)
        for axes, (dataset, group) in zip(all_axes, groups, strict=True):
            axes.set_title(str(dataset) if len(groups) > 1 else "")
            _published(axes, _beside(group) if published is None else published)
            for _, line in level.iterrows():
                axes.axhline(line["accuracy"], color="0.35", linewidth=0.7, linestyle=_dashes(str(line["shown"])))
            for number, arm in enumerate(arms):
                rows = group[group["arm"] == arm].sort_values("place")
                _line(axes, arm, rows, look, _APART * (number - (len(arms) - 1) / 2))
            axes.set_ylabel("right answers")
        all_axes[0].set_ylim(-0.03, 1.03)
        all_axes[0].set_xlim(-0.03, 1.03)
        all_axes[0].yaxis.set_major_formatter(PercentFormatter(1.0))
        all_axes[-1].set_xlabel("place of the answer, 0 first, 1 last")
        titled(figure, f"Right answers by place: {_worst(drawable)}", look, _key(arms, level, shown, look))
    return figure


def _line(axes: Axes, arm: str, rows: pd.DataFrame, look: Look, aside: float) -> None:
    """Draw an arm's curve, a little aside so that the intervals of several arms at one place can be told apart."""
    style = look.line(arm)
    axes.plot(rows["place"] + aside, rows["accuracy"], **style, markersize=3.5)
    axes.vlines(rows["place"] + aside, rows["low"], rows["high"], color=look.color(arm), linewidth=0.8)


def _beside(rows: pd.DataFrame) -> pd.DataFrame:
    return published_beside(rows) if {"task", "items"} <= set(rows) else published_curves().head(0)


def _published(axes: Axes, published: pd.DataFrame) -> None:
    for _, rows in published.dropna(subset=["place"]).groupby(["items", "reader"]):
        ordered = rows.sort_values("place")
        axes.plot(ordered["place"], ordered["accuracy"], color=_PUBLISHED, linewidth=0.6, marker=".", markersize=2)


def _dashes(shown: str) -> Literal["--", ":"]:
    return "--" if shown == "oracle" else ":"


def _worst(rows: pd.DataFrame) -> str:
    least = rows.sort_values("accuracy").to_dict("records")[0]
    return f"lowest {least['accuracy']:.0%} at {least['place']:.2f} (n = {least['answers']:.0f})"


def _key(arms: list[str], level: pd.DataFrame, published: pd.DataFrame, look: Look) -> list[Line2D]:
    key = [Line2D([], [], label=look.label(arm), **look.line(arm)) for arm in arms]
    words = {"oracle": "answering item alone", "none": "closed book"}
    key += [
        Line2D([], [], color="0.35", linewidth=0.7, linestyle=_dashes(shown), label=words[shown])
        for shown in level["shown"].unique()
    ]
    if len(published):
        key.append(Line2D([], [], color=_PUBLISHED, linewidth=0.6, label="Liu et al. (TACL 2024), other models"))
    return key
