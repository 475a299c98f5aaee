"""Cline's two compactions: a running summary beside recent tokens, and, without a model, a list of what was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction_lab.conversation.context import Context, Edit, Placed
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.mechanisms.pair_text import first_arguments
from compaction_lab.strategies.mechanisms.summarize import Summarize
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.spans import is_summary
from compaction_lab.strategies.summaries import when_due
from compaction_lab.strategies.triggers import WindowFractionExceeds, known_window

HEADING = "Done so far:"


@register("cline/agentic_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class AgenticCompaction:
    """Update a running summary at a share of the window (mechanism M22; August 2026).

    Parameters
    ----------
    threshold_ratio
        Share of the window at which it acts.
    preserve_recent_tokens
        Tokens of the newest messages that stay.
    """

    threshold_ratio: float = 0.9
    preserve_recent_tokens: int = 20_000

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "preserve_recent_tokens", 0)
        _check_share("threshold_ratio", self.threshold_ratio)

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        summary = Summarize(
            keep=self.preserve_recent_tokens, unit="token", previous="update", max_summary_tokens=None, prefix=""
        )
        return when_due(WindowFractionExceeds(self.threshold_ratio, inclusive=True), summary, situation)


@register("cline/basic_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class BasicCompaction:
    """Keep what the user wrote, and put a list of tool calls in the place of the work between (mechanisms M20, M11).

    The oldest work goes first, turn by turn, until the target is met; no model is asked.

    Parameters
    ----------
    threshold_ratio
        Share of the window at which it acts.
    target_ratio
        Share of the window at which it stops.
    keep_assistant_texts
        Newest answers without a tool call that stay verbatim.
    """

    threshold_ratio: float = 0.9
    target_ratio: float = 0.7
    keep_assistant_texts: int = 3

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_assistant_texts", 0)
        _check_share("threshold_ratio", self.threshold_ratio)
        _check_share("target_ratio", self.target_ratio)
        if self.target_ratio > self.threshold_ratio:
            raise ConfigurationError(
                f"cline: target_ratio={self.target_ratio} is above threshold_ratio={self.threshold_ratio}; it says "
                "where compaction stops, so give at most that"
            )

    def __call__(self, situation: Situation) -> Steps:
        """Compact when due."""
        return when_due(WindowFractionExceeds(self.threshold_ratio, inclusive=True), self._compact, situation)

    def _compact(self, situation: Situation) -> Compaction:
        context = situation.context
        target = int(known_window(situation, None, "cline/basic_compaction") * self.target_ratio)
        count = situation.counter.message
        left = situation.tokens(context)
        edits: list[Edit] = []
        for work in self._work(situation, context):
            if left <= target:
                break
            before = sum(count(entry.message) for entry in work)
            activity = list(_activity(work))
            new = Message("assistant", (Text("\n".join((HEADING, *activity))),), source="summary")
            after = count(new) if activity else 0
            if after < before:
                keys = tuple(entry.key for entry in work)
                edits.append(Edit("summarised", keys, Placed(keys[-1], new)) if activity else Edit("dropped", keys))
                left -= before - after
        reason = f"{sum(len(edit.keys) for edit in edits)} messages of work listed" if edits else ""
        return Compaction(tuple(edits), reason=reason)

    def _work(self, situation: Situation, context: Context) -> list[list[Placed]]:
        """Return what may go of each stretch between user messages, oldest first; a group belongs to its first one."""
        log, groups = context.log, context.log.groups
        mine = [-1 if rank else groups[index] for index, rank in context.keys]
        said = [group for group in dict.fromkeys(mine) if group >= 0 and log.kind(group) == "assistant_text"]
        spared = set(said[len(said) - self.keep_assistant_texts :] if self.keep_assistant_texts else ())
        stretches: dict[int, list[Placed]] = {}
        of_group: dict[int, int] = {}
        spoken = 0
        for entry, group in zip(context.entries(), mine, strict=True):
            if entry.message.role == "user":
                spoken += 1
            elif group not in spared and situation.removable(entry.key, entry.message, context.stop):
                stretch = spoken if group < 0 else of_group.setdefault(group, spoken)
                stretches.setdefault(stretch, []).append(entry)
        return [work for _, work in sorted(stretches.items()) if not all(is_summary(e.message) for e in work)]


def _activity(work: list[Placed]) -> Iterator[str]:
    """Yield a line a tool call, those of an earlier list first."""
    for entry in work:
        if is_summary(entry.message):
            yield from entry.message.text.removeprefix(HEADING).strip().splitlines()
        for call in entry.message.calls:
            yield f"- {call.name}{first_arguments(call)}"


def _check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise ConfigurationError(f"cline: {name}={value!r}; expected a share up to 1")
