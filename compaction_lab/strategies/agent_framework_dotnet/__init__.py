"""The compaction strategies of Microsoft Agent Framework for .NET, as its source stood in August 2026.

Each works on a message index: groups of messages of which some are excluded. The index outlives a call, as it does in a
session of the framework, and grows with the conversation.
"""

from compaction_lab.strategies.agent_framework_dotnet import (
    chat_reducer,
    pipeline,
    sliding_window,
    summarization,
    tool_result,
    truncation,
)

__all__ = ["chat_reducer", "pipeline", "sliding_window", "summarization", "tool_result", "truncation"]
