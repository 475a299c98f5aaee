"""OpenAI chat format: one conversation a line, one message a line, or one JSON document of either.

A conversation is ``{"messages": [...], "tools": [...]}`` (fine-tuning files, request logs) or a bare list of messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import from_openai, tools_from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_MESSAGE_KEYS = {"content", "tool_calls", "function_call", "tool_call_id"}
_NOT_META = {"messages", "tools", "functions", "id"}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is in this format."""
    del path
    shape = outline(head)
    if "messages" in shape.keys:
        return 0.6
    return 0.5 if "role" in shape.keys and shape.keys & _MESSAGE_KEYS else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a conversation."""
    return conversations(source)


def conversations(source: Source) -> Iterator[Record]:
    """Yield one record a conversation of a file in any of the shapes that chat logs have."""
    shape = outline(source.head())
    by_line = shape.several or source.path.suffix in {".jsonl", ".ndjson"}
    if not by_line:
        yield from _conversations(source.document())
    elif shape.kind == "object" and "messages" not in shape.keys and "role" in shape.keys:
        yield source.whole()
    else:
        yield from source.lines()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a record.

    Raises
    ------
    TranscriptError
        If it is not a list of messages, or one of them is not a message.
    """
    if record.lines is not None:
        yield _conversation(record, [(line, line.value()) for line in record.lines.lines()])
        return
    value = record.value()
    listed = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        found = "no 'messages'" if listed is None else describe(listed)
        record.refuse(
            "messages",
            f"found {found}",
            "a list of messages",
            'write {"messages": [...]}, or name the format if it is another',
        )
    items = [(record.part(f"messages[{index}]", item), item) for index, item in enumerate(listed)]
    yield _conversation(record, items, value if isinstance(value, dict) else {})


def _conversations(document: Record) -> Iterator[Record]:
    value = document.value()
    if isinstance(value, list) and value and all(isinstance(item, dict) and "messages" in item for item in value):
        for index, item in enumerate(value):
            yield document.part(f"[{index}]", item)
    else:
        yield document.part("", value)


def _conversation(
    record: Record, items: list[tuple[Record, JSON]], envelope: dict[str, JSON] | None = None
) -> Transcript:
    envelope = envelope or {}
    places = [place.where for place, _ in items]
    messages = [
        from_openai(item, place, keep_media=record.keep_media) for place, (_, item) in zip(places, items, strict=True)
    ]
    for place, _ in items:
        if place.warnings is not record.warnings:
            record.warnings.update(place.warnings)
    offered = "tools" if envelope.get("tools") is not None else "functions"
    name = envelope.get("id")
    return assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=name if isinstance(name, str) else "",
        tools=tools_from_openai(envelope.get(offered), record.at(offered)),
        meta={key: value for key, value in envelope.items() if key not in _NOT_META},
        places=places,
    )


IMPORTER = Importer(
    "openai_chat", "OpenAI chat messages, as JSONL (a conversation or a message a line) or JSON", sniff, records, read
)
