"""Every module that registers a strategy or trigger kind, imported for that effect."""

from compaction_lab.strategies import hybrid, plain, summarization, triggers, truncation

__all__ = ["hybrid", "plain", "summarization", "triggers", "truncation"]
