"""Observation masking (M7, M8): clear old tool results by a window of units or of tokens, call inputs too (M9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.messages import Message
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import RecentUnit, end_of, newest, newest_within, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, Reclaim, Rewrite, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import (
    asked_just_before,
    call_of,
    empty_arguments,
    fill,
    images_in,
    tool_of,
)
from compaction_lab.strategies.registry import at_least, register


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearing:
    """Which tool results may be cleared, and what stands for them: what both windows have in common.

    Parameters
    ----------
    placeholder
        Text that stands for a cleared result; may name ``{tool}``, ``{call_id}``, ``{lines}``, ``{characters}``,
        ``{url}``.
    placeholder_media
        Appended when the result held images; may name ``{images}``.
    only_if_shorter
        Leave a result alone when its stand-in would not be shorter.
    only_tools, exclude_tools
        Tools whose results alone, or never, are cleared; ``only_tools`` empty means all.
    min_tokens
        Clear only results of more tokens than this.
    errors
        Results of failed calls: ``clear`` them like others, ``keep`` them (qwen-code), or ``ignore`` them, so that
        they are not counted either.
    keep_tags
        Leave results alone that carry one of these labels.
    orphans
        ``clear`` them like others; ``keep`` results whose call the last assistant message before them does not make
        (LangChain); ``ignore`` results without any earlier call, so that they are not counted either.
    clear_inputs, clear_inputs_of
        Also empty the arguments of the calls whose results are cleared (M9): of all tools, or of those named.
    clear_tags
        Clear results with one of these labels although they are recent (``clear_results`` only).
    spare_unread
        Never clear results that no call has read yet.
    """

    placeholder: str = "[tool result cleared]"
    placeholder_media: str = ""
    only_if_shorter: bool = True
    only_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    min_tokens: int = 0
    errors: Literal["clear", "keep", "ignore"] = "clear"
    keep_tags: tuple[str, ...] = ()
    orphans: Literal["clear", "keep", "ignore"] = "clear"
    clear_inputs: bool = False
    clear_inputs_of: tuple[str, ...] = ()
    clear_tags: tuple[str, ...] = ()
    spare_unread: bool = True

    def admits(self, context: Context, entry: Placed) -> bool:
        """Whether the tool that a result came from is one of those whose results may be cleared."""
        if not self.only_tools and not self.exclude_tools:
            return True
        tool = tool_of(context.log, entry)
        return tool not in self.exclude_tools and (not self.only_tools or tool in self.only_tools)

    def ignores(self, context: Context, entry: Placed) -> bool:
        """Whether a result is nothing that could be cleared, so that no window counts it."""
        if self.orphans == "ignore" and call_of(context.log, entry.key) is None:
            return True
        return self.errors == "ignore" and entry.message.is_error

    def clear(self, draft: Draft, entry: Placed) -> bool:
        """Clear a result that may be cleared; say whether it was one."""
        message = entry.message
        if message.source == "placeholder" or self.ignores(draft.context, entry):
            return False
        if self.errors == "keep" and message.is_error:
            return False
        labels = set(message.tags)
        if not labels.isdisjoint(self.keep_tags) and labels.isdisjoint(self.clear_tags):
            return False
        if not self.admits(draft.context, entry):
            return False
        if self.min_tokens and draft.counter.message(message) <= self.min_tokens:
            return False
        if self.orphans == "keep" and not asked_just_before(draft.context, entry):
            return False
        stand_in = self.stand_in(draft.context, entry)
        if self.only_if_shorter and draft.counter.message(stand_in) >= draft.counter.message(message):
            return True
        draft.put("masked", entry.key, stand_in)
        if self.clear_inputs or (self.clear_inputs_of and tool_of(draft.context.log, entry) in self.clear_inputs_of):
            empty_arguments(draft, draft.context.log, entry.key)
        return True

    def stand_in(self, context: Context, entry: Placed) -> Message:
        """Return the message that stands for a cleared result."""
        template = self.placeholder
        if self.placeholder_media and images_in(entry.message):
            template += self.placeholder_media
        return entry.message.replaced(fill(template, context.log, entry), "placeholder")

    def readable_edge(self, situation: Situation, edge: Key) -> Key:
        """Return the edge, moved back before what no call has read where that is spared."""
        return min(edge, (situation.unread_from, 0)) if self.spare_unread else edge


@register("clear_results", semantics=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ClearResults(Clearing):
    """Clear tool results that are no longer among the newest units (mechanism M7, with M9), in its general form.

    Parameters
    ----------
    keep_last, unit
        Newest units whose results stay.
    excluded
        Whether results of excluded tools are ``counted`` among the newest results (LangChain, pydantic-ai-harness) or
        ``not_counted`` (Inspect). Only for ``unit=result``.
    of
        ``results``, or ``observations``: every message that is neither a system's nor an assistant's, as in agents
        whose tool output comes in the user's role (SWE-agent).
    keep_first
        Oldest results that stay as well; SWE-agent's first observation is the task.
    every
        Move the window only when this many results have come (SWE-agent's polling), so that a prompt cache is broken
        seldom. Only for ``unit=result``.
    at_least_tokens, floor_since
        Floor: change nothing unless this much is freed, of the whole ``history`` or since the ``last`` time.
    stop_after_tokens
        Ceiling: clear the oldest first and stop once this much is freed; 0 clears all.
    """

    keep_last: int = 3
    unit: RecentUnit = "result"
    excluded: Literal["counted", "not_counted"] = "counted"
    of: Literal["results", "observations"] = "results"
    keep_first: int = 0
    every: int = 1
    at_least_tokens: int = 0
    floor_since: Literal["history", "last"] = "history"
    stop_after_tokens: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        for field in ("keep_last", "keep_first", "min_tokens", "at_least_tokens", "stop_after_tokens"):
            at_least(self, field, 0)
        at_least(self, "every", 1)
        if self.every > 1 and self.unit != "result":
            msg = f"clear_results: every={self.every} counts results, so it needs unit=result (found unit={self.unit})"
            raise ConfigurationError(msg)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear what fell out of the window."""
        context = situation.context
        edge = self.readable_edge(situation, self._edge(context))
        reclaim = Reclaim(
            at_least_tokens=self.at_least_tokens,
            since=self.floor_since,
            stop_after_tokens=self.stop_after_tokens or None,
        )
        reason = f"older than the last {self.keep_last} {self.unit}s"
        done = rewrite_before(situation, edge, self._rule(context), reclaim, reason=reason)
        return self._with_tagged(situation, edge, done) if self.clear_tags else done

    def _with_tagged(self, situation: Situation, edge: Key, done: Compaction) -> Compaction:
        """Return what was done, and recent results cleared that carry a label for it."""
        base = situation.last if done.base == "last" and situation.last is not None else situation.context
        draft = Draft(base, situation.counter)
        for entry in base.entries(edge):
            message = entry.message
            if self._is_result(entry) and not message.pinned and not set(self.clear_tags).isdisjoint(message.tags):
                self.clear(draft, entry)
        reason = done.reason or ("labelled for clearing" if draft.edits else "")
        return replace(done, edits=(*done.edits, *draft.edits), reason=reason)

    def _rule(self, context: Context) -> Rewrite:
        first = _first_keys(context, self.keep_first, self._is_result)

        def rule(draft: Draft, entry: Placed) -> bool:
            return self._is_result(entry) and entry.key not in first and self.clear(draft, entry)

        return rule

    def _is_result(self, entry: Placed) -> bool:
        role = entry.message.role
        return role == "tool" or (self.of == "observations" and role == "user" and "demo" not in entry.message.tags)

    def _edge(self, context: Context) -> Key:
        if self.unit != "result":
            return recent_edge(context, self.unit, self.keep_last)

        def counts(entry: Placed) -> bool:
            if not self._is_result(entry) or self.ignores(context, entry):
                return False
            return self.excluded == "counted" or self.admits(context, entry)

        keep = self.keep_last
        if self.every > 1:
            keep += sum(counts(entry) for entry in context.entries()) % self.every
        return newest(context, keep, counts)


@register("clear_beyond_tokens", semantics=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ClearBeyondTokens(Clearing):
    """Clear tool results beyond the newest ``protect_tokens`` tokens of them (mechanism M8).

    Parameters
    ----------
    protect_tokens
        Tokens of the newest results that stay; the result with which they would be more is cleared.
    protect_turns
        Newest user messages from which on nothing is cleared, whatever its size.
    protect_messages
        Newest messages that are never cleared, the results of one batch counting as one.
    at_least_tokens, floor_since
        Change nothing unless the messages to clear have at least this many tokens, stand-ins not deducted.
    """

    protect_tokens: int
    protect_turns: int = 0
    protect_messages: int = 0
    at_least_tokens: int = 0
    floor_since: Literal["history", "last"] = "last"

    def __post_init__(self) -> None:
        """Check the parameters."""
        for field in ("protect_tokens", "protect_turns", "protect_messages", "min_tokens", "at_least_tokens"):
            at_least(self, field, 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear what lies beyond the protected tokens, if it is enough."""
        edge = self.readable_edge(situation, self._edge(situation.context, situation))
        reclaim = Reclaim(at_least_tokens=self.at_least_tokens, since=self.floor_since, measure="gross")
        reason = f"beyond the newest {self.protect_tokens} tokens of results"
        return rewrite_before(situation, edge, self._rule, reclaim, reason=reason)

    def _rule(self, draft: Draft, entry: Placed) -> bool:
        return entry.message.role == "tool" and self.clear(draft, entry)

    def _edge(self, context: Context, situation: Situation) -> Key:
        before = end_of(context)
        if self.protect_turns:
            before = min(before, recent_edge(context, "turn", self.protect_turns))
        if self.protect_messages:
            before = min(before, recent_edge(context, "content", self.protect_messages))

        def weigh(entry: Placed) -> int:
            counts = entry.message.role == "tool" and entry.message.source != "placeholder"
            return situation.counter.message(entry.message) if counts and self.admits(context, entry) else 0

        return newest_within(context, self.protect_tokens, weigh, before=before)


def _first_keys(context: Context, keep_first: int, counts: Callable[[Placed], bool]) -> frozenset[Key]:
    found: list[Key] = []
    if keep_first:
        for entry in context.entries():
            if counts(entry):
                found.append(entry.key)
                if len(found) == keep_first:
                    break
    return frozenset(found)
