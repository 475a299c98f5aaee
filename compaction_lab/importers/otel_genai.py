"""OpenTelemetry GenAI spans, as OTLP/JSON or as the console exporter prints them; each span repeats the history.

Semantics: semantic conventions 1.37 (messages as attributes) and before (an event a message). Capturing content is
opt-in: without it there is nothing to replay, and the file is refused saying so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compaction_lab.conversation.messages import Message, ToolDefinition
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.importers.base import Importer
from compaction_lab.importers.calls import transcripts_of
from compaction_lab.importers.content import parsed, with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.folding import Exchange
from compaction_lab.importers.otel_messages import instructions_message
from compaction_lab.importers.otel_spans import Span, spans_of
from compaction_lab.importers.shapes import read_shape
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import seconds_between

_CALLS = frozenset({"chat", "text_completion", "generate_content", "completion", ""})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds spans."""
    del path
    keys = outline(head).keys
    if keys & {"resourceSpans", "resource_spans"}:
        return 0.95
    return 0.85 if b"gen_ai." in head and {"name", "attributes"} <= keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record: a conversation spans its lines."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversations that the spans' model calls were.

    Raises
    ------
    TranscriptError
        If no span of a model call holds messages.
    """
    spans: list[Span] = []
    for place, value in record.values():
        found = list(spans_of(Fields.of(value, place.where), place))
        record.warnings["unread_line"] += not found
        spans.extend(found)
    calls = [span for span in spans if _is_call(span)]
    spoken = [span for span in sorted(calls, key=lambda span: span.start_s or 0.0) if span.has_content]
    if not spoken:
        record.refuse(
            "",
            f"found {len(spans)} spans, {len(calls)} of model calls, none with messages",
            "gen_ai.input.messages or message events",
            "record again with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
        )
    record.warnings["call_without_content"] += len(calls) - len(spoken)
    yield from transcripts_of(record, [_exchange(span, record) for span in spoken], IMPORTER.name)


def _is_call(span: Span) -> bool:
    operation = span.text("gen_ai.operation.name")
    return operation in _CALLS and any(key.startswith("gen_ai.") for key in span.attributes)


def _exchange(span: Span, record: Record) -> Exchange:
    opening = instructions_message(parsed(span.attributes.get("gen_ai.system_instructions")), span.where)
    sent = _read(span, "gen_ai.input.messages", record)
    received = _read(span, "gen_ai.output.messages", record)
    if len(received) > 1:
        record.warnings["unread_choice"] += len(received) - 1
        received = received[:1]
    answer = [_measured(message, span, record) for message in received]
    name = span.text("gen_ai.conversation.id") or span.trace
    sent = sent if any(message.role == "system" for message in sent) else [*opening, *sent]
    response_id = span.text("gen_ai.response.id") or span.id
    return Exchange(sent, answer, _tools(span), name, response_id, stateful=bool(span.text("gen_ai.conversation.id")))


def _read(span: Span, key: str, record: Record) -> list[Message]:
    value = parsed(span.attributes.get(key))
    if not value:
        return []
    spoken = read_shape(value, f"{span.where}.{key}", keep_media=record.keep_media)
    record.warnings.update(spoken.warnings)
    return spoken.messages


def _measured(message: Message, span: Span, record: Record) -> Message:
    message = replace(
        message,
        model=span.text("gen_ai.response.model") or span.text("gen_ai.request.model"),
        timestamp_s=span.end_s if span.end_s is not None else span.start_s,
        latency_s=seconds_between(span.start_s, span.end_s),
        response_id=span.text("gen_ai.response.id"),
    )
    return with_usage(message, span.attributes, "otel", record.warnings)


def _tools(span: Span) -> tuple[ToolDefinition, ...]:
    value = parsed(span.attributes.get("gen_ai.tool.definitions"))
    return tools_from_openai(value, span.where) if isinstance(value, list) else ()


IMPORTER = Importer("otel_genai", "OpenTelemetry GenAI spans (OTLP/JSON)", sniff, records, read)
