"""``SlidingWindowCompactionStrategy``: exclude the oldest turns until the target is reached."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.agent_framework_dotnet.base import Defaults, IndexStrategy, Work, minimum
from compaction_lab.strategies.agent_framework_dotnet.index import Group, MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger
from compaction_lab.strategies.registry import register


@register("agent_framework_dotnet/sliding_window", semantics=1)
@dataclass(frozen=True, slots=True)
class SlidingWindow(IndexStrategy):
    """Exclude whole turns, oldest first, until the target is reached (mechanism M2).

    What precedes the first user message, and what belongs to no turn, is never touched.

    Parameters
    ----------
    trigger
        When to act.
    minimum_preserved
        Newest turns that stay at least; as ``defaults`` says (1 in both) when not given.
    target
        When to stop; once the trigger no longer holds when not given.
    """

    trigger: object
    minimum_preserved: int | None = None
    target: object = None
    defaults: Defaults = "documented"
    update: Update = "content"

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:
        """Exclude turns, oldest first."""
        yield from ()
        turns: dict[int, list[Group]] = {}
        for group in index.included:
            if group.kind != "System" and group.turn is not None:
                turns.setdefault(group.turn, []).append(group)
        order = list(turns)
        preserved = minimum(self.minimum_preserved, self.defaults, 1, 1)
        removable = [turn for turn in order[: max(0, len(order) - preserved)] if turn]
        for turn in removable:
            for group in turns[turn]:
                index.exclude(group)
            if reached(index):
                break
        return bool(removable)
