"""What every mechanism that drops messages promises, on random conversations replayed call by call."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.validity import check
from compaction_lab.strategies.mechanisms.head_and_tail import HeadAndTail
from compaction_lab.strategies.mechanisms.head_window import HeadWindow
from compaction_lab.strategies.mechanisms.hysteresis import Hysteresis
from compaction_lab.strategies.mechanisms.middle_out import MiddleOut
from compaction_lab.strategies.mechanisms.tail_window import TailWindow
from compaction_lab.strategies.mechanisms.tool_pair_removal import ToolPairRemoval
from compaction_lab.strategies.mechanisms.window import Window
from tests.conversations import conversations, messy_conversations, shown
from tests.strategies.harness import CHARACTERS, answered, applied, sent, slot

PROMISED = ("V1", "V2", "V3", "V4", "V5", "V8", "V13", "V16")
sizes = st.integers(0, 8)
tails = st.builds(
    TailWindow,
    sizes,
    unit=st.sampled_from(["message", "batch", "step", "turn", "tokens", "characters"]),
    keep_first=st.integers(0, 2),
    protect=st.sampled_from([(), ("system",), ("leading_system", "first_user"), ("system", "last_user", "pinned")]),
    boundary=st.sampled_from(["raw", "not_tool_first", "forward_to_user", "back_to_call", "whole_turn"]),
    note=st.sampled_from([None, "{dropped} left out"]),
)
moving = st.one_of(
    tails,
    st.builds(HeadAndTail, st.integers(1, 3), st.integers(1, 6), st.sampled_from(["message", "batch"])),
    st.builds(MiddleOut, st.sampled_from([1, 60, 200]), st.sampled_from(["message", "batch"])),
    st.builds(ToolPairRemoval, st.integers(0, 3), st.sampled_from(["calls", "batches", "messages"])),
    st.builds(HeadWindow, sizes),
)
lasting = st.integers(1, 12).flatmap(lambda high: st.builds(Hysteresis, st.just(high), st.integers(0, high)))
windows = st.one_of(moving, lasting)


@given(conversations(), windows)
def test_valid_conversations_stay_valid_and_pinned_messages_stay(messages: list[Message], window: Window) -> None:
    for context in sent(messages, slot(window)):
        assert not check(context, rules=PROMISED), shown(context)
    pinned = [message for message in messages if message.pinned]
    left = applied(messages, window).messages
    assert [message for message in left if message.pinned] == pinned


@given(st.one_of(conversations(), messy_conversations()), windows)
def test_the_input_is_untouched_and_nothing_grows(messages: list[Message], window: Window) -> None:
    before = copy.deepcopy(messages)
    left = applied(messages, window).messages
    assert messages == before
    assert sum(message.source != "placeholder" for message in left) <= len(messages)


@given(st.one_of(conversations(), messy_conversations()), moving)
def test_a_choice_from_the_whole_list_does_not_depend_on_earlier_ones(messages: list[Message], window: Window) -> None:
    log = Log(messages)
    arm = ArmRun(log, (slot(window),))
    for stop in range(1, len(messages) + 1):
        going_on = answered(arm.occasion("before_call", stop)).messages
        assert shown(going_on) == shown(applied(messages[:stop], window).messages)


@given(conversations(), lasting)
def test_what_was_dropped_with_hysteresis_stays_so(messages: list[Message], window: Window) -> None:
    for history in ("view", "stored"):
        arm = ArmRun(Log(messages), (Slot(window, "before_call", history, CHARACTERS),))
        gone: set[int] = set()
        for stop in range(1, len(messages) + 1):
            there = {index for index, _ in answered(arm.occasion("before_call", stop)).keys}
            assert not gone & there
            gone = set(range(stop)) - there
        again = answered(arm.occasion("before_call", len(messages)))
        assert {index for index, _ in again.keys} == there if messages else True


@given(conversations(pins=False), st.integers(0, 8), st.sampled_from(["message", "batch", "step", "turn", "tokens"]))
@settings(max_examples=60)
def test_a_larger_window_never_keeps_less(messages: list[Message], keep: int, unit: str) -> None:
    smaller, larger = (applied(messages, TailWindow(size, unit=unit)).keys for size in (keep, keep + 1))  # type: ignore[arg-type]
    assert set(smaller) <= set(larger)


def test_options_of_the_boundary() -> None:
    talk = [system("s"), user("q"), assistant("", ToolCall("c", "f", "{}")), tool("c", "r"), assistant("a"), user("n")]

    def start(rule: str, keep: int = 3) -> list[int]:
        window = TailWindow(keep, boundary=rule, protect=(), whole_groups=False)  # type: ignore[arg-type]
        return [index for index, _ in applied(talk, window).keys]

    assert start("raw") == [3, 4, 5]
    assert start("not_tool_first") == [4, 5]
    assert start("forward_to_user") == [5]
    assert start("back_to_call") == [2, 3, 4, 5]
    assert start("whole_turn") == [1, 2, 3, 4, 5]


def test_a_note_stands_in_the_gap() -> None:
    talk = [user(str(number)) for number in range(6)]
    left = applied(talk, TailWindow(2, keep_first=1, note="{dropped} left out"))
    assert [message.text for message in left.messages] == ["0", "3 left out", "4", "5"]


def test_calls_of_some_tools_leave_no_trace() -> None:
    talk = [
        user("q"),
        assistant("", ToolCall("a", "read", "{}"), ToolCall("b", "run", "{}")),
        tool("a", "x"),
        tool("b", "y"),
    ]
    left = applied(talk, ToolPairRemoval(tools=("read",)))
    assert shown(left.messages) == ["user q", "assistant  -> b:run", "tool <b> y"]
    assert shown(applied(talk, ToolPairRemoval(keep_tools=("run",))).messages) == shown(left.messages)
    assert shown(applied(talk, ToolPairRemoval()).messages) == ["user q"]
