"""Truncation: drop the oldest groups once a request grows beyond a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from compaction_lab.conversation.context import Context, Edit, Key, Placed
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation, start
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.registry import at_least, register


@register("truncation", semantics=1)
@dataclass(frozen=True, slots=True)
class Truncation:
    """Once a request exceeds ``max_tokens``, drop the oldest groups until it has ``target_tokens`` (mechanism M5).

    Parameters
    ----------
    max_tokens
        Act when the request (tools and overhead included) has more tokens than this.
    target_tokens
        Stop when it has no more than this; as ``max_tokens`` when not given.
    """

    max_tokens: int
    target_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "max_tokens", 1)
        if self.target_tokens is None:
            return
        at_least(self, "target_tokens", 1)
        if self.target_tokens > self.max_tokens:
            msg = (
                f"truncation: target_tokens ({self.target_tokens}) is above max_tokens ({self.max_tokens}); "
                "it says where dropping stops, so give at most max_tokens"
            )
            raise ConfigurationError(msg)

    def __call__(self, situation: Situation) -> Compaction:
        """Drop the oldest groups that may go, no more of them than the target asks for."""
        found = situation.tokens(situation.context)
        if found <= self.max_tokens:
            return Compaction(memory=None)
        target = self.max_tokens if self.target_tokens is None else self.target_tokens
        context, base, continues = start(situation)
        cut = _Cut(situation, context, situation.tokens(context))
        if continues and isinstance(situation.memory, Dropped):
            cut.resume(situation.memory)
            cut.forward(target)
            # Something heavy that was spared may have gone since; what was dropped after it may then fit again.
            continues = not cut.gives_back(target)
        if not continues:
            base = "history"
            cut = _Cut(situation, situation.context, found)
            cut.forward(target)
        edits = (Edit("dropped", tuple(cut.dropped)),) if cut.dropped else ()
        reason = f"{found} tokens > {self.max_tokens}" if edits else ""
        return Compaction(edits, Dropped(cut.reached, tuple(cut.spared)), base, reason)


@remembered
class Dropped(NamedTuple):
    """Memory of a truncation: how far it has come, and the first keys of the groups that it had to spare on the way."""

    reached: Key
    spared: tuple[Key, ...] = ()


@dataclass(slots=True)
class _Cut:
    """One walk from the oldest group on: what it dropped, what it had to spare, and the tokens left."""

    situation: Situation
    context: Context
    tokens: int
    reached: Key = (0, 0)
    dropped: list[Key] = field(default_factory=list)
    spared: list[Key] = field(default_factory=list)
    seen: set[Key] = field(default_factory=set)
    moved: bool = False

    def resume(self, old: Dropped) -> None:
        """Continue an earlier walk: drop what it had to spare and may go now."""
        self.reached = old.reached
        for key in old.spared:
            if (message := self.context.get(key)) is not None:
                self._take(Placed(key, message))

    def forward(self, target: int) -> None:
        """Drop groups, oldest first, while more than ``target`` tokens are left."""
        self.moved = self.tokens > target
        for entry in self.context.entries(self.reached):
            if self.tokens <= target:
                return
            self.reached = (entry.key[0], entry.key[1] + 1)
            if entry.key not in self.seen:
                self._take(entry)

    def gives_back(self, target: int) -> bool:
        """Whether the last dropped group of the history would fit again; never after a walk that had to move on."""
        if self.moved:
            return False
        shown = self.situation.context
        for entry in shown.before(self.reached):
            group = self._group(entry, shown)
            if group[0].key == entry.key and self._removable(entry):
                return self.tokens + self._weight(group) <= target
        return False

    def _take(self, entry: Placed) -> None:
        """Drop or spare the group of an entry."""
        group = self._group(entry, self.context)
        keys = [member.key for member in group]
        self.seen.update(keys)
        if self._removable(entry):
            self.dropped.extend(keys)
            self.tokens -= self._weight(group)
        else:
            self.spared.append(keys[0])

    def _removable(self, entry: Placed) -> bool:
        return self.situation.removable(entry.key, entry.message, self.context.stop)

    def _weight(self, group: list[Placed]) -> int:
        return sum(self.situation.counter.message(member.message) for member in group)

    def _group(self, entry: Placed, shown: Context) -> list[Placed]:
        """Return the visible members of an entry's group; an inserted message is a group of its own."""
        index, rank = entry.key
        if rank:
            return [entry]
        members = shown.log.members(shown.log.groups[index], shown.stop)
        return [Placed((at, 0), message) for at in members if (message := shown.get((at, 0))) is not None]
