"""Anthropic Messages: a request, or a request with its response, a line or a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.importers.anthropic_messages import messages_from_anthropic, system_message
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.markers import has_key, has_type
from compaction_lab.importers.openai_chat import conversations
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_NOT_META = {"messages", "tools", "system", "id", "stream"}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is in this format: content blocks or tool definitions no other interface has."""
    del path
    shape = outline(head)
    if shape.keys & {"uuid", "contents", "trajectory", "observations", "eval"}:
        return 0.0
    marked = has_type(head, "tool_use", "tool_result", "thinking", "redacted_thinking") or has_key(head, "input_schema")
    if "messages" in shape.keys:
        return 0.75 if marked or "system" in shape.keys else 0.0
    return 0.65 if marked and {"role", "content"} <= shape.keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a conversation."""
    return conversations(source)


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a record.

    Raises
    ------
    TranscriptError
        If it is not a list of messages, or one of them is not a message.
    """
    if record.lines is not None:
        listed: JSON = [value for _, value in record.values()]
        envelope: dict[str, JSON] = {}
    else:
        value = record.value()
        envelope = value if isinstance(value, dict) else {}
        listed = envelope.get("messages") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        record.refuse("messages", f"found {describe(listed)}", "a list of messages", "write the request as it was sent")
    messages = system_message(envelope.get("system"), record.at("system"))
    for at, item in enumerate(listed):
        where = record.at(f"messages[{at}]")
        messages += messages_from_anthropic(item, where, keep_media=record.keep_media)
    name = envelope.get("id")
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=name if isinstance(name, str) else "",
        tools=tools_from_openai(envelope.get("tools"), record.at("tools")),
        meta={key: value for key, value in envelope.items() if key not in _NOT_META},
        compactions=summaries_as_compactions(messages, Fields(envelope, record.where)),
        accept_orphans=True,
        warnings=Counter(),
    )


def summaries_as_compactions(messages: list[Message], envelope: Fields) -> list[RecordedCompaction]:
    """Return a compaction for each recorded summary; the request's edits name what triggered it."""
    edits = envelope.mapping("context_management").get("edits")
    kinds = [edit.get("type") for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    trigger = next((kind for kind in kinds if isinstance(kind, str)), "")
    return [RecordedCompaction(at, trigger) for at, message in enumerate(messages) if message.source == "summary"]


IMPORTER = Importer("anthropic", "Anthropic message requests, as JSONL (one a line) or JSON", sniff, records, read)
