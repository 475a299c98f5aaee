"""Codex rollouts: the response items of a session with the usage of each call; events that repeat them are passed over.

Semantics: openai/codex ``protocol`` (rollout items). Usage is the last call's, counted when the running total moves:
totals are cumulative, and some events only repeat them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from compaction_lab.conversation.json_values import canonical_json
from compaction_lab.conversation.messages import JSON, Message, Text
from compaction_lab.conversation.transcript import RecordedCompaction, Transcript
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.content import with_usage
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.responses_items import ItemReader, messages_from_items
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source
from compaction_lab.importers.times import epoch_seconds

_SKIPPED_ITEMS = frozenset({"ghost_snapshot", "other"})


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file is a rollout."""
    shape = outline(head)
    if {"type", "payload"} <= shape.keys and ("timestamp" in shape.keys or path.name.startswith("rollout-")):
        return 0.95
    return 0.8 if path.name.startswith("rollout-") and {"id", "timestamp"} <= shape.keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield the file as one record."""
    yield source.whole()


def read(record: Record) -> Iterator[Transcript]:
    """Yield the session.

    Raises
    ------
    TranscriptError
        If a line is not an object or an item not an item; lines of unknown type are passed over.
    """
    session = _Session(ItemReader(keep_media=record.keep_media))
    for place, value in record.values():
        line = Fields.of(value, place.where)
        if "payload" in line.object:
            session.stamp = epoch_seconds(line.object.get("timestamp"))
            session.line(line.text("type"), Fields(line.mapping("payload"), place.at("payload")))
        elif "instructions" in line.object or "git" in line.object:
            session.line("session_meta", line)  # older versions: the header and the items themselves
        elif "record_type" not in line.object:
            session.line("response_item", line)
    session.settle()
    yield assemble(
        record,
        session.reader.messages,
        format_name=IMPORTER.name,
        transcript_id=session.name,
        meta=session.meta,
        warnings=session.warnings,
        compactions=session.compactions,
        accept_orphans=True,
    )


@dataclass(slots=True)
class _Session:
    reader: ItemReader
    name: str = ""
    model: str = ""
    stamp: float | None = None
    meta: dict[str, JSON] = field(default_factory=dict)
    warnings: Counter[str] = field(default_factory=Counter)
    compactions: list[RecordedCompaction] = field(default_factory=list)
    _total: str = ""
    _size: int | None = None
    _said_at: float | None = None
    _settled: int = 0

    def line(self, kind: str, payload: Fields) -> None:
        """Take one line in."""
        if kind == "session_meta":
            self._header(payload)
        elif kind == "turn_context":
            self.model = payload.text("model") or self.model
        elif kind == "response_item" and payload.text("type") not in _SKIPPED_ITEMS:
            self.reader.add(payload.object, payload.where)
            self.settle(open_too=False)
            self._said_at = self.stamp
        elif kind == "compacted":
            self._compacted(payload)
        elif kind == "event_msg" and payload.object.get("type") == "token_count":
            self._used(payload)
        elif kind == "event_msg" and payload.object.get("type") == "thread_rolled_back":
            self._rolled_back(payload.whole("num_turns") or 0)

    def settle(self, *, open_too: bool = True) -> None:
        """Give the messages that are complete their time and model; an open one is completed first."""
        if open_too:
            self.reader.flush()
        messages = self.reader.messages
        for at in range(self._settled, len(messages)):
            if messages[at].role == "assistant":  # complete since the item before this one
                messages[at] = replace(messages[at], timestamp_s=self._said_at, model=self.model)
            else:
                messages[at] = replace(messages[at], timestamp_s=self.stamp)
        self._settled = len(messages)

    def _header(self, payload: Fields) -> None:
        if self.name:
            return  # a resumed session repeats the header of the one it came from
        self.name = payload.text("id")
        for key in ("cwd", "cli_version", "originator", "model_provider"):
            if payload.text(key):
                self.meta[key] = payload.text(key)
        stated = payload.object.get("base_instructions", payload.object.get("instructions"))
        text = stated.get("text") if isinstance(stated, dict) else stated
        if isinstance(text, str) and text:
            self.reader.messages.append(Message("system", (Text(text),)))
            self.settle()

    def _used(self, payload: Fields) -> None:
        info = payload.mapping("info")
        total = canonical_json(info.get("total_token_usage"))
        if not info or total == self._total:
            return
        self._total = total
        self.settle()
        messages = self.reader.messages
        at = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), -1)
        if at < 0 or messages[at].usage is not None:
            self.warnings["usage_without_message"] += 1
            return
        messages[at] = with_usage(messages[at], info, "codex", self.warnings)
        if (usage := messages[at].usage) is not None:
            self._size = usage.input_tokens + usage.output_tokens + usage.reasoning_tokens

    def _compacted(self, payload: Fields) -> None:
        self.settle()
        messages = self.reader.messages
        self.compactions.append(RecordedCompaction(len(messages), tokens_before=self._size))
        known = {(message.role, message.text) for message in messages}
        history = payload.items("replacement_history")
        replaced = messages_from_items(history, payload.where) if history else []
        new = [message for message in replaced if (message.role, message.text) not in known]
        if not history and payload.text("message"):
            new = [Message("user", (Text(payload.text("message")),))]
        messages.extend(replace(message, source="summary") for message in new)
        self.settle()

    def _rolled_back(self, turns: int) -> None:
        """Drop the last turns: the user took them back."""
        self.settle()
        messages = self.reader.messages
        starts = [at for at, message in enumerate(messages) if message.role == "user" and message.source != "summary"]
        if turns and starts:
            cut = starts[max(0, len(starts) - turns)]
            self.warnings["abandoned_message"] += len(messages) - cut
            del messages[cut:]
            self._settled = len(messages)
            self.compactions = [each for each in self.compactions if each.position <= cut]


IMPORTER = Importer("codex", "Codex rollouts (rollout-*.jsonl)", sniff, records, read)
