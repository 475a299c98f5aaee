"""How a strategy of Agent Framework acts in the lab: from a situation to its ledger, and from there to edits.

Where the history is kept (placement ``stored`` or ``turn``) the ledger is kept with it: what was excluded stays
excluded and later messages are appended. Otherwise the framework hands its strategies fresh copies, and so does the
lab. Before a turn the new input is left out: the framework compacts loaded history before it adds the input.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from compaction_lab.conversation.context import Context
from compaction_lab.strategies.agent_framework.entries import Rows
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.tokens import Tokenizer
from compaction_lab.strategies.base import Compaction, Replies, Requests, Situation, Steps, Strategy, steps
from compaction_lab.strategies.memory import remembered

Acting: TypeAlias = Generator[Requests, Replies, bool]


@remembered
@dataclass(frozen=True, slots=True)
class Standing:
    """Memory of a strategy: its ledger at one version, or the rows from which it can be made again."""

    ledger: Ledger | None = None
    version: int = 0
    rows: Rows = ()

    def taken_up(self, context: Context) -> Ledger:
        """Return the ledger as it was."""
        if self.ledger is None:
            return Ledger.of_rows(self.rows, context.log)
        self.ledger.rollback(self.version)
        return self.ledger

    def to_memory(self) -> tuple[object, ...]:
        """Return the rows, for JSON."""
        if self.ledger is None:
            return (None, 0, self.rows)
        self.ledger.rollback(self.version)
        return (None, 0, self.ledger.to_rows())


class Acts:
    """The part that all strategies on a ledger share."""

    __slots__ = ()

    from_last: ClassVar[bool] = False
    """Whether going on from its last result gives what starting afresh gives, as long as groups only grow."""

    def counting(self) -> Tokenizer | None:
        """Return the tokenizer that the list is counted with before the strategy acts, if any."""
        return None

    def act(self, ledger: Ledger, situation: Situation) -> bool | Acting:
        """Change the ledger; return whether it changed."""
        raise NotImplementedError

    def __call__(self, situation: Situation) -> Compaction | Steps:
        """Act on the situation's list."""
        ledger, base = _take_up(situation, from_last=self.from_last)
        tokenizer = self.counting()
        if tokenizer is not None:
            ledger.count(tokenizer)
        acted = self.act(ledger, situation)
        if isinstance(acted, bool):
            return _done(ledger, situation, base)
        return _finish(acted, ledger, situation, base)


def _finish(acted: Acting, ledger: Ledger, situation: Situation, base: Literal["history", "last"]) -> Steps:
    yield from acted
    return _done(ledger, situation, base)


def _done(ledger: Ledger, situation: Situation, base: Literal["history", "last"]) -> Compaction:
    reason, outcome = "; ".join(ledger.reasons), ledger.outcome
    edits = ledger.commit(situation.context if base == "history" or situation.last is None else situation.last)
    return Compaction(edits, Standing(ledger, ledger.version), base, reason if edits else "", outcome)


def _take_up(situation: Situation, *, from_last: bool) -> tuple[Ledger, Literal["history", "last"]]:
    context = situation.context
    turn = context.log.turn_at(context.stop)
    stop = context.stop
    if situation.occasion == "before_turn" and stop and context.log.turn_starts[turn] == stop - 1:
        stop -= 1
    old = situation.memory.taken_up(context) if isinstance(situation.memory, Standing) else None
    if old is not None:
        old.afresh = False  # true of one call only, and a fork may have made the last one
    unchanged = situation.last is context
    if old is not None and old.stop <= stop:
        kept = situation.history == "stored" or (situation.history == "turn" and old.turn == turn)
        if unchanged and (kept or old.pristine):
            old.turn = turn
            old.continue_log(context.log, stop)
            if kept or old.pristine:
                return old, "last"
        if kept:
            old.follow(context, stop)
            return old, "history"
        # A turn's context is compacted already: starting afresh from it brings nothing back that was excluded.
        if from_last and situation.history == "view" and situation.last is not None and old.undisturbed:
            old.continue_log(context.log, stop)
            if old.undisturbed:
                old.turn, old.afresh = turn, True
                return old, "last"
    ledger = Ledger.fresh(context, stop)
    ledger.turn = turn
    if old is not None:
        ledger.failures = old.failures
    return ledger, "last" if unchanged else "history"


def acted_on(strategy: Strategy, ledger: Ledger, situation: Situation) -> Acting:
    """Let a strategy act on a ledger that a composition works on; one that knows no ledgers is shown what is left."""
    if isinstance(strategy, Acts):
        acted = strategy.act(ledger, situation)
        return acted if isinstance(acted, bool) else (yield from acted)
    shown = ledger.shown(situation.context)
    done = yield from steps(strategy, replace(situation, context=shown, memory=None, last=None))
    if done.outcome != "ok":
        ledger.outcome = done.outcome
    if done.edits:
        ledger.adopt(done.edits, shown.apply(done.edits))
    return bool(done.edits)
