"""``TruncationCompactionStrategy``: exclude the oldest groups until the target is reached."""

from __future__ import annotations

from dataclasses import dataclass

from compaction_lab.strategies.agent_framework_dotnet.base import Defaults, IndexStrategy, Work, minimum
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger
from compaction_lab.strategies.registry import register


@register("agent_framework_dotnet/truncation", semantics=1)
@dataclass(frozen=True, slots=True)
class Truncation(IndexStrategy):
    """Exclude the oldest groups, system groups apart, one by one until the target is reached (mechanism M5).

    Parameters
    ----------
    trigger
        When to act.
    minimum_preserved
        Groups that stay at least; as ``defaults`` says (32 in both) when not given.
    target
        When to stop; once the trigger no longer holds when not given.
    """

    trigger: object
    minimum_preserved: int | None = None
    target: object = None
    defaults: Defaults = "documented"
    update: Update = "content"

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:
        """Exclude groups, oldest first."""
        yield from ()
        removable = [group for group in index.included if group.kind != "System"]
        most = len(removable) - minimum(self.minimum_preserved, self.defaults, 32, 32)
        for group in removable[: max(0, most)]:
            index.exclude(group)
            if reached(index):
                break
        return most > 0
