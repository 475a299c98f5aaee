"""The message index: the included groups of a conversation and their sums, kept from call to call as in a session."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from compaction_lab.conversation.context import Context, Counter, Edit, Key, Placed
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.strategies.agent_framework_dotnet.contents import group_tokens, same_content
from compaction_lab.strategies.agent_framework_dotnet.grouping import GroupKind, grouped
from compaction_lab.strategies.base import UNCHANGED, Compaction, Situation
from compaction_lab.strategies.memory import remembered

Update = Literal["content", "position"]
"""How new messages are found: behind the newest equal of the last processed one, as the framework does, or by place."""

OVERLOOKED = "messages overlooked: equal content"


@remembered
class Kept(NamedTuple):
    """Memory of an included group: its kind, where its messages stand, its turn (``None``: of no turn), its tokens."""

    kind: str
    keys: tuple[Key, ...]
    turn: int | None
    tokens: int


@remembered
class Sums(NamedTuple):
    """Sums over the included groups; turns are distinct, turn 0 not counted."""

    groups: int = 0
    messages: int = 0
    tokens: int = 0
    non_system: int = 0
    tool_calls: int = 0
    turns: int = 0


@remembered
class Session(NamedTuple):
    """Memory of an index: its included groups, their sums, the messages of all groups, the last one's key, the turn."""

    groups: tuple[Kept, ...]
    sums: Sums
    raw_messages: int
    last: Key
    turn: int


@dataclass(slots=True, eq=False)
class Group:
    """Messages that stay or go together, while a strategy works on them."""

    kind: GroupKind
    keys: tuple[Key, ...]
    messages: tuple[Message, ...]
    turn: int | None
    tokens: int
    excluded: bool = False


@dataclass(slots=True)
class MessageIndex:
    """The groups of a conversation during one call of a strategy.

    Parameters
    ----------
    counter
        How groups are counted.
    context, base
        What edits start from.
    """

    counter: Counter
    context: Context
    base: Literal["history", "last"] = "history"
    sums: Sums = field(default_factory=Sums)
    reasons: list[str] = field(default_factory=list)
    outcome: str = "ok"
    _edits: list[Edit] = field(default_factory=list)
    _kept: tuple[Kept, ...] = ()
    _opened: list[Group] | None = None
    _turns: Tally[int] = field(default_factory=Tally)
    _raw_messages: int = 0
    _last: Key = (-1, 0)
    _turn: int = 0
    _rewritten: bool = False
    _old: Session | None = None

    @classmethod
    def of(cls, situation: Situation, update: Update) -> MessageIndex:
        """Return the session's index with what the conversation gained since, or a new one over the history shown."""
        index = None
        if isinstance(situation.memory, Session):
            index = cls._continued(situation, situation.memory, update)
        if index is None:
            index = cls(situation.counter, situation.context)
            index._append(tuple(situation.context.entries()))
        return index

    @classmethod
    def _continued(cls, situation: Situation, old: Session, update: Update) -> MessageIndex | None:
        shown, base = (situation.context, "history") if situation.last is None else (situation.last, "last")
        last, stop = old.last[0], shown.stop
        strange = situation.last is None and any(shown.get(key) is None for kept in old.groups for key in kept.keys)
        if old.last[1] or strange:
            return None
        at = last if update == "position" else _newest_equal(shown, last)
        index = cls(situation.counter, shown, cast("Literal['history', 'last']", base))
        index._old = old
        index._kept, index.sums, index._raw_messages, index._last, index._turn = old
        if at > last:
            index._overlook(last + 1, at + 1)
        if at == stop - 1:
            return index
        new = tuple(shown.entries((at + 1, 0)))
        if base == "last" and at == last and len(new) < stop - at - 1:
            # What a chat reducer cut off at the end is new again.
            new = tuple(Placed((i, 0), shown.log.messages[i]) for i in range(at + 1, stop))
            index._rewritten = True
        index._append(new)
        return index

    @property
    def groups(self) -> list[Group]:
        """The included groups, and those excluded since this call began, in order."""
        if self._opened is None:
            self._opened = [self._open(kept) for kept in self._kept]
            self._turns = Tally(group.turn for group in self._opened if group.turn)
        return self._opened

    def holds(self, kind: GroupKind, newest: int) -> bool:
        """Whether a group of a kind is included beside the ``newest``, system groups apart; opens no group."""
        groups = self._kept if self._opened is None else self.included
        others = [group.kind for group in groups if group.kind != "System"]
        return kind in others[: max(0, len(others) - newest)]

    @property
    def included(self) -> list[Group]:
        """The included groups in order."""
        return [group for group in self.groups if not group.excluded]

    @property
    def visible(self) -> list[Placed]:
        """The included messages and their places, in order."""
        return [Placed(*pair) for group in self.included for pair in zip(group.keys, group.messages, strict=True)]

    def exclude(self, group: Group) -> None:
        """Leave a group out of what is sent."""
        group.excluded = True
        self._count(group, -1)

    def include(self, group: Group) -> None:
        """Take an exclusion back."""
        group.excluded = False
        self._count(group, 1)

    def collapse(self, group: Group, text: str) -> None:
        """Put a summary of its own turn behind an excluded tool-call group."""
        self._stand_in((group,), text, group.turn, offset=1)

    def summarise(self, groups: Sequence[Group], text: str) -> None:
        """Put a summary of no turn before the first of some excluded groups."""
        self._stand_in(groups, text, None, offset=0)

    def replace(self, entries: Sequence[Placed]) -> None:
        """Forget every group, the excluded ones too, and group other messages, as after a chat reducer."""
        self._kept, self._opened, self.sums = (), None, Sums()
        self._raw_messages, self._turn, self._rewritten = 0, 0, True
        self._append(entries)

    def result(self) -> Compaction:
        """Return what this call changed, and the index to remember."""
        if self._opened is not None:
            gone = tuple(key for group in self._opened if group.excluded for key in group.keys)
            if gone:
                self._edits.append(Edit("dropped", gone))
            self._kept = tuple(
                Kept(group.kind, group.keys, group.turn, group.tokens) for group in self._opened if not group.excluded
            )
        edits = tuple(self._edits)
        if self._rewritten:
            edits = self.context.difference(Context.of(self.context.log, self.context.stop, self.visible))
        memory = Session(self._kept, self.sums, self._raw_messages, self._last, self._turn)
        reason = "; ".join(dict.fromkeys(self.reasons)) if edits else ""
        return Compaction(edits, UNCHANGED if memory == self._old else memory, self.base, reason, self.outcome)

    def _append(self, entries: Sequence[Placed]) -> None:
        """Group new messages, on their own, and add them."""
        newest = next((kept.turn for kept in reversed(self._kept) if kept.turn is not None), None)
        added = []
        for kind, members in grouped(entries):
            self._turn += kind == "User"
            turn = None if kind == "System" else self._turn
            messages = tuple(member.message for member in members)
            kept = Kept(kind, tuple(member.key for member in members), turn, group_tokens(messages, self.counter))
            added.append(kept)
            self._sum(kept, 1, int(bool(turn) and turn != newest))
            newest = newest if turn is None else turn
            if kind != "Summary":
                self._raw_messages += len(messages)
                self._last = kept.keys[-1]
        self._kept += tuple(added)

    def _overlook(self, start: int, stop: int) -> None:
        """Hide messages that the framework's update skips, because a later one equals the last it processed."""
        keys = tuple(entry.key for entry in self.context.entries((start, 0), (stop, 0)))
        if keys:
            self._edits.append(Edit("dropped", keys))
            self.reasons.append(OVERLOOKED)

    def _open(self, kept: Kept) -> Group:
        standing = (self.context.get(key) or self.context.log.messages[key[0]] for key in kept.keys)
        return Group(cast("GroupKind", kept.kind), kept.keys, tuple(standing), kept.turn, kept.tokens)

    def _stand_in(self, excluded: Sequence[Group], text: str, turn: int | None, *, offset: int) -> None:
        keys = tuple(key for group in excluded for key in group.keys)
        message = Message("assistant", (Text(text),), source="summary")
        place = self._place(keys)
        tokens = group_tokens((message,), self.counter)
        summary = Group("Summary", (place,), (message,), turn, tokens)
        self.groups.insert(self.groups.index(excluded[0]) + offset, summary)
        self._count(summary, 1)
        self._edits.append(Edit("collapsed" if offset else "summarised", keys, Placed(place, message)))
        for group in excluded:
            group.keys = ()

    def _place(self, hidden: tuple[Key, ...]) -> Key:
        """Return a key where the first hidden message stood: directly after it, or its own when that is taken."""
        index, rank = hidden[0]
        after = (index, 1)
        free = not rank and (self.context.get(after) is None or after in hidden)
        return after if free else hidden[0]

    def _count(self, group: Group, sign: int) -> None:
        turns = 0
        if group.turn:
            before = self._turns[group.turn]
            self._turns[group.turn] = before + sign
            turns = int(before + sign > 0) - int(before > 0)
        self._sum(Kept(group.kind, group.keys, group.turn, group.tokens), sign, turns)

    def _sum(self, kept: Kept, sign: int, turns: int) -> None:
        s = self.sums
        self.sums = Sums(
            s.groups + sign,
            s.messages + sign * len(kept.keys),
            s.tokens + sign * kept.tokens,
            s.non_system + sign * (kept.kind != "System"),
            s.tool_calls + sign * (kept.kind == "ToolCall"),
            s.turns + turns,
        )


def _newest_equal(shown: Context, last: int) -> int:
    """Return the place of the newest message of the log that equals the last one processed."""
    messages = shown.log.messages
    return next((at for at in range(shown.stop - 1, last, -1) if same_content(messages[at], messages[last])), last)
