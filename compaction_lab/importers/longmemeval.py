"""LongMemEval tasks: the chat sessions one after the other, and the question as a probe with the turns that answer it.

Sessions are put in the order of their dates, which is not always that of the file. Questions that cannot be answered
(their id ends in ``_abs``) have no evidence. Source: Wu et al. 2025 (LongMemEval), data format of the public release.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.conversation.transcript import Probe, Transcript
from compaction_lab.conversation.wire import from_openai
from compaction_lab.importers.base import Importer, assemble
from compaction_lab.importers.fields import Fields
from compaction_lab.importers.sniffing import outline
from compaction_lab.importers.source import Record, Source

_WEEKDAY = re.compile(r"\s*\(\w+\)\s*")
_NOT_WIRE = {"has_answer"}


def sniff(head: bytes, path: Path) -> float:
    """Return how likely the file holds tasks."""
    del path
    keys = outline(head).keys
    return 0.95 if "haystack_sessions" in keys or {"question_id", "haystack_dates"} <= keys else 0.0


def records(source: Source) -> Iterator[Record]:
    """Yield one record a task."""
    for place, value in source.whole().values():
        yield place if place.line is not None else place.part("", value)


def read(record: Record) -> Iterator[Transcript]:
    """Yield the conversation of a task with its probe.

    Raises
    ------
    TranscriptError
        If a session is not a list of messages.
    """
    task = Fields.of(record.value(), record.where)
    warnings: Counter[str] = Counter()
    messages: list[Message] = []
    evidence: list[int] = []
    for session in _sessions(task, warnings):
        for item in session.items("turns"):
            turn = Fields.of(item, session.where)
            wire: JSON = {key: value for key, value in turn.object.items() if key not in _NOT_WIRE}
            if turn.object.get("has_answer") is True:
                evidence.append(len(messages))
            message = from_openai(wire, session.where)
            tags = (f"session:{session.text('id')}",)
            messages.append(replace(message, timestamp_s=session.number("time"), tags=tags))
    meta: dict[str, JSON] = {key: task.text(key) for key in ("question_type", "question_date") if task.text(key)}
    yield assemble(
        record,
        messages,
        format_name=IMPORTER.name,
        transcript_id=task.text("question_id"),
        probes=[_probe(task, messages, evidence)] if task.text("question") else (),
        meta=meta,
        warnings=warnings,
    )


def _probe(task: Fields, messages: list[Message], evidence: list[int]) -> Probe:
    kind = task.text("question_type") or "fact"
    # An update supersedes what was said before: the fact asked for was first stated by the last of its turns.
    stated = evidence[-1 if kind == "knowledge-update" else 0] if evidence else None
    answer = task.object.get("answer")
    return Probe(
        task.text("question_id") or "question",
        kind,
        task.text("question"),
        (answer if isinstance(answer, str) else str(answer),),
        tuple(messages[at].text for at in evidence),
        source_message=stated,
    )


def _sessions(task: Fields, warnings: Counter[str]) -> list[Fields]:
    ids, dates = task.items("haystack_session_ids"), task.items("haystack_dates")
    sessions = []
    for at, turns in enumerate(task.items("haystack_sessions")):
        stated: dict[str, JSON] = {
            "turns": turns,
            "id": str(ids[at]) if at < len(ids) else str(at),
            "time": _seconds(dates[at]) if at < len(dates) else None,
        }
        sessions.append(Fields(stated, f"{task.where}.haystack_sessions[{at}]"))
    if any(session.object["time"] is None for session in sessions):
        return sessions
    ordered = sorted(sessions, key=lambda session: session.number("time") or 0.0)
    warnings["sessions_reordered"] += ordered != sessions
    return ordered


def _seconds(date: JSON) -> float | None:
    """Return the time of ``2023/08/11 (Fri) 15:58`` in seconds since the epoch, taken as UTC."""
    if not isinstance(date, str):
        return None
    try:
        return datetime.strptime(f"{_WEEKDAY.sub(' ', date).strip()} +0000", "%Y/%m/%d %H:%M %z").timestamp()
    except ValueError:
        return None


IMPORTER = Importer("longmemeval", "LongMemEval tasks, with their question as a probe", sniff, records, read)
