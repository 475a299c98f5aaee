"""One list compacted again and again: what persists, what comes back, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import compaction_lab as lab
from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.models.base import ModelReply
from compaction_lab.strategies.agent_framework.acting import Standing
from compaction_lab.strategies.agent_framework.budget import TokenBudgetComposed
from compaction_lab.strategies.agent_framework.context_window import ContextWindow
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.sliding_window import SlidingWindow
from compaction_lab.strategies.agent_framework.summarization import Summarization
from compaction_lab.strategies.agent_framework.tool_calls import SelectiveToolCall, ToolResult
from compaction_lab.strategies.agent_framework.truncation import Truncation
from compaction_lab.strategies.base import History, Situation, Strategy, drive, steps
from compaction_lab.strategies.memory import decode, encode
from compaction_lab.strategies.plain import ObservationMasking
from tests.conversations import conversations, messy_conversations
from tests.strategies.agent_framework.shorthand import conversation, strategy, written
from tests.strategies.harness import CHARACTERS, Scribe, answered, nobody

STRATEGIES: dict[str, Strategy] = {
    "truncation": Truncation(6, 3),
    "truncation by tokens": Truncation(300, 150, "characters", preserve_first_user_group=True),
    "window": SlidingWindow(3),
    "selective": SelectiveToolCall(),
    "results": ToolResult(),
    "summaries": Summarization(3, 1),
    "budget": TokenBudgetComposed(200, "characters", (ToolResult(), ObservationMasking(1))),
    "context window": ContextWindow(500, 100, keep_last_tool_call_groups=1),
}
without_summaries = st.sampled_from([name for name in STRATEGIES if name != "summaries"])


def sequence(
    text: str, steps: Sequence[tuple[int, str]], ask: Any = None, history: History = "stored"
) -> tuple[list[str], ArmRun]:
    """Let strategies act one after the other on one list, each on its first so many messages."""

    class Switch:
        chosen: Strategy

        def __call__(self, situation: Situation) -> Any:
            return self.chosen(situation)

    switch = Switch()
    messages = conversation(text)
    arm = ArmRun(Log(messages), (Slot(switch, "before_call", history, CHARACTERS),))
    shown = []
    for stop, name in steps:
        switch.chosen = strategy(name)
        shown.append(written(list(answered(arm.occasion("before_call", stop), ask or nobody).messages)))
    return shown, arm


def test_each_pass_summarises_the_summary_before() -> None:
    text = "S:s " + " ".join(f"U:u{n} A:a{n}" for n in range(1, 9))
    scribe = Scribe("S")
    shown, arm = sequence(text, [(9, "Sum()"), (11, "Sum()"), (13, "Sum()"), (15, "Sum()"), (17, "Sum()")], scribe)
    assert shown[:2] == ["S:s «S 1» U:u3 A:a3 U:u4 A:a4", "S:s «S 2» U:u4 A:a4 U:u5 A:a5"]
    assert scribe.read[1].splitlines() == ["1. [assistant] S 1", "2. [user] u3", "3. [assistant] a3"]
    ids = [entry.id for entry in ledger_of(arm).entries if entry.inserted]
    assert sorted(ids, key=lambda found: int(found.removeprefix("summary_"))) == [
        *("summary_9", "summary_12", "summary_15", "summary_18", "summary_21")
    ]


def test_a_result_that_arrives_late_is_collapsed_by_itself() -> None:
    shown, arm = sequence("U:u C:c1 T:c1=42", [(2, "TRes(keep=0)"), (3, "TRes(keep=0)")])
    assert shown[-1] == "U:u «[Tool results: no results]» «[Tool results: 42]»"
    ids = [entry.id for entry in ledger_of(arm).entries if entry.inserted]
    assert ids == ["tool_summary_group_msg_1"] * 2


@pytest.mark.parametrize(
    ("text", "steps", "last"),
    [
        ("U:u C:c1 T:c1", [(2, "Sel(keep=0)"), (3, "SW(k=5)")], "U:u T:c1"),
        ("C:c1 U:u C:c2 T:c1 A:a T:c2", [(n, "SW(k=2)") for n in range(1, 7)], "C:c2 T:c1 A:a T:c2"),
        ("C:c1 C:c2 C:c3 T:c1 A:a U:u T:c2", [(n, "Sel(keep=1)") for n in range(1, 8)], "C:c3 T:c1 A:a U:u"),
    ],
    ids=["excluded before its result came", "window", "selective"],
)
def test_orphans_that_the_framework_leaves(text: str, steps: list[tuple[int, str]], last: str) -> None:
    assert sequence(text, steps)[0][-1] == last


def test_a_linked_call_comes_back_beside_the_line_that_stood_for_it() -> None:
    text = "C:c1/get A:wait T:c1=42"
    shown, _ = sequence(text, [(2, "TRes(keep=0)"), (3, "TRes(keep=5)")])
    assert shown == ["«[Tool results: no results]» A:wait", "«[Tool results: no results]» C:c1 A:wait T:c1=42"]


def test_a_first_group_too_long_makes_every_pass_summarise_its_own_summary() -> None:
    text = f"U:small1 A:{'Q' * 50} U:u2 A:a2"
    scribe = Scribe("S")
    shown, arm = sequence(text, [(4, "Sum(t=2,th=0,prompt='p',in=10,Q)")] * 4, scribe)
    assert shown[-1] == f"«S 4» A:{'Q' * 50} U:u2 A:a2"
    assert scribe.read[1:] == ["1. [assistant] S 1", "1. [assistant] S 2", "1. [assistant] S 3"]
    assert len(ledger_of(arm).entries) == 4 + 4


@pytest.mark.parametrize(("name", "text"), [("TRes(keep=1)", "U:u C:a T:a C:b T:b"), ("SW(k=2)", "U:a A:b U:c A:d")])
def test_a_second_pass_changes_nothing(name: str, text: str) -> None:
    shown, arm = sequence(text, [(len(text.split()), name)] * 2)
    assert shown[0] == shown[1]
    assert not arm.firings


def test_what_a_turn_excluded_does_not_count_in_the_next() -> None:
    shown, _ = sequence(
        "U:a A:b A:c A:d A:e A:f A:g U:h A:i", [(7, "Tr(max=6,to=3)"), (9, "Tr(max=6,to=3)")], None, "turn"
    )
    assert shown == ["A:e A:f A:g", "A:e A:f A:g U:h A:i"]


def test_ids_given_twice_join_unrelated_messages() -> None:
    messages = conversation("U:u A:a C:c1 T:c1")
    messages[0] = replace(messages[0], id="x")
    messages[2] = replace(messages[2], id="x")
    arm = ArmRun(Log(messages), (Slot(strategy("SW(k=1)"), "before_call", "stored", CHARACTERS),))
    assert written(list(answered(arm.occasion("before_call", 4)).messages)) == "A:a"


def test_failures_in_a_row_are_counted_until_a_summary_succeeds() -> None:
    replies = [ModelReply(error="busy")] * 4 + [ModelReply(" ")] + [ModelReply("S")] + [ModelReply(error="busy")] * 3
    outcomes = []
    messages = conversation(" ".join(f"U:u{n} A:a{n}" for n in range(9)))
    summing = strategy("Sum(t=2,th=0)")
    arm = ArmRun(Log(messages), (Slot(summing, "before_call", "stored", CHARACTERS),))
    for number, reply in enumerate(replies):
        answered(arm.occasion("before_call", 4 + number), lambda _, reply=reply: reply)
        outcomes.append(arm.firings[0].outcome)
    assert outcomes[0] == outcomes[6] == "rejected: summarizer failed (busy)"
    assert outcomes[3] == "rejected: summarizer failed (busy) (4 times in a row)"
    assert outcomes[4] == "rejected: empty summary (5 times in a row)"
    assert outcomes[5] == "ok"
    assert outcomes[8] == "rejected: summarizer failed (busy) (3 times in a row)"


def ledger_of(arm: ArmRun) -> Ledger:
    memory = arm.remembered(0)
    assert isinstance(memory, Standing)
    assert memory.ledger is not None
    return memory.ledger


# -- What a memory must be: kept as JSON, taken back by a fork, without effect on a second answer ---------------------


def replayed(name: str, messages: list[Message], history: History, cuts: list[int], *, disturbed: bool) -> list[str]:
    log = Log(messages)
    arm = ArmRun(log, (Slot(STRATEGIES[name], "before_call", history, CHARACTERS),))
    scribe = Scribe("S")
    shown = []
    for stop in cuts:
        if disturbed:
            fork = log.prefix(stop)
            fork.append(conversation("U:probe")[0])
            answered(arm.fork(fork).occasion("before_call", stop + 1), Scribe("probe"))
        shown.append(written(list(answered(arm.occasion("before_call", stop), scribe).messages)))
    return shown


@given(messy_conversations(), st.sampled_from(list(STRATEGIES)), st.sampled_from(["view", "turn", "stored"]))
@example(conversation("U:a U:b U:c U:d S:e U:f U:g C:a T:a"), "truncation", "turn")  # the probe opens another turn
def test_a_fork_leaves_no_trace(messages: list[Message], name: str, history: History) -> None:
    cuts = list(range(1, len(messages) + 1, 2))
    calm = replayed(name, messages, history, cuts, disturbed=False)
    assert replayed(name, messages, history, cuts, disturbed=True) == calm


@given(messy_conversations(), st.sampled_from(list(STRATEGIES)))
def test_a_situation_has_one_answer(messages: list[Message], name: str) -> None:
    log, acting = Log(messages), STRATEGIES[name]
    middle = len(messages) // 2
    first = Situation(Context(log, middle), "before_call", CHARACTERS, history="stored")
    done = drive(steps(acting, first), Scribe("S"))
    after = first.context.apply(done.edits).advance(len(messages))
    second = replace(first, context=after, last=after, memory=done.memory)
    answers = [drive(steps(acting, second), Scribe("S")).edits for _ in range(2)]
    assert answers[0] == answers[1]
    kept = decode(json.loads(json.dumps(encode(done.memory))))
    assert drive(steps(acting, replace(second, memory=kept)), Scribe("S")).edits == answers[0]


@given(conversations(), st.sampled_from(list(STRATEGIES)))
def test_edits_apply_and_pinned_messages_stay(messages: list[Message], name: str) -> None:
    log = Log(messages)
    arm = ArmRun(log, (Slot(STRATEGIES[name], "before_call", "stored", CHARACTERS),))
    for stop in range(1, len(messages) + 1):
        context = answered(arm.occasion("before_call", stop), Scribe("S"))
        pinned = {(index, 0) for index, message in enumerate(messages[:stop]) if message.pinned}
        assert pinned <= set(context.keys)


@given(messy_conversations(), without_summaries)
def test_going_on_from_a_view_is_starting_afresh(messages: list[Message], name: str) -> None:
    arm = ArmRun(Log(messages), (Slot(STRATEGIES[name], "before_call", "view", CHARACTERS),))
    for stop in range(1, len(messages) + 1):
        context = answered(arm.occasion("before_call", stop), Scribe("S"))
        afresh = ArmRun(Log(messages[:stop]), (Slot(STRATEGIES[name], "before_call", "view", CHARACTERS),))
        alone = answered(afresh.occasion("before_call", stop))
        assert written(list(context.messages)) == written(list(alone.messages))


def test_compact_goes_on_from_its_memory() -> None:
    window = lab.strategy("agent_framework/sliding_window", keep_last_groups=2)
    talk: list[dict[str, Any]] = [{"role": "user", "content": letter} for letter in "abcd"]
    done = lab.compact(talk, window)
    assert [m["content"] for m in done.messages] == ["c", "d"]
    memory = json.loads(json.dumps(done.memory))
    again = lab.compact([*done.messages, {"role": "user", "content": "e"}], window, memory=memory)
    assert [m["content"] for m in again.messages] == ["d", "e"]


def test_a_call_costs_what_changed() -> None:
    """Regrouping and counting touch a few messages a call, however long the list is."""
    from compaction_lab.strategies.agent_framework import ledger as module

    touched: list[int] = []
    grouping = module.spans

    def counted(messages: Any) -> Any:
        touched.append(len(messages))
        return grouping(messages)

    module.spans = counted
    try:
        text = " ".join(f"U:u{n} C:c{n} T:c{n} A:a{n}" for n in range(300))
        for name in ("SW(k=20)", "Tr(max=40,to=20)", "TRes(keep=5)", "Sum(t=10,th=5)"):
            touched.clear()
            sequence(text, [(stop, name) for stop in range(1, 1201)], Scribe("S"))
            assert sum(touched) < 6 * 1200, name
    finally:
        module.spans = grouping
