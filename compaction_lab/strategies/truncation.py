"""Truncation: drop the oldest groups once a request grows beyond a number of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction_lab.conversation.context import Context, Edit, Key, Placed
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.ageing import Aged
from compaction_lab.strategies.base import Compaction, Situation, start
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
        if continues and isinstance(situation.memory, Aged):
            cut.resume(situation.memory)
            cut.forward(target)
            if cut.gives_back(target):
                # Something heavy behind the boundary has gone since; what was dropped beside it may fit again.
                continues = False
        if not continues:
            base = "history"
            cut = _Cut(situation, situation.context, found)
            cut.forward(target)
        edits = (Edit("dropped", tuple(cut.dropped)),) if cut.dropped else ()
        reason = f"{found} tokens > {self.max_tokens}" if edits else ""
        return Compaction(edits, Aged(cut.boundary, tuple(cut.spared)), base, reason)


@dataclass(slots=True)
class _Cut:
    """One walk from the oldest group on: what it dropped, what it had to spare, and the tokens left."""

    situation: Situation
    context: Context
    tokens: int
    boundary: int = 0
    dropped: list[Key] = field(default_factory=list)
    spared: list[Key] = field(default_factory=list)
    moved: bool = False

    def resume(self, old: Aged) -> None:
        """Continue an earlier walk: drop what it had to spare and may go now."""
        self.boundary = old.boundary
        for key in old.spared:
            if (message := self.context.get(key)) is not None:
                self._take(self._group(Placed(key, message)))

    def forward(self, target: int) -> None:
        """Drop groups, oldest first, while more than ``target`` tokens are left."""
        if self.tokens <= target:
            return
        gone = set(self.dropped)
        for entry in self.context.entries((self.boundary, 0)):
            if self.tokens <= target:
                return
            if entry.key in gone or entry.key[0] < self.boundary:
                continue
            group = self._group(entry)
            self._take(group)
            self.boundary = max(self.boundary, group[-1].key[0] + 1)
            self.moved = True
            gone.update(member.key for member in group)

    def gives_back(self, target: int) -> bool:
        """Whether the newest dropped group of the history would fit again."""
        if self.moved:
            return False
        for entry in self.situation.context.before((self.boundary, 0)):
            if not self.situation.protects(entry.key, entry.message):
                counter = self.situation.counter
                group = self._group(entry, self.situation.context)
                return self.tokens + sum(counter.message(member.message) for member in group) <= target
        return False

    def _take(self, group: list[Placed]) -> None:
        if any(self.situation.protects(member.key, member.message) for member in group):
            self.spared.append(group[0].key)
            return
        self.dropped.extend(member.key for member in group)
        self.tokens -= sum(self.situation.counter.message(member.message) for member in group)

    def _group(self, entry: Placed, context: Context | None = None) -> list[Placed]:
        """Return the visible members of an entry's group; an inserted message is a group of its own."""
        index, rank = entry.key
        if rank:
            return [entry]
        shown = self.context if context is None else context
        log = shown.log
        members = log.members(log.groups[index], shown.stop)
        return [Placed((at, 0), message) for at in members if (message := shown.get((at, 0))) is not None]
