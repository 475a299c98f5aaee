"""Figures as functions ``figure(frame, look) -> Figure``; no pyplot, no files, no analysis."""

from compaction_lab.report.figures.ages import recall_by_age, retention
from compaction_lab.report.figures.bills import cost_stack, cost_with_and_without_cache
from compaction_lab.report.figures.by_turn import (
    cumulative_cost,
    input_tokens_per_call,
    input_tokens_per_turn,
    percent_of_baseline,
    reduction_vs_baseline,
    rubric_per_turn,
)
from compaction_lab.report.figures.contexts import context_over_calls
from compaction_lab.report.figures.differences import paired_differences, parameter_map, parameter_sweep
from compaction_lab.report.figures.firings import firing_timeline
from compaction_lab.report.figures.frontier import frontier
from compaction_lab.report.figures.lost_in_middle import accuracy_by_place
from compaction_lab.report.figures.published import published_against_ours
from compaction_lab.report.figures.recall import probe_recall
from compaction_lab.report.figures.totals import total_tokens

__all__ = [
    "accuracy_by_place",
    "context_over_calls",
    "cost_stack",
    "cost_with_and_without_cache",
    "cumulative_cost",
    "firing_timeline",
    "frontier",
    "input_tokens_per_call",
    "input_tokens_per_turn",
    "paired_differences",
    "parameter_map",
    "parameter_sweep",
    "percent_of_baseline",
    "probe_recall",
    "published_against_ours",
    "recall_by_age",
    "reduction_vs_baseline",
    "retention",
    "rubric_per_turn",
    "total_tokens",
]
