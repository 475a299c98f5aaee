"""The ``import`` verb: what it prints, writes and replaces."""

import json
from pathlib import Path

import pytest

from compaction_lab.cli import main
from compaction_lab.importers import load_transcripts

FIXTURES = Path(__file__).parent / "fixtures"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAA="}}


def test_it_says_what_it_found_and_how_much_usage_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(FIXTURES / name) for name in ("claude_code_session.jsonl", "tau2_results.json")]
    assert main(["import", *files, "--out", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().out
    assert "2 transcripts, 4 turns, 12 messages, 2 tool calls, 2 tool results (claude_code)" in said
    assert "0 unanswered calls, usage recorded for 100% of 5 model calls, 1 compaction in the log" in said
    assert "1 x recorded_compaction (earlier messages were hidden from later calls" in said
    assert "usage recorded for 67% of 3 model calls, 0 compactions" in said
    written = {"claude_code_session.jsonl", "tau2_results.jsonl", "import_report.json"}
    assert {file.name for file in (tmp_path / "mine").iterdir()} == written
    again = load_transcripts(tmp_path / "mine" / "claude_code_session.jsonl")
    assert [len(transcript.compactions) for transcript in again] == [1, 0]


def test_other_programs_get_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(FIXTURES / "otel_spans.jsonl"), "--out", str(tmp_path), "--json", "--redact"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["formats"], found["model_calls"], found["usage_coverage"]) == ({"otel_genai": 1}, 2, 1.0)
    assert found["redacted"] == {"places": {}, "values": {}}


def test_equal_secrets_in_several_files_get_one_stand_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        text = f"I am ann@example.com, work in /home/ann/{name}, key sk-ant-abcdefghijklmnopqrst"
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": text}]}))
    files = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    assert main(["import", *files, "--out", str(tmp_path / "own"), "--redact"]) == 0
    assert "redacted: 1 key in 2 places, 1 e-mail in 2 places, 1 home folder in 2 places" in capsys.readouterr().out
    texts = [load_transcripts(tmp_path / "own" / f"{name}.jsonl")[0].messages[0].text for name in ("a", "b")]
    assert texts[0].replace("/a", "/b") == texts[1]
    assert "ann" not in texts[0]


@pytest.mark.parametrize("keep", [False, True])
def test_images_are_written_only_when_asked(*, keep: bool, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": [IMAGE]}]}))
    options = ["--keep-media"] if keep else []
    assert main(["import", str(tmp_path / "s.jsonl"), "--out", str(tmp_path / "own"), *options]) == 0
    line = (tmp_path / "own" / "s.jsonl").read_text()
    assert ("iVBORw0KGgo" in line) == keep
    assert load_transcripts(tmp_path / "own" / "s.jsonl")[0].messages[0].parts[0].width == 2  # type: ignore[union-attr]


def test_what_cannot_be_read_stops_or_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = (FIXTURES / "openai_finetune.jsonl").read_text()
    (tmp_path / "s.jsonl").write_text(good + "{broken\n")
    command = ["import", str(tmp_path / "s.jsonl"), "--out", str(tmp_path / "own")]
    assert main(command) == 1
    assert "s.jsonl, line 3" in capsys.readouterr().err
    assert not (tmp_path / "own").exists()
    assert main([*command, "--on-error", "skip"]) == 0
    assert "skipped" in capsys.readouterr().out


def test_what_was_left_out_is_kept_beside_the_sessions_and_is_no_session(tmp_path: Path) -> None:
    good = (FIXTURES / "openai_finetune.jsonl").read_text()
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(good + '{"ann@example.com\n')
        command = ["import", str(tmp_path / f"{name}.jsonl"), "--out", str(tmp_path / "own")]
        assert main([*command, "--on-error", "skip", "--redact"]) == 0
    assert main([*command, "--on-error", "skip", "--redact"]) == 0
    kept = json.loads((tmp_path / "own" / "import_report.json").read_text())
    assert [each["file"] for each in kept] == ["a.jsonl", "b.jsonl"]
    for each in kept:
        assert (each["transcripts"], each["formats"], each["redacted"]) == (2, {"openai_chat": 2}, kept[0]["redacted"])
        (skipped,) = each["skipped"]
        assert skipped["where"].endswith(f"{each['file']}, line 3")
        assert "malformed JSON" in skipped["reason"]
        assert "ann" not in skipped["reason"]
    assert len(load_transcripts(tmp_path / "own")) == 4


def test_names_in_a_log_never_choose_where_something_is_written(tmp_path: Path) -> None:
    session = {"id": "../../../evil", "messages": [{"role": "user", "content": "go"}]}
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "s.jsonl").write_text(json.dumps(session))
    before = set(tmp_path.rglob("*"))
    assert main(["import", str(tmp_path / "in"), "--out", str(tmp_path / "out" / "own")]) == 0
    after = set(tmp_path.rglob("*")) - before
    assert {path.relative_to(tmp_path).as_posix() for path in after} == {
        "out",
        "out/own",
        "out/own/in.jsonl",
        "out/own/import_report.json",
    }
