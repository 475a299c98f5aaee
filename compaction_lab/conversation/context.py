"""The context: what a model is shown of the log, as a persistent sequence that edits change at small cost.

A context never changes; ``apply`` and ``advance`` return a new one that shares all untouched blocks with the old, so a
replay of n calls costs what its edits and new messages cost, and two prompts are compared by comparing blocks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.errors import StrategyError

Key = tuple[int, int]
"""Place in a conversation: log message ``i`` is ``(i, 0)``; what is inserted after it ``(i, 1)``, ``(i, 2)``, ..."""

EditKind = Literal["dropped", "masked", "collapsed", "clipped", "summarised", "inserted", "restored"]
BLOCK_SIZE = 32


class Counter(Protocol):
    """A counting rule: how many tokens a message is taken to have."""

    def message(self, message: Message) -> int:
        """Return the tokens of one message, overhead included."""
        ...


@dataclass(frozen=True, slots=True)
class Placed:
    """A message and the key it stands at."""

    key: Key
    message: Message


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to a context: ``keys`` are hidden (``restored``: shown again) and ``new`` stands at its key.

    ``new.key`` may be one of ``keys`` (a stand-in in the same place). ``tokens_before`` and ``tokens_after`` count what
    was hidden and what stands for it, by the run's rule; ``None`` until the replay has counted them.
    """

    kind: EditKind
    keys: tuple[Key, ...]
    new: Placed | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None


class Block:
    """A run of neighbouring messages with their keys; immutable, its token sums memoised per counting rule."""

    __slots__ = ("_sums", "keys", "messages")

    def __init__(
        self, keys: tuple[Key, ...], messages: tuple[Message, ...], sums: dict[Counter, int] | None = None
    ) -> None:
        self.keys = keys
        self.messages = messages
        self._sums = {} if sums is None else sums

    def tokens(self, counter: Counter) -> int:
        """Return the tokens of the block's messages."""
        found = self._sums.get(counter)
        if found is None:
            found = self._sums[counter] = sum(map(counter.message, self.messages))
        return found

    def extended(self, keys: tuple[Key, ...], messages: tuple[Message, ...]) -> Block:
        """Return this block with messages appended, its known sums carried on."""
        sums = {counter: total + sum(map(counter.message, messages)) for counter, total in self._sums.items()}
        return Block(self.keys + keys, self.messages + messages, sums)

    def changed_sums(self, hidden: list[Message], shown: list[Message]) -> dict[Counter, int]:
        """Return the block's known sums after some messages went and others came."""
        return {
            counter: total + sum(map(counter.message, shown)) - sum(map(counter.message, hidden))
            for counter, total in self._sums.items()
        }


class Context:
    """The messages visible through edits on the first ``stop`` messages of a log, in order of their keys.

    Parameters
    ----------
    log
        The append-only log. Hidden messages stay there and can be restored.
    stop
        How many of the log's messages exist for this context.
    """

    __slots__ = ("_sums", "blocks", "log", "size", "stop")

    def __init__(self, log: Log, stop: int = 0) -> None:
        self.log = log
        self.stop = 0
        self.size = 0
        self.blocks: tuple[Block, ...] = ()
        self._sums: dict[Counter, int] = {}
        if stop:
            grown = self.advance(stop)
            self.stop, self.size, self.blocks = stop, grown.size, grown.blocks

    @classmethod
    def of(cls, log: Log, stop: int, entries: Iterable[Placed]) -> Context:
        """Return the context in which exactly ``entries`` are visible, given in order of their keys."""
        visible = tuple(entries)
        pieces = [visible[at : at + BLOCK_SIZE] for at in range(0, len(visible), BLOCK_SIZE)]
        blocks = tuple(Block(tuple(e.key for e in piece), tuple(e.message for e in piece)) for piece in pieces)
        empty = cls(log)
        return empty._with(blocks, stop, len(visible), {})

    def __len__(self) -> int:
        return self.size

    @property
    def messages(self) -> tuple[Message, ...]:
        """The visible messages in order."""
        return tuple(message for block in self.blocks for message in block.messages)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the visible messages, ascending."""
        return tuple(key for block in self.blocks for key in block.keys)

    def tokens(self, counter: Counter) -> int:
        """Return the tokens of the visible messages by one counting rule (running sums, not a recount)."""
        found = self._sums.get(counter)
        if found is None:
            found = self._sums[counter] = sum(block.tokens(counter) for block in self.blocks)
        return found

    def get(self, key: Key) -> Message | None:
        """Return the message that stands at ``key``, or ``None`` when nothing visible does."""
        block = self._block_of(key)
        if block is None:
            return None
        at = bisect_left(block.keys, key)
        return block.messages[at] if at < len(block.keys) and block.keys[at] == key else None

    def entries(self, start: Key | None = None, stop: Key | None = None) -> Iterator[Placed]:
        """Yield what is visible from ``start`` (inclusive) to ``stop`` (exclusive), in order."""
        first = 0 if start is None else max(0, bisect_right(self.blocks, start, key=_first_key) - 1)
        for block in self.blocks[first:]:
            if stop is not None and block.keys[0] >= stop:
                return
            low = 0 if start is None or block.keys[0] >= start else bisect_left(block.keys, start)
            high = len(block.keys) if stop is None or block.keys[-1] < stop else bisect_left(block.keys, stop)
            yield from map(Placed, block.keys[low:high], block.messages[low:high])

    def before(self, key: Key) -> Iterator[Placed]:
        """Yield what is visible before ``key``, newest first."""
        first = bisect_left(self.blocks, key, key=_first_key)
        for block in reversed(self.blocks[:first]):
            high = bisect_left(block.keys, key)
            yield from map(Placed, reversed(block.keys[:high]), reversed(block.messages[:high]))

    def tokens_before(self, key: Key, counter: Counter) -> int:
        """Return the tokens of what is visible before ``key``."""
        at = max(0, bisect_right(self.blocks, key, key=_first_key) - 1)
        total = sum(block.tokens(counter) for block in self.blocks[:at])
        if at < len(self.blocks):
            block = self.blocks[at]
            total += sum(map(counter.message, block.messages[: bisect_left(block.keys, key)]))
        return total

    def on(self, log: Log) -> Context:
        """Return this context on another log that begins with the same ``stop`` messages."""
        context = self._with(self.blocks, self.stop, self.size, dict(self._sums))
        context.log = log
        return context

    def advance(self, stop: int) -> Context:
        """Return this context with the log's messages up to ``stop`` appended, unedited."""
        if stop == self.stop:
            return self
        new = self.log.messages[self.stop : stop]
        keys = [(index, 0) for index in range(self.stop, stop)]
        blocks = self.blocks
        taken = 0
        if blocks and len(blocks[-1].keys) < BLOCK_SIZE:
            taken = BLOCK_SIZE - len(blocks[-1].keys)
            blocks = (*blocks[:-1], blocks[-1].extended(tuple(keys[:taken]), tuple(new[:taken])))
        for at in range(taken, len(new), BLOCK_SIZE):
            blocks = (*blocks, Block(tuple(keys[at : at + BLOCK_SIZE]), tuple(new[at : at + BLOCK_SIZE])))
        sums = {counter: total + sum(map(counter.message, new)) for counter, total in self._sums.items()}
        return self._with(blocks, stop, self.size + len(new), sums)

    def apply(self, edits: Iterable[Edit]) -> Context:
        """Return the context after ``edits``.

        Raises
        ------
        StrategyError
            An edit hides a key that is not visible, restores one that was never hidden or does not exist yet, or
            inserts where a visible message already stands.
        """
        changes: dict[Key, Message | None] = {}
        for edit in edits:
            for key in edit.keys:
                standing = changes[key] if key in changes else self.get(key)
                if edit.kind == "restored":
                    changes[key] = self._restorable(key, standing)
                elif standing is None:
                    msg = (
                        f"a '{edit.kind}' edit names key {key}, which is not visible; only visible messages can be "
                        "edited ('restored' shows hidden ones again)"
                    )
                    raise StrategyError(msg)
                else:
                    changes[key] = None
            if edit.new is not None:
                key = edit.new.key
                if (changes[key] if key in changes else self.get(key)) is not None:
                    msg = (
                        f"a '{edit.kind}' edit inserts at key {key}, which is taken; "
                        "hide what stands there or take a free rank"
                    )
                    raise StrategyError(msg)
                changes[key] = edit.new.message
        return self._changed(changes) if changes else self

    def free_key(self, index: int) -> Key:
        """Return the lowest free key directly after log message ``index``."""
        rank = 1
        while self.get((index, rank)) is not None:
            rank += 1
        return (index, rank)

    def difference(self, target: Context) -> tuple[Edit, ...]:
        """Return the edits that turn this context into ``target``; both must stand at the same ``stop``.

        Used where a strategy answers from scratch: what it says anew is separated from what it merely repeats.
        """
        mine, theirs = self.blocks, target.blocks
        same = 0
        while same < len(mine) and same < len(theirs) and mine[same] is theirs[same]:
            same += 1
        old = {key: message for block in mine[same:] for key, message in zip(block.keys, block.messages, strict=True)}
        edits: list[Edit] = []
        for block in theirs[same:]:
            for key, message in zip(block.keys, block.messages, strict=True):
                before = old.pop(key, None)
                if before is message or (before is not None and before.wire == message.wire):
                    continue
                original = key[1] == 0 and self.log.messages[key[0]] is message
                if original:
                    edits.append(Edit("restored", (key,)))
                elif before is None:
                    kind: EditKind = "summarised" if message.source == "summary" else "inserted"
                    edits.append(Edit(kind, (), Placed(key, message)))
                else:
                    edits.append(Edit("masked", (key,), Placed(key, message)))
        if old:
            edits.insert(0, Edit("dropped", tuple(old)))
        return tuple(edits)

    def _restorable(self, key: Key, standing: Message | None) -> Message:
        index, rank = key
        if rank or not 0 <= index < self.stop or standing is self.log.messages[index]:
            msg = f"a 'restored' edit names key {key}; only a hidden or replaced message of the log can be restored"
            raise StrategyError(msg)
        return self.log.messages[index]

    def _block_of(self, key: Key) -> Block | None:
        at = bisect_right(self.blocks, key, key=_first_key) - 1
        return self.blocks[at] if at >= 0 else None

    def _changed(self, changes: dict[Key, Message | None]) -> Context:
        keys = sorted(changes)
        blocks: list[Block] = []
        size, sums, at = self.size, dict(self._sums), 0
        position = 0
        while position < len(keys):
            block_at = max(at, bisect_right(self.blocks, keys[position], key=_first_key) - 1)
            blocks.extend(self.blocks[at:block_at])
            at = block_at + 1
            end = position + 1
            limit = self.blocks[at].keys[0] if at < len(self.blocks) else None
            while end < len(keys) and (limit is None or keys[end] < limit):
                end += 1
            old = self.blocks[block_at] if block_at < len(self.blocks) else Block((), ())
            new = _edited(old, {key: changes[key] for key in keys[position:end]})
            blocks.extend(new)
            size += sum(len(block.keys) for block in new) - len(old.keys)
            for counter in sums:
                sums[counter] += sum(block.tokens(counter) for block in new) - old.tokens(counter)
            position = end
        blocks.extend(self.blocks[at:])
        return self._with(tuple(blocks), self.stop, size, sums)

    def _with(self, blocks: tuple[Block, ...], stop: int, size: int, sums: dict[Counter, int]) -> Context:
        context = Context.__new__(Context)
        context.log, context.stop, context.size, context.blocks = self.log, stop, size, blocks
        context._sums = sums  # noqa: SLF001 - its own
        return context


def _first_key(block: Block) -> Key:
    return block.keys[0]


def _edited(block: Block, changes: dict[Key, Message | None]) -> list[Block]:
    """Return ``block`` after changes: one block, none when it is emptied, more when it overflows."""
    standing: dict[Key, Message | None] = dict(zip(block.keys, block.messages, strict=True))
    hidden = [message for key in changes if (message := standing.get(key)) is not None]
    grows = not changes.keys() <= standing.keys()
    standing.update(changes)
    entries = [(key, message) for key, message in standing.items() if message is not None]
    if grows:
        entries.sort(key=_key_of)
    if 0 < len(entries) <= BLOCK_SIZE:
        keys, messages = zip(*entries, strict=True)
        shown = [message for message in changes.values() if message is not None]
        return [Block(keys, messages, block.changed_sums(hidden, shown))]
    pieces = [entries[at : at + BLOCK_SIZE] for at in range(0, len(entries), BLOCK_SIZE)]
    return [Block(tuple(key for key, _ in piece), tuple(message for _, message in piece)) for piece in pieces]


def _key_of(entry: tuple[Key, Message]) -> Key:
    return entry[0]
