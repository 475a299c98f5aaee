"""The Vercel AI SDK's ``pruneMessages``: reasoning and tool calls of all but the newest messages are taken out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.messages import Message, Reasoning, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, start
from compaction_lab.strategies.mechanisms.recency import end_of, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import START, Draft
from compaction_lab.strategies.mechanisms.tool_results import tool_of
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.registry import register

_LAST = re.compile(r"before-last-(\d+)-messages")


@remembered
class Pruned(NamedTuple):
    """Memory of pruning: how far reasoning and calls were taken out, where the list ended, and what had to wait."""

    thoughts: Key
    edge: Key
    end: Key
    waiting: tuple[Key, ...] = ()


@register("ai/prune_messages", semantics=1)
@dataclass(frozen=True, slots=True)
class PruneMessages:
    """Take out reasoning, tool calls with their results, and what is then empty (npm ``ai`` 6.0.326).

    Messages are counted as the SDK has them: a batch of results is one.

    Parameters
    ----------
    reasoning
        Which assistant messages lose their reasoning.
    tool_calls
        ``none``, ``all``, ``before-last-message`` or ``before-last-N-messages``: calls and results that no message of
        the newest N mentions are taken out. With several messages kept the SDK keeps calls of the last one alone only
        when it says so; ids in kept messages are kept everywhere.
    tools
        Tools whose calls alone are taken out; empty means all.
    empty_messages
        Whether messages left without content go too.
    """

    reasoning: Literal["none", "all", "before-last-message"] = "none"
    tool_calls: str = "none"
    tools: tuple[str, ...] = ()
    empty_messages: Literal["remove", "keep"] = "remove"

    def __post_init__(self) -> None:
        """Check the parameters."""
        self._kept_messages()

    def _kept_messages(self) -> int | None:
        if self.tool_calls in ("none", "all"):
            return 0
        if self.tool_calls == "before-last-message":
            return 1
        found = _LAST.fullmatch(self.tool_calls)
        if found is None:
            msg = (
                f"ai prune_messages: tool_calls={self.tool_calls!r}; expected none, all, before-last-message or "
                "before-last-N-messages"
            )
            raise ConfigurationError(msg)
        return int(found.group(1))

    def __call__(self, situation: Situation) -> Compaction:
        """Prune: what is newly old, and what was old but still mentioned among the newest messages."""
        shown = situation.context
        thoughts = end_of(shown) if self.reasoning == "all" else recent_edge(shown, "content", 1)
        edge = recent_edge(shown, "content", self._kept_messages() or 0)
        context, base, continues = start(situation)
        old = situation.memory if continues and isinstance(situation.memory, Pruned) else Pruned(START, START, START)
        if thoughts < old.thoughts or edge < old.edge or shown.log.reuses_ids or _grows(shown, old.end):
            context, base, old = shown, "history", Pruned(START, START, START)
        draft = Draft(context, situation.counter)
        if self.reasoning != "none":
            for entry in context.entries(old.thoughts, thoughts):
                _strip_reasoning(draft, entry)
        waiting: tuple[Key, ...] = ()
        if self.tool_calls != "none":
            kept = {name for entry in shown.entries(edge) for name in _mentioned(entry.message)}
            again = [Placed(key, message) for key in old.waiting if (message := context.get(key)) is not None]
            again.extend(context.entries(old.edge, edge))
            waiting = tuple(entry.key for entry in again if self._prune_calls(draft, entry, kept))
        if self.empty_messages == "remove":
            for key in (*(edit.keys[0] for edit in draft.edits), *(e.key for e in context.entries(old.end))):
                standing = draft.get(key)
                if standing is not None and not standing.pinned and _is_empty(standing):
                    draft.drop(key)
        memory = Pruned(thoughts, edge, end_of(shown), waiting)
        return Compaction(draft.edits, memory, base, "pruned" if draft.edits else "")

    def _prune_calls(self, draft: Draft, entry: Placed, kept: set[str]) -> bool:
        """Take out what no kept message mentions; say whether something had to stay for being mentioned."""
        message = draft.get(entry.key)
        if message is None or message.pinned:
            return False
        if message.role == "tool":
            if not self._is_meant(tool_of(draft.context.log, entry)):
                return False
            if message.call_id not in kept:
                draft.drop(entry.key)
            return message.call_id in kept
        calls = tuple(call for call in message.calls if call.id in kept or not self._is_meant(call.name))
        if calls != message.calls:
            draft.put("collapsed", entry.key, _without_bound_reasoning(replace(message, calls=calls)))
        return any(self._is_meant(call.name) for call in calls)

    def _is_meant(self, tool: str) -> bool:
        return not self.tools or tool in self.tools


def _grows(context: Context, end: Key) -> bool:
    """Whether results have come to the batch that ended the list: the newest message then mentions more than before."""
    newly = next(context.entries(end), None)
    return newly is not None and newly.message.role == "tool"


def _mentioned(message: Message) -> set[str]:
    return {call.id for call in message.calls} | ({message.call_id} if message.role == "tool" else set())


def _strip_reasoning(draft: Draft, entry: Placed) -> None:
    key: Key = entry.key
    message = entry.message
    parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    if message.role == "assistant" and parts != message.parts and not message.pinned:
        draft.put("clipped", key, replace(message, parts=parts))


def _without_bound_reasoning(message: Message) -> Message:
    """Drop reasoning that nothing follows any more: it led to calls that are gone."""
    if message.calls or any(not isinstance(part, Reasoning) for part in message.parts):
        return message
    return replace(message, parts=())


def _is_empty(message: Message) -> bool:
    if message.role == "tool" or message.calls:
        return False
    return all(isinstance(part, Text) and not part.text for part in message.parts)
