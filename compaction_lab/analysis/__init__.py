"""What a run's tables say: pure functions from frames to frames, no files, no drawing, no statistics of differences."""

from compaction_lab.analysis.arms import arm_order, baseline_arm, family, short_labels
from compaction_lab.analysis.cost import cumulative_cost
from compaction_lab.analysis.order_effect import hybrid_orders, order_effect
from compaction_lab.analysis.published import ARTICLE, article_table, beside_article
from compaction_lab.analysis.quality import probe_recall, rubric_per_turn
from compaction_lab.analysis.reduction import (
    input_tokens_per_call,
    input_tokens_per_turn,
    reduction_per_turn,
    reduction_summary,
    reduction_vs_baseline,
)
from compaction_lab.analysis.run_tables import RunTables, simulated_note
from compaction_lab.analysis.summary import headline_table, summary_table
from compaction_lab.analysis.totals import total_tokens, whole_run_saving

__all__ = [
    "ARTICLE",
    "RunTables",
    "arm_order",
    "article_table",
    "baseline_arm",
    "beside_article",
    "cumulative_cost",
    "family",
    "headline_table",
    "hybrid_orders",
    "input_tokens_per_call",
    "input_tokens_per_turn",
    "order_effect",
    "probe_recall",
    "reduction_per_turn",
    "reduction_summary",
    "reduction_vs_baseline",
    "rubric_per_turn",
    "short_labels",
    "simulated_note",
    "summary_table",
    "total_tokens",
    "whole_run_saving",
]
