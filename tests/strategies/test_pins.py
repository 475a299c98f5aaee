"""Pins hold whole exchanges, and what is dropped beside them is dropped whole too."""

from __future__ import annotations

from dataclasses import replace

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import ToolCall, assistant, tool, user
from compaction_lab.strategies.pins import outside, unpinned
from compaction_lab.strategies.registry import build, preset
from tests.strategies.harness import answered

CALL = ToolCall("a", "look", "{}")


def test_a_pinned_result_holds_its_call_and_nothing_new_stands_between_them() -> None:
    log = Log([user("hi"), assistant("", CALL), replace(tool("a", "one"), pinned=True), user("go on")])
    context = Context(log, len(log))
    assert [entry.key for entry in unpinned(context, context.entries())] == [(0, 0), (3, 0)]
    assert outside(context, (2, 0)) == (1, 0)
    assert outside(context, (3, 0)) == (3, 0)


def test_an_id_that_comes_again_takes_only_its_own_result_with_it() -> None:
    """Codex's drop of the oldest item: a later call with the same id keeps its result."""
    messages = [assistant("", CALL), tool("a", "one"), assistant("", CALL), tool("a", "two"), user("go on")]
    placed = build(preset("codex/drop_oldest"))
    arm = ArmRun(Log(messages), (Slot(placed.run, placed.when, placed.history, counting_rule("characters")),), ())
    context = answered(arm.occasion("overflow", len(messages)))
    assert [message.text for message in context.messages] == ["", "two", "go on"]
