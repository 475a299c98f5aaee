"""The context of any recorded call, rebuilt from a run's messages and edits, and shown as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from compaction_lab.arm import ArmRun, Playback, Slot, occasions
from compaction_lab.conversation.context import Context, Edit, EditKind, Key, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message
from compaction_lab.errors import StoreError
from compaction_lab.importers.lab import message_from_lab
from compaction_lab.records import Row
from compaction_lab.strategies.base import Compaction, History, Occasion
from compaction_lab.sweep.loading import Run
from compaction_lab.sweep.store import Unit
from compaction_lab.sweep.written import written


class _Uncounted:
    """Counts nothing: playing edits back decides nothing."""

    def message(self, message: Message) -> int:  # noqa: ARG002 - the protocol's shape
        return 0


def rebuilt(run: Run, unit: Unit, call: int) -> tuple[Context, Context]:
    """Return the stored history before one agent call, and the context that was sent with it.

    Parameters
    ----------
    run, unit
        A run, and a unit of it: cell key, transcript id, trial.
    call
        Number of the agent call, from 1.

    Raises
    ------
    StoreError
        The unit made no such call.
    """
    number = 0
    for number, played in enumerate(played_calls(run, unit), start=1):
        if number == call:
            return played.before, played.sent
    msg = f"{run.name}: unit {'/'.join(map(str, unit))} has no call {call}; its calls are 1 to {number}"
    raise StoreError(msg)


@dataclass(frozen=True, slots=True)
class Played:
    """One agent call, played back.

    Parameters
    ----------
    before, sent
        The history before the strategies acted, and what was sent.
    since, stop
        The log's messages that are new since the call before: from ``since`` up to ``stop``.
    kinds
        What happened to each key that an edit named since the call before.
    """

    before: Context
    sent: Context
    since: int
    stop: int
    kinds: Mapping[Key, EditKind]


def played_calls(run: Run, unit: Unit) -> Iterator[Played]:
    """Play a unit's recorded edits back and yield its agent calls in order."""
    messages: dict[str, Message] = {}

    def message(digest: str) -> Message:
        if digest not in messages:
            messages[digest] = message_from_lab(run.messages[digest])
        return messages[digest]

    log = Log(message(digest) for digest in run.log(unit))
    arm = ArmRun(log, tuple(_slots(run.unit_rows_of("compactions", unit), message)))
    kinds: dict[Key, EditKind] = {}
    since = 0
    for occasion, stop, _ in occasions(log):
        sent = _played(arm, occasion, stop)
        for firing in arm.firings:
            for edit in firing.edits:
                kinds.update(dict.fromkeys(edit.keys, edit.kind))
                if edit.new is not None:
                    kinds[edit.new.key] = edit.kind
        if occasion == "before_call":
            yield Played(arm.shown, sent, since, stop, kinds)
            kinds, since = {}, stop


def context_text(run: Run, unit: Unit, call: int) -> tuple[str, str]:
    """Return what was stored before a call and what was sent with it, as text for a terminal.

    Raises
    ------
    StoreError
        The unit made no such call.
    """
    before, after = rebuilt(run, unit, call)
    return as_text(before), as_text(after)


def as_text(context: Context) -> str:
    """Return a context as text, a heading and the content for each message; control characters are made visible."""
    return "\n".join(_lines(placed) for placed in context.entries())


def _lines(placed: Placed) -> str:
    index, rank = placed.key
    message = placed.message
    origin = "" if message.source in ("recorded", "generated") else f" ({message.source})"
    place = f"{index}" if rank == 0 else f"{index}+{rank}"
    return f"[{place}] {message.role}{origin}\n{written(message)}\n"


def _played(arm: ArmRun, occasion: Occasion, stop: int) -> Context:
    try:
        next(arm.occasion(occasion, stop))
    except StopIteration as end:
        context: Context = end.value
        return context
    msg = "a recorded compaction asked for a model; only edits can be played back"
    raise StoreError(msg)


def _slots(rows: list[Row], message: Callable[[str], Message]) -> list[Slot]:
    recorded: dict[int, dict[tuple[Occasion, int], Compaction]] = {}
    placements: dict[int, tuple[Occasion, History]] = {}
    for row in rows:
        number = cast("int", row["slot"])
        when, stop = cast("Occasion", row["when"]), cast("int", row["stop"])
        edits = tuple(_edit(cast("Mapping[str, JSON]", edit), message) for edit in cast("list[JSON]", row["edits"]))
        base: Literal["history", "last"] = "last" if row["base"] == "last" else "history"
        recorded.setdefault(number, {})[when, stop] = Compaction(edits, (), base)
        if when not in ("overflow", "requested") or number not in placements:
            placements[number] = (when, cast("History", row["history"]))
    uncounted = _Uncounted()
    return [
        Slot(Playback(recorded.get(number, {})), *placements.get(number, ("before_call", "view")), uncounted)
        for number in range(max(recorded, default=-1) + 1)
    ]


def _edit(row: Mapping[str, JSON], message: Callable[[str], Message]) -> Edit:
    new = row["new"]
    placed = None
    if isinstance(new, Mapping):
        placed = Placed(_key(new["key"]), message(cast("str", new["sha256"])))
    keys = tuple(_key(key) for key in cast("list[JSON]", row["keys"]))
    return Edit(cast("EditKind", row["kind"]), keys, placed)


def _key(value: JSON) -> Key:
    index, rank = cast("list[int]", value)
    return index, rank
