"""What someone else's strategy made of a list, told as edits: what it dropped, changed and put in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Edit, EditKind, Key, Placed
from compaction_lab.conversation.messages import Message


@dataclass(frozen=True, slots=True)
class Returned:
    """One message of a result: which of the given ones it is, or was made from, and what it says now.

    Parameters
    ----------
    source
        Position in the list given, or ``None`` for a new message.
    changed
        Its new form; ``None`` when it is as it was given.
    """

    source: int | None
    changed: Message | None = None


def edits(given: Sequence[Placed], returned: Sequence[Returned]) -> tuple[tuple[Edit, ...], tuple[Key, ...]]:
    """Return the edits from the list given to the list returned, and the key of each returned message.

    A message that moved before one that precedes it counts as taken out and put in anew.
    """
    kept = _in_order(given, returned)
    stays = {item.source for item in kept if item.source is not None}
    changes: list[Edit] = []
    keys: list[Key] = []
    at = 0
    waiting: list[Message] = []
    for item in (*kept, None):
        if item is not None and item.source is None:
            waiting += [] if item.changed is None else [item.changed]
            continue
        end = len(given) if item is None or item.source is None else item.source
        dropped = [given[position].key for position in range(at, end) if position not in stays]
        made, places = _replaced(dropped, waiting, given[at - 1].key if at else None)
        changes += made
        keys += places
        waiting = []
        if item is not None:
            entry = given[end]
            keys.append(entry.key)
            if item.changed is not None:
                changes.append(Edit("masked", (entry.key,), Placed(entry.key, item.changed)))
            at = end + 1
    return tuple(changes), tuple(keys)


def _in_order(given: Sequence[Placed], returned: Sequence[Returned]) -> list[Returned]:
    kept: list[Returned] = []
    newest = -1
    for item in returned:
        if item.source is None or item.source > newest:
            kept.append(item)
            newest = newest if item.source is None else item.source
        else:
            message = item.changed or given[item.source].message
            kept.append(Returned(None, replace(message, source="injected")))
    return kept


def _replaced(dropped: list[Key], new: list[Message], before: Key | None) -> tuple[list[Edit], list[Key]]:
    """Put new messages in place of dropped ones, or after the message before them."""
    if not new:
        return ([Edit("dropped", tuple(dropped))] if dropped else []), []
    places = dropped[: len(new)]
    index, rank = places[-1] if places else before or (-1, 0)
    places += [(index, rank + number) for number in range(1, len(new) - len(places) + 1)]
    made = [Edit("inserted", (), Placed(key, message)) for key, message in zip(places, new, strict=True)]
    if dropped:
        kind: EditKind = "summarised" if new[0].role != "tool" else "collapsed"
        made[0] = Edit(kind, tuple(dropped), made[0].new)
    return made, places
