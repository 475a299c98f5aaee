"""qwen-code's compression: when it is due, what it leaves, and when it is given up."""

from __future__ import annotations

import pytest

from compaction_lab.arm import ArmRun
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Media, Message, Text, assistant, user
from compaction_lab.models.faulty import FaultySummarizer
from compaction_lab.strategies.registry import strategy
from tests.strategies.harness import CHARACTERS, Scribe, Slot, answered


def arm_on(messages: list[Message], window: int, **parameters: object) -> ArmRun:
    placed = strategy("qwen_code/chat_compression", **parameters)
    return ArmRun(Log(messages), (Slot(placed.run, placed.when, placed.history, CHARACTERS),), (), window)


def talk(tokens: int) -> list[Message]:
    """A question and an answer of so many tokens in all, and a further question."""
    return [user("go"), assistant("y" * 4 * (tokens - 20)), user("and now?")]


@pytest.mark.parametrize(
    ("window", "due"),
    [(400_000, 340_000), (100_000, 67_000), (30_000, 25_500)],
    ids=["a share of a large window", "room for the summary in a smaller one", "a share where there is no such room"],
)
def test_it_acts_at_the_earlier_of_two_limits(window: int, due: int) -> None:
    for tokens, acts in ((due - 100, False), (due + 100, True)):
        messages = talk(tokens)
        scribe = Scribe()
        context = answered(arm_on(messages, window).occasion("before_call", len(messages)), scribe)
        assert len(scribe.requests) == acts
        assert [m.source for m in context.messages] == (
            ["summary", "injected", "recorded"] if acts else ["recorded"] * 3
        )


def test_many_images_make_it_act_too() -> None:
    shot = Media("image", "image/png", 90_000, 800, 600)
    for count, acts in ((19, False), (20, True)):
        messages = [m for at in range(count) for m in (Message("user", (Text(f"s{at}"), shot)), assistant("ok"))]
        scribe = Scribe()
        answered(arm_on([*messages, user("so?")], 10**6).occasion("before_call", 2 * count + 1), scribe)
        assert len(scribe.requests) == acts


def test_three_failures_in_a_row_end_it() -> None:
    messages = [m for at in range(8) for m in (user(f"u{at} " + "x" * 400), assistant("y" * 400))]
    arm = arm_on([*messages, user("so?")], 500)
    outcomes = []
    for stop in range(7, 18, 2):
        answered(arm.occasion("before_call", stop), FaultySummarizer("empty"))
        outcomes += [firing.outcome for firing in arm.firings]
    assert outcomes == ["rejected: empty summary"] * 3
