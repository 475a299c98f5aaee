"""What every mechanism that changes content promises, on random conversations replayed call by call."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Media, Message, ToolCall, assistant, tool, user
from compaction_lab.conversation.validity import check
from compaction_lab.strategies.base import Compaction, Situation, Strategy, Triggered, drive, steps
from compaction_lab.strategies.mechanisms.bands import LimitResults
from compaction_lab.strategies.mechanisms.call_inputs import ClearInputs
from compaction_lab.strategies.mechanisms.clearing import ClearBeyondTokens, ClearResults
from compaction_lab.strategies.mechanisms.clipping import ClipParts
from compaction_lab.strategies.mechanisms.digest import DigestPrefix
from compaction_lab.strategies.mechanisms.media import ClearMedia
from compaction_lab.strategies.mechanisms.offloading import OffloadResults
from compaction_lab.strategies.mechanisms.pair_text import CollapseCalls
from compaction_lab.strategies.mechanisms.patterns import RemovePatterns
from compaction_lab.strategies.mechanisms.reasoning import ClearReasoning
from compaction_lab.strategies.mechanisms.superseded import ClearSuperseded
from compaction_lab.strategies.memory import decode, encode
from compaction_lab.strategies.triggers import TokensExceed
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.harness import (
    CHARACTERS,
    Watched,
    applied,
    every_occasion,
    from_scratch,
    result,
    slot,
    standing,
)

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")
UNITS = ("result", "step", "turn", "assistant", "message", "content", "event")

few = st.sampled_from([0, 1, 3])
clearings = st.builds(
    ClearResults,
    keep_last=few,
    unit=st.sampled_from(UNITS),
    keep_first=st.sampled_from([0, 0, 1]),
    min_tokens=st.sampled_from([0, 6]),
    orphans=st.sampled_from(["clear", "keep", "ignore"]),
    clear_inputs=st.booleans(),
    at_least_tokens=st.sampled_from([0, 0, 30]),
    stop_after_tokens=st.sampled_from([0, 0, 30]),
    spare_unread=st.booleans(),
    placeholder=st.sampled_from(["[gone]", "[{tool}: {lines} lines]"]),
)
polling = st.builds(ClearResults, keep_last=few, every=st.sampled_from([2, 3]), of=st.just("results"))
beyond = st.builds(
    ClearBeyondTokens,
    protect_tokens=st.sampled_from([0, 20, 80]),
    protect_turns=st.sampled_from([0, 1, 2]),
    protect_messages=st.sampled_from([0, 1]),
    placeholder=st.just("[gone]"),
)
inputs = st.builds(ClearInputs, few, st.sampled_from(UNITS), st.sampled_from(["empty", "shorten"]), st.just(60))
collapses = st.builds(CollapseCalls, few, st.sampled_from(["step", "turn", "message"]), st.just("[{tool}]"))
superseding = st.one_of(
    st.builds(ClearSuperseded, st.just("content"), placeholder=st.just("[again]")),
    st.builds(ClearSuperseded, st.just("arguments"), arguments=st.just(("at",)), same_range=st.booleans()),
)
reasonings = st.builds(
    ClearReasoning,
    few,
    st.sampled_from(["thinking", "assistant", "message", "turn"]),
    empty=st.sampled_from(["drop", "spare"]),
)
clips = st.builds(ClipParts, st.sampled_from([60, 200]), st.none(), st.just(10), st.just(10), st.just("[{removed}]"))
limits = st.builds(
    LimitResults,
    st.just(
        (
            {"over": 60, "action": "truncate", "max_characters": 50},
            {"over": 200, "action": "spill", "preview_characters": 40},
        )
    ),
)
offloads = st.builds(OffloadResults, min_characters=st.just(50), keep_last=few, head=st.just(10))
media = st.builds(ClearMedia, few, st.sampled_from(["media", "message"]))
removals = st.builds(RemovePatterns, st.just(("parser.py ",)), few)
ageing = st.one_of(
    clearings, polling, beyond, inputs, collapses, superseding, reasonings, clips, limits, offloads, media, removals
)
stateless = st.one_of(ageing, st.builds(Triggered, st.builds(TokensExceed, st.sampled_from([50, 200])), ageing))
digests = st.builds(
    DigestPrefix,
    few,
    st.sampled_from(["turn", "step", "group", "message"]),
    min_messages=st.just(2),
    entry_characters=st.just(20),
    max_characters=st.sampled_from([100, 2000]),
)
histories = st.sampled_from(["view", "stored"])


@st.composite
def illustrated(draw: st.DrawFn) -> list[Message]:
    """A conversation in which some user messages and results carry images."""
    messages = draw(conversations())
    for at, message in enumerate(messages):
        if message.role in ("user", "tool") and draw(st.booleans()):
            pictures = (Media("image", "image/png", 40_000, 640, 480),) * draw(st.integers(1, 2))
            messages[at] = replace(message, parts=(*message.parts, *pictures))
    return messages


anything = st.one_of(conversations(), messy_conversations(), illustrated())


@given(anything, stateless, histories)
def test_going_on_from_the_last_result_is_answering_from_scratch(
    messages: list[Message], strategy: Strategy, history: str
) -> None:
    def witness(situation: Situation, done: Compaction) -> None:
        assert standing(result(situation, done)) == standing(from_scratch(strategy, situation))

    list(every_occasion(messages, slot(Watched(strategy, witness), history=history)))


@given(st.one_of(conversations(), illustrated()), st.one_of(stateless, digests), histories)
def test_what_was_valid_stays_valid(messages: list[Message], strategy: Strategy, history: str) -> None:
    log = Log(messages)
    for _, stop, context, _ in every_occasion(messages, slot(strategy, "before_call", history)):
        found = check(context.messages, before=log.messages[:stop], rules=PROMISED)
        assert not found, (found, shown(log.messages[:stop]), shown(context.messages))


@given(anything, st.one_of(stateless, digests), histories)
def test_pinned_messages_stay_as_they_are(messages: list[Message], strategy: Strategy, history: str) -> None:
    for _, stop, context, _ in every_occasion(messages, slot(strategy, "before_call", history)):
        for at, message in enumerate(messages[:stop]):
            if message.pinned:
                assert context.get((at, 0)) is message, shown([message])


@given(st.one_of(conversations(), illustrated()), st.one_of(ageing, digests))
def test_no_stand_in_is_longer_than_what_it_stands_for(messages: list[Message], strategy: Strategy) -> None:
    def witness(situation: Situation, done: Compaction) -> None:
        base = situation.last if done.base == "last" else situation.context
        assert result(situation, done).tokens(CHARACTERS) <= base.tokens(CHARACTERS)

    list(every_occasion(messages, slot(Watched(strategy, witness), "before_call", "stored")))


without_ceiling = st.one_of(ageing, digests).filter(lambda each: not getattr(each, "stop_after_tokens", 0))


@given(st.one_of(conversations(), illustrated()), without_ceiling)
def test_applied_again_without_new_messages_nothing_changes(messages: list[Message], strategy: Strategy) -> None:
    once = applied(messages, strategy).messages
    assert shown(applied(once, strategy).messages) == shown(once)


@given(anything, st.one_of(stateless, digests))
def test_a_mechanism_is_pure_and_its_memory_is_json(messages: list[Message], strategy: Strategy) -> None:
    log = Log(messages)
    situation = Situation(Context(log, len(log)), "before_call", CHARACTERS)
    first = drive(steps(strategy, situation), lambda _: None)
    assert first == drive(steps(strategy, situation), lambda _: None)
    assert all(left is right for left, right in zip(log.messages, messages, strict=True))
    assert decode(encode(first.memory)) == first.memory


@given(anything, st.sampled_from(UNITS), st.integers(0, 4))
def test_a_larger_window_never_clears_more(messages: list[Message], unit: str, keep: int) -> None:
    def cleared(keep_last: int) -> set[tuple[int, int]]:
        kept = applied(messages, ClearResults(keep_last=keep_last, unit=unit, placeholder=""))
        return {entry.key for entry in kept.entries() if entry.message.source == "placeholder"}

    assert cleared(keep + 1) <= cleared(keep)


@given(anything, st.integers(0, 100))
def test_a_floor_is_reached_or_nothing_is_cleared(messages: list[Message], floor: int) -> None:
    log = Log(messages)
    before = Context(log, len(log)).tokens(CHARACTERS)
    all_of_it = before - applied(messages, ClearResults(keep_last=1)).tokens(CHARACTERS)
    freed = before - applied(messages, ClearResults(keep_last=1, at_least_tokens=floor)).tokens(CHARACTERS)
    assert freed == (all_of_it if all_of_it >= floor else 0)


@given(anything, st.integers(1, 100))
def test_a_ceiling_stops_with_the_result_that_reaches_it(messages: list[Message], ceiling: int) -> None:
    whole = applied(messages, ClearResults(keep_last=0))
    some = applied(messages, ClearResults(keep_last=0, stop_after_tokens=ceiling))
    freed = 0
    for key in whole.keys:
        original, full, partial = messages[key[0]], whole.get(key), some.get(key)
        if freed >= ceiling:
            assert partial is original
        elif full is not original:
            assert partial.wire == full.wire
            freed += CHARACTERS.message(original) - CHARACTERS.message(partial)


@pytest.mark.parametrize("since", ["history", "last"])
def test_a_floor_against_the_history_binds_once_and_since_the_last_time_always(since: str) -> None:
    messages = [user("go")]
    for step in range(12):
        messages += [assistant("", ToolCall(f"c{step}", "read", "{}")), tool(f"c{step}", "x" * 400)]
    floor = ClearResults(keep_last=0, at_least_tokens=250, floor_since=since, placeholder="")
    firings = [len(arm.firings) for _, _, _, arm in every_occasion(messages, slot(floor))]
    assert sum(firings) == (9 if since == "history" else 3)
