"""What every plain strategy promises, on random conversations replayed call by call."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log, is_system
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.validity import check
from compaction_lab.strategies.base import Compaction, Situation, Strategy, Triggered, drive, steps
from compaction_lab.strategies.hybrid import Hybrid
from compaction_lab.strategies.plain import NoCompaction, ObservationMasking, SlidingWindow
from compaction_lab.strategies.summarization import Summarization
from compaction_lab.strategies.triggers import MessagesExceed, TokensExceed
from compaction_lab.strategies.truncation import Truncation
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.harness import (
    CHARACTERS,
    Scribe,
    Watched,
    applied,
    every_occasion,
    from_scratch,
    result,
    sent,
    slot,
    standing,
)

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")

maskings = st.builds(ObservationMasking, st.sampled_from([0, 1, 3]), st.sampled_from(["step", "turn", "result"]))
windows = st.builds(SlidingWindow, st.sampled_from([0, 1, 4]), st.sampled_from(["turn", "step", "group", "message"]))
budgets = st.sampled_from([1, 60, 150, 400])
truncations = st.tuples(budgets, st.sampled_from([None, 0.3, 0.8])).map(
    lambda drawn: Truncation(drawn[0], None if drawn[1] is None else max(1, int(drawn[0] * drawn[1])))
)
triggers = st.one_of(st.builds(TokensExceed, st.sampled_from([50, 200])), st.builds(MessagesExceed, st.just(6)))
ageing = st.one_of(st.just(NoCompaction()), maskings, windows, truncations)
stateless = st.one_of(ageing, st.builds(Triggered, triggers, ageing))
summarizations = st.builds(
    Summarization,
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["turn", "step"]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from(["user", "assistant", "system"]),
)
hybrids = st.builds(
    Hybrid,
    mask_keep_last=st.sampled_from([0, 2]),
    mask_unit=st.sampled_from(["step", "turn", "result"]),
    every=st.sampled_from([1, 3]),
    unit=st.sampled_from(["turn", "step"]),
    keep_last=st.sampled_from([0, 1]),
    order=st.sampled_from(["mask_first", "summarize_first"]),
)
plain = st.one_of(stateless, summarizations, hybrids)
histories = st.sampled_from(["view", "turn", "stored"])


def own_occasion(strategy: Strategy) -> str:
    return getattr(strategy, "default_when", "before_call")


@given(conversations())
def test_random_conversations_are_valid_as_long_as_they_claim(messages: list[Message]) -> None:
    for context in sent(messages, slot(NoCompaction())):
        assert not check(context, rules=PROMISED), shown(context)


@given(st.one_of(conversations(), messy_conversations()), stateless, histories)
def test_going_on_from_the_last_result_is_answering_from_scratch(
    messages: list[Message], strategy: Strategy, history: str
) -> None:
    def witness(situation: Situation, done: Compaction) -> None:
        assert standing(result(situation, done)) == standing(from_scratch(strategy, situation))

    list(every_occasion(messages, slot(Watched(strategy, witness), history=history)))


@given(conversations(), plain, histories)
def test_what_was_valid_stays_valid(messages: list[Message], strategy: Strategy, history: str) -> None:
    log = Log(messages)
    placed = slot(strategy, own_occasion(strategy), history)
    for _, stop, context, _ in every_occasion(messages, placed, ask=Scribe()):
        found = check(context.messages, before=log.messages[:stop], rules=PROMISED)
        assert not found, (found, shown(log.messages[:stop]), shown(context.messages))


@given(st.one_of(conversations(), messy_conversations()), plain, histories)
def test_nothing_protected_is_touched(messages: list[Message], strategy: Strategy, history: str) -> None:
    placed = slot(strategy, own_occasion(strategy), history)
    log = Log(messages)
    for occasion, stop, context, _ in every_occasion(messages, placed, ask=Scribe()):
        running = -1 if occasion == "after_turn" or not log.turn_at(stop) else log.turn_starts[log.turn_at(stop)]
        for at, message in enumerate(messages[:stop]):
            unread = at >= log.unread_from(stop)
            if is_system(message) or message.pinned or at == running or unread:
                assert context.get((at, 0)) is message, shown([message])


@given(conversations(), plain)
def test_no_stand_in_is_longer_than_what_it_stands_for(messages: list[Message], strategy: Strategy) -> None:
    def witness(situation: Situation, done: Compaction) -> None:
        base = situation.last if done.base == "last" else situation.context
        for edit in done.edits:
            if edit.new is not None:
                before = sum(CHARACTERS.message(base.get(key)) for key in edit.keys)
                assert CHARACTERS.message(edit.new.message) < before
            base = base.apply((edit,))

    placed = slot(Watched(strategy, witness), own_occasion(strategy), "stored")
    list(every_occasion(messages, placed, ask=Scribe()))


@given(conversations(), plain)
def test_applied_again_without_new_messages_nothing_changes(messages: list[Message], strategy: Strategy) -> None:
    when = own_occasion(strategy)
    once = applied(messages, strategy, when, Scribe()).messages
    again = applied(once, strategy, when, Scribe()).messages
    assert shown(again) == shown(once)


@given(conversations(), plain)
def test_a_strategy_is_pure(messages: list[Message], strategy: Strategy) -> None:
    log = Log(messages)
    situation = Situation(Context(log, len(log)), own_occasion(strategy), CHARACTERS)
    first = drive(steps(strategy, situation), Scribe())
    assert first == drive(steps(strategy, situation), Scribe())
    assert all(left is right for left, right in zip(log.messages, messages, strict=True))
    assert situation.context.keys == tuple((at, 0) for at in range(len(messages)))


@given(st.one_of(conversations(), messy_conversations()), st.one_of(maskings, windows))
def test_keeping_more_never_keeps_less(messages: list[Message], strategy: ObservationMasking | SlidingWindow) -> None:
    less = applied(messages, strategy)
    more = applied(messages, replace(strategy, keep_last=strategy.keep_last + 1))
    changed = {key for key, _ in set(standing(more)) - set(standing(applied(messages, NoCompaction())))}
    assert set(less.keys) <= set(more.keys)
    assert all(less.get(key) is None or less.get(key).source == "placeholder" for key in changed)


@given(conversations(), budgets, budgets)
def test_a_larger_budget_never_keeps_less(messages: list[Message], one: int, other: int) -> None:
    small, large = (set(applied(messages, Truncation(budget)).keys) for budget in sorted((one, other)))
    assert small <= large


@given(conversations(), budgets)
def test_truncation_fits_unless_only_protected_groups_are_left(messages: list[Message], budget: int) -> None:
    kept = applied(messages, Truncation(budget))
    if kept.tokens(CHARACTERS) > budget:
        about = Situation(kept, "before_call", CHARACTERS)
        assert not any(about.removable(e.key, e.message, len(messages)) for e in kept.entries())


@given(st.one_of(conversations(), messy_conversations()), st.sampled_from(["step", "result"]))
def test_keeping_none_masks_every_result_that_a_call_has_read(messages: list[Message], unit: str) -> None:
    masking = ObservationMasking(0, unit)
    log = Log(messages)
    context = applied(messages, masking)
    for at, message in enumerate(messages):
        if message.role != "tool" or message.pinned or at > log.last_call(len(log)):
            continue
        short = CHARACTERS.message(message) <= CHARACTERS.message(message.replaced(masking.placeholder, "placeholder"))
        unread = at >= log.unread_from(len(log))
        assert short or unread or context.get((at, 0)).text == masking.placeholder


@given(conversations(), windows, st.integers(1, 3))
def test_a_window_keeps_its_number_of_units(messages: list[Message], window: SlidingWindow, keep_last: int) -> None:
    """Counted by hand: complete turns or steps with something left to send, beside what is protected."""
    if window.unit not in ("turn", "step"):
        return
    log = Log(messages)
    kept = applied(messages, replace(window, keep_last=keep_last))
    numbers = log.turns if window.unit == "turn" else log.steps
    last = log.last_call(len(log))
    running = log.turn_at(len(log)) if window.unit == "turn" else None
    if running is None:
        open_step = log.unread_from(len(log)) < len(log)
        running = (log.steps[last] if open_step else log.steps[last] + 1) if last >= 0 else 1
    complete = range(1, running)
    for at in range(len(messages)):
        if numbers[at] in complete[-keep_last:] or numbers[at] >= running:
            assert kept.get((at, 0)) is messages[at]


@pytest.mark.parametrize("unit", ["turn", "step", "group", "message"])
def test_an_empty_conversation_is_left_alone(unit: str) -> None:
    assert applied([], SlidingWindow(0, unit)).messages == ()
    assert applied([], Truncation(1)).messages == ()
