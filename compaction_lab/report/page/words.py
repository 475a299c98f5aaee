"""A run in plain words: what was compared, what was saved, what it cost, and what this many conversations can show."""

from __future__ import annotations

import pandas as pd

from compaction_lab import analysis
from compaction_lab.sweep.loading import Run

ENOUGH = 6
"""Transcripts from which a paired comparison can reach p < 0.05 (see compaction_lab.statistics)."""


def summary_words(run: Run) -> list[str]:
    """Return a few sentences about a run, for someone who reads no table."""
    summary = analysis.summary_table(run)
    baseline = analysis.baseline_arm(run.cells)
    transcripts = run.units["transcript"].nunique()
    arms = summary["arm"].nunique()
    conversations = f"{transcripts} conversation{'s' if transcripts != 1 else ''}"
    lines = [f"{arms} arms on {conversations}: {run.coverage}."]
    others = summary[summary["arm"] != baseline]
    saving = "whole-run saving incl. summaries %"
    if baseline is not None and len(others) and saving in others:
        lines.extend(_savings(others, saving))
    if transcripts < ENOUGH:
        lines.append(
            f"With {conversations} no difference between arms can be told from chance: that takes at least {ENOUGH}. "
            "Read the numbers as what happened here."
        )
    return lines


def _savings(others: pd.DataFrame, saving: str) -> list[str]:
    known = others.dropna(subset=[saving])
    if not len(known):
        return []
    by_arm = dict(zip(map(str, known["arm"]), map(float, known[saving]), strict=True))
    best = max(by_arm, key=lambda arm: by_arm[arm])
    fewest = f"The fewest tokens were sent by {best}: {by_arm[best]:.0f} % fewer than without compaction"
    lines = [f"{fewest}, summaries paid for."]
    worse = [arm for arm, saved in by_arm.items() if saved < 0]
    if worse:
        lines.append(f"Sent more than without compaction: {', '.join(worse)}.")
    return lines
