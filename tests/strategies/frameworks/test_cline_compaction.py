"""Cline without a model: users keep their words, the work between becomes a list, oldest first."""

from __future__ import annotations

import pytest

from compaction_lab.arm import ArmRun
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, ToolCall, assistant, tool, user
from compaction_lab.conversation.validity import check
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.registry import strategy
from tests.strategies.fixture_f18 import f18
from tests.strategies.harness import CHARACTERS, Slot, answered

NAME = "cline/basic_compaction"


def compacted(messages: list[Message], window: int, **parameters: object) -> Context:
    placed = strategy(NAME, **parameters)
    arm = ArmRun(Log(messages), (Slot(placed.run, placed.when, placed.history, CHARACTERS),), (), window)
    return answered(arm.occasion(placed.when, len(messages)))


def test_the_oldest_work_becomes_a_list_and_users_keep_their_words() -> None:
    context = compacted(f18(), 520)
    assert [key[0] for key, m in zip(context.keys, context.messages, strict=True) if m.source == "recorded"] == [
        *(0, 1),
        *range(11, 18),
    ]
    (listed,) = [m.text for m in context.messages if m.source == "summary"]
    assert listed.splitlines() == ["Done so far:", *(f"- {call}" for call in CALLS)]


CALLS = ("read p=f0.py", "bash p=f1.py", "read p=f2.py", "read p=f2.py", "bash p=f3.py")


def test_below_the_threshold_nothing_happens() -> None:
    assert compacted(f18(), 1000).messages == tuple(f18())


def test_a_list_is_carried_on_in_a_single_turn_of_work() -> None:
    """Also without a second user message (bug list B50); only what no call has read yet stays."""
    messages = [user("TASK")]
    for at in range(12):
        messages += [assistant("", ToolCall(f"c{at}", "run", f'{{"at": {at}}}')), tool(f"c{at}", "x" * 400)]
    placed = strategy(NAME)
    log = Log(messages)
    arm = ArmRun(log, (Slot(placed.run, placed.when, placed.history, CHARACTERS),), (), 700)
    fired = 0
    for stop in (*log.calls, len(log)):
        context = answered(arm.occasion("before_call", stop))
        fired += bool(arm.firings)
        assert not check(context.messages, rules=("V1", "V2", "V3", "V4"))
        assert context.tokens(CHARACTERS) < 0.9 * 700
    assert fired > 1
    (listed,) = [m.text for m in context.messages if m.source == "summary"]
    lines = listed.splitlines()[1:]
    assert lines == [f"- run at={at}" for at in range(len(lines))]


def test_the_newest_answers_stay_verbatim() -> None:
    talk = [m for at in range(8) for m in (user(f"u{at}"), assistant(f"answer {at} " + "y" * 400))]
    for most, left in ((3, [5, 6, 7]), (1, [7]), (0, [])):
        context = compacted([*talk, user("now")], 900, target_ratio=0.01, keep_assistant_texts=most)
        assert [m.text[:8] for m in context.messages if m.role == "assistant"] == [f"answer {at}" for at in left]


def test_a_target_above_the_threshold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is above threshold_ratio"):
        strategy(NAME, target_ratio=0.95)
