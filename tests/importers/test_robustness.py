"""Files that are broken, hostile or not what they seem: one clear error or a transcript, never anything else."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction_lab.errors import TranscriptError
from compaction_lab.importers import load_transcripts, read_transcripts
from compaction_lab.importers.load import IMPORTERS, sniff_format
from compaction_lab.importers.source import MAX_RECORD_BYTES

FIXTURES = Path(__file__).parent / "fixtures"
FILES = sorted(file.relative_to(FIXTURES) for file in FIXTURES.rglob("*") if file.is_file())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=8) | st.just("user"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
SOME = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def documents(file: Path) -> list[object]:
    text = (FIXTURES / file).read_text(encoding="utf-8-sig")
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]


def written(file: Path, values: list[object], folder: Path) -> Path:
    """Write values in the manner of a fixture, with the folders that belong to it."""
    folder.mkdir(exist_ok=True)
    for part in ("events", "simulations"):
        if (FIXTURES / file.parent / part).is_dir():
            shutil.copytree(FIXTURES / file.parent / part, folder / part, dirs_exist_ok=True)
    path = folder / file.name
    path.write_text("\n".join(map(json.dumps, values)), encoding="utf-8")
    return path


def places(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in inner for place in places(item, (*at, key)))]


def changed(value: object, place: tuple[object, ...], new: object, *, remove: bool) -> object:
    if not place:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in place[:-1]:
        inner = inner[key]  # type: ignore[index]
    if remove:
        del inner[place[-1]]  # type: ignore[attr-defined]
    else:
        inner[place[-1]] = new  # type: ignore[index]
    return value


@SOME
@pytest.mark.parametrize("file", FILES, ids=str)
@given(data=st.data())
def test_a_session_with_anything_in_any_place_is_read_or_refused(
    file: Path, tmp_path: Path, data: st.DataObject
) -> None:
    values = documents(file)
    importer = "openhands_v1" if file.parent.name == "events" else sniff_format(FIXTURES / file).name
    number = data.draw(st.integers(0, len(values) - 1))
    place = data.draw(st.sampled_from(places(values[number])))
    values[number] = changed(values[number], place, data.draw(VALUES), remove=data.draw(st.booleans()))
    path = written(file, values, tmp_path / "s")
    for name in (importer, None):
        try:
            transcripts = load_transcripts(path, format=name)
        except TranscriptError as error:
            assert str(error).startswith(str(tmp_path / "s"))  # noqa: PT017 - either outcome is right
        else:
            assert all(transcript.messages for transcript in transcripts)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_session_cut_anywhere_is_read_or_refused(file: Path, tmp_path: Path) -> None:
    raw = (FIXTURES / file).read_bytes()
    for cut in range(1, len(raw), max(1, len(raw) // 25)):
        path = written(file, [], tmp_path / "s")
        path.write_bytes(raw[:cut])
        try:
            load_transcripts(path)
        except TranscriptError as error:
            assert str(error).startswith(str(tmp_path / "s"))  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("name", IMPORTERS)
@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_file_read_as_another_format_is_refused_with_words(file: Path, name: str) -> None:
    try:
        load_transcripts(FIXTURES / file, format=name)
    except TranscriptError as error:
        assert str(FIXTURES) in str(error)  # noqa: PT017 - some formats contain others


@pytest.mark.parametrize("file", [each for each in FILES if each.suffix == ".jsonl"], ids=str)
def test_a_line_of_another_format_is_named(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mixed.jsonl").write_bytes(
        (FIXTURES / "openai_finetune.jsonl").read_bytes() + (FIXTURES / file).read_bytes()
    )
    transcripts, report = read_transcripts(tmp_path / "mixed.jsonl", on_error="skip")
    if file.name == "openai_finetune.jsonl":
        assert (len(transcripts), report.skipped) == (4, ())
        return
    assert len(transcripts) == 2
    assert all("mixed.jsonl, line" in each.where for each in report.skipped)
    if file.name == "responses_items.jsonl":
        return  # single items look like nothing in particular
    format_name = sniff_format(FIXTURES / file).name
    assert any(f"this line looks like {format_name}" in each.reason for each in report.skipped)


def test_other_encodings_are_refused_saying_which(tmp_path: Path) -> None:
    text = (FIXTURES / "openai_finetune.jsonl").read_text(encoding="utf-8").replace("Bolts", "Śruby")
    for encoding in ("utf-16", "utf-16-le", "iso8859-2"):
        (tmp_path / "s.jsonl").write_bytes(text.encode(encoding))
        with pytest.raises(TranscriptError, match=r"UTF-|no format the lab knows|malformed JSON"):
            load_transcripts(tmp_path / "s.jsonl")


READ = """
import sys
from pathlib import Path
from compaction_lab.errors import TranscriptError
from compaction_lab.importers import load_transcripts
try:
    load_transcripts(sys.argv[1])
except TranscriptError as error:
    print(error)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024, file=sys.stderr)
"""
"""Reads a file and prints its own peak memory in MiB: not ``ru_maxrss``, which a child inherits from its parent."""


@pytest.mark.parametrize(
    ("name", "unit", "says"),
    [
        ("text.jsonl", b"x", "found a record longer than 128 MiB"),
        ("text.json", b"x", "found a record longer than 128 MiB"),
        ("brackets.jsonl", b"[", "found a record longer than 128 MiB"),
    ],
)
def test_a_line_of_200_megabytes_is_refused_in_bounded_memory(
    name: str, unit: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.write(b'{"messages": [{"role": "user", "content": "')
        for _ in range(200):
            file.write(unit * 1024**2)
        file.write(b'"}]}\n')
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    assert says in done.stdout
    assert int(done.stderr) < 600  # MiB


def test_many_small_values_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"messages": [' + b"{}," * (MAX_RECORD_BYTES // 4) + b"{}]}\n")
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    assert "commas and brackets in one record" in done.stdout
    assert int(done.stderr) < 600  # MiB
