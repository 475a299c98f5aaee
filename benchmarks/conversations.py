"""Synthetic coding sessions of any length for the benchmarks: seeded, with recorded-like sizes."""

from __future__ import annotations

import random
from functools import cache

from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.transcript import Transcript

_SYLLABLES = ("re", "turn", "de", "f", "im", "port", "self", "val", "ue", "in", "dex", "co", "un", "ter", "path", "mes")


def coding_session(messages: int, *, seed: int = 0, result_words: int = 180) -> Transcript:
    """Return a session of about ``messages`` messages: one task, then calls and results in turn.

    Results have between a fifth of and twice ``result_words`` words, so that a session has some 300 tokens a message as
    the recorded ones do.
    """
    chance = random.Random(seed)  # noqa: S311 - a benchmark, not a secret
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(4_000)]

    def text(count: int) -> str:
        return "\n".join(" ".join(chance.choices(words, k=min(12, count - at))) for at in range(0, count, 12))

    log: list[Message] = [system(text(400)), user(text(250))]
    for number in range((messages - len(log)) // 2):
        call = ToolCall(f"call_{number}", "run", f'{{"command": "{text(8)}"}}')
        log.append(assistant(text(chance.randint(10, 60)), call))
        log.append(tool(call.id, text(chance.randint(result_words // 5, 2 * result_words)), name="run"))
    return Transcript(f"synthetic-{messages}", tuple(log))


def service_session(seed: int) -> Transcript:
    """Return a customer-service session with tools, of the sizes that recorded ones have.

    Some 28 messages: one policy of 6,000 characters for all sessions, short questions, answers of a few lines, and
    results with a long tail, most of some 700 characters and a few of 6,000.
    """
    chance, words = random.Random(seed), _vocabulary()  # noqa: S311 - a benchmark, not a secret

    def text(characters: float) -> str:
        return " ".join(chance.choices(words, k=max(1, round(characters / 6))))

    log: list[Message] = [system(" ".join(words[:1_000]))]
    for turn in range(chance.randint(4, 11)):
        log.append(user(text(100)))
        for step in range(chance.randint(0, 2)):
            call = ToolCall(f"call_{turn}_{step}", "look_up", f'{{"reservation": "{text(30)}"}}')
            log.append(assistant("", call))
            log.append(tool(call.id, text(min(6_500, chance.lognormvariate(6, 1))), name="look_up"))
        log.append(assistant(text(chance.uniform(60, 600))))
    return Transcript(f"service-{seed}", tuple(log))


@cache
def _vocabulary() -> list[str]:
    chance = random.Random(0)  # noqa: S311 - as above
    return ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(4_000)]
