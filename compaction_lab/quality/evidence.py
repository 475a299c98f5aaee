"""Where a probe's evidence stands: how much of it is in what is sent, where in the context, and how old the fact is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction_lab.conversation.context import Counter
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.conversation.transcript import Probe
from compaction_lab.records import Row


def searchable(message: Message) -> str:
    """Return all text of a message that a reader could find evidence in: content and tool-call arguments."""
    if not message.calls:
        return message.text
    return "\n".join([message.text, *(call.arguments for call in message.calls)])


def locate(probe: Probe, sent: Sequence[Message], log: Log, stop: int, counter: Counter) -> Row:
    """Return ``position, age_turns, age_tokens, evidence_visible`` of a probe.

    ``evidence_visible`` is the share of the evidence spans found verbatim in what is sent, summaries included;
    ``position`` the relative token position (0 to 1) of the last visible span; ages refer to the untouched history,
    from the message that first states the fact to the question. What is unknown is ``None``.
    """
    row: Row = {"position": None, "age_turns": None, "age_tokens": None, "evidence_visible": None}
    if probe.evidence:
        texts = [searchable(message) for message in sent]
        places = [max(_found_in(span, texts), default=-1) for span in probe.evidence]
        row["evidence_visible"] = sum(place >= 0 for place in places) / len(places)
        if max(places) >= 0:
            row["position"] = _position(max(places), sent, counter)
    source = probe.source_message
    if source is None:
        source = _first_statement(probe, log, stop)
    if source is not None and source < stop:
        row["age_turns"] = log.turn_at(stop) - log.turns[source]
        row["age_tokens"] = sum(map(counter.message, log.messages[source + 1 : stop]))
    return row


def _found_in(span: str, texts: Sequence[str]) -> Iterable[int]:
    return (at for at, text in enumerate(texts) if span in text)


def _position(at: int, sent: Sequence[Message], counter: Counter) -> float:
    before = sum(map(counter.message, sent[:at]))
    total = before + sum(map(counter.message, sent[at:]))
    return (before + counter.message(sent[at]) / 2) / total if total else 0.0


def _first_statement(probe: Probe, log: Log, stop: int) -> int | None:
    """Return the message after which every evidence span has been stated."""
    firsts = [next((at for at in range(stop) if span in searchable(log.messages[at])), None) for span in probe.evidence]
    found = [first for first in firsts if first is not None]
    return max(found) if found and len(found) == len(firsts) else None
