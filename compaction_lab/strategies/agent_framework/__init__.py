"""The strategies of Microsoft Agent Framework for Python, as agent-framework-core 1.23.0 behaves."""

from compaction_lab.strategies.agent_framework import (
    budget,
    context_window,
    sliding_window,
    summarization,
    tool_calls,
    truncation,
)

__all__ = ["budget", "context_window", "sliding_window", "summarization", "tool_calls", "truncation"]
