"""Where units begin in a plain list of messages, by the rules that frameworks without a log of their own go by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compaction_lab.conversation.context import Key
from compaction_lab.conversation.messages import Message

Predicate = Callable[[Message], bool]


def is_role(*roles: str) -> Predicate:
    """Return a test for messages of some roles."""
    return lambda message: message.role in roles


def neighbours(keys: Sequence[Key], at: int) -> bool:
    """Whether nothing has been dropped between a message and the one before it."""
    return at > 0 and keys[at][0] - keys[at - 1][0] <= 1


def batches(messages: Sequence[Message], keys: Sequence[Key]) -> list[range]:
    """Return the positions of what is one message where the results of a batch share one: runs of tool messages."""
    spans: list[range] = []
    for at, message in enumerate(messages):
        if message.role == "tool" and neighbours(keys, at) and messages[at - 1].role == "tool":
            spans[-1] = range(spans[-1].start, at + 1)
        else:
            spans.append(range(at, at + 1))
    return spans


def flat(spans: Sequence[range]) -> list[int]:
    """Return the positions of some spans as one list."""
    return [at for span in spans for at in span]


def answered(messages: Sequence[Message]) -> set[str]:
    """Return the ids of calls that have a result in the list."""
    return {message.call_id for message in messages if message.role == "tool" and message.call_id}


def largest_fitting_prefix(weights: Sequence[int], budget: int) -> int:
    """Return how many of the first ``weights`` fit into ``budget``."""
    total = 0
    for count, weight in enumerate(weights):
        total += weight
        if total > budget:
            return count
    return len(weights)
