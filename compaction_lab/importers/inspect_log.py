"""Inspect evaluation logs, ``.json`` and ``.eval``: a transcript a sample, with the usage of each of its model calls.

Usage stands in the sample's ``model`` events only; a call belongs to the message with the id of its output. Long texts
may be references to the sample's attachments. Semantics: inspect_ai 0.3 ``log/_log.py``, ``log/_condense.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from compaction_lab.conversation.messages import JSON, Message, Role, ToolCall
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.archives import MAX_ARCHIVE_BYTES, open_archive, read_member
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, content_parts, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

_ZIP = b"PK\x03\x04"
_ATTACHMENTS = ("attachment://", "tc://")
_ROLES = frozenset({"system", "user", "assistant", "tool"})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a log."""
    if head.startswith(_ZIP) or path.suffix == ".eval":
        return 0.95
    keys = outline(head).keys
    return 0.95 if {"eval", "plan"} <= keys or ({"eval", "version"} <= keys and "status" in keys) else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a sample."""
    if source.head().startswith(_ZIP):
        yield from _members(source)
        return
    document = source.document()
    log = Fields.of(document.value(), document.where)
    if not log.items("samples"):
        document.refuse("samples", "found none", "samples with their messages", "log without header_only")
    for at, sample in enumerate(log.items("samples")):
        one = sample if isinstance(sample, dict) else {"messages": sample}
        yield document.part(f"samples[{at}]", {**one, "header": {"eval": log.object.get("eval")}})


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a sample.

    Raises
    ------
    TranscriptError
        If it has no messages, or one of them is not one.
    """
    sample = Fields.of(record.value(), record.where)
    warnings: Counter[str] = Counter()
    attachments = sample.mapping("attachments")
    messages = [
        _message(Fields.of(_attached(item, attachments), record.at(f"messages[{at}]")), warnings, record)
        for at, item in enumerate(sample.items("messages"))
    ]
    places = {message.id: at for at, message in enumerate(messages) if message.id}
    compactions: list[RecordedCompaction] = []
    tools: JSON = []
    reached = 0
    for at, item in enumerate(sample.items("events")):
        event = Fields.of(item, record.at(f"events[{at}]"))
        if event.object.get("event") == "model":
            tools = event.object.get("tools") or tools
            reached = _used(event, messages, places, warnings) or reached
        elif event.object.get("event") == "compaction":
            compactions.append(
                RecordedCompaction(
                    reached, event.text("type"), event.whole("tokens_before"), event.whole("tokens_after")
                )
            )
    header = Fields(sample.mapping("header"), record.where).mapping("eval")
    meta: dict[str, JSON] = {key: header[key] for key in ("task", "model") if header.get(key) is not None}
    meta |= {key: sample.object[key] for key in ("target", "scores") if sample.object.get(key) is not None}
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=f"{sample.object.get('id')}_epoch_{sample.object.get('epoch')}",
        tools=tools_from_openai(_attached(tools, attachments), record.at("events")),
        meta=meta,
        warnings=warnings,
        compactions=compactions,
        accept_orphans=True,
    )


def _members(source: Source) -> Iterator[Record]:
    with open_archive(source.path) as archive:
        total = 0
        header: JSON = {}
        for member in sorted(archive.infolist(), key=lambda each: each.filename != "header.json"):
            is_sample = member.filename.startswith("samples/") and member.filename.endswith(".json")
            if not is_sample and member.filename != "header.json":
                continue
            raw = read_member(archive, member, source.max_record_bytes)
            total += len(raw)
            record = Record(source.path, inside=member.filename, raw=raw, keep_media=source.keep_media)
            if total > MAX_ARCHIVE_BYTES:
                record.refuse("", "found more than 4 GiB of samples", "a log of that size", "split the log")
            if not is_sample:
                header = record.value()
                continue
            value = Fields.of(record.value(), record.where).object
            yield replace(record, raw=b"", parsed=({**value, "header": header},))


def _message(fields: Fields, warnings: Counter[str], record: Record) -> Message:
    role = fields.text("role")
    if role not in _ROLES:
        raise TranscriptError(f"{fields.where}: found role {role!r}, expected one of {sorted(_ROLES)}; correct it.")
    calls = []
    for at, item in enumerate(fields.items("tool_calls")):
        call = Fields.of(item, f"{fields.where}.tool_calls[{at}]")
        warnings["unparsed_call"] += call.object.get("parse_error") is not None
        calls.append(ToolCall(call.text("id"), call.text("function"), arguments_text(call.object.get("arguments"))))
    content = fields.object.get("content")
    return Message(
        cast("Role", role),
        content_parts(content, f"{fields.where}.content", provider="inspect", keep_media=record.keep_media),
        tuple(calls),
        call_id=fields.text("tool_call_id"),
        is_error=fields.object.get("error") is not None,
        name=fields.text("function"),
        id=fields.text("id"),
        model=fields.text("model"),
    )


def _used(event: Fields, messages: list[Message], places: Mapping[str, int], warnings: Counter[str]) -> int:
    """Give a call's usage, time and duration to the message it produced; return how many messages it had led to."""
    output = Fields(event.mapping("output"), f"{event.where}.output")
    choices = output.items("choices")
    first = choices[0] if choices else None
    said = first.get("message") if isinstance(first, dict) else None
    message_id = said.get("id") if isinstance(said, dict) else None
    at = places.get(message_id) if isinstance(message_id, str) else None
    if at is None:
        warnings["call_outside_conversation"] += output.object.get("usage") is not None
        return 0
    counted: Counter[str] = Counter()
    duration = output.number("time")
    messages[at] = replace(
        with_usage(messages[at], output.object.get("usage"), "inspect", counted),
        model=event.text("model") or messages[at].model,
        timestamp_s=epoch_seconds(event.object.get("completed", event.object.get("timestamp"))),
        latency_s=duration if duration is not None and duration >= 0 else None,
    )
    warnings |= counted
    return at + 1


def _attached(value: JSON, attachments: Mapping[str, JSON]) -> JSON:
    """Return the value with references to attachments replaced; equal texts are shared, not copied."""
    if isinstance(value, str):
        mark = next((mark for mark in _ATTACHMENTS if value.startswith(mark)), None)
        found = attachments.get(value[len(mark) :]) if mark else None
        return found if isinstance(found, str) else value
    if isinstance(value, list):
        return [_attached(item, attachments) for item in value]
    if isinstance(value, dict):
        return {key: _attached(item, attachments) for key, item in value.items()}
    return value


IMPORTER = Importer("inspect", "Inspect evaluation logs (.json, .eval)", sniff, records, read)
