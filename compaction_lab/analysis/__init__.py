"""What a run's tables say: pure functions from frames to frames, no files, no drawing, no statistics of differences."""

from compaction_lab.analysis.age_and_position import retention_by_age_and_position
from compaction_lab.analysis.arms import arm_order, baseline_arm, family, short_labels
from compaction_lab.analysis.break_even import break_even_table, firings_paid
from compaction_lab.analysis.buckets import cost_buckets, cost_with_and_without_cache
from compaction_lab.analysis.conclusion import conclusion
from compaction_lab.analysis.contexts import context_over_calls
from compaction_lab.analysis.cost import cumulative_cost
from compaction_lab.analysis.firing import firing_table, printed_firings
from compaction_lab.analysis.frontier import frontier, joined_frontiers, printed_frontier
from compaction_lab.analysis.misses import misses, misses_worth_reading, recall_by_age, reference_recall, value_kinds
from compaction_lab.analysis.order_effect import hybrid_orders, order_effect
from compaction_lab.analysis.parameters import paired_differences, parameter_map, parameter_sweep, swept, swept_twice
from compaction_lab.analysis.published import ARTICLE, article_table, beside_article
from compaction_lab.analysis.quality import probe_recall, rubric_per_turn
from compaction_lab.analysis.recorded_usage import recorded_usage
from compaction_lab.analysis.reduction import (
    input_tokens_per_call,
    input_tokens_per_turn,
    reduction_per_turn,
    reduction_summary,
    reduction_vs_baseline,
)
from compaction_lab.analysis.retention import constraint_survival, retention, retention_by_kind, stale_answers
from compaction_lab.analysis.run_tables import RunTables, simulated_note
from compaction_lab.analysis.summary import headline_table, summary_table
from compaction_lab.analysis.timeline import firing_timeline
from compaction_lab.analysis.totals import total_tokens, whole_run_saving
from compaction_lab.analysis.validity import refusals, validity_table

__all__ = [
    "ARTICLE",
    "RunTables",
    "arm_order",
    "article_table",
    "baseline_arm",
    "beside_article",
    "break_even_table",
    "conclusion",
    "constraint_survival",
    "context_over_calls",
    "cost_buckets",
    "cost_with_and_without_cache",
    "cumulative_cost",
    "family",
    "firing_table",
    "firing_timeline",
    "firings_paid",
    "frontier",
    "headline_table",
    "hybrid_orders",
    "input_tokens_per_call",
    "input_tokens_per_turn",
    "joined_frontiers",
    "misses",
    "misses_worth_reading",
    "order_effect",
    "paired_differences",
    "parameter_map",
    "parameter_sweep",
    "printed_firings",
    "printed_frontier",
    "probe_recall",
    "recall_by_age",
    "recorded_usage",
    "reduction_per_turn",
    "reduction_summary",
    "reduction_vs_baseline",
    "reference_recall",
    "refusals",
    "retention",
    "retention_by_age_and_position",
    "retention_by_kind",
    "rubric_per_turn",
    "short_labels",
    "simulated_note",
    "stale_answers",
    "summary_table",
    "swept",
    "swept_twice",
    "total_tokens",
    "validity_table",
    "value_kinds",
    "whole_run_saving",
]
