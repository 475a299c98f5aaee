"""Every module that registers a strategy or trigger kind, imported for that effect."""

from compaction_lab.strategies import agent_framework_dotnet, hybrid, plain, summarization, triggers, truncation

__all__ = ["agent_framework_dotnet", "hybrid", "plain", "summarization", "triggers", "truncation"]
