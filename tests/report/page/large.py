"""A session of thousands of messages in memory, for tests of the page's size and of what it draws."""

from __future__ import annotations

import compaction_lab as lab
from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.sweep.loading import Run


def large_run(messages: int) -> Run:
    """Return a masked replay beside the baseline: a question, then calls and results."""
    said: list[Message] = [system("Work."), user("Read everything.")]
    for number in range((messages - 2) // 2):
        said.append(assistant("", ToolCall(f"c{number}", "read", f'{{"path": "src/{number}.py"}}')))
        said.append(tool(f"c{number}", f"line {number} of a file\n" * (5 + number % 60)))
    said.append(assistant("Done."))
    return lab.replay(lab.Transcript("large", tuple(said)), lab.strategy("observation_masking", keep_last=10))
