"""What SWE-agent's history processors do with a case.

SWE-agent is no package: ``SWEAGENT_SOURCE`` names a copy of its ``sweagent/agent/history_processors.py``, and pydantic
is all it needs.
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

from content_bridge import Message, answer_all

sweagent = types.ModuleType("sweagent")
sys.modules["sweagent"] = sweagent
sys.modules["sweagent.types"] = types.ModuleType("sweagent.types")
sys.modules["sweagent.types"].History = list[dict[str, Any]]
sys.modules["sweagent.types"].HistoryItem = dict[str, Any]
processors = types.ModuleType("history_processors")
sys.modules["history_processors"] = processors
with Path(os.environ["SWEAGENT_SOURCE"]).open(encoding="utf-8") as source:
    exec(compile(source.read(), "history_processors.py", "exec"), processors.__dict__)

TYPES = {"system": "system_prompt", "assistant": "action", "user": "observation", "tool": "observation"}
CLASSES = {
    "last_n_observations": "LastNObservations",
    "closed_window_history": "ClosedWindowHistoryProcessor",
    "remove_regex": "RemoveRegex",
}


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    own = getattr(processors, CLASSES[strategy.split("/")[1]])(**parameters)
    history = [{"role": m["role"], "message_type": TYPES[m["role"]], "content": m["text"], "as": m} for m in messages]
    return [{**item["as"], "text": item["content"]} for item in own(history)]


if __name__ == "__main__":
    answer_all(apply)
