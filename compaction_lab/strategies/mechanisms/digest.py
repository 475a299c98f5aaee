"""A digest by rule (M34): what is dropped leaves a list of asks, calls, files and errors behind, no model asked."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction_lab.conversation.context import Edit, Key, Placed
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.strategies.ageing import boundary
from compaction_lab.strategies.base import Compaction, Situation, start
from compaction_lab.strategies.mechanisms.pair_text import first_arguments
from compaction_lab.strategies.mechanisms.tool_results import call_of
from compaction_lab.strategies.registry import at_least, register

_PATH = re.compile(r"(?:~?/|\.{1,2}/|[A-Za-z]:\\)[^\s`'\")\]}<>,;]+|\b[\w-]+(?:/[\w.-]+)+\b|\b[\w-]+\.[a-z]{1,4}\b")
_ERROR = re.compile(r"\b(error|failed|exception|traceback|timeout|timed out|fatal)\b", re.IGNORECASE)
_SECRET = re.compile(
    r"\b(?:gh[pousr]_\w{8,}|sk-[\w-]{16,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,})"
    r"|(?i:\b(?:api[_-]?key|token|password|secret)\b\s*[:=]\s*)\S+"
)
REDACTED = "[redacted]"


@register("digest_prefix", semantics=1)
@dataclass(frozen=True, slots=True)
class DigestPrefix:
    """Drop the old part of a conversation and leave a digest made by rule in its place (mechanism M34).

    The digest lists, in this order and as far as they fit: the user's asks, what was called how often, the last calls,
    files named, lines that speak of an error, and the assistant's last texts. An earlier digest is carried on.

    Parameters
    ----------
    keep_last, unit
        Newest complete units that stay, beside what is being worked on.
    keep_first_user
        Whether the first user message, the task, stays verbatim.
    min_messages
        Drop nothing unless at least this many messages go.
    role
        Role of the digest message.
    asks, calls, files, errors, texts
        Most entries of each list; 0 leaves the list out.
    entry_characters
        Longest entry.
    max_characters
        Longest digest.
    redact
        Whether what looks like a key or password is left out.
    """

    keep_last: int = 2
    unit: Literal["turn", "step", "group", "message"] = "turn"
    keep_first_user: bool = True
    min_messages: int = 4
    role: Literal["user", "assistant", "system"] = "user"
    asks: int = 8
    calls: int = 12
    files: int = 12
    errors: int = 5
    texts: int = 3
    entry_characters: int = 400
    max_characters: int = 8000
    redact: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        for field in ("keep_last", "asks", "calls", "files", "errors", "texts"):
            at_least(self, field, 0)
        for field in ("min_messages", "entry_characters", "max_characters"):
            at_least(self, field, 1)

    def __call__(self, situation: Situation) -> Compaction:
        """Drop what is old and say by rule what it was."""
        context, base, _ = start(situation)
        index = boundary(situation, self.unit, self.keep_last)
        task = self._task(context.entries())
        old = [
            entry
            for entry in context.entries(None, (index, 0))
            if entry.key != task and situation.removable(entry.key, entry.message, index)
        ]
        if sum(entry.message.source != "summary" for entry in old) < self.min_messages:
            return Compaction((), 0, base)
        text = self.digest(situation, old)
        before = sum(situation.counter.message(entry.message) for entry in old)
        new = Message(self.role, (Text(text),), source="summary")
        if situation.counter.message(new) >= before:
            return Compaction((), 0, base, outcome="rejected: the digest is not shorter")
        last = old[-1].key
        edit = Edit("summarised", tuple(entry.key for entry in old), Placed(last, new))
        return Compaction((edit,), 0, base, f"{len(old)} messages older than the last {self.keep_last} {self.unit}s")

    def _task(self, entries: Iterable[Placed]) -> Key | None:
        if not self.keep_first_user:
            return None
        return next((e.key for e in entries if e.message.role == "user" and e.message.source != "summary"), None)

    def digest(self, situation: Situation, old: list[Placed]) -> str:
        """Return the digest of what is dropped."""
        log = situation.context.log
        messages = [entry.message for entry in old]
        earlier = [message.text for message in messages if message.source == "summary"]
        asks = [m.text for m in messages if m.role == "user" and m.source != "summary"]
        said = [m.text for m in messages if m.role == "assistant" and m.text]
        calls = [call for m in messages for call in m.calls]
        counts = Tally(call.name for call in calls)
        failed = []
        for entry in old:
            if entry.message.role == "tool" and (entry.message.is_error or _ERROR.search(entry.message.text)):
                call = call_of(log, entry.key)
                failed.append(f"{'' if call is None else call.name + ': '}{_error_line(entry.message.text)}")
        material = [call.arguments for call in calls] + [m.text for m in messages if m.role != "tool"]
        files = list(dict.fromkeys(path for text in material for path in _PATH.findall(text)))
        lists = (
            ("The user asked", asks[-self.asks :] if self.asks else []),
            ("Tools called", [f"{name} ({count}x)" for name, count in counts.most_common()] if self.calls else []),
            ("Last calls", [f"{c.name}{first_arguments(c)}" for c in calls[-self.calls :]] if self.calls else []),
            ("Files named", files[-self.files :] if self.files else []),
            ("Errors seen", failed[-self.errors :] if self.errors else []),
            ("Last answers", said[-self.texts :] if self.texts else []),
        )
        lines = [
            f"[{len(old)} earlier messages were left out. This list was made by rule; check before relying on it.]"
        ]
        lines += [self._clean(text)[: self.max_characters // 2] for text in earlier]
        for heading, items in lists:
            if items:
                lines.append(f"{heading}:")
                lines += [f"- {self._entry(item)}" for item in items]
        text = "\n".join(lines)
        return text if len(text) <= self.max_characters else text[: self.max_characters - 4].rstrip() + " ..."

    def _entry(self, text: str) -> str:
        flat = " ".join(self._clean(text).split())
        return flat if len(flat) <= self.entry_characters else flat[: self.entry_characters] + "..."

    def _clean(self, text: str) -> str:
        return _SECRET.sub(REDACTED, text) if self.redact else text


def _error_line(text: str) -> str:
    """Return the first line of a text that speaks of an error, else its first line."""
    lines = text.splitlines() or [""]
    return next((line for line in lines if _ERROR.search(line)), lines[0])
