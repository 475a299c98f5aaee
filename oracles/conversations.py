"""Seeded random conversations for fuzzing against other packages: a choice of shapes, not of sizes.

They hold what recordings hold and what breaks pairing rules: parallel calls, reasoning in front of and between calls,
results that come late, twice, together or for no call, system messages in the middle, empty contents. Only the standard
library is used, so that bridges in other environments may import this file.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

WORDS = [
    "the",
    "build",
    "fails",
    "at",
    "line",
    "42",
    "of",
    "parser.py",
    "since",
    "token",
    "7f3a",
    "is",
    "gone",
    "and",
    "Zoë",
    "asks",
    "für",
    "später",
    "naïve",
    "ログ",
]
TOOLS = ("search", "read", "run")


@dataclass
class Talk:
    """A conversation in the making.

    Parameters
    ----------
    rng
        The only source of chance.
    messages
        Messages so far, as ``(role, parts)``; a part is a mapping with ``type`` ``text``, ``reasoning``, ``call`` or
        ``result``.
    wild
        Whether orphaned, late, doubled and embedded results may occur.
    """

    rng: random.Random
    wild: bool = True
    messages: list[tuple[str, list[dict[str, str]]]] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    calls: int = 0

    def text(self, most: int = 12) -> dict[str, str]:
        """Return a text part, at times an empty one."""
        size = self.rng.choice((0, 1, 2, 3, most, most, most * 4)) if self.wild else self.rng.randint(1, most)
        return {"type": "text", "text": " ".join(self.rng.choices(WORDS, k=size))}

    def say(self, role: str, *parts: dict[str, str]) -> None:
        """Add a message."""
        self.messages.append((role, list(parts)))

    def call(self) -> dict[str, str]:
        """Return a call; wild ones reuse ids."""
        self.calls += 1
        call_id = f"c{self.rng.randint(1, 4)}" if self.wild and self.rng.random() < 0.4 else f"call_{self.calls}"
        self.waiting.append(call_id)
        arguments = '{"q": "' + self.rng.choice(WORDS) + '"}'
        return {"type": "call", "id": call_id, "name": self.rng.choice(TOOLS), "arguments": arguments}

    def result(self, call_id: str) -> dict[str, str]:
        """Return a result for a call."""
        return {"type": "result", "id": call_id, "text": self.text()["text"]}

    def think(self) -> dict[str, str]:
        """Return a piece of reasoning."""
        return {"type": "reasoning", "text": self.text(4)["text"]}


Move = Callable[[Talk], None]


def _user(talk: Talk) -> None:
    talk.say("user", talk.text())


def _answer(talk: Talk) -> None:
    talk.say("assistant", talk.text())


def _exchange(talk: Talk) -> None:
    """Add one call or several at once, and their results in some order."""
    calls = [talk.call() for _ in range(talk.rng.choice((1, 1, 1, 2, 3)))]
    ids = [call["id"] for call in calls]
    spoken = [talk.text(4)] if talk.rng.random() < 0.3 else []
    if talk.rng.random() < 0.2:
        for _ in range(talk.rng.choice((1, 1, 2, 3))):
            talk.say("assistant", talk.think())
    talk.say("assistant", *([talk.think()] if talk.rng.random() < 0.15 else []), *spoken, *calls)
    talk.rng.shuffle(ids)
    for call_id in ids:
        if talk.wild and talk.rng.random() < 0.15:
            continue
        if talk.wild and talk.rng.random() < 0.1:
            talk.rng.choice((_user, _answer, _system, _thought))(talk)
        if call_id in talk.waiting:
            talk.waiting.remove(call_id)
        talk.say("tool", talk.result(call_id))


def _system(talk: Talk) -> None:
    talk.say("system", talk.text(6))


def _thought(talk: Talk) -> None:
    talk.say("assistant", talk.think())


def _thought_and_answer(talk: Talk) -> None:
    _thought(talk)
    _answer(talk)


def _pending(talk: Talk) -> None:
    talk.say("assistant", talk.call())


def _late(talk: Talk) -> None:
    """Add a result for a call that still waits, or for none."""
    known = talk.waiting or ["lost"]
    call_id = talk.rng.choice(known)
    if call_id in talk.waiting:
        talk.waiting.remove(call_id)
    talk.say("tool", talk.result(call_id))


def _orphan(talk: Talk) -> None:
    talk.say("tool", talk.result(talk.rng.choice(("lost", "c1", "c2"))))


def _together(talk: Talk) -> None:
    """Add several results in one message."""
    ids = (talk.waiting or ["c1"])[:3]
    del talk.waiting[: len(ids)]
    talk.say("tool", *(talk.result(call_id) for call_id in ids))


def _embedded(talk: Talk) -> None:
    """Add a call with its result in one assistant message, or a result in an assistant message alone."""
    call = talk.call()
    talk.waiting.remove(call["id"])
    parts = [call, talk.result(call["id"])]
    talk.say("assistant", *(parts if talk.rng.random() < 0.6 else parts[1:]))


def _empty(talk: Talk) -> None:
    talk.say(talk.rng.choice(("assistant", "user")))


def _developer(talk: Talk) -> None:
    talk.say("developer", talk.text(6))


TAME: tuple[Move, ...] = (_user, _answer, _exchange, _exchange, _exchange)
WILD: tuple[Move, ...] = (
    *(TAME * 3),
    *(_system, _thought, _thought_and_answer, _pending, _pending, _late, _late),
    *(_orphan, _together, _embedded, _empty, _developer),
)


def talk(seed: str, *, wild: bool = True, most_moves: int = 14) -> Talk:
    """Return a random conversation; equal seeds give equal ones."""
    rng = random.Random(seed)
    made = Talk(rng, wild)
    if rng.random() < 0.7:
        _system(made)
    if wild and rng.random() < 0.1:
        _system(made)
    _user(made)
    moves = WILD if wild else TAME
    for _ in range(rng.randint(0, most_moves)):
        rng.choice(moves)(made)
    return made


def openai_messages(made: Talk) -> list[dict[str, object]]:
    """Return a conversation as OpenAI chat messages; what that format cannot say (embedded results) is left out."""
    out: list[dict[str, object]] = []
    for role, parts in made.messages:
        texts = [part["text"] for part in parts if part["type"] == "text"]
        results = [part for part in parts if part["type"] == "result"]
        if role == "tool":
            out.extend({"role": "tool", "tool_call_id": r["id"], "content": r["text"]} for r in results)
            continue
        message: dict[str, object] = {"role": role, "content": "\n".join(texts)}
        thoughts = [part["text"] for part in parts if part["type"] == "reasoning"]
        if thoughts:
            message["reasoning_content"] = "\n".join(thoughts)
        calls = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in parts
            if c["type"] == "call"
        ]
        if calls:
            message["tool_calls"] = calls
        out.append(message)
    return out
