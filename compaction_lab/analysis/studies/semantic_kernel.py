"""The article on the laptop conversation (Semantic Kernel): how far a run of ours is from what it prints (R11)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from compaction_lab.analysis.arms import baseline_arm, family
from compaction_lab.analysis.published import ARTICLE, SOURCE, PublishedReduction
from compaction_lab.analysis.studies.base import DataAbsent, Line, Measured, Study, line
from compaction_lab.analysis.summary import summary_table
from compaction_lab.errors import StoreError
from compaction_lab.sweep.loading import load_run

METHOD = (
    "input tokens a turn against the uncompacted arm, turns 2 to the last, in a finished run of "
    "`experiment=laptop_catalog`; the conversation, its catalogue and its answers are our own. No bar: the article "
    "names no model and prints two percentages."
)
_STATISTICS = {"mean": "mean reduction %", "peak": "peak reduction %"}


def recompute(run_folder: Path) -> Study:
    """Return the distance between a run and the article.

    Parameters
    ----------
    run_folder
        A run of ``experiment=laptop_catalog``.

    Raises
    ------
    DataAbsent
        There is no such run, or it lacks the baseline arm.
    """
    try:
        run = load_run(run_folder)
    except StoreError as error:
        raise DataAbsent(
            f"study semantic_kernel: data absent: {error} Make one with `compaction-lab run experiment=laptop_catalog`"
        ) from error
    if baseline_arm(run.cells) is None:
        raise DataAbsent(f"study semantic_kernel: run {run.name} has no baseline arm; run it without baseline=null")
    summary = summary_table(run)
    lines = [made for row in ARTICLE for made in _beside(row, summary)]
    simulated = " A stub model answered: the run is simulated." if run.simulated else ""
    return Study(
        "semantic_kernel",
        "The laptop conversation beside the article",
        SOURCE,
        METHOD + simulated,
        [*lines, *_own(summary)],
        (
            (
                "A peak is not a saving: the article's 93 % is reached in the turn or two after a summary, while the "
                "whole run, summary calls included, saves far less."
            ),
            _extent(summary),
        ),
    )


def _beside(published: PublishedReduction, summary: pd.DataFrame) -> list[Line]:
    """Return a line an arm of a strategy that the article has; a published range is shown by its middle."""
    column = _STATISTICS[published.statistic]
    lines = []
    for row in summary[summary["arm"].map(family) == published.strategy].to_dict("records"):
        ours = float(row[column])
        low, high = published.low_percent, published.high_percent
        nearest = None if low is None or high is None else min(max(ours, low), high)
        beside = "" if nearest is None else f"; ours is {_distance(ours, nearest)}"
        middle = None if low is None or high is None else (low + high) / 2
        note = f"Article: {published.statement}{beside}."
        if published.statistic == "peak" and nearest is not None:
            note += " A peak grows with the length of the answers before a summary and shrinks with the summary's."
        lines.append(
            line(
                "R11",
                f"{row['arm']}: {published.statistic} reduction a turn",
                "%",
                middle,
                Measured(ours, n=int(row["transcripts"])),
                note=note,
                digits=1,
            )
        )
    return lines


def _distance(ours: float, nearest: float) -> str:
    if ours == nearest:
        return "inside it"
    return f"{abs(ours - nearest):.1f} points {'above' if ours > nearest else 'below'} it"


def _own(summary: pd.DataFrame) -> list[Line]:
    column = "whole-run saving incl. summaries %"
    return [
        line(
            "R11",
            f"{row['arm']}: whole-run saving, summary calls included",
            "%",
            None,
            Measured(float(row[column]), n=int(row["transcripts"])),
            digits=1,
        )
        for row in summary.to_dict("records")
        if not pd.isna(row[column])
    ]


def _extent(summary: pd.DataFrame) -> str:
    return f"Means over {int(summary['transcripts'].max())} transcripts, one a language: too few for an interval."
