"""ShareGPT conversations: who says what, calls and observations included; ids are given in the order of the calls.

Semantics: FastChat's data format with the tool tags of LLaMA-Factory (``function_call``, ``observation``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON, Message, Role, Text, ToolCall
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.conversation.wire import tools_from_openai
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import arguments_text, parsed
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
    "system": "system",
    "observation": "tool",
    "tool": "tool",
    "function_response": "tool",
}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds conversations."""
    del path
    return 0.85 if "conversations" in outline(head).keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a conversation."""
    for place, value in source.whole().values():
        yield place if place.line is not None else place.part("", value)


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a record.

    Raises
    ------
    TranscriptError
        If a turn has an unknown speaker or no text.
    """
    fields = Fields.of(record.value(), record.where)
    warnings: Counter[str] = Counter()
    messages = [Message("system", (Text(fields.text("system")),))] if fields.text("system") else []
    waiting: list[str] = []
    numbers = count(1)
    for at, item in enumerate(fields.items("conversations")):
        turn = Fields.of(item, record.at(f"conversations[{at}]"))
        speaker = turn.text("from") or turn.text("role")
        text = turn.text("value") or turn.text("content")
        role = _ROLES.get(speaker)
        if role is None:
            raise TranscriptError(
                f"{turn.where}, from: found {describe(speaker)}, expected one of {', '.join(_ROLES)}; rename the tag."
            )
        if speaker == "function_call":
            calls = _calls(text, numbers, warnings)
            waiting.extend(call.id for call in calls)
            messages.append(Message("assistant", (), calls))
        elif role == "tool":
            messages.append(Message("tool", (Text(text),), call_id=waiting.pop(0) if waiting else ""))
        else:
            messages.append(Message(role, (Text(text),)))
    tools = parsed(fields.object.get("tools"))
    name = fields.object.get("id")
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=name if isinstance(name, str) else "",
        tools=tools_from_openai(tools, record.at("tools")) if isinstance(tools, list) else (),
        warnings=warnings,
        accept_orphans=True,
    )


def _calls(text: str, numbers: Iterator[int], warnings: Counter[str]) -> tuple[ToolCall, ...]:
    value: JSON = parsed(text)
    items = value if isinstance(value, list) else [value]
    calls = []
    for item, number in zip(items, numbers, strict=False):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(item, dict) and isinstance(name, str):
            given = item.get("arguments", item.get("parameters"))
            calls.append(ToolCall(f"call_{number}", name, arguments_text(given)))
        else:
            warnings["unparsed_call"] += 1
            calls.append(ToolCall(f"call_{number}", "unknown", text))
    return tuple(calls)


IMPORTER = Importer("sharegpt", "ShareGPT conversations, tool tags included, as JSON or JSONL", sniff, records, read)
