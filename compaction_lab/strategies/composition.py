"""Strategies made of strategies: all in order, the first that acts, tiers, fallback, a budget, a ladder of limits.

``Pipeline`` (all in order, C1) stands beside the protocol in ``base``. Each remembers the tuple of its
children's memories and answers from the history it is shown at every occasion.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace

from compaction_lab.conversation.context import Context, Edit, Placed
from compaction_lab.conversation.messages import Message, Text
from compaction_lab.errors import ConfigurationError, StrategyError
from compaction_lab.strategies.base import (
    UNCHANGED,
    Compaction,
    Pipeline,
    Replies,
    Requests,
    Situation,
    Steps,
    Strategy,
    steps,
)
from compaction_lab.strategies.registry import at_least, register
from compaction_lab.strategies.triggers import known_window

register("pipeline", semantics=1)(Pipeline)


@dataclass(slots=True)
class Course:
    """Children at work one after the other on what the earlier ones made of a context."""

    situation: Situation
    memories: list[object]
    context: Context
    edits: list[Edit] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    outcome: str = "ok"

    @classmethod
    def of(cls, situation: Situation, children: int) -> Course:
        """Begin with the history shown and what the children remember."""
        memory = situation.memory
        known = isinstance(memory, tuple) and len(memory) == children
        memories = list(memory) if isinstance(memory, tuple) and known else [None] * children
        return cls(situation, memories, situation.context)

    @property
    def tokens(self) -> int:
        """Tokens of the request as it stands now."""
        return self.situation.tokens(self.context)

    def run(self, at: int, child: Strategy) -> Generator[Requests, Replies, Compaction]:
        """Let one child act; its edits, reason and outcome are noted."""
        shown = replace(self.situation, context=self.context, memory=self.memories[at], last=None)
        done = yield from steps(child, shown)
        if done.memory is not UNCHANGED:
            self.memories[at] = done.memory
        self.take(done.edits)
        if done.edits or done.outcome != "ok":
            self.reasons.append(done.reason)
        if done.outcome != "ok":
            self.outcome = done.outcome
        return done

    def take(self, edits: Iterable[Edit]) -> None:
        """Apply edits."""
        new = tuple(edits)
        self.context = self.context.apply(new)
        self.edits.extend(new)

    def result(self) -> Compaction:
        """Return what all of them did."""
        reason = "; ".join(dict.fromkeys(filter(None, self.reasons)))
        return Compaction(tuple(self.edits), tuple(self.memories), reason=reason, outcome=self.outcome)


@register("first_that_acts", semantics=1)
@dataclass(frozen=True, slots=True)
class FirstThatActs:
    """The children in order until one changes something; the others are not asked (composition C2)."""

    strategies: tuple[Strategy, ...]

    def __call__(self, situation: Situation) -> Steps:
        """Ask the children in order."""
        course = Course.of(situation, len(self.strategies))
        for at, child in enumerate(self.strategies):
            done = yield from course.run(at, child)
            if done.edits:
                break
        return course.result()


@register("until_target", semantics=1)
@dataclass(frozen=True, slots=True)
class UntilTarget:
    """The children in order, the cheap ones first, until the request is within a target (composition C3).

    Parameters
    ----------
    strategies
        The tiers.
    target_tokens
        Stop when the request, tools and overhead included, has no more tokens than this.
    target_fraction
        The same as a share of the window; used when ``target_tokens`` is not given.
    """

    strategies: tuple[Strategy, ...]
    target_tokens: int | None = None
    target_fraction: float | None = None

    def __post_init__(self) -> None:
        """Check that there is a target."""
        if (self.target_tokens is None) == (self.target_fraction is None):
            raise ConfigurationError("until_target needs target_tokens or target_fraction, one of them")

    def __call__(self, situation: Situation) -> Steps:
        """Run tier after tier."""
        target = self.target_tokens
        if target is None:
            target = int(known_window(situation, None, "until_target") * (self.target_fraction or 0.0))
        course = Course.of(situation, len(self.strategies))
        for at, child in enumerate(self.strategies):
            if course.tokens <= target:
                break
            yield from course.run(at, child)
        return course.result()


@register("fallback", semantics=1)
@dataclass(frozen=True, slots=True)
class Fallback:
    """The children in order, the next one only when the one before failed (composition C4).

    A child fails when an attempt of its own was rejected (``outcome``) or when it breaks the rules; what a failed child
    changed is taken back.
    """

    strategies: tuple[Strategy, ...]

    def __call__(self, situation: Situation) -> Steps:
        """Try the children."""
        course = Course.of(situation, len(self.strategies))
        failures: list[str] = []
        for at, child in enumerate(self.strategies):
            trial = Course(situation, list(course.memories), situation.context)
            try:
                done = yield from trial.run(at, child)
            except StrategyError as error:
                failures.append(f"rejected: {error}")
                continue
            if done.outcome == "ok":
                trial.reasons += [f"after: {failure}" for failure in failures]
                return trial.result()
            course.memories = trial.memories
            failures.append(done.outcome)
        course.outcome = failures[-1] if failures else "ok"
        return course.result()


@register("budget_composed", semantics=1)
@dataclass(frozen=True, slots=True)
class BudgetComposed:
    """The children in order towards a budget, then the oldest groups dropped until it is met (composition C5).

    Parameters
    ----------
    token_budget
        Most tokens of the request, tools and overhead included.
    strategies
        Run in order while the request is over the budget.
    early_stop
        Whether the children after the one that met the budget are left out.
    """

    token_budget: int
    strategies: tuple[Strategy, ...] = ()
    early_stop: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "token_budget", 1)

    def __call__(self, situation: Situation) -> Steps:
        """Run the children, then the last resort."""
        course = Course.of(situation, len(self.strategies))
        if course.tokens <= self.token_budget:
            return course.result()
        for at, child in enumerate(self.strategies):
            yield from course.run(at, child)
            if self.early_stop and course.tokens <= self.token_budget:
                break
        if course.tokens > self.token_budget:
            gone = _oldest_beyond(situation, course.context, course.tokens - self.token_budget)
            if gone:
                course.take([Edit("dropped", tuple(entry.key for entry in gone))])
                course.reasons.append(f"oldest groups dropped to {self.token_budget} tokens")
            if course.tokens > self.token_budget:
                course.outcome = f"rejected: {course.tokens} tokens remain above the budget of {self.token_budget}"
        return course.result()


@register("ladder", semantics=1)
@dataclass(frozen=True, slots=True)
class Ladder:
    """Warn, then act gently, then act hard, as the request grows (composition C6).

    Parameters
    ----------
    warn_tokens
        Beyond this many tokens the model is told so, in a message at the end; ``None``: never.
    soft_tokens, soft
        Beyond this many tokens ``soft`` acts.
    hard_tokens, hard
        Beyond this many tokens, what ``soft`` made of the context counting, ``hard`` acts as well.
    warning
        The text of the warning; ``{tokens}`` and ``{limit}`` are filled.
    """

    soft_tokens: int
    soft: Strategy
    hard_tokens: int
    hard: Strategy
    warn_tokens: int | None = None
    warning: str = (
        "[The conversation has {tokens} tokens; at {limit} it will be shortened. Write down what must not be lost.]"
    )

    def __post_init__(self) -> None:
        """Check that the rungs ascend."""
        rungs = (
            [self.soft_tokens, self.hard_tokens]
            if self.warn_tokens is None
            else [
                self.warn_tokens,
                self.soft_tokens,
                self.hard_tokens,
            ]
        )
        if rungs != sorted(rungs):
            raise ConfigurationError(f"ladder: limits {rungs} must ascend: warn_tokens, soft_tokens, hard_tokens")

    def __call__(self, situation: Situation) -> Steps:
        """Climb as far as the request asks for."""
        course = Course.of(situation, 3)
        found = course.tokens
        if found > self.soft_tokens:
            yield from course.run(0, self.soft)
        if course.tokens > self.hard_tokens:
            yield from course.run(1, self.hard)
        warns = self.warn_tokens is not None and self.warn_tokens < course.tokens <= self.soft_tokens
        if warns and not course.memories[2]:
            course.take([self._warned(course)])
            course.reasons.append(f"{course.tokens} tokens > {self.warn_tokens}")
        course.memories[2] = warns  # said once, until the request has been below the limit again
        return course.result()

    def _warned(self, course: Course) -> Edit:
        text = self.warning.replace("{tokens}", str(course.tokens)).replace("{limit}", str(self.soft_tokens))
        context = course.context
        note = Message("user", (Text(text),), source="injected")
        return Edit("inserted", (), Placed(context.free_key(context.stop - 1), note))


def _oldest_beyond(situation: Situation, context: Context, excess: int) -> list[Placed]:
    """Return the oldest whole groups that may go, no more of them than hold ``excess`` tokens."""
    gone: list[Placed] = []
    log, counter = context.log, situation.counter
    group = (-1, 0)
    for entry in context.entries():
        index, rank = entry.key
        mine = entry.key if rank else (log.groups[index], 0)
        if excess <= 0 and mine != group:
            break
        if situation.removable(entry.key, entry.message, context.stop):
            gone.append(entry)
            excess -= counter.message(entry.message)
            group = mine
    return gone
