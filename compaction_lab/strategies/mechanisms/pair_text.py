"""Collapsing tool calls into text (M11): older calls and their results go, a line of text says what was done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from compaction_lab.conversation.context import Key, Placed
from compaction_lab.conversation.messages import Message, Text, ToolCall
from compaction_lab.strategies.base import Compaction, Situation, start
from compaction_lab.strategies.mechanisms.recency import RecentUnit, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import START, Draft
from compaction_lab.strategies.mechanisms.tool_results import arguments_of
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.registry import at_least, register

ARGUMENTS_SHOWN = 2
ARGUMENT_CHARACTERS = 40


@remembered
class Undecided(NamedTuple):
    """Memory of a search for calls: how far it has come, and the messages behind whose results are not all old."""

    edge: Key
    waiting: tuple[Key, ...] = ()


@register("collapse_calls", semantics=1)
@dataclass(frozen=True, slots=True)
class CollapseCalls:
    """Replace older tool calls and their results by a line of text each in the assistant's message (mechanism M11).

    A message is collapsed when the results of all its calls are old and none is pinned. Calls of one answer that were
    recorded as several messages stay as they are.

    Parameters
    ----------
    keep_last, unit
        Newest units whose calls stay.
    line
        Text that stands for one call; may name ``{tool}``, ``{arguments}``, ``{first_arguments}`` (two of them, 40
        characters each), ``{result}`` and ``{characters}`` (of the result). Other braces are text.
    result_characters
        Longest ``{result}``.
    exclude_tools
        Messages that call one of these tools stay.
    keep_text
        Whether the text of the assistant's message stays before the lines.
    spare_unread
        Never collapse calls whose results no call has read yet.
    """

    keep_last: int = 3
    unit: RecentUnit = "step"
    line: str = "[{tool}{first_arguments}: {result}]"
    result_characters: int = 120
    exclude_tools: tuple[str, ...] = ()
    keep_text: bool = True
    spare_unread: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)
        at_least(self, "result_characters", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Collapse the calls that fell out of the window."""
        edge = recent_edge(situation.context, self.unit, self.keep_last)
        if self.spare_unread:
            edge = min(edge, (situation.unread_from, 0))
        context, base, continues = start(situation)
        old = situation.memory if continues and isinstance(situation.memory, Undecided) else Undecided(START)
        if edge < old.edge:
            context, base, old = situation.context, "history", Undecided(START)
        draft = Draft(context, situation.counter)
        waiting = [Placed(key, message) for key in old.waiting if (message := context.get(key)) is not None]
        waiting.extend(context.entries(old.edge, edge))
        undecided = tuple(entry.key for entry in waiting if not self._decide(draft, entry, edge))
        reason = f"calls older than the last {self.keep_last} {self.unit}s" if draft.edits else ""
        return Compaction(draft.edits, Undecided(edge, undecided), base, reason)

    def _decide(self, draft: Draft, entry: Placed, edge: Key) -> bool:
        """Collapse a message that can be, and say whether its fate is settled: its results may still be to come."""
        message, (index, rank) = entry.message, entry.key
        if message.pinned or rank:
            return True
        if message.role == "tool":
            self._drop_repeated(draft, entry.key)
            return True
        if not message.calls or any(call.name in self.exclude_tools for call in message.calls):
            return True
        results = results_of(draft, index)
        if len(results) < len(message.calls) or any(result.key >= edge for result in results):
            return False
        log = draft.context.log
        members = log.members(log.groups[index], draft.context.stop)
        in_pieces = sum(bool(log.messages[member].calls) for member in members) > 1
        if in_pieces or any(result.message.pinned for result in results):
            return True
        lines = [Text(self._line(call, result)) for call, result in zip(message.calls, results, strict=True)]
        parts = (*message.parts, *lines) if self.keep_text else tuple(lines)
        collapsed = replace(message, parts=parts, calls=())
        count = draft.counter.message
        if count(collapsed) >= count(message) + sum(count(result.message) for result in results):
            return True
        draft.put("collapsed", entry.key, collapsed)
        for member in members:
            if (member, 0) < edge:
                self._drop_repeated(draft, (member, 0))
        return True

    def _drop_repeated(self, draft: Draft, key: Key) -> None:
        """Drop a result whose call has been collapsed."""
        place = draft.context.log.call_of(key[0])
        result = draft.get(key)
        if place is None or result is None or result.pinned:
            return
        asked = draft.get((place.message, 0))
        if asked is not None and asked is not draft.context.log.messages[place.message] and not asked.calls:
            draft.drop(key)

    def _line(self, call: ToolCall, result: Placed) -> str:
        text = result.message.text
        shown = text if len(text) <= self.result_characters else text[: self.result_characters] + "..."
        found = {
            "{tool}": call.name,
            "{arguments}": call.arguments,
            "{first_arguments}": first_arguments(call),
            "{characters}": str(len(text)),
            "{result}": " ".join(shown.split()),
        }
        line = self.line
        for name, value in found.items():
            line = line.replace(name, value)
        return line


def first_arguments(call: ToolCall) -> str:
    """Return a call's first two arguments as `` name=value``, 40 characters of each value."""
    given = list(arguments_of(call).items())[:ARGUMENTS_SHOWN]
    return "".join(f" {name}={str(value)[:ARGUMENT_CHARACTERS]}" for name, value in given)


def results_of(draft: Draft, index: int) -> list[Placed]:
    """Return the visible results of the calls of log message ``index``, one a call, in the order of the calls."""
    log, stop = draft.context.log, draft.context.stop
    found: dict[int, Placed] = {}
    for member in log.members(log.groups[index], stop):
        place = log.call_of(member)
        message: Message | None = draft.get((member, 0))
        if place is not None and place.message == index and message is not None:
            found.setdefault(place.position, Placed((member, 0), message))
    return [found[position] for position in sorted(found)]
