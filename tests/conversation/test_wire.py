import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.messages import Media, Opaque, Reasoning, Text, ToolCall
from compaction_lab.conversation.wire import SHAPE, from_openai, to_openai, tools_from_openai, tools_to_openai
from compaction_lab.errors import TranscriptError

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"x" * 100).decode()

texts = st.text(st.characters(), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
unknown = st.dictionaries(st.sampled_from(["cache_control", "weight", "x-id", "index"]), json_values, max_size=2)
optional = {"unknown": unknown}


def merged(strategy: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    return st.builds(lambda extra, known: {**extra, **known}, unknown, strategy)


parts = st.one_of(
    texts,
    merged(st.fixed_dictionaries({"type": st.sampled_from(["text", "input_text", "output_text"]), "text": texts})),
    merged(st.fixed_dictionaries({"type": st.just("refusal"), "refusal": texts})),
    merged(
        st.fixed_dictionaries(
            {
                "type": st.just("image_url"),
                "image_url": st.fixed_dictionaries(
                    {"url": st.sampled_from(["https://example.org/a.png", ""])}, optional={"detail": texts}
                ),
            }
        )
    ),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.just("https://example.org/b.png")}),
    st.fixed_dictionaries({"type": st.just("file"), "file": st.just({"file_id": "file-1", "filename": "a.pdf"})}),
    st.fixed_dictionaries(
        {"type": st.just("thinking"), "thinking": texts}, optional={"signature": texts, "extra": json_values}
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["tool_reference", "video_url"]), "data": json_values}),
)
functions = st.fixed_dictionaries({"name": texts}, optional={"arguments": texts | json_values, "strict": st.booleans()})
calls = st.one_of(
    merged(st.fixed_dictionaries({"id": texts, "type": st.just("function"), "function": functions})),
    st.fixed_dictionaries({"id": texts, "function": functions}),
    st.fixed_dictionaries(
        {"id": texts, "type": st.just("custom"), "custom": st.fixed_dictionaries({"name": texts, "input": texts})}
    ),
    st.fixed_dictionaries({"id": texts, "type": st.just("web_search"), "query": json_values}),
)
content = {"content": st.none() | texts | st.lists(parts, max_size=3)}
messages = st.one_of(
    merged(st.fixed_dictionaries({"role": st.sampled_from(["system", "developer", "user"])}, optional=content)),
    merged(
        st.fixed_dictionaries(
            {"role": st.just("assistant")},
            optional={
                **content,
                "tool_calls": st.none() | st.lists(calls, max_size=3),
                "function_call": st.none() | functions,
                "refusal": st.none() | texts,
                "reasoning_content": st.none() | texts,
                "reasoning": st.none() | texts,
                "name": st.none() | texts,
                "audio": json_values,
            },
        )
    ),
    merged(st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": texts}, optional=content)),
    st.fixed_dictionaries({"role": st.just("function"), "name": texts, "content": texts}),
)


@given(messages)
def test_what_is_read_is_written_again_unchanged(mapping: dict) -> None:
    message = from_openai(mapping, keep_media=True)
    assert to_openai(message) == mapping
    assert from_openai(to_openai(message), keep_media=True) == message


def test_a_common_message_needs_no_shape() -> None:
    mapping = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}],
        "refusal": None,
        "weight": 0,
    }
    message = from_openai(mapping)
    assert message.calls == (ToolCall("a", "look", '{"at": 1}'),)
    assert message.extra == {"refusal": None, "weight": 0}


def test_arguments_stay_text_whatever_they_are() -> None:
    double = '"{\\"at\\": 1}"'
    message = from_openai(
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "a", "function": {"name": "look", "arguments": {"at": 1}}},
                {"id": "b", "function": {"name": "look", "arguments": double}},
            ],
        }
    )
    assert [call.arguments for call in message.calls] == ['{"at": 1}', double]


def test_reasoning_refusals_and_unknown_parts_are_told_apart() -> None:
    message = from_openai(
        {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": [{"type": "thinking", "thinking": "so", "signature": "sig"}, {"type": "chart", "of": 3}],
            "refusal": "no",
        }
    )
    assert message.parts == (
        Reasoning("hm"),
        Reasoning("so", "sig"),
        Opaque("openai", '{"of":3,"type":"chart"}'),
        Text("no"),
    )


def test_a_payload_is_reduced_to_its_kind_type_and_size() -> None:
    mapping = {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAA=", "filename": "a.pdf"}},
        ],
    }
    message = from_openai(mapping)
    assert message.parts == (
        Media("image", "image/png", 124, 640, 480),
        Media("audio", "audio/wav", 3),
        Media("file", "application/pdf", 2),
    )
    assert from_openai(to_openai(message)) == message
    assert to_openai(from_openai(mapping, keep_media=True)) == mapping


def test_a_shape_is_dropped_when_the_parts_it_describes_are_gone() -> None:
    message = from_openai({"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "long"}] * 2})
    assert SHAPE not in message.extra
    refusal = from_openai({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, "x"]})
    shorter = type(refusal)("assistant", (Text("[removed]"),), extra=refusal.extra)
    assert to_openai(shorter) == {"role": "assistant", "content": "[removed]"}


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        (["user", "hi"], "found a list, expected a message object"),
        ({"content": "hi"}, "field 'role' is missing"),
        ({"role": "bot", "content": "hi"}, "field 'role' is the text 'bot', expected one of system, developer, user"),
        ({"role": ["user"], "content": "hi"}, "field 'role' is a list"),
        ({"role": "user", "content": 3}, "field 'content' is the number 3"),
        ({"role": "user", "content": [{"text": "hi"}]}, "content[0]: found an object"),
        ({"role": "user", "content": [{"type": "text", "text": None}]}, "content[0]: field 'text' is null"),
        ({"role": "user", "content": "hi", "name": 5}, "field 'name' is the number 5"),
        ({"role": "assistant", "tool_calls": "look"}, "field 'tool_calls' is the text 'look'"),
        ({"role": "assistant", "tool_calls": [{"id": 1}]}, "tool_calls[0]: field 'id' is the number 1"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}, "tool_calls[0]: found no object"),
        ({"role": "assistant", "function_call": {"arguments": ""}}, "function_call: field 'name' is null"),
    ],
)
def test_a_wrong_field_is_named(mapping: object, says: str) -> None:
    with pytest.raises(TranscriptError) as error:
        from_openai(mapping, "log.jsonl, line 7")  # type: ignore[arg-type]
    assert str(error.value).startswith("log.jsonl, line 7")
    assert says in str(error.value)


def test_tools_round_trip() -> None:
    listed = [
        {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
    ]
    assert tools_to_openai(tools_from_openai(listed)) == listed
    assert tools_from_openai([{"name": "old"}, {"type": "web_search"}])[1].name == "web_search"
    with pytest.raises(TranscriptError, match=r"tools\[0\]"):
        tools_from_openai(["look"])
