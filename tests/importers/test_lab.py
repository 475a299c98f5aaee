from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.conversation.messages import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolDefinition,
    Usage,
    user,
)
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.errors import TranscriptError
from compaction_lab.importers import lab, load_transcripts, write_transcripts
from compaction_lab.importers.source import Record


def _joined(text: str) -> str:
    """JSON cannot tell a pair of surrogates from the character they encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


texts = st.text(st.characters(), max_size=12).map(_joined)
names = texts.filter(bool)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
extra = st.dictionaries(
    st.sampled_from(["usage", "model", "extra", "pinned", "weight", "refusal"]), st.none(), max_size=3
)
sizes = st.integers(0, 10**6)
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Reasoning, texts, texts, texts),
    st.builds(
        Media,
        st.sampled_from(["image", "audio", "file"]),
        st.sampled_from(["", "image/png", "audio/wav", "x/y"]),
        sizes,
        sizes,
        sizes,
        st.sampled_from(["", "https://example.org/a", "data:image/png;base64,AAAA"]),
    ),
    st.builds(
        Opaque, st.sampled_from(["openai", "anthropic"]), st.sampled_from(["{}", '{"type":"x"}', "[1]", "no json"])
    ),
)
usages = st.builds(Usage, sizes, sizes, sizes, sizes, sizes, raw=st.dictionaries(texts, json_values, max_size=2))
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
messages = st.builds(
    Message,
    st.sampled_from(["system", "developer", "user", "assistant"]),
    st.lists(parts, max_size=3).map(tuple),
    st.lists(st.builds(ToolCall, texts, texts, texts), max_size=2).map(tuple),
    is_error=st.booleans(),
    name=texts,
    id=texts,
    response_id=texts,
    source=st.sampled_from(["recorded", "generated", "injected", "placeholder", "summary"]),
    pinned=st.booleans(),
    tags=st.lists(texts, max_size=2).map(tuple),
    usage=st.none() | usages,
    model=texts,
    timestamp_s=numbers,
    latency_s=numbers,
    cost_usd=numbers,
    extra=extra,
)


def _answered(message: Message) -> tuple[Message, ...]:
    results = (Message("tool", (Text("ok"),), call_id=call.id, is_error=True) for call in message.calls)
    return (message, *results)


transcripts = st.builds(
    Transcript,
    names,
    st.lists(messages, min_size=1, max_size=3).map(lambda items: tuple(m for item in items for m in _answered(item))),
    st.lists(st.builds(ToolDefinition, texts, texts, st.dictionaries(texts, json_values, max_size=2)), max_size=2).map(
        tuple
    ),
    st.lists(
        st.builds(
            Probe,
            names,
            names,
            names,
            st.lists(texts, max_size=2).map(tuple),
            st.lists(texts, max_size=2).map(tuple),
            st.none() | sizes,
            st.none() | sizes,
        ),
        max_size=2,
    ).map(tuple),
    st.dictionaries(texts, json_values, max_size=2),
    format=st.just("lab"),
)


def read_line(line: bytes) -> Transcript:
    (transcript,) = lab.read(Record(Path("memory"), 1, raw=line))
    return replace(transcript, warnings={}, origin="")


@given(transcripts)
def test_a_written_transcript_is_read_again_unchanged(transcript: Transcript) -> None:
    line = lab.transcript_line(transcript)
    assert line.count(b"\n") == 1
    assert read_line(line) == transcript
    assert lab.transcript_line(read_line(line)) == line


def test_files_round_trip_and_keep_their_warnings(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_bytes(b'{"messages": [{"role": "user", "content": "\\udcb2 \xe2\x80\xa8"}]}\n')
    loaded = load_transcripts(tmp_path / "chat.jsonl")
    assert write_transcripts(tmp_path / "out" / "lab.jsonl", loaded) == 1
    (again,) = load_transcripts(tmp_path / "out" / "lab.jsonl")
    assert replace(again, origin=loaded[0].origin) == loaded[0]
    assert again.warnings == {"lone_surrogate": 1}
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["lab.jsonl"]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "lab.jsonl"
    write_transcripts(path, [Transcript("a", (user("go"),))])
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_transcripts(path, [Transcript("b", (user("go"),)), Transcript("c", (), meta={"x": object()})])  # type: ignore[dict-item]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"format": "compaction-lab/9", "messages": []}', "format: found the text 'compaction-lab/9'"),
        (b'{"format": "compaction-lab/1", "messages": 3}', "field 'messages' is the number 3"),
        (b'{"format": "compaction-lab/1", "messages": [3]}', "messages[0]: found the number 3"),
        (
            b'{"format": "compaction-lab/1", "messages": [{"role": "user", "content": "a", "pinned": "yes"}]}',
            "messages[0]: field 'pinned' is the text 'yes', expected true or false",
        ),
        (
            b'{"format": "compaction-lab/1", "messages": [{"role": "user", "usage": {"output_tokens": -1}}]}',
            "messages[0].usage: field 'output_tokens' is the number -1",
        ),
        (
            b'{"format": "compaction-lab/1", "messages": [{"role": "user", "content": "a", "source": "me"}]}',
            "messages[0]: field 'source' is the text 'me', expected one of recorded",
        ),
        (
            b'{"format": "compaction-lab/1", "messages": [{"role": "user", "content": "a"}], "probes": [{"id": "p"}]}',
            "probes[0]: field 'kind' is missing",
        ),
    ],
)
def test_a_wrong_field_is_named(line: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "lab.jsonl").write_bytes(line)
    with pytest.raises(TranscriptError) as error:
        load_transcripts(tmp_path / "lab.jsonl")
    assert "lab.jsonl, line 1" in str(error.value)
    assert says in str(error.value)


def test_time_going_back_is_flagged_and_the_order_kept() -> None:
    stamps = [3.0, 1.0, None, 2.0]
    messages = tuple(replace(user(str(at)), timestamp_s=at) for at in stamps)
    (transcript,) = lab.read(Record(Path("memory"), raw=lab.transcript_line(Transcript("t", messages))))
    assert [message.timestamp_s for message in transcript.messages] == stamps
    assert transcript.warnings == {"time_goes_back": 1}


def test_the_shipped_session_states_its_evidence() -> None:
    path = Path(__file__).parents[2] / "datasets" / "coding_session" / "session.jsonl"
    (session,) = load_transcripts(path)
    calls = [len(message.calls) for message in session.messages if message.role == "assistant"]
    assert (len(session.messages), len(calls), sum(calls), max(calls)) == (55, 24, 29, 3)
    assert session.warnings == {}
    assert len(session.probes) == 8
    for probe in session.probes:
        assert probe.source_message is not None
        assert all(span in session.messages[probe.source_message].text for span in probe.evidence)
