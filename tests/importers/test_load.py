import json
import os
import tracemalloc
from pathlib import Path

import pytest

from compaction_lab.conversation.messages import ROLES
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError, TranscriptError
from compaction_lab.importers import load_transcripts, read_transcripts

USER = {"role": "user", "content": "go"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "8417"}


def conversation(*messages: object, **more: object) -> bytes:
    return json.dumps({"messages": list(messages), **more}).encode() + b"\n"


def load(folder: Path, content: bytes, name: str = "session.jsonl") -> Transcript:
    (folder / name).write_bytes(content)
    (transcript,) = load_transcripts(folder / name)
    return transcript


REFUSED = {
    "empty file": (b"", "session.jsonl: found an empty file"),
    "blank file": (b"\xef\xbb\xbf \n\r\n\n", "session.jsonl: found an empty file"),
    "malformed line": (
        conversation(USER) + b'{"messages": [}\n',
        "session.jsonl, line 2, column 15: malformed JSON (Expecting value), found '}'",
    ),
    "cut off": (
        conversation(USER) + b'{"messages": [{"role": "us',
        "column 24: malformed JSON (Unterminated string starting at), found '\"us' (the file may be cut off)",
    ),
    "not JSON": (b"user: go\n", "session.jsonl, line 1, column 1: malformed JSON"),
    "unknown role": (conversation(USER, {"role": "bot", "content": "hi"}), "line 1, messages[1]: field 'role'"),
    "missing role": (conversation({"content": "hi"}), "line 1, messages[0]: field 'role' is missing"),
    "orphan result": (
        conversation(USER, RESULT),
        "line 1, messages[1], tool_call_id: found a tool result with the id 'a'",
    ),
    "result before its call": (conversation(USER, RESULT, CALL), "line 1, messages[1], tool_call_id"),
    "result without id": (
        conversation(USER, CALL, {"role": "tool", "content": "8417"}),
        "line 1, messages[2], tool_call_id: found a tool result with no tool_call_id",
    ),
    "message is no object": (conversation(USER, "go"), "line 1, messages[1]: found the text 'go'"),
    "messages is an object": (b'{"messages": {"role": "user"}}\n', "line 1, messages: found an object"),
    "no messages": (conversation(), "line 1, messages: found no messages"),
    "content is a number": (
        conversation({"role": "user", "content": 3}),
        "messages[0]: field 'content' is the number 3",
    ),
    "not UTF-8": (conversation(USER) + b'{"messages": "\xff"}', "byte 0xff at offset 64 of the file is not UTF-8"),
    "UTF-16": (conversation(USER).decode().encode("utf-16"), "found UTF-16 text, expected UTF-8"),
    "deeply nested": (b'{"messages": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested more than 100 deep"),
    "nested beyond use": (
        conversation({"role": "user", "content": "go", "x": json.loads("[" * 150 + "]" * 150)}),
        "nested more than 100 deep",
    ),
    "no known format": (b'{"colour": "red"}\n', "in no format the lab knows, expected one of:\n  lab "),
    "a number": (b"3\n", "in no format the lab knows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    content, says = REFUSED[case]
    (tmp_path / "session.jsonl").write_bytes(content)
    with pytest.raises(TranscriptError) as error:
        load_transcripts(tmp_path / "session.jsonl")
    assert str(error.value).startswith(str(tmp_path / "session.jsonl"))
    assert says in str(error.value)


def test_an_unknown_role_is_told_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=", ".join(ROLES)):
        load(tmp_path, conversation({"role": "bot", "content": "hi"}))


@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "🦊 emoji", "Zażółć gęślą jaźń", "a\u2028b\u2029c\u0085d", "\r\n", "\x00"]
)
def test_text_is_kept_character_by_character(text: str, tmp_path: Path) -> None:
    for ensure_ascii in (True, False):
        line = json.dumps({"messages": [{"role": "user", "content": text}]}, ensure_ascii=ensure_ascii).encode()
        transcript = load(tmp_path, line + b"\n")
        assert transcript.messages[0].text == text
        assert transcript.warnings == {}


def test_null_content_and_parts(tmp_path: Path) -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    transcript = load(tmp_path, conversation(parts, {**CALL, "content": None}, {**RESULT, "content": None}))
    assert [message.text for message in transcript.messages] == ["a\nb", "", ""]


@pytest.mark.parametrize(
    ("messages", "warnings"),
    [
        ([USER, CALL, RESULT, CALL, RESULT], {"reused_call_id": 1}),
        ([USER, CALL], {"unanswered_call": 1}),
        ([USER, CALL, USER, RESULT], {}),
        ([USER, CALL, RESULT, RESULT], {"duplicate_result": 1}),
        ([{"role": "user", "content": "\udcb2"}, {**USER, "content": "ok"}], {"lone_surrogate": 1}),
        ([USER, {"role": "assistant", "content": "x", "p": float("nan")}], {"non_finite_number": 1}),
    ],
)
def test_accepted_and_counted(messages: list[object], warnings: dict[str, int], tmp_path: Path) -> None:
    transcript = load(tmp_path, conversation(*messages))
    assert len(transcript.messages) == len(messages)
    assert transcript.warnings == warnings


def test_a_lone_surrogate_is_kept(tmp_path: Path) -> None:
    assert load(tmp_path, conversation({"role": "user", "content": "a\udcb2b"})).messages[0].text == "a\udcb2b"


def test_byte_order_mark_crlf_and_blank_lines(tmp_path: Path) -> None:
    line = conversation(USER).rstrip()
    (tmp_path / "s.jsonl").write_bytes(b"\xef\xbb\xbf" + line + b"\r\n\r\n" + line + b"\r\n" + line)
    transcripts = load_transcripts(tmp_path / "s.jsonl")
    assert [transcript.id for transcript in transcripts] == ["s:1", "s:3", "s:4"]
    assert transcripts[1].origin == f"{tmp_path / 's.jsonl'}, line 3"


def test_repeated_keys_and_huge_integers_do_not_fail(tmp_path: Path) -> None:
    digits = "9" * 5000
    line = f'{{"messages": [{{"role": "bot", "role": "user", "content": "a", "n": {digits}}}]}}\n'.encode()
    transcript = load(tmp_path, line)
    assert transcript.messages[0].role == "user"
    assert transcript.messages[0].extra == {"n": digits}
    assert transcript.warnings == {"huge_integer": 1}


def test_a_five_megabyte_message_needs_a_few_times_its_size(tmp_path: Path) -> None:
    size = 5_000_000
    (tmp_path / "s.jsonl").write_bytes(conversation(USER, {"role": "assistant", "content": "x" * size}))
    tracemalloc.start()
    (transcript,) = load_transcripts(tmp_path / "s.jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(transcript.messages[1].text) == size
    assert peak < 5 * size


def test_skip_leaves_out_what_cannot_be_read_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        conversation(USER) + b"{broken\n" + conversation(RESULT) + conversation(USER, CALL)
    )
    (tmp_path / "b.json").write_bytes(b"")
    (tmp_path / "c.json").write_bytes(b'{"colour": "red"}')
    transcripts, report = read_transcripts(tmp_path, on_error="skip")
    assert [transcript.id for transcript in transcripts] == ["a:1", "a:4"]
    assert [skipped.where.removeprefix(f"{tmp_path}/") for skipped in report.skipped] == [
        "a.jsonl, line 2",
        "a.jsonl, line 3",
        "b.json",
        "c.json",
    ]
    assert (report.files, report.transcripts, report.messages, report.tool_calls) == (3, 2, 3, 1)
    assert report.warnings == {"unanswered_call": 1}


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_path_that_does_not_exist_is_always_refused(on_error: str, tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="found no such file"):
        load_transcripts(tmp_path / "none.jsonl", on_error=on_error)  # type: ignore[arg-type]
    with pytest.raises(TranscriptError, match="folder without sessions"):
        load_transcripts(tmp_path, on_error=on_error)  # type: ignore[arg-type]


def test_what_never_ends_or_cannot_be_read_twice_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", Path("/dev/zero")):
        with pytest.raises(TranscriptError, match="found a pipe, socket or device"):
            load_transcripts(path)


def test_ids_are_distinct_over_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.jsonl").write_bytes(conversation(USER))
    transcripts = load_transcripts([tmp_path / "a", str(tmp_path / "b" / "s.jsonl")])
    assert [transcript.id for transcript in transcripts] == ["s", "s~2"]
    assert transcripts[1].warnings == {"renamed_id": 1}


def test_a_format_can_be_named_and_an_unknown_name_lists_all(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(conversation(USER))
    assert load_transcripts(tmp_path / "s.jsonl", format="openai_chat")[0].format == "openai_chat"
    with pytest.raises(ConfigurationError, match=r"lab .*\n  openai_chat .*\n"):
        load_transcripts(tmp_path / "s.jsonl", format="openai")
    with pytest.raises(TranscriptError, match="history"):
        load_transcripts(tmp_path / "s.jsonl", format="swe_agent")
