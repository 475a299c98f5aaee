"""Figures as functions ``figure(frame, look) -> Figure``; no pyplot, no files, no analysis."""

from compaction_lab.report.figures.by_turn import (
    cumulative_cost,
    input_tokens_per_call,
    input_tokens_per_turn,
    percent_of_baseline,
    reduction_vs_baseline,
    rubric_per_turn,
)
from compaction_lab.report.figures.recall import probe_recall
from compaction_lab.report.figures.totals import total_tokens

__all__ = [
    "cumulative_cost",
    "input_tokens_per_call",
    "input_tokens_per_turn",
    "percent_of_baseline",
    "probe_recall",
    "reduction_vs_baseline",
    "rubric_per_turn",
    "total_tokens",
]
