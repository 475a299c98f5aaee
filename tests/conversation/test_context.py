"""The persistent context, against a plain dictionary of what is visible."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compaction_lab.conversation.context import BLOCK_SIZE, Context, Edit, Key, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.errors import StrategyError

CHARACTERS, BYTES = TokenCounter(tokenizer("characters")), TokenCounter(tokenizer("bytes_over_4"))
LONGEST = 4 * BLOCK_SIZE
LOG = Log(user("message " * (1 + at % 7)) for at in range(LONGEST))

ranks = st.integers(0, 2)
keys = st.tuples(st.integers(0, LONGEST - 1), ranks)


def note(text: str, source: str = "placeholder") -> Message:
    return Message("user", (Text(text),), source=source)


class ContextIsADictionary(RuleBasedStateMachine):
    """Every operation is done twice: on the context, and on a dictionary from key to message."""

    def __init__(self) -> None:
        super().__init__()
        self.context = Context(LOG)
        self.visible: dict[Key, Message] = {}
        self.past: list[tuple[Context, dict[Key, Message]]] = []

    def apply(self, *edits: Edit) -> None:
        self.past.append((self.context, dict(self.visible)))
        self.context = self.context.apply(edits)
        for edit in edits:
            for key in edit.keys:
                if edit.kind == "restored":
                    self.visible[key] = LOG.messages[key[0]]
                else:
                    del self.visible[key]
            if edit.new is not None:
                self.visible[edit.new.key] = edit.new.message

    @rule(by=st.integers(1, LONGEST), counted=st.booleans())
    def advance(self, by: int, counted: bool) -> None:  # noqa: FBT001 - a drawn value
        if counted:
            self.context.tokens(CHARACTERS)
        stop = min(self.context.stop + by, LONGEST)
        self.visible |= {(at, 0): LOG.messages[at] for at in range(self.context.stop, stop)}
        self.context = self.context.advance(stop)

    @precondition(lambda self: self.visible)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        some = data.draw(st.lists(st.sampled_from(sorted(self.visible)), min_size=1, unique=True))
        self.apply(Edit("dropped", tuple(some)))

    @precondition(lambda self: self.visible)
    @rule(data=st.data())
    def drop_a_run(self, data: st.DataObject) -> None:
        standing = sorted(self.visible)
        first = data.draw(st.integers(0, len(standing) - 1))
        last = data.draw(st.integers(first + 1, len(standing)))
        self.apply(Edit("dropped", tuple(standing[first:last])))

    @precondition(lambda self: self.visible)
    @rule(data=st.data(), text=st.sampled_from(["", "gone", "gone " * 30]))
    def mask(self, data: st.DataObject, text: str) -> None:
        some = data.draw(st.lists(st.sampled_from(sorted(self.visible)), min_size=1, max_size=5, unique=True))
        self.apply(*(Edit("masked", (key,), Placed(key, note(text))) for key in some))

    @precondition(lambda self: self.visible)
    @rule(data=st.data())
    def summarise(self, data: st.DataObject) -> None:
        standing = sorted(self.visible)
        hidden = standing[: data.draw(st.integers(1, len(standing)))]
        kept = self.context.apply((Edit("dropped", tuple(hidden)),))
        placed = Placed(kept.free_key(hidden[-1][0]), note("so far", "summary"))
        self.apply(Edit("summarised", tuple(hidden), placed))

    @precondition(lambda self: self.context.stop)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        changed = [(at, 0) for at in range(self.context.stop) if self.visible.get((at, 0)) is not LOG.messages[at]]
        if changed:
            some = data.draw(st.lists(st.sampled_from(changed), min_size=1, unique=True))
            self.apply(Edit("restored", tuple(some)))

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def difference(self, data: st.DataObject) -> None:
        """From any earlier context, brought to the same stop, to this one and back."""
        old = data.draw(st.sampled_from(self.past))[0].advance(self.context.stop)
        for one, other in ((old, self.context), (self.context, old)):
            edits = one.difference(other)
            reached = one.apply(edits)
            assert reached.keys == other.keys
            assert [m.wire for m in reached.messages] == [m.wire for m in other.messages]
        assert self.context.difference(self.context) == ()

    @rule(start=keys, stop=keys)
    def look(self, start: Key, stop: Key) -> None:
        standing = sorted(self.visible.items())
        low, high = min(start, stop), max(start, stop)
        between = [(key, message) for key, message in standing if low <= key < high]
        assert [(e.key, e.message) for e in self.context.entries(low, high)] == between
        assert [e.key for e in self.context.entries(low)] == [key for key, _ in standing if key >= low]
        assert [e.key for e in self.context.entries(None, high)] == [key for key, _ in standing if key < high]
        assert list(self.context.entries(high, low)) == [] or low == high
        before = [key for key, _ in standing if key < start]
        assert [e.key for e in self.context.before(start)] == before[::-1]
        assert self.context.tokens_before(start, BYTES) == sum(BYTES.message(self.visible[key]) for key in before)
        assert self.context.get(start) is self.visible.get(start)

    @rule(key=keys)
    def refuse(self, key: Key) -> None:
        if key not in self.visible:
            with pytest.raises(StrategyError, match="not visible"):
                self.context.apply((Edit("dropped", (key,)),))
        else:
            with pytest.raises(StrategyError, match="inserts at key"):
                self.context.apply((Edit("inserted", (), Placed(key, note("in the way"))),))
        original = key[1] == 0 and key[0] < self.context.stop
        if not original or self.visible.get(key) is LOG.messages[key[0]]:
            with pytest.raises(StrategyError, match="'restored'"):
                self.context.apply((Edit("restored", (key,)),))

    @invariant()
    def agrees(self) -> None:
        standing = sorted(self.visible)
        assert self.context.keys == tuple(standing)
        assert all(m is self.visible[k] for k, m in zip(standing, self.context.messages, strict=True))
        assert len(self.context) == len(standing)
        for counter in (CHARACTERS, BYTES):
            assert self.context.tokens(counter) == sum(map(counter.message, self.visible.values()))
        assert all(0 < len(block.keys) <= BLOCK_SIZE for block in self.context.blocks)

    @invariant()
    def earlier_ones_are_as_they_were(self) -> None:
        for context, visible in self.past[-3:]:
            assert context.keys == tuple(sorted(visible))


TestContextIsADictionary = ContextIsADictionary.TestCase
TestContextIsADictionary.settings = settings(max_examples=40, stateful_step_count=20)


def test_an_edit_shares_every_block_that_it_leaves_alone() -> None:
    whole = Context(LOG, LONGEST)
    edited = whole.apply((Edit("dropped", ((BLOCK_SIZE + 1, 0),)),))
    assert [new is old for new, old in zip(edited.blocks, whole.blocks, strict=True)] == [True, False, True, True]


def test_new_messages_share_every_full_block() -> None:
    short = Context(LOG, 2 * BLOCK_SIZE + 1)
    grown = short.advance(LONGEST)
    assert [new is old for new, old in zip(grown.blocks, short.blocks, strict=False)] == [True, True, False]
    assert short.advance(short.stop) is short


def test_edits_of_one_list_see_each_other() -> None:
    context = Context(LOG, 3)
    hidden_then_shown = (Edit("dropped", ((1, 0),)), Edit("restored", ((1, 0),)))
    assert context.apply(hidden_then_shown).keys == context.keys
    with pytest.raises(StrategyError, match="not visible"):
        context.apply((Edit("dropped", ((1, 0),)), Edit("masked", ((1, 0),), Placed((1, 0), note("gone")))))


def test_a_message_that_does_not_exist_yet_cannot_be_restored() -> None:
    with pytest.raises(StrategyError, match="'restored'"):
        Context(LOG, 3).apply((Edit("restored", ((5, 0),)),))


def test_a_context_is_rebuilt_from_its_entries() -> None:
    edited = Context(LOG, LONGEST).apply((Edit("dropped", ((0, 0), (70, 0))),))
    rebuilt = Context.of(LOG, LONGEST, edited.entries())
    assert (rebuilt.keys, rebuilt.messages, rebuilt.stop) == (edited.keys, edited.messages, edited.stop)
    assert rebuilt.difference(edited) == ()


def test_the_same_context_on_a_longer_log() -> None:
    context = Context(LOG, 3).apply((Edit("dropped", ((1, 0),)),))
    fork = LOG.prefix(3)
    fork.append(user("one more"))
    assert context.on(fork).advance(4).keys == ((0, 0), (2, 0), (3, 0))


def test_differences_name_what_happened() -> None:
    context = Context(LOG, 4)
    summary = Placed((1, 1), note("so far", "summary"))
    target = context.apply(
        (Edit("summarised", ((0, 0), (1, 0)), summary), Edit("masked", ((2, 0),), Placed((2, 0), note("gone"))))
    )
    assert [edit.kind for edit in context.difference(target)] == ["dropped", "summarised", "masked"]
    assert [edit.kind for edit in target.difference(context)] == ["dropped", "restored", "restored", "restored"]
