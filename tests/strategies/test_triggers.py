"""When each trigger acts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction_lab.conversation.messages import Message, Text, ToolCall, assistant, system, tool, user
from compaction_lab.strategies.base import Trigger
from compaction_lab.strategies.triggers import (
    AllOf,
    Always,
    AnyOf,
    GroupsExceed,
    HasToolCalls,
    MessagesExceed,
    Never,
    TokensBelow,
    TokensExceed,
    TurnsExceed,
)
from tests.strategies.harness import CHARACTERS, situation

SUMMARY = Message("user", (Text("so far"),), source="summary")
MESSAGES = [system("s"), SUMMARY, user("q"), assistant("", ToolCall("a", "f", "{}")), tool("a", "x"), user("r")]
TOKENS = sum(map(CHARACTERS.message, MESSAGES)) + 100


@pytest.mark.parametrize(
    ("trigger", "acts"),
    [
        (Always(), True),
        (Never(), False),
        (TokensExceed(TOKENS - 1), True),
        (TokensExceed(TOKENS), False),
        (TokensBelow(TOKENS + 1), True),
        (TokensBelow(TOKENS), False),
        (MessagesExceed(5), True),
        (MessagesExceed(6), False),
        (TurnsExceed(1), True),
        (TurnsExceed(2), False),
        (GroupsExceed(4), True),
        (GroupsExceed(5), False),
        (HasToolCalls(), True),
        (AnyOf((Never(), Always())), True),
        (AnyOf(()), False),
        (AllOf((Never(), Always())), False),
        (AllOf((Always(), HasToolCalls())), True),
    ],
)
def test_a_trigger_acts(trigger: Trigger, acts: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Thresholds are exclusive; tokens include tools and overhead; a summary is no turn."""
    assert trigger(replace(situation(MESSAGES), overhead_tokens=100)) is acts


def test_without_calls_there_are_none() -> None:
    assert not HasToolCalls()(situation([user("q"), assistant("a")]))
