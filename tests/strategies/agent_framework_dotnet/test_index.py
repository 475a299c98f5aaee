"""How messages are grouped, weighed and found again, after the cases of the documentation and of the source."""

from __future__ import annotations

import json

import pytest

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    tool,
    user,
)
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.strategies.agent_framework_dotnet.contents import BYTES, group_tokens, message_bytes, same_content
from compaction_lab.strategies.agent_framework_dotnet.grouping import grouped
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Sums
from compaction_lab.strategies.base import Situation
from compaction_lab.strategies.memory import decode, encode
from tests.strategies.agent_framework_dotnet.shorthand import Session, conversation

GROUPS = [
    ("S:s U:u A:a", "System/1 User/1 AssistantText/1"),
    ("U:u C:c1,c2 T:c1 T:c2 A:x", "User/1 ToolCall/3 AssistantText/1"),
    ("U:u C:c1 T:c1 C:c2 T:c2", "User/1 ToolCall/2 ToolCall/2"),
    ("U:u C:c1 U:u2", "User/1 ToolCall/1 User/1"),
    ("U:u T:z1 A:x", "User/1 AssistantText/1 AssistantText/1"),
    ("C:c1 T:z9 T:c1", "ToolCall/3"),
    ("U:u R R C:c1 T:c1 A:x", "User/1 ToolCall/4 AssistantText/1"),
    ("U:u C:c1 R T:c1 R A:x", "User/1 ToolCall/4 AssistantText/1"),
    ("U:u R A:x R", "User/1 AssistantText/1 AssistantText/1 AssistantText/1"),
    ("U:u C:c1 E T:c1", "User/1 ToolCall/3"),
    ("U:u E A:x", "User/1 AssistantText/1 AssistantText/1"),
    ("U:u C:c1 A:wait T:c1", "User/1 ToolCall/1 AssistantText/1 AssistantText/1"),
    ("U:u C:c1 S:note T:c1", "User/1 ToolCall/1 System/1 AssistantText/1"),
]


@pytest.mark.parametrize(("text", "groups"), GROUPS)
def test_grouping_goes_by_neighbourhood(text: str, groups: str) -> None:
    entries = [Placed((at, 0), message) for at, message in enumerate(conversation(text))]
    assert [f"{kind}/{len(members)}" for kind, members in grouped(entries)] == groups.split()


def test_only_assistant_summaries_are_summaries() -> None:
    summaries = [Message(role, (Text("s"),), source="summary") for role in ("assistant", "user", "system")]
    entries = [Placed((at, 0), message) for at, message in enumerate(summaries)]
    assert [kind for kind, _ in grouped(entries)] == ["Summary", "User", "System"]


def test_other_roles_are_assistant_text() -> None:
    entries = [Placed((0, 0), Message("developer", (Text("rule"),)))]
    assert [kind for kind, _ in grouped(entries)] == ["AssistantText"]


BYTES_OF = [
    (user("Hello"), 5),
    (Message("assistant", (Reasoning("think", opaque="secret"),)), 11),
    (Message("user", (Media("image", "image/png", 100),)), 109),
    (assistant("", ToolCall("call1", "get_weather", '{"city": "Seattle"}')), 27),
    (assistant("", ToolCall("c1", "fn", "")), 4),
    (assistant("", ToolCall("c1", "fn", "not json")), 4),
    (assistant("", ToolCall("c", "f", '{"a": true, "b": null, "c": [1, 2], "d": 1.50}')), 2 + 4 + 4 + 0 + 6 + 4),
    (tool("call1", "Sunny, 72°F"), 5 + 12),
    (Message("user", (Text("Hello"), Media("image", "image/png", 50))), 64),
    (Message("assistant", (Opaque("x", '{"usage": 1}'),)), 0),
    (Message("user"), 0),
]


@pytest.mark.parametrize(("message", "expected"), BYTES_OF)
def test_bytes_of_contents(message: Message, expected: int) -> None:
    assert message_bytes(message) == expected


def test_tokens_are_a_quarter_of_a_groups_bytes_or_exact_for_texts() -> None:
    group = (assistant("", ToolCall("c1", "fn", "")), tool("c1", "OK!"))
    assert group_tokens(group, counting_rule(BYTES)) == (4 + 5) // 4
    exact = TokenCounter(tokenizer("o200k_base"))
    assert group_tokens((user("Compaction keeps what matters."),), exact) == 6
    assert group_tokens(group, exact) == 4 // 4 + 5 // 4


def test_messages_are_the_same_by_id_or_by_role_author_and_contents() -> None:
    assert same_content(user("continue"), user("continue"))
    assert not same_content(user("continue"), assistant("continue"))
    assert not same_content(user("a"), Message("user", (Text("a"),), name="bob"))
    assert same_content(Message("user", (Text("a"),), id="1"), Message("user", (Text("b"),), id="1"))
    assert not same_content(Message("user", (Text("a"),), id="1"), Message("user", (Text("a"),), id="2"))
    assert same_content(Message("user", (Text("a"),), id="1"), user("a"))
    one, other = (assistant("", ToolCall("c", "f", text)) for text in ('{"a": 1, "b": 2}', '{"b":2,"a":1}'))
    assert same_content(one, other)
    assert not same_content(tool("c1", "ok"), tool("c2", "ok"))


def index_of(text: str) -> MessageIndex:
    log = Log(conversation(text))
    return MessageIndex.of(Situation(Context(log, len(log)), "before_call", counting_rule(BYTES)), "content")


def test_turns_and_sums() -> None:
    index = index_of("S:s A:hello U:u1 C:c1 T:c1 A:a1 S:s2 U:u2 A:a2")
    assert [(group.kind, group.turn) for group in index.groups] == [
        ("System", None),
        ("AssistantText", 0),
        ("User", 1),
        ("ToolCall", 1),
        ("AssistantText", 1),
        ("System", None),
        ("User", 2),
        ("AssistantText", 2),
    ]
    assert index.sums == Sums(groups=8, messages=9, tokens=index.sums.tokens, non_system=6, tool_calls=1, turns=2)


def test_a_turn_counts_while_one_of_its_groups_is_included() -> None:
    index = index_of("U:u1 A:a1 U:u2 A:a2")
    first = index.groups[0]
    index.exclude(first)
    assert index.sums.turns == 2
    index.exclude(index.groups[1])
    assert (index.sums.turns, index.sums.groups) == (1, 2)
    index.include(first)
    assert (index.sums.turns, index.sums.groups) == (2, 3)


def test_exclusions_outlive_calls_and_new_messages_join_the_numbered_turns() -> None:
    session = Session("sliding_window", trigger={"turns_exceed": 2})
    assert session.send(conversation("S:s U:u1 A:a1 U:u2 A:a2 U:u3")) == ["S:s", "U:u2", "A:a2", "U:u3"]
    assert session.send(conversation("C:c1 T:c1")) == ["S:s", "U:u2", "A:a2", "U:u3", "C:c1", "T:c1"]
    assert session.send(conversation("A:a3 U:u4")) == ["S:s", "U:u3", "C:c1", "T:c1", "A:a3", "U:u4"]


def test_an_equal_last_message_hides_what_came_before_it() -> None:
    """The framework looks for the newest message that equals the last one it processed (agent-framework #7395)."""
    first, then = conversation("U:start A:a1 U:continue"), conversation("A:a2 U:continue")
    session = Session("truncation", trigger="never")
    session.send(first)
    assert session.send(then) == ["U:start", "A:a1", "U:continue"]
    assert session.send(conversation("A:a3 U:done")) == ["U:start", "A:a1", "U:continue", "A:a3", "U:done"]
    by_position = Session("truncation", trigger="never", update="position")
    by_position.send(first)
    assert by_position.send(then) == ["U:start", "A:a1", "U:continue", "A:a2", "U:continue"]


def test_the_index_survives_its_json_form() -> None:
    session = Session("truncation", trigger={"groups_exceed": 3}, minimum_preserved=1)
    session.send(conversation("U:u1 C:c1 T:c1 A:a1 U:u2"))
    memory = session.arm.remembered(0)
    assert decode(json.loads(json.dumps(encode(memory)))) == memory
