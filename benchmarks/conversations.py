"""Synthetic coding sessions of any length for the benchmarks: seeded, with recorded-like sizes."""

from __future__ import annotations

import random

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
