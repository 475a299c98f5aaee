"""The log's numbering, against an oracle that says each rule in one slow line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.log import Log, is_system
from compaction_lab.conversation.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    system,
    tool,
    user,
)
from compaction_lab.conversation.pairing import pair_results
from tests.conversations import conversations, messy_conversations

any_conversation = st.one_of(conversations(), messy_conversations())


def call(*ids: str, response_id: str = "", text: str = "") -> Message:
    calls = tuple(ToolCall(one, "look", "{}") for one in ids)
    return Message("assistant", (Text(text),) if text else (), calls, response_id=response_id)


def thought(response_id: str = "") -> Message:
    return Message("assistant", (Reasoning("hm"),), response_id=response_id)


def leaders(messages: list[Message]) -> list[int | None]:
    """For each message the earlier one of the same model call: the newest but for tool results, by response id."""
    found: list[int | None] = []
    for at, message in enumerate(messages):
        earlier = next((i for i in range(at - 1, -1, -1) if messages[i].role != "tool"), None)
        same = (
            message.role == "assistant"
            and message.response_id
            and earlier is not None
            and messages[earlier].role == "assistant"
            and messages[earlier].response_id == message.response_id
        )
        found.append(earlier if same else None)
    return found


def slow_calls(messages: list[Message]) -> list[int]:
    led = leaders(messages)
    return [at for at, message in enumerate(messages) if message.role == "assistant" and led[at] is None]


def slow_steps(messages: list[Message]) -> list[int]:
    opened, led = slow_calls(messages), leaders(messages)
    found: list[int] = []
    for at, message in enumerate(messages):
        if message.role == "tool" or led[at] is not None:
            found.append(found[-1] if found else 1)
        else:
            found.append(1 + sum(call < at for call in opened))
    return found


def slow_groups(messages: list[Message]) -> list[int]:
    """The first message bound to each one: results to calls, pieces of one call, reasoning to what follows it."""
    answered, led = pair_results(messages), leaders(messages)
    found: list[int] = []
    for at, message in enumerate(messages):
        before = messages[at - 1] if at else None
        bare = before is not None and before.role == "assistant" and before.parts and not before.calls
        bare = bare and all(isinstance(part, Reasoning) for part in before.parts)
        joins = [answered[at], led[at], at - 1 if message.role == "assistant" and bare else None]
        joined = next((join for join in joins if join is not None), None)
        found.append(at if joined is None else found[joined])
    return found


@given(any_conversation)
def test_the_numbering_is_the_oracles(messages: list[Message]) -> None:
    log = Log(messages)
    assert log.turns == [
        sum(m.role == "user" and m.source != "summary" for m in messages[: at + 1]) for at in range(len(messages))
    ]
    assert log.calls == slow_calls(messages)
    assert log.steps == slow_steps(messages)
    assert log.groups == slow_groups(messages)
    assert log.results == [at for at, message in enumerate(messages) if message.role == "tool"]


@given(any_conversation)
def test_starts_and_members_restate_the_numbering(messages: list[Message]) -> None:
    log = Log(messages)
    size = len(messages)
    assert log.turn_starts == [
        next((at for at in range(size) if log.turns[at] == turn), 0) if turn else 0
        for turn in range(max(log.turns, default=0) + 1)
    ]
    if messages:
        assert log.step_starts == [log.steps.index(step) for step in range(1, max(log.steps) + 1)]
    assert log.group_starts == sorted(set(log.groups))
    for first in log.group_starts:
        members = [at for at in range(size) if log.groups[at] == first]
        assert log.members(first) == members
        assert all(log.members(first, stop) == [at for at in members if at < stop] for stop in range(first, size + 1))


@given(any_conversation, st.data())
def test_a_log_says_of_its_prefix_what_the_prefix_says_of_itself(messages: list[Message], data: st.DataObject) -> None:
    log = Log(messages)
    stop = data.draw(st.integers(0, len(messages)))
    prefix = log.prefix(stop)
    assert prefix.turns == log.turns[:stop]
    assert prefix.steps == log.steps[:stop]
    assert prefix.groups == log.groups[:stop]
    assert prefix.last_call(stop) == log.last_call(stop)
    assert prefix.turn_at(stop) == log.turn_at(stop)
    assert prefix.unread_from(stop) == log.unread_from(stop)


@given(any_conversation)
def test_what_no_call_has_read_begins_with_the_last_calls_tools(messages: list[Message]) -> None:
    log = Log(messages)
    stop = len(messages)
    unread = log.unread_from(stop)
    last = log.last_call(stop)
    assert all(at >= unread for at in log.results if at > last)
    assert all(message.role != "tool" for message in messages[max(last, 0) : unread])


def test_messages_of_one_response_are_one_call_one_step_and_one_group() -> None:
    log = Log([user("go"), assistant("first"), call("a", response_id="r"), call("b", response_id="r"), tool("a", "x")])
    assert log.calls == [1, 2]
    assert log.steps == [1, 1, 2, 2, 2]
    assert log.groups == [0, 1, 2, 2, 2]
    assert log.kind(2) == "tool_call"


def test_a_response_recorded_with_its_results_in_between_is_still_one_call() -> None:
    messages = [user("go"), call("a", response_id="r"), tool("a", "x"), call("b", response_id="r"), tool("b", "y")]
    log = Log(messages)
    assert log.calls == [1]
    assert log.members(1) == [1, 2, 3, 4]
    assert log.unread_from(5) == 1


def test_equal_response_ids_across_a_user_message_are_two_calls() -> None:
    log = Log([call("a", response_id="r"), tool("a", "x"), user("go on"), call("b", response_id="r")])
    assert log.calls == [0, 3]


def test_a_user_message_belongs_to_the_step_it_precedes() -> None:
    log = Log([system("s"), user("1"), user("2"), call("a"), tool("a", "x"), assistant("done"), user("3")])
    assert log.steps == [1, 1, 1, 1, 1, 2, 3]
    assert log.turns == [0, 1, 2, 2, 2, 2, 3]


def test_reasoning_alone_is_bound_to_what_it_precedes() -> None:
    log = Log([user("go"), thought(), call("a"), tool("a", "x"), user("on"), thought("r"), call("b", response_id="r")])
    assert log.groups == [0, 1, 1, 1, 4, 5, 5]
    assert log.calls == [1, 2, 5]
    assert log.kind(1) == log.kind(5) == "tool_call"


def test_a_reused_id_is_answered_by_the_nearest_open_call() -> None:
    log = Log([call("a"), tool("a", "1"), call("a"), tool("a", "2")])
    assert log.groups == [0, 0, 2, 2]


def test_a_summary_in_the_users_role_opens_no_turn() -> None:
    log = Log([user("1"), assistant("ok"), Message("user", (Text("so far"),), source="summary"), user("2")])
    assert log.turns == [1, 1, 1, 2]
    assert log.turn_starts == [0, 0, 3]
    assert log.kind(2) == "summary"


def test_what_no_call_has_read_yet() -> None:
    messages = [user("go"), call("a"), tool("a", "x"), assistant("done"), tool("a", "late")]
    log = Log(messages)
    assert [log.unread_from(stop) for stop in range(6)] == [0, 1, 1, 1, 4, 4]


def test_developers_instruct_like_systems() -> None:
    assert is_system(Message("developer"))
    assert Log([Message("developer")]).kind(0) == "system"
