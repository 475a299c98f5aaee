"""Placements: what each kind of history shows, keeps and forgets; firings are differences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.arm import ArmRun, Slot, occasions
from compaction_lab.conversation.context import Context, Edit, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, ToolCall, assistant, system, tool, user
from compaction_lab.models.base import ModelReply
from compaction_lab.strategies.base import Compaction, Occasion, Situation
from compaction_lab.strategies.hybrid import Hybrid
from compaction_lab.strategies.plain import NoCompaction, ObservationMasking, SlidingWindow
from compaction_lab.strategies.summarization import Summarization
from compaction_lab.strategies.truncation import Truncation
from tests.conversations import conversations
from tests.strategies.harness import Scribe, answered, every_occasion, nobody, sent, slot, standing
from tests.strategies.test_invariants import ageing

LONG = "a result that is much longer than the placeholder that may stand for it"


def session(steps: int) -> list[Message]:
    messages = [system("s"), user("go")]
    for number in range(steps):
        messages += [assistant("", ToolCall(f"r{number}", "f", "{}")), tool(f"r{number}", f"{number} {LONG}")]
    return messages


def chat(turns: int) -> list[Message]:
    return [user("q0"), *(m for n in range(1, turns) for m in (assistant(f"a{n} {LONG}"), user(f"q{n}")))]


class DropFirst:
    """Drops the first visible message that it may, once for every occasion."""

    def __call__(self, situation: Situation) -> Compaction:
        for entry in situation.context.entries():
            if not situation.protects(entry.key, entry.message):
                return Compaction((Edit("dropped", (entry.key,)),))
        return Compaction()


def texts(context: Context) -> list[str]:
    return [message.text for message in context.messages]


class TestOccasions:
    def of(self, messages: list[Message]) -> list[tuple[Occasion, int, int]]:
        return list(occasions(Log(messages)))

    def test_a_conversation_that_ends_in_an_answer(self) -> None:
        assert self.of([system("s"), user("q"), assistant("a")]) == [
            ("before_turn", 2, 1),
            ("before_call", 2, 1),
            ("after_turn", 3, 1),
        ]

    def test_one_that_ends_in_a_result_has_one_further_call_and_an_open_turn(self) -> None:
        assert self.of(session(1))[1:] == [("before_call", 2, 1), ("before_call", 4, 1)]

    def test_an_unanswered_call_at_the_end_leaves_its_turn_open(self) -> None:
        assert self.of(session(1)[:3]) == [("before_turn", 2, 1), ("before_call", 2, 1)]

    def test_a_call_before_the_first_user_message_belongs_to_turn_0(self) -> None:
        assert self.of([assistant("hello"), user("q")]) == [
            ("before_call", 0, 0),
            ("before_turn", 2, 1),
            ("before_call", 2, 1),
        ]

    def test_a_turn_without_a_call_is_over_all_the_same(self) -> None:
        assert [what for what, _, _ in self.of([user("1"), user("2"), assistant("a")])] == [
            "before_turn", "after_turn", "before_turn", "before_call", "after_turn"
        ]  # fmt: skip

    @given(conversations())
    def test_every_occasion_comes_in_order_and_every_turn_begins_once(self, messages: list[Message]) -> None:
        log = Log(messages)
        seen = list(occasions(log))
        stops = [stop for _, stop, _ in seen]
        assert stops == sorted(stops)
        calls = [stop for what, stop, _ in seen if what == "before_call"]
        further = [len(log)] if messages and messages[-1].role in ("user", "tool") else []
        assert calls == log.calls + further
        begun = [turn for what, _, turn in seen if what == "before_turn"]
        assert begun == list(range(1, len(begun) + 1))
        assert all(turn == log.turn_at(stop) for _, stop, turn in seen)


@given(conversations(), ageing)
def test_a_view_never_changes_what_is_stored(messages: list[Message], strategy: object) -> None:
    for _, stop, _, arm in every_occasion(messages, slot(strategy)):
        assert arm.stored.keys == tuple((at, 0) for at in range(stop))
        assert arm.stored.messages == tuple(messages[:stop])


@given(conversations(), ageing, ageing)
def test_two_views_in_a_row_are_a_pipeline_of_both_from_scratch(
    messages: list[Message], first: object, second: object
) -> None:
    for occasion, stop, context, _ in every_occasion(messages, slot(first), slot(second)):
        if occasion == "before_call":
            scratch = ArmRun(Log(messages), (slot(first), slot(second)))
            assert standing(context) == standing(answered(scratch.occasion("before_call", stop)))


@given(conversations(), st.sampled_from(["turn", "stored"]))
def test_what_a_view_hides_below_a_kept_rewrite_is_not_kept(messages: list[Message], history: str) -> None:
    """The window hides everything old from the later strategy; only the masks may reach the history."""
    placed = (slot(SlidingWindow(0, "step")), slot(ObservationMasking(0), history=history))
    for _, stop, _, arm in every_occasion(messages, *placed):
        assert arm.stored.keys == tuple((at, 0) for at in range(stop))


def test_a_view_never_brings_back_what_a_stored_summary_hid() -> None:
    placed = (slot(Summarization(2), "after_turn", "stored"), slot(ObservationMasking(1)))
    hidden: set[tuple[int, int]] = set()
    for _, _, context, arm in every_occasion(chat(9), *placed, ask=Scribe()):
        assert not hidden & set(context.keys)
        hidden |= {(at, 0) for at in range(arm.stored.stop)} - set(arm.stored.keys)
    assert hidden


def test_a_stored_strategy_above_a_view_keeps_what_only_the_view_hid() -> None:
    """The view drops message 0; the stored strategy, shown the rest, drops message 1 and that alone is kept."""
    log = Log([*chat(4), assistant("end")])
    arm = ArmRun(log, (slot(DropFirst()), slot(DropFirst(), history="stored")))
    shown = answered(arm.occasion("before_call", 6))
    assert shown.keys == ((2, 0), (3, 0), (4, 0), (5, 0))
    assert arm.stored.keys == ((0, 0), (2, 0), (3, 0), (4, 0), (5, 0))


def test_a_stored_strategy_may_replace_what_only_a_view_showed() -> None:
    class Notes:
        def __call__(self, _: Situation) -> Compaction:
            note = Message("user", (Text("note"),), source="placeholder")
            return Compaction((Edit("inserted", (), Placed((0, 1), note)),))

    class DropsNotes:
        def __call__(self, _: Situation) -> Compaction:
            return Compaction((Edit("dropped", ((0, 1), (1, 0))),))

    arm = ArmRun(Log(chat(3)), (slot(Notes()), slot(DropsNotes(), history="stored")))
    answered(arm.occasion("before_call", 3))
    assert arm.stored.keys == ((0, 0), (2, 0))


def test_a_turns_history_lasts_until_the_turn_ends() -> None:
    messages = [user("q0"), assistant("a0"), user("q1"), *session(2)[2:], assistant("done"), user("q2")]
    log = Log(messages)
    arm = ArmRun(log, (slot(DropFirst(), "before_turn", "turn"),))
    shown = {}
    for occasion, stop, _ in occasions(log):
        shown[occasion, stop] = texts(answered(arm.occasion(occasion, stop)))
    assert shown["before_call", 3] == ["a0", "q1"]
    assert shown["before_call", 7][:2] == ["a0", "q1"]
    assert len(shown["before_call", 7]) == 6
    assert shown["before_turn", 9][0] == "a0"
    assert arm.stored.keys == tuple((at, 0) for at in range(9))


def test_an_after_strategy_acts_on_what_the_first_one_left() -> None:
    placed = (slot(ObservationMasking(0)), slot(SlidingWindow(1, "step")))
    [*_, last] = sent(session(4), *placed)
    assert [m.source for m in last if m.role == "tool"] == ["placeholder", "recorded"]


class TestFirings:
    def fired(self, messages: list[Message], *slots: Slot) -> list[tuple[int, list[str], str]]:
        found = []
        for _, stop, _, arm in every_occasion(messages, *slots, ask=Scribe()):
            found += [(stop, [edit.kind for edit in one.edits], one.outcome) for one in arm.firings]
        return found

    def test_masking_step_by_step_fires_with_one_edit_each(self) -> None:
        assert self.fired(session(4), slot(ObservationMasking(0))) == [
            (6, ["masked"], "ok"),
            (8, ["masked"], "ok"),
            (10, ["masked"], "ok"),
        ]

    def test_an_answer_from_scratch_fires_with_what_is_new_in_it(self) -> None:
        """Nested in a view, masking is asked from scratch each time; its firings still hold one edit each."""

        class Forgetful:
            def __call__(self, situation: Situation) -> Compaction:
                bare = Situation(situation.context, situation.occasion, situation.counter)
                return ObservationMasking(0)(bare)

        assert self.fired(session(4), slot(Forgetful())) == self.fired(session(4), slot(ObservationMasking(0)))

    def test_what_is_withdrawn_is_a_difference_too(self) -> None:
        class Flickers:
            def __call__(self, situation: Situation) -> Compaction:
                odd = situation.context.stop % 4 == 0
                return Compaction((Edit("dropped", ((0, 0),)),) if odd else ())

        messages = session(3)
        assert self.fired(messages, slot(Flickers())) == [
            (4, ["dropped"], "ok"),
            (6, ["restored"], "ok"),
            (8, ["dropped"], "ok"),
        ]

    def test_a_summary_is_told_with_what_it_newly_hides(self) -> None:
        """In a pipeline the masks come first, and the summary then hides some of the masked results."""
        arm = ArmRun(Log(session(4)), (slot(Hybrid(0, every=3, unit="step"), history="stored"),))
        told = []
        for stop in (4, 6, 8, 10):
            answered(arm.occasion("before_call", stop), Scribe())
            told += [[(edit.kind, edit.keys) for edit in one.edits] for one in arm.firings]
        assert told == [
            [("masked", ((3, 0),))],
            [("masked", ((5, 0),))],
            [("summarised", tuple((at, 0) for at in range(2, 8)))],
        ]

    def test_nothing_new_is_no_firing(self) -> None:
        assert self.fired(session(4), slot(NoCompaction())) == []
        assert [stop for stop, _, _ in self.fired(session(4), slot(SlidingWindow(9)))] == []

    @given(conversations(), ageing, ageing)
    def test_the_differences_rebuild_every_context(
        self, messages: list[Message], first: object, second: object
    ) -> None:
        """What a run stores of a firing is enough to rebuild what was sent: base, edits, stop."""
        for _, _, context, arm in every_occasion(messages, slot(first), slot(second)):
            for one in arm.firings:
                assert standing(one.before.apply(one.edits)) == standing(one.after)
            if arm.firings and arm.firings[-1].slot == 1:
                assert arm.firings[-1].after is context


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (ModelReply(""), "empty"),
        (ModelReply("  \n"), "empty"),
        (ModelReply("half", error="timeout"), "timeout"),
        (ModelReply("text", calls=(ToolCall("x", "look", "{}"),)), "tool"),
        (ModelReply("much longer than what it stands for " * 50), "rejected"),
    ],
)
def test_a_failed_summary_leaves_the_history_and_says_why(reply: ModelReply, outcome: str) -> None:
    arm_firings = []
    for _, stop, context, arm in every_occasion(
        chat(4), slot(Summarization(3), "after_turn", "stored"), ask=lambda _: reply
    ):
        assert context.messages == tuple(chat(4)[:stop])
        arm_firings += arm.firings
    (failed,) = arm_firings
    assert outcome in failed.outcome
    assert failed.outcome.startswith("rejected")
    assert not failed.changed
    assert failed.before is failed.after or standing(failed.before) == standing(failed.after)


def test_overflow_reaches_every_strategy_once_and_what_acted_there_alone_is_gone_afterwards() -> None:
    placed = (slot(Truncation(1), "before_turn"), slot(ObservationMasking(0)))
    arm = ArmRun(Log(session(4)), placed)
    normal = answered(arm.occasion("before_call", 8))
    assert [m.source for m in normal.messages if m.role == "tool"] == ["placeholder", "placeholder", "recorded"]
    overflowing = answered(arm.occasion("overflow", 8))
    assert [m.role for m in overflowing.messages] == ["system", "user", "assistant", "tool"]
    assert standing(answered(arm.occasion("overflow", 8))) == standing(overflowing)
    assert standing(answered(arm.occasion("before_call", 8))) == standing(normal)


@given(conversations(), ageing)
def test_a_fork_leaves_no_trace(messages: list[Message], strategy: object) -> None:
    log = Log(messages)
    forked, plain = (ArmRun(log, (slot(strategy),)) for _ in range(2))
    for occasion, stop, _ in occasions(log):
        assert standing(answered(forked.occasion(occasion, stop))) == standing(answered(plain.occasion(occasion, stop)))
        side = log.prefix(stop)
        side.append(user("by the way?"))
        asked = answered(forked.fork(side).occasion("before_call", stop + 1))
        assert asked.messages[-1].text == "by the way?"
        assert forked.stored.keys == plain.stored.keys


@given(conversations(), ageing, ageing)
def test_a_fork_goes_on_as_its_arm_would(messages: list[Message], first: object, second: object) -> None:
    log = Log(messages)
    arm = ArmRun(log, (slot(first), slot(second)))
    for occasion, stop, _ in occasions(log):
        fork = arm.fork(Log(messages))
        assert standing(answered(fork.occasion(occasion, stop))) == standing(answered(arm.occasion(occasion, stop)))
        assert [(firing.slot, firing.base, firing.edits) for firing in fork.firings] == [
            (firing.slot, firing.base, firing.edits) for firing in arm.firings
        ]


def test_a_strategy_that_needs_no_model_asks_none() -> None:
    arm = ArmRun(Log(session(2)), (slot(ObservationMasking()),))
    assert answered(arm.occasion("before_call", 6), nobody).keys == tuple((at, 0) for at in range(6))
