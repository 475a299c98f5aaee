import json
from pathlib import Path

import pytest

from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.importers import load_transcripts

FIXTURE = Path(__file__).parent / "fixtures/claude_code_session.jsonl"


def line(uuid: str, parent: str | None, role: str, content: object, **more: object) -> dict[str, object]:
    message: dict[str, object] = {"role": role, "content": content}
    if role == "assistant":
        message |= {
            "id": more.pop("response", uuid),
            "usage": more.pop("usage", {"input_tokens": 1, "output_tokens": 1}),
        }
    return {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def use(call_id: str) -> list[dict[str, object]]:
    return [{"type": "tool_use", "id": call_id, "name": "look", "input": {}}]


def result(call_id: str) -> list[dict[str, object]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": call_id}]


def load(folder: Path, *lines: dict[str, object]) -> list[Transcript]:
    (folder / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return load_transcripts(folder / "s.jsonl")


def texts(transcript: Transcript) -> list[str]:
    return [message.text for message in transcript.messages]


def test_the_kept_branch_with_its_compaction_and_the_side_chain_apart() -> None:
    session, side = load_transcripts(FIXTURE)
    assert [message.text for message in session.messages] == [
        "Where are bolts and nuts?",
        "Looking both up.",
        "shelf 12",
        "no such part",
        "Bolts: 12. No nuts.",
        "Count the bolts instead.",
        "There are 40.",
        "This session continues: bolts are on shelf 12, there are 40; no nuts.",
        "And screws?",
        "Shelf 4.",
    ]
    assert session.compactions == (RecordedCompaction(7, "manual", 1060, None),)
    assert [message.source for message in session.messages].index("summary") == 7
    assert not session.append_only
    assert (side.id, side.meta["side_chain"], side.append_only) == ("5e55:ag1", True, True)


def test_blocks_of_one_response_are_one_message_and_the_last_usage_counts_once() -> None:
    session = load_transcripts(FIXTURE)[0]
    said = session.messages[1]
    assert [call.id for call in said.calls] == ["t1", "t2"]
    assert said.usage is not None
    assert (said.usage.fresh_input_tokens, said.usage.cache_write_tokens, said.usage.output_tokens) == (10, 900, 57)
    assert sum(m.usage.output_tokens for m in session.messages if m.usage) == 57 + 9 + 6 + 4
    assert said.timestamp_s == 1767348002.0


def test_lines_without_a_request_belong_to_their_response_all_the_same(tmp_path: Path) -> None:
    (transcript,) = load(
        tmp_path,
        line("u", None, "user", "go"),
        line("a", "u", "assistant", "one", response="m", requestId="q"),
        line("b", "a", "assistant", use("t"), response="m", usage={"input_tokens": 1, "output_tokens": 7}),
        line("c", "b", "assistant", "two", response="m", requestId="other"),
    )
    assert [m.usage.output_tokens for m in transcript.messages if m.usage] == [7, 1]


def test_results_beside_the_path_are_kept_and_those_of_a_rewound_branch_are_not(tmp_path: Path) -> None:
    (transcript,) = load(
        tmp_path,
        line("u", None, "user", "go"),
        line("a1", "u", "assistant", use("t1"), response="m"),
        line("a2", "a1", "assistant", use("t2"), response="m"),
        line("r1", "a1", "user", result("t1")),
        line("r2", "a2", "user", result("t2")),
        line("x", "r2", "assistant", use("t3"), response="gone"),
        line("y", "x", "user", result("t3")),
        line("b", "r1", "assistant", "done", response="n"),
    )
    assert texts(transcript) == ["go", "", "t1", "t2", "done"]
    assert transcript.warnings == {"abandoned_message": 2}


def test_a_rewind_to_the_very_beginning_leaves_the_first_tree(tmp_path: Path) -> None:
    (transcript,) = load(
        tmp_path,
        line("u", None, "user", "first"),
        line("a", "u", "assistant", "no"),
        line("v", None, "user", "second"),
        line("b", "v", "assistant", "yes"),
    )
    assert texts(transcript) == ["second", "yes"]


def test_a_boundary_that_names_nothing_follows_what_stands_before_it(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": None, "sessionId": "s"}
    (transcript,) = load(
        tmp_path,
        line("u", None, "user", "first"),
        line("a", "u", "assistant", "yes"),
        {**boundary, "logicalParentUuid": "not-here", "compactMetadata": {"trigger": "auto", "preTokens": 900}},
        line("s", "c", "user", "summary", isCompactSummary=True),
        line("b", "s", "assistant", "on"),
    )
    assert texts(transcript) == ["first", "yes", "summary", "on"]
    assert transcript.compactions == (RecordedCompaction(2, "auto", 900),)


@pytest.mark.parametrize("loop", ["a", "u"])
def test_lines_that_are_their_own_ancestors_end(loop: str, tmp_path: Path) -> None:
    (transcript,) = load(tmp_path, line("u", loop, "user", "go"), line("a", "u", "assistant", "yes"))
    assert texts(transcript) == ["go", "yes"]


def test_a_cut_off_beginning_is_told(tmp_path: Path) -> None:
    (transcript,) = load(tmp_path, line("u", "earlier", "user", "go"), line("a", "u", "assistant", "yes"))
    assert transcript.warnings == {"missing_parent": 1}


def test_a_long_session_is_read_without_recursion(tmp_path: Path) -> None:
    lines = [line("0", None, "user", "go")]
    lines += [line(str(n), str(n - 1), "user" if n % 2 == 0 else "assistant", "x") for n in range(1, 5000)]
    assert len(load(tmp_path, *lines)[0].messages) == 5000
