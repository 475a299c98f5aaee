"""What has grown old: the boundary that keeps the newest complete units, and what newly fell behind it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.log import Log, Unit, is_system
from compaction_lab.strategies.base import Situation, start
from compaction_lab.strategies.memory import remembered


@remembered
class Aged(NamedTuple):
    """Memory of a strategy that acts behind a moving boundary: where it was, and what it had to spare behind it."""

    boundary: int
    spared: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Newly:
    """What lies behind the boundary and has not been dealt with: the context to edit, its base and the entries."""

    context: Context
    base: Literal["history", "last"]
    entries: tuple[Placed, ...]
    memory: Aged


def boundary(situation: Situation, unit: Unit, keep_last: int) -> int:
    """Return the log index from which the newest ``keep_last`` complete units begin.

    Complete units lie beside what is still being worked on: the running turn, open calls, results no call has read.
    The count may end inside a group: who removes messages removes whole groups (``Situation.removable``).
    """
    log, stop = situation.context.log, situation.context.stop
    if unit == "turn":
        complete = log.turn_at(stop) - (0 if situation.turn_is_over else 1)
        return _start_of(log.turn_starts, complete - keep_last + 1, 1, stop)
    if unit == "step":
        return _start_of(log.step_starts, complete_steps(situation) - keep_last, 0, stop)
    if unit == "result":
        return _nth_newest(situation, log.results, keep_last, whole_groups=False)
    return _nth_newest(situation, log.group_starts if unit == "group" else range(stop), keep_last, whole_groups=True)


def complete_steps(situation: Situation) -> int:
    """Return the number of steps whose results, if any, a later call has read."""
    log, stop = situation.context.log, situation.context.stop
    call = log.last_call(stop)
    if call < 0:
        return 0
    return log.steps[call] - (1 if situation.unread_from < stop else 0)


def complete_turns(situation: Situation) -> int:
    """Return the number of turns that are over."""
    return situation.context.log.turn_at(situation.context.stop) - (0 if situation.turn_is_over else 1)


def newly_aged(situation: Situation, index: int, *, whole_groups: bool = False) -> Newly:
    """Return what is behind log index ``index`` and may be touched, less what the strategy already dealt with.

    With ``whole_groups`` a message waits until all of its group is behind the index and none of it is protected.
    """
    context, base, continues = start(situation)
    old = situation.memory if continues and isinstance(situation.memory, Aged) else Aged(0)
    waiting = [Placed(key, message) for key in old.spared if (message := context.get(key)) is not None]
    waiting.extend(context.entries((old.boundary, 0), (index, 0)))
    end = max(index, old.boundary)
    ready: list[Placed] = []
    spared: list[Key] = []
    for entry in waiting:
        key, message = entry.key, entry.message
        if situation.removable(key, message, end) if whole_groups else not situation.protects(key, message):
            ready.append(entry)
        elif not (message.pinned or is_system(message)):
            spared.append(key)
    return Newly(context, base, tuple(ready), Aged(end, tuple(spared)))


def _start_of(starts: list[int], number: int, lowest: int, stop: int) -> int:
    if number <= lowest:
        return 0
    return min(starts[number], stop) if number < len(starts) else stop


def _nth_newest(situation: Situation, indices: list[int] | range, keep_last: int, *, whole_groups: bool) -> int:
    """Return the ``keep_last``-th newest of ascending log indices, counting only what may be touched.

    With ``whole_groups`` what is bound to a pinned message stays anyway and is not counted.
    """
    log: Log = situation.context.log
    end = situation.unread_from
    if keep_last == 0:
        return end
    newest = bisect_left(indices, end) - 1
    at = newest - keep_last + 1
    if at >= 0 and max(log.untouchable_before(end), situation.running_user) < log.groups[indices[at]]:
        return indices[at]
    left = keep_last
    for at in range(newest, -1, -1):
        index = indices[at]
        held = whole_groups and log.is_pinned(log.groups[index])
        if not held and not situation.protects((index, 0), log.messages[index]):
            left -= 1
            if left == 0:
                return index
    return 0
