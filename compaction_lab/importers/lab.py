"""The lab's own format: JSONL with one transcript a line, OpenAI chat messages plus what that format cannot say.

A line is ``{"format": "compaction-lab/1", "id", "messages", "tools", "probes", "meta", "warnings", "recorded"}``.
Message keys of ours are ``pinned, tags, source, is_error, usage, model, response_id, timestamp_s, latency_s, cost_usd``;
a recorded wire key of the same name stands under ``extra``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from compaction_lab.conversation.messages import JSON, Message, Source, Usage
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.conversation.wire import describe, from_openai, to_openai, tools_from_openai, tools_to_openai
from compaction_lab.importers.base import Importer, assemble
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
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    count = 0
    try:
        with temporary.open("wb") as file:
            for transcript in transcripts:
                file.write(transcript_line(transcript))
                count += 1
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return count


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


def message_from_lab(mapping: Mapping[str, JSON], where: str = "message") -> Message:
    """Return the message of a mapping that :func:`message_to_lab` wrote.

    Raises
    ------
    TranscriptError
        As :func:`~compaction_lab.conversation.wire.from_openai`, and for own keys of a wrong type.
    """
    if not isinstance(mapping, Mapping):
        return from_openai(mapping, where)
    record = Record(Path(where))
    plain = {key: value for key, value in mapping.items() if key not in _OURS}
    # Payloads are in the file only because someone asked to keep them.
    message = from_openai(plain, where, keep_media=True)
    fields: dict[str, object] = {}
    for key, kind, expected in (
        *((key, bool, "true or false") for key in _FLAGS),
        *((key, str, "text") for key in _TEXTS),
        *((key, (int, float), "a number") for key in _NUMBERS),
    ):
        value = mapping.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            record.refuse(key, f"found {describe(value)}", expected, "correct the field or leave it out")
        fields[key] = float(cast("float", value)) if key in _NUMBERS else value
    tags = mapping.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        record.refuse("tags", f"found {describe(tags)}", "a list of texts", "correct the field or leave it out")
    source = mapping.get("source", "recorded")
    if source not in _SOURCES:
        record.refuse("source", f"found {describe(source)}", f"one of {', '.join(_SOURCES)}", "correct it")
    extra = mapping.get("extra", {})
    if not isinstance(extra, dict):
        record.refuse("extra", f"found {describe(extra)}", "an object", "correct the field or leave it out")
    usage = _usage(mapping.get("usage"), record)
    return replace(
        message,
        tags=tuple(tags),
        source=source,
        usage=usage,
        extra={**message.extra, **extra},
        **fields,
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
    value = record.value()
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        found = describe(value.get("format") if isinstance(value, dict) else value)
        record.refuse("format", f"found {found}", f'"{FORMAT}"', "import the file with the version that wrote it")
    messages = value.get("messages")
    if not isinstance(messages, list):
        record.refuse("messages", f"found {describe(messages)}", "a list of messages", "correct the field")
    name, meta, warnings = value.get("id", ""), value.get("meta", {}), value.get("warnings", {})
    for key, item, kind, expected in (
        ("id", name, str, "text"),
        ("meta", meta, dict, "an object"),
        ("warnings", warnings, dict, "an object of counts"),
    ):
        if not isinstance(item, kind):
            record.refuse(key, f"found {describe(item)}", expected, "correct the field or leave it out")
    recorded = value.get("recorded")
    transcript = assemble(
        record,
        [message_from_lab(item, record.at(f"messages[{index}]")) for index, item in enumerate(messages)],  # type: ignore[arg-type]
        format_name=recorded if isinstance(recorded, str) else IMPORTER.name,
        transcript_id=cast("str", name),
        tools=tools_from_openai(value.get("tools"), record.at("tools")),
        probes=_probes(value.get("probes"), record),
        meta=cast("dict[str, JSON]", meta),
    )
    # What was odd in the original file stays known; what shows again in this one is not counted twice.
    earlier = {kind: count for kind, count in cast("dict[str, JSON]", warnings).items() if isinstance(count, int)}
    both = {
        kind: max(earlier.get(kind, 0), transcript.warnings.get(kind, 0)) for kind in {*earlier, *transcript.warnings}
    }
    yield replace(transcript, warnings=dict(sorted(both.items())))


def _usage(value: JSON, record: Record) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        record.refuse("usage", f"found {describe(value)}", "an object of token counts", "correct it or leave it out")
    counts = {}
    for name in _BUCKETS:
        count = value.get(name, 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            record.refuse(f"usage.{name}", f"found {describe(count)}", "a number of tokens", "correct it")
        counts[name] = count
    raw = value.get("raw", {})
    return Usage(**counts, raw=raw if isinstance(raw, dict) else {})


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
    return out


def _probes(value: JSON, record: Record) -> tuple[Probe, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        record.refuse("probes", f"found {describe(value)}", "a list of probes", "correct it or leave it out")
    return tuple(_probe(item, record.part(f"probes[{index}]", item)) for index, item in enumerate(value))


def _probe(item: JSON, record: Record) -> Probe:
    if not isinstance(item, dict):
        record.refuse("", f"found {describe(item)}", "a probe object", "correct it")
    texts = [item.get(key) for key in ("id", "kind", "question")]
    if not all(isinstance(text, str) for text in texts):
        record.refuse("", "found a probe without the texts 'id', 'kind' and 'question'", "all three", "add them")
    lists: list[tuple[str, ...]] = []
    for key in ("gold", "evidence"):
        found = item.get(key, [])
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            record.refuse(key, f"found {describe(found)}", "a list of texts", "correct it")
        lists.append(tuple(cast("list[str]", found)))
    places: list[int | None] = []
    for key in ("after_message", "source_message"):
        place = item.get(key)
        if place is not None and (not isinstance(place, int) or isinstance(place, bool)):
            record.refuse(key, f"found {describe(place)}", "a message's index", "correct it or leave it out")
        places.append(cast("int | None", place))
    return Probe(*cast("list[str]", texts), lists[0], lists[1], places[0], places[1])


IMPORTER = Importer("lab", "the lab's own JSONL, one transcript a line", sniff, records, read)
