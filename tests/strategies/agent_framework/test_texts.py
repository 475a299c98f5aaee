"""How results and messages are written: the line for a tool exchange, the summariser's transcript, what is counted."""

from __future__ import annotations

from typing import Any

import pytest

from compaction_lab.conversation.messages import Media, Message, Reasoning, ToolCall, assistant, tool, user
from compaction_lab.strategies.agent_framework.contents import facets, message_of
from compaction_lab.strategies.agent_framework.entries import Entry
from compaction_lab.strategies.agent_framework.summarization import line
from compaction_lab.strategies.agent_framework.tokens import CHARACTERS, count, serialised
from compaction_lab.strategies.agent_framework.tool_calls import results_line

CALL = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"v":"x"}'}
IMAGE = {"type": "data", "uri": "data:image/png;base64,AAAA", "media_type": "image/png"}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def result(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function_result", "call_id": "c1", "result": value, **more}


def collapsed(*messages: tuple[str, list[dict[str, Any]]]) -> str:
    made = [message_of(role, contents) for role, contents in messages]
    return results_line([Entry(message, (at, 0), (at, 0)) for at, message in enumerate(made)])


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ([result("")], "[Tool results: read:]"),  # what the package makes of None, too
        ([result("  padded  ")], "[Tool results: read:   padded]"),
        ([result('{"a": [1, "\\u00e9"]}')], '[Tool results: read: {"a": [1, "\\u00e9"]}]'),
        ([result("partial", exception="boom")], "[Tool results: read: partial]"),
        ([result("t1", items=[text("t1"), IMAGE])], "[Tool results: read: t1]"),
        ([text("only text")], "[Tool results: no results]"),
    ],
)
def test_the_line_for_a_tool_exchange(contents: list[dict[str, Any]], expected: str) -> None:
    assert collapsed(("assistant", [CALL]), ("tool", contents)) == expected


@pytest.mark.parametrize(
    "contents",
    [
        [{"type": "shell_tool_call", "call_id": "k"}],
        [
            {"type": "code_interpreter_tool_call", "call_id": "k"},
            {"type": "code_interpreter_tool_result", "call_id": "k"},
        ],
    ],
)
def test_results_of_hosted_tools_leave_no_trace(contents: list[dict[str, Any]]) -> None:
    assert collapsed(("assistant", contents)) == "[Tool results: no results]"


def test_the_line_loses_the_callers_own_text() -> None:
    assert collapsed(("assistant", [text("Let me check"), CALL]), ("tool", [result("R")])) == "[Tool results: read: R]"


@pytest.mark.parametrize(
    ("output", "expected"),
    [([text("A"), IMAGE, text("B")], "A\nB"), ({"k": "v"}, '{"k": "v"}'), (None, "None")],
)
def test_the_line_for_an_mcp_server(output: Any, expected: str) -> None:
    call = {"type": "mcp_server_tool_call", "call_id": "m1", "tool_name": "s", "arguments": {}}
    answer = {"type": "mcp_server_tool_result", "call_id": "m1", "output": output}
    assert collapsed(("assistant", [call, answer])) == f"[Tool results: s: {expected}]"


def test_the_line_is_cut() -> None:
    long = collapsed(("assistant", [CALL]), ("tool", [result("x" * 5000)]))
    assert len(long) == 4096
    assert long.startswith("[Tool results: read: xxx")
    assert long.endswith("xxx... [truncated]]")
    blanks = collapsed(("assistant", [CALL]), ("tool", [result("y" * 4055 + " " * 20 + "more")]))
    assert len(blanks) == 4092


@pytest.mark.parametrize(
    ("role", "contents", "expected"),
    [
        ("user", [text("hi")], "hi"),
        ("user", [text("a"), text("b")], "a b"),
        (
            "assistant",
            [text("pre"), CALL, text("post"), text("post2"), CALL | {"call_id": "c2", "arguments": {"k": 1}}],
            'pre; function_call read({"v":"x"}) [call_id=c1]; post post2; function_call read({"k": 1}) [call_id=c2]',
        ),
        ("tool", [result("R")], "function_result: R [call_id=c1]"),
        ("user", [IMAGE], "data"),
        ("user", [text("look"), IMAGE], "look"),
        ("assistant", [{"type": "text_reasoning", "text": "hm"}], "text_reasoning"),
        ("assistant", [{"type": "text_reasoning", "text": "hm"}, text("ans")], "ans"),
        (
            "assistant",
            [{"type": "function_approval_request", "id": "ap1", "function_call": {"name": "del"}}],
            "approval_request: del [id=ap1]",
        ),
        (
            "user",
            [{"type": "function_approval_response", "id": "ap1", "approved": False, "function_call": {"name": "del"}}],
            "approval_response: del [id=ap1] approved=False",
        ),
        ("tool", [result("x", exception="e")], "function_result: error: x [call_id=c1]"),
        (
            "tool",
            [
                result(
                    "t1",
                    items=[
                        text("t1"),
                        IMAGE,
                        {"type": "error", "error_code": "E1", "message": "bad", "error_details": "det"},
                    ],
                )
            ],
            "function_result: t1\ndata content (media_type=image/png)\nerror(E1): bad: det [call_id=c1]",
        ),
        ("assistant", [], ""),
        ("assistant", [{"type": "code_interpreter_tool_call", "call_id": "x"}], "code_interpreter_tool_call"),
        (
            "assistant",
            [
                {"type": "mcp_server_tool_call", "call_id": "m1", "tool_name": "s", "arguments": {}},
                {"type": "mcp_server_tool_result", "call_id": "m1", "output": [text("B")]},
            ],
            "mcp_tool_call s({}) [call_id=m1]; mcp_tool_result: B [call_id=m1]",
        ),
        ("user", [text("")], "text"),
        ("assistant", [text("multi\nline")], "multi\nline"),
        (
            "assistant",
            [{"type": "computer_tool_call", "call_id": "k", "actions": [{"type": "click"}]}],
            "computer_tool_call: [{'type': 'click'}] [call_id=k]",
        ),
        (
            "tool",
            [{"type": "computer_tool_result", "call_id": "k", "screenshot": {"type": "data"}}],
            "computer_tool_result: screenshot [call_id=k]",
        ),
    ],
)
def test_a_line_of_the_transcript(role: str, contents: list[dict[str, Any]], expected: str) -> None:
    assert line(3, facets(message_of(role, contents))) == f"3. [{role}] {expected}"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            user("hello"),
            (
                '{"contents": [{"additional_properties": {}, "text": "hello", "type": "text"}], '
                '"message_id": "msg_0", "role": "user"}'
            ),
        ),
        (
            assistant("", ToolCall("c1", "tool", '{"v":"x"}')),
            (
                '{"contents": [{"additional_properties": {}, "arguments": "{\\"v\\":\\"x\\"}", "call_id": "c1", '
                '"hosted": false, "name": "tool", "type": "function_call"}], '
                '"message_id": "msg_0", "role": "assistant"}'
            ),
        ),
        (
            tool("c1", "ok"),
            (
                '{"contents": [{"additional_properties": {}, "call_id": "c1", "result": "ok", '
                '"type": "function_result"}], '
                '"message_id": "msg_0", "role": "tool"}'
            ),
        ),
        (
            Message("user", (Media("image", "image/png", payload="https://x/y.png"),)),
            (
                '{"contents": [{"additional_properties": {}, "media_type": "image/png", "type": "uri", '
                '"uri": "https://x/y.png"}], "message_id": "msg_0", "role": "user"}'
            ),
        ),
        (
            Message("assistant", (Reasoning("t", '{"a": 1, "encrypted_content": "zz"}', "r1"),)),
            (
                '{"contents": [{"additional_properties": {}, "id": "r1", "protected_data": "{\\"a\\": 1}", '
                '"text": "t", '
                '"type": "text_reasoning"}], "message_id": "msg_0", "role": "assistant"}'
            ),
        ),
        (
            Message("assistant", (Reasoning(opaque="sealed"),)),
            (
                '{"contents": [{"additional_properties": {}, "type": "text_reasoning"}], "message_id": "msg_0", '
                '"role": "assistant"}'
            ),
        ),
    ],
)
def test_what_is_counted(message: Message, expected: str) -> None:
    assert serialised(message, "msg_0") == expected
    assert count(message, "msg_0", CHARACTERS) == len(expected) // 4


@pytest.mark.parametrize(("length", "tokens"), [(2, 28), (120, 58), (1000, 278)])
def test_the_estimate_of_plain_texts(length: int, tokens: int) -> None:
    assert count(user("a" * length), "msg_0", CHARACTERS) == tokens


def test_the_id_counts_and_so_does_an_inline_picture() -> None:
    assert count(user("ok"), "i" * 65, CHARACTERS) == 43
    picture = Message("user", (Media("image", "image/png", byte_size=100_000),))
    assert abs(count(picture, "msg_0", CHARACTERS) - 33_374) < 10


def test_characters_that_are_not_ascii_count_once() -> None:
    assert "こんにちは" in serialised(user("こんにちは"), "msg_0")
