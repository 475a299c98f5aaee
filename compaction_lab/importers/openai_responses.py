"""OpenAI Responses: lists of items, and responses (with their inputs) chained by ``previous_response_id``.

A response without its input cannot be replayed: what the user said is then on the server, and counted as missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.calls import exchange, transcripts_of
from compaction_lab.importers.markers import has_type, has_value
from compaction_lab.importers.responses_items import ITEM_TYPES, messages_from_items
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds responses, or items of them."""
    del path
    shape = outline(head)
    if shape.strings.get("object") in {"response", "response.compaction"}:
        return 0.9
    if shape.keys & {"uuid", "payload", "messages", "observations", "samples", "request"}:
        return 0.0
    if "input" in shape.keys and shape.keys & {"instructions", "previous_response_id", "output"}:
        return 0.85 if has_type(head, *ITEM_TYPES, "input_text", "output_text") or "output" in shape.keys else 0.5
    items = has_type(head, "function_call", "function_call_output", "custom_tool_call", "reasoning")
    listed = shape.kind == "array" or shape.several
    if listed and "type" in shape.keys and (items or has_type(head, "input_text", "output_text")):
        return 0.3 if shape.keys & {"tool_calls", "source"} else 0.7
    return 0.3 if has_value(head, "object", "response") and shape.kind == "object" else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record: a conversation may span its lines."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversations of a file.

    Raises
    ------
    TranscriptError
        If an item or a response is not one.
    """
    values = list(record.values())
    if all(_is_item(value) for _, value in values):
        items = [value for _, value in values]
        messages = messages_from_items(items, record.where, keep_media=record.keep_media)
        yield assemble(
            record,
            messages,
            format_name=IMPORTER.name,
            compactions=[RecordedCompaction(at) for at, each in enumerate(messages) if each.source == "summary"],
            accept_orphans=True,
        )
        return
    exchanges = []
    for place, value in values:
        response = value.get("response") if isinstance(value, dict) else None
        exchanges.append(exchange(value, response if isinstance(response, dict) else value, place, record.warnings))
    yield from transcripts_of(record, exchanges, IMPORTER.name)


def _is_item(value: JSON) -> bool:
    return (
        isinstance(value, dict)
        and "output" not in value.keys() - ({"output"} if "call_id" in value else set())
        and ("role" in value or "type" in value)
    )


IMPORTER = Importer(
    "openai_responses",
    "OpenAI Responses: items, or responses with their inputs, as JSONL or JSON",
    sniff,
    records,
    read,
)
