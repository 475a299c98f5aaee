"""Haystack's SlidingWindowCompactor under its CompactionHook, as haystack-ai 3.4.1 behaves, and its token estimate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from compaction_lab.conversation.counting import MessageRule, register_counting
from compaction_lab.conversation.messages import Media, Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.mechanisms.window import Item, Shown, Window
from compaction_lab.strategies.registry import at_least, register

RULE = "haystack_approximate"
CHARACTERS_PER_TOKEN, IMAGE_TOKENS, FILE_TOKENS = 4, 85, 1000
OMITTED = (
    "[{num_removed} earlier messages were removed from this conversation to free up context and cannot be recovered.]"
)
NOTE_TAG = "haystack:sliding_window"


def rendered_characters(message: Message) -> int:
    """Return the length of one message as the counter prints it; reasoning is left out."""
    found = message.memo.get(RULE)
    if isinstance(found, int):
        return found
    if message.role == "tool":
        size = len(f"[tool:{message.name}{' (error)' if message.is_error else ''}] {message.text}")
    else:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        lines = [f"[{message.role}] " + "\n".join(texts)] if texts else []
        lines += [f"[{message.role} -> tool_call] {call.name}({_sorted(call.arguments)})" for call in message.calls]
        media = [part for part in message.parts if isinstance(part, Media)]
        lines += [f"[{message.role}] {'<image>' if part.kind == 'image' else '<file: unnamed>'}" for part in media]
        size = len("\n".join(lines) or f"[{message.role}] <no content>")
    message.memo[RULE] = size
    return size


def _sorted(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


@register_counting(RULE)
def approximate_tokens(message: Message) -> int:
    """Return ``ApproximateTokenCounter``'s estimate for one message alone."""
    return rendered_characters(message) // CHARACTERS_PER_TOKEN + _media_tokens(message)


def _media_tokens(message: Message) -> int:
    return sum(
        IMAGE_TOKENS if part.kind == "image" else FILE_TOKENS for part in message.parts if isinstance(part, Media)
    )


def tokens_of(shown: Shown, positions: Sequence[int]) -> int:
    """Return the tokens of some messages; Haystack's own estimate divides their joined text, others add up."""
    counter = shown.situation.counter
    messages = [shown.messages[at] for at in positions]
    if not (isinstance(counter, MessageRule) and counter.name == RULE):
        return sum(map(counter.message, messages))
    characters = sum(map(rendered_characters, messages)) + max(0, len(messages) - 1)
    return characters // CHARACTERS_PER_TOKEN + sum(map(_media_tokens, messages))


@register("haystack/sliding_window_compactor", semantics=1)
@dataclass(frozen=True, slots=True)
class SlidingWindowCompactor(Window):
    """From a share of the window on, drop the oldest turns, then the current task's oldest steps, down to another (M2).

    Leading system messages and the newest user message stay.

    Parameters
    ----------
    context_window
        The model's window, in tokens; the run's when not given. Unknown windows never trigger.
    compact_at, compact_to
        Shares of the window at which it acts, and to which it goes.
    min_keep_steps
        Newest steps of the current task that stay though they do not fit.
    omission_note
        User message in the place of what was dropped; ``{num_removed}`` is their number; none when ``null``.
    """

    persists: ClassVar[bool] = True

    context_window: int | None = None
    compact_at: float = 0.7
    compact_to: float = 0.4
    min_keep_steps: int = 1
    omission_note: str | None = OMITTED

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "min_keep_steps", 0)
        if self.context_window is not None:
            at_least(self, "context_window", 1)
        if not 0 < self.compact_to < self.compact_at <= 1:
            msg = (
                f"SlidingWindowCompactor: compact_at={self.compact_at}, compact_to={self.compact_to}; expected "
                "0 < compact_to < compact_at <= 1, since a target at the trigger would act at every step"
            )
            raise ConfigurationError(msg)

    def choose(self, shown: Shown) -> Sequence[Item] | None:
        """Compact when the request reaches its share of the window."""
        situation = shown.situation
        window = situation.window_tokens if self.context_window is None else self.context_window
        if window is None:
            return None
        found = tokens_of(shown, range(len(shown.messages)))
        if found + situation.overhead_tokens < window * self.compact_at:
            return None
        target = max(int(window * self.compact_to) - situation.overhead_tokens, 0)
        return None if found <= target else self._split(shown, target)

    def _split(self, shown: Shown, target: int) -> Sequence[Item] | None:
        messages = shown.messages
        head = next((at for at, m in enumerate(messages) if m.role not in ("system", "developer")), len(messages))
        users = [at for at, m in enumerate(messages) if m.role == "user" and NOTE_TAG not in m.tags and at >= head]
        task = users[-1:]
        ends = [*users[1:], len(messages)]
        turns = [
            [at for at in range(start, end) if NOTE_TAG not in messages[at].tags]
            for start, end in zip(users[:-1], ends, strict=False)
        ]
        steps = _steps(messages, task[0] + 1 if task else head)
        budget = target - tokens_of(shown, [*range(head), *task])
        of_task = tokens_of(shown, [at for step in steps for at in step])
        if of_task > budget:
            first_turn = len(turns)
            first_step = min(_first_kept(shown, steps, budget), max(len(steps) - self.min_keep_steps, 0))
        else:
            first_turn, first_step = _first_kept(shown, turns, budget - of_task), 0
        kept_turns = [at for turn in turns[first_turn:] for at in turn]
        kept_steps = [at for step in steps[first_step:] for at in step]
        kept = [*range(head), *kept_turns, *task, *kept_steps]
        gone = set(range(len(messages))) - set(kept)
        if not gone:
            return None
        if not self.omission_note:
            return kept
        if all(NOTE_TAG in messages[at].tags for at in gone):
            return None
        text = self.omission_note.replace("{num_removed}", str(len(gone)))
        note = Message("user", (Text(text),), source="placeholder", tags=(NOTE_TAG,))
        place = head if first_step == 0 else head + len(kept_turns) + len(task)
        return [*kept[:place], note, *kept[place:]]


def _steps(messages: Sequence[Message], start: int) -> list[list[int]]:
    """Return assistant messages with the results directly behind them."""
    steps: list[list[int]] = []
    for at in range(start, len(messages)):
        if messages[at].role == "assistant":
            steps.append([at])
        elif messages[at].role == "tool" and steps and steps[-1][-1] == at - 1:
            steps[-1].append(at)
    return steps


def _first_kept(shown: Shown, groups: Sequence[Sequence[int]], budget: int) -> int:
    first = len(groups)
    while first and (tokens := tokens_of(shown, groups[first - 1])) <= budget:
        budget -= tokens
        first -= 1
    return first
