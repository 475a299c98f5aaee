"""The lab's own format: JSONL with one transcript a line, OpenAI chat messages plus what that format cannot say.

A line is ``{"format": "compaction-lab/1", "id", "messages", "tools", "probes", "meta", "warnings", "recorded",
"compactions"}``, without what is empty.
Message keys of ours are ``pinned, tags, source, is_error, usage, model, response_id, timestamp_s, latency_s`` and
``cost_usd``; a recorded wire key of the same name stands under ``extra``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast, get_args

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message, Source, Usage
from compaction_lab.conversation.transcript import Probe, RecordedCompaction, Transcript
from compaction_lab.conversation.wire import from_openai, to_openai, tools_from_openai, tools_to_openai
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record
from compaction_lab.importers.source import Source as FileSource

FORMAT = "compaction-lab/1"

_FLAGS = ("pinned", "is_error")
_TEXTS = ("model", "response_id")
_NUMBERS = ("timestamp_s", "latency_s", "cost_usd")
_OURS = frozenset({*_FLAGS, *_TEXTS, *_NUMBERS, "source", "tags", "usage", "extra"})
_BUCKETS = ("fresh_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_SOURCES = get_args(Source)


def write_transcripts(path: str | os.PathLike[str], transcripts: Iterable[Transcript]) -> int:
    """Write transcripts, one a line, through a temporary file; return how many.

    Reading the file again gives equal transcripts, but for ``origin``.

    Raises
    ------
    OSError
        If the folder cannot be written; a file that was there before is then unchanged.
    """
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for transcript in transcripts:
            yield transcript_line(transcript)
            count += 1

    write_through(Path(path), lines())
    return count


def write_through(target: Path, pieces: Iterable[bytes]) -> None:
    """Write a file whole or not at all, through a temporary one beside it.

    Raises
    ------
    OSError
        If the folder cannot be written; a file that was there before is then unchanged.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def transcript_line(transcript: Transcript) -> bytes:
    """Return the line of a transcript, with its line feed, as UTF-8; lone surrogates are written as JSON escapes."""
    value: dict[str, JSON] = {
        "format": FORMAT,
        "id": transcript.id,
        "messages": [message_to_lab(message) for message in transcript.messages],
        "tools": tools_to_openai(transcript.tools),
        "probes": [_probe_to_lab(probe) for probe in transcript.probes],
        "meta": dict(transcript.meta),
        "warnings": dict(transcript.warnings),
        "recorded": transcript.format,
        "compactions": [_compaction_to_lab(compaction) for compaction in transcript.compactions],
    }
    value = {key: item for key, item in value.items() if item or key in {"format", "id", "messages"}}
    # A lone surrogate has no UTF-8; backslashreplace spells it as the JSON escape it was read from.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def message_to_lab(message: Message) -> dict[str, JSON]:
    """Return a message as an OpenAI chat mapping with the lab's own keys beside."""
    out = to_openai(message)
    clashes = {key: value for key, value in message.extra.items() if key in _OURS}
    for key in clashes:
        out.pop(key, None)
    for key in (*_FLAGS, *_TEXTS):
        if value := getattr(message, key):
            out[key] = value
    for key in _NUMBERS:
        if (number := getattr(message, key)) is not None:
            out[key] = number
    if message.tags:
        out["tags"] = list(message.tags)
    if message.source != "recorded":
        out["source"] = message.source
    if message.usage is not None:
        buckets: dict[str, JSON] = {name: getattr(message.usage, name) for name in _BUCKETS}
        out["usage"] = {**buckets, "raw": dict(message.usage.raw)} if message.usage.raw else buckets
    if clashes:
        out["extra"] = clashes
    return out


def message_from_lab(value: JSON, where: str = "message") -> Message:
    """Return the message of a mapping that :func:`message_to_lab` wrote.

    Raises
    ------
    TranscriptError
        As :func:`~compaction_lab.conversation.wire.from_openai`, and for own keys of a wrong type.
    """
    fields = Fields.of(value, where)
    plain = {key: item for key, item in fields.object.items() if key not in _OURS}
    # Payloads are in the file only because someone asked to keep them.
    message = from_openai(plain, where, keep_media=True)
    source = fields.text("source") or "recorded"
    if source not in _SOURCES:
        raise TranscriptError(
            f"{where}: field 'source' is {describe(source)}, expected one of {', '.join(_SOURCES)}; correct it."
        )
    return replace(
        message,
        pinned=fields.flag("pinned"),
        is_error=fields.flag("is_error"),
        model=fields.text("model"),
        response_id=fields.text("response_id"),
        timestamp_s=fields.number("timestamp_s"),
        latency_s=fields.number("latency_s"),
        cost_usd=fields.number("cost_usd"),
        tags=fields.texts("tags"),
        source=cast("Source", source),
        usage=_usage(fields),
        extra={**message.extra, **fields.mapping("extra")},
    )


def sniff(head: bytes, path: Path) -> float:
    """Return 1 for a file that names this format."""
    del path
    return 1.0 if outline(head).strings.get("format", "").startswith("compaction-lab/") else 0.0


def records(source: FileSource) -> Iterator[Record]:
    """Yield one record a line."""
    return source.lines()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the transcript of a line.

    Raises
    ------
    TranscriptError
        If a field has a wrong type, or the line is of a later version of the format.
    """
    fields = Fields.of(record.value(), record.where)
    if fields.object.get("format") != FORMAT:
        found = describe(fields.object.get("format"))
        record.refuse("format", f"found {found}", f'"{FORMAT}"', "import the file with the version that wrote it")
    transcript = assemble(
        record,
        [message_from_lab(item, record.at(f"messages[{at}]")) for at, item in enumerate(fields.items("messages"))],
        format_name=fields.text("recorded") or IMPORTER.name,
        transcript_id=fields.text("id"),
        tools=tools_from_openai(fields.object.get("tools"), record.at("tools")),
        probes=[_probe(item, record.at(f"probes[{at}]")) for at, item in enumerate(fields.items("probes"))],
        meta=fields.mapping("meta"),
        compactions=[
            _compaction(item, record.at(f"compactions[{at}]")) for at, item in enumerate(fields.items("compactions"))
        ],
        # The importer that read the original accepted them, and said so.
        accept_orphans="orphan_result" in fields.mapping("warnings"),
    )
    # What was odd in the original file stays known; what shows again in this one is not counted twice.
    counts = Counter(transcript.warnings)
    counts |= Counter({kind: n for kind, n in fields.mapping("warnings").items() if isinstance(n, int)})
    yield replace(transcript, warnings=dict(sorted(counts.items())))


def _usage(message: Fields) -> Usage | None:
    if message.object.get("usage") is None:
        return None
    fields = Fields(message.mapping("usage"), f"{message.where}.usage")
    counts = {name: fields.whole(name) or 0 for name in _BUCKETS}
    return Usage(**counts, raw=fields.mapping("raw"))


def _probe_to_lab(probe: Probe) -> dict[str, JSON]:
    out: dict[str, JSON] = {
        "id": probe.id,
        "kind": probe.kind,
        "question": probe.question,
        "gold": list(probe.gold),
        "evidence": list(probe.evidence),
    }
    for key in ("after_message", "source_message"):
        if (index := getattr(probe, key)) is not None:
            out[key] = index
    if probe.stale:
        out["stale"] = list(probe.stale)
    return out


def _compaction_to_lab(compaction: RecordedCompaction) -> dict[str, JSON]:
    stated = {key: value for key, value in asdict(compaction).items() if value is not None and value != ""}
    return cast("dict[str, JSON]", stated)


def _compaction(value: JSON, where: str) -> RecordedCompaction:
    fields = Fields.of(value, where)
    return RecordedCompaction(
        fields.whole("position") or 0,
        fields.text("trigger"),
        fields.whole("tokens_before"),
        fields.whole("tokens_after"),
    )


def _probe(value: JSON, where: str) -> Probe:
    fields = Fields.of(value, where)
    for key in ("id", "kind", "question"):
        if not fields.text(key):
            raise TranscriptError(f"{where}: field {key!r} is missing, expected text; add it or remove the probe.")
    return Probe(
        fields.text("id"),
        fields.text("kind"),
        fields.text("question"),
        fields.texts("gold"),
        fields.texts("evidence"),
        fields.whole("after_message"),
        fields.whole("source_message"),
        fields.texts("stale"),
    )


IMPORTER = Importer("lab", "the lab's own JSONL, one transcript a line", sniff, records, read)
