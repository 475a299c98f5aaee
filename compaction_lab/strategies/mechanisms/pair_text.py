"""Collapsing tool calls into text (M11): older calls and their results go, a line of text says what was done."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction_lab.conversation.context import Key, Placed
from compaction_lab.conversation.messages import Message, Text, ToolCall
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import RecentUnit, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import arguments_of
from compaction_lab.strategies.registry import at_least, register

ARGUMENTS_SHOWN = 2
ARGUMENT_CHARACTERS = 40


@register("collapse_calls", semantics=1)
@dataclass(frozen=True, slots=True)
class CollapseCalls:
    """Replace older tool calls and their results by a line of text each in the assistant's message (mechanism M11).

    A message is collapsed when the results of all its calls are old and none of them is pinned or still open.

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

        def rule(draft: Draft, entry: Placed) -> bool:
            return self._collapse(draft, entry, edge)

        # A call is decided only with all of its results, which may come late: every occasion is answered afresh.
        reason = f"calls older than the last {self.keep_last} {self.unit}s"
        return rewrite_before(replace(situation, last=None), edge, rule, reason=reason)

    def _collapse(self, draft: Draft, entry: Placed, edge: Key) -> bool:
        message = entry.message
        index, rank = entry.key
        log = draft.context.log
        if not message.calls or rank or any(call.name in self.exclude_tools for call in message.calls):
            return False
        results = results_of(draft, index)
        answers = [(member, 0) for member in log.members(log.groups[index], draft.context.stop)]
        answers = [key for key in answers if _answers(draft, key, index)]
        if len(results) < len(message.calls) or any(key >= edge for key in answers):
            return False
        if log.is_pinned(log.groups[index]):
            return False
        lines = [Text(self._line(call, result)) for call, result in zip(message.calls, results, strict=True)]
        parts = (*message.parts, *lines) if self.keep_text else tuple(lines)
        collapsed = replace(message, parts=parts, calls=())
        count = draft.counter.message
        if count(collapsed) >= count(message) + sum(count(result.message) for result in results):
            return True
        for key in answers:
            draft.drop(key)
        draft.put("collapsed", entry.key, collapsed)
        return True

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


def _answers(draft: Draft, key: Key, index: int) -> bool:
    place = draft.context.log.call_of(key[0])
    return place is not None and place.message == index and draft.get(key) is not None


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
