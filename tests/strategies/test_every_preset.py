"""What holds for every preset, whatever it mirrors, on random conversations, occasion by occasion.

A preset that breaks a rule says so in ``about.violates``; what it does not name there, it keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from compaction_lab.arm import ArmRun, Slot, occasions
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.validity import check
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.base import Compaction, Occasion, Situation, drive, steps
from compaction_lab.strategies.registry import PlacedStrategy, preset
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.eager import NAMES, WINDOW_TOKENS, eager
from tests.strategies.harness import Watched, answered

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")


def drawn(conversations: st.SearchStrategy[list[Message]], count: int) -> list[list[Message]]:
    """Return some conversations, the same ones every time: drawing them anew for every preset would take minutes."""
    found: list[list[Message]] = []

    @settings(max_examples=count, database=None, derandomize=True, phases=[Phase.generate], deadline=None)
    @given(conversations)
    def draw(messages: list[Message]) -> None:
        found.append(messages)

    draw()
    return found


VALID = drawn(conversations(most_turns=3, most_steps=3, pins=False), 30)[-6:]
PINNED = [
    messages
    for messages in drawn(conversations(most_turns=3, most_steps=3, pins=True), 60)
    if any(message.pinned for message in messages)
][-6:]
MESSY = drawn(messy_conversations(), 10)[-2:]


@cache
def broken(name: str) -> frozenset[str]:
    """Return the rules that a preset says it breaks."""
    about = preset(name)["about"]
    assert isinstance(about, Mapping)
    return frozenset(re.findall(r"\bV\d+\b", str(about.get("violates", ""))))


def reply(request: ModelRequest) -> ModelReply:
    """Answer alike whenever asked alike."""
    return ModelReply(f"sum of {len(request.messages)}")


def arm_on(messages: list[Message], placed: PlacedStrategy, watching: object = None) -> ArmRun:
    run = placed.run if watching is None else Watched(placed.run, watching)  # type: ignore[arg-type]
    counter = counting_rule(placed.tokenizer or "characters")
    return ArmRun(Log(messages), (Slot(run, placed.when, placed.history, counter),), (), WINDOW_TOKENS)


def moments(log: Log, placed: PlacedStrategy) -> list[tuple[Occasion, int]]:
    """Return when a preset acts: at its own occasion, or at every call where it waits for an overflow."""
    own = placed.when if placed.when in ("before_call", "before_turn", "after_turn") else "before_call"
    return [(placed.when, stop) for occasion, stop, _ in occasions(log) if occasion == own]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_valid_stays_valid_and_grows_no_longer_but_for_what_the_preset_says(name: str) -> None:
    for messages in VALID:
        stays_valid(name, messages)


@pytest.mark.parametrize("name", NAMES)
def test_pinned_messages_stay_as_they_are_and_what_is_around_them_stays_valid(name: str) -> None:
    for messages in PINNED:
        stays_valid(name, messages)


def stays_valid(name: str, messages: list[Message]) -> None:
    rules = tuple(rule for rule in PROMISED if rule not in broken(name))
    placed = eager(name)
    arm = arm_on(messages, placed)
    for occasion, stop in moments(arm.log, placed):
        context = answered(arm.occasion(occasion, stop), reply)
        found = check(context.messages, before=arm.log.messages[:stop], rules=rules)
        assert not found, (found, shown(arm.log.messages[:stop]), shown(context.messages))
        if "V14" not in broken(name):
            counter = arm.slots[0].counter
            assert context.tokens(counter) <= sum(map(counter.message, messages[:stop])), shown(context.messages)


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_pure(name: str) -> None:
    for messages in (*VALID, *MESSY):
        is_pure(name, messages)


def is_pure(name: str, messages: list[Message]) -> None:
    copies = [message.wire for message in messages]
    placed = eager(name)

    def twice(situation: Situation, done: Compaction) -> None:
        keys = situation.context.keys
        again = drive(steps(placed.run, situation), reply)
        assert again.edits == done.edits
        assert situation.context.keys == keys

    arm = arm_on(messages, placed, twice)
    for occasion, stop in moments(arm.log, placed):
        answered(arm.occasion(occasion, stop), reply)
    assert [message.wire for message in messages] == copies


@pytest.mark.parametrize("name", [name for name in NAMES if "V15" not in broken(name)])
def test_asked_again_without_new_messages_a_preset_changes_nothing(name: str) -> None:
    for messages in VALID:
        is_idempotent(name, messages)


def is_idempotent(name: str, messages: list[Message]) -> None:
    placed = eager(name)
    arm = arm_on(messages, placed)
    for occasion, stop in moments(arm.log, placed):
        once = answered(arm.occasion(occasion, stop), reply)
        again = answered(arm.occasion(occasion, stop), reply)
        assert shown(again.messages) == shown(once.messages)
