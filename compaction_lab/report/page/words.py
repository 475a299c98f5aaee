"""A run in plain words: what was compared, what was saved, what it cost, and what this many conversations can show."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from compaction_lab import analysis
from compaction_lab.sweep.loading import Run

ENOUGH = 6
"""Transcripts from which a paired comparison can reach p < 0.05 (see compaction_lab.statistics)."""

_SAVING = "whole-run saving incl. summaries %"


def summary_words(run: Run) -> list[str]:
    """Return a few sentences about a run, for someone who reads no table."""
    summary = analysis.summary_table(run)
    baseline = analysis.baseline_arm(run.cells)
    labels = analysis.short_labels(summary["arm"], baseline)
    transcripts = run.units["transcript"].nunique()
    conversations = f"{transcripts} conversation{'s' if transcripts != 1 else ''}"
    lines = [f"{summary['arm'].nunique()} arms on {conversations}: {run.coverage}."]
    several = any(name in summary for name in ("model", "dataset"))
    if baseline is not None and not several:
        summary = summary.set_index("arm")
        alone = {str(name): value for name, value in summary.loc[[baseline]].iloc[0].items()}
        others = summary.drop(index=baseline)
        lines += [
            *_savings(others, labels),
            *_costs(others, alone, labels, run.cost_kind),
            *_recall(others, alone, labels),
        ]
    elif several:
        lines.append("Several models or datasets: the table says each apart.")
    if transcripts < ENOUGH:
        lines.append(
            f"With {conversations} no difference between arms can be told from chance: that takes at least {ENOUGH}. "
            "Read the numbers as what happened here."
        )
    return lines


def _savings(others: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    saved = _known(others, _SAVING)
    if not saved:
        return []
    best = max(saved, key=lambda arm: saved[arm])
    lines = []
    if saved[best] > 0:
        lines.append(
            f"The fewest tokens were sent by {labels[best]}: {saved[best]:.0f} % fewer than without compaction, "
            "with what its summaries read and wrote counted in."
        )
    worse = [labels[arm] for arm, share in saved.items() if share < 0]
    if worse:
        lines.append(f"Sent more than without compaction: {', '.join(worse)}.")
    return lines


def _costs(others: pd.DataFrame, alone: Mapping[str, object], labels: Mapping[str, str], kind: str | None) -> list[str]:
    costs = _known(others, "cost USD")
    basis = float(str(alone["cost USD"]))
    if not costs or not basis > 0:
        return []
    cheapest = min(costs, key=lambda arm: costs[arm])
    how = {
        "cached": ", with the prompt cache simulated",
        "uncached": ", without a prompt cache",
        "billed": ", as billed",
    }
    change = 100 * (costs[cheapest] / basis - 1)
    dearer = [labels[arm] for arm, cost in costs.items() if cost > basis]
    first = (
        f"The cheapest arm was {labels[cheapest]}: {-change:.0f} % less money than without compaction"
        if change < 0
        else "No arm was cheaper than not compacting"
    )
    words = f"{first}{how.get(kind or '', '')}."
    if dearer and change < 0:
        words += f" Dearer than without: {', '.join(dearer)}."
    return [words]


def _recall(others: pd.DataFrame, alone: Mapping[str, object], labels: Mapping[str, str]) -> list[str]:
    recall = _known(others, "probe recall")
    if not recall:
        return []
    most, least = max(recall, key=lambda arm: recall[arm]), min(recall, key=lambda arm: recall[arm])
    basis = alone["probe recall"]
    without = f" (without compaction {basis:.2f})" if isinstance(basis, float) and not math.isnan(basis) else ""
    if most == least:
        return [f"Share of questions about the conversation answered rightly: {recall[most]:.2f}{without}."]
    kept = f"{labels[most]} kept most (share answered rightly {recall[most]:.2f})"
    return [f"Asked about the conversation, {kept} and {labels[least]} least ({recall[least]:.2f}){without}."]


def _known(others: pd.DataFrame, column: str) -> dict[str, float]:
    known = others[column].dropna().astype(float)
    return dict(zip(map(str, known.index), known, strict=True))
