import json
from pathlib import Path

import pytest

from compaction_lab.errors import TranscriptError
from compaction_lab.importers import load_transcripts

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}]
LINES = "\n".join(map(json.dumps, MESSAGES))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("one.jsonl", json.dumps({"messages": MESSAGES})),
        ("list.json", json.dumps(MESSAGES)),
        ("object.json", json.dumps({"messages": MESSAGES}, indent=2)),
        ("line_list.jsonl", json.dumps(MESSAGES)),
        ("message_a_line.jsonl", LINES),
        ("message_a_line.log", LINES + "\n"),
        ("list_of_conversations.json", json.dumps([{"messages": MESSAGES}])),
    ],
)
def test_every_shape_is_one_conversation(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    (transcript,) = load_transcripts(tmp_path / name)
    assert [message.text for message in transcript.messages] == ["be brief", "go"]
    assert transcript.id == name.split(".", maxsplit=1)[0]


def test_tools_and_what_else_stands_beside_the_messages(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    (tmp_path / "s.jsonl").write_text(
        json.dumps({"id": "c-1", "messages": MESSAGES, "tools": tools, "parallel_tool_calls": False})
    )
    (transcript,) = load_transcripts(tmp_path / "s.jsonl")
    assert (transcript.id, transcript.tools[0].name) == ("c-1", "look")
    assert transcript.meta == {"parallel_tool_calls": False}


def test_a_fault_in_a_message_a_line_names_that_line(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(LINES + '\n{"role": "bot", "content": "hi"}\n')
    with pytest.raises(TranscriptError, match=r"s\.jsonl, line 3: field 'role'"):
        load_transcripts(tmp_path / "s.jsonl")


def test_a_fault_in_a_document_names_the_item(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(
        json.dumps([{"messages": MESSAGES}, {"messages": [*MESSAGES, {"role": "user", "content": 1}]}])
    )
    with pytest.raises(TranscriptError, match=r"s\.json, \[1\]\.messages\[2\]: field 'content'"):
        load_transcripts(tmp_path / "s.json")
