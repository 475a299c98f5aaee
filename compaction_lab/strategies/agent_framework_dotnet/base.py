"""What the .NET strategies share: trigger first, then work on the index, the target tested after each step."""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, TypeAlias

from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex, Update
from compaction_lab.strategies.agent_framework_dotnet.triggers import IndexTrigger, index_trigger
from compaction_lab.strategies.base import Replies, Requests, Situation, Steps

Defaults = Literal["documented", "source"]
Work: TypeAlias = Generator[Requests, Replies, bool]


class IndexStrategy:
    """A strategy that works on a message index; on its own it keeps that index from call to call.

    Subclasses are frozen dataclasses with ``update`` among their fields, and ``trigger`` and ``target`` where they have
    them; without a trigger they always act.
    """

    update: Update

    def __post_init__(self) -> None:
        """Check trigger and target."""
        trigger, target = self.conditions
        index_trigger(trigger, f"{type(self).__name__}: trigger")
        if target is not None:
            index_trigger(target, f"{type(self).__name__}: target")

    @property
    def conditions(self) -> tuple[object, object]:
        """Trigger and target as they were given."""
        return getattr(self, "trigger", "always"), getattr(self, "target", None)

    def __call__(self, situation: Situation) -> Steps:
        """Bring the index up to date, compact it, and say what changed."""
        index = MessageIndex.of(situation, self.update)
        yield from self.compact(index)
        return index.result()

    def compact(self, index: MessageIndex) -> Work:
        """Compact an index when the trigger says so; one group beside the system's is never touched."""
        given, target = self.conditions
        trigger = index_trigger(given, "trigger")
        if index.sums.non_system <= 1 or not trigger(index):
            return False
        before = index.sums
        reached = (lambda at: not trigger(at)) if target is None else index_trigger(target, "target")
        done = yield from self.work(index, reached)
        if done:
            index.reasons.append(f"{type(self).__name__}: {given} at {before.tokens} tokens, {before.groups} groups")
        return done

    def work(self, index: MessageIndex, reached: IndexTrigger) -> Work:
        """Compact until ``reached``, tested after each step; return whether anything was done."""
        raise NotImplementedError


def minimum(given: int | None, defaults: Defaults, documented: int, source: int) -> int:
    """Return how much is preserved: what was given, negative being 0, or one of the two defaults."""
    if given is None:
        return documented if defaults == "documented" else source
    return max(0, given)
