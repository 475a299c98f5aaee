"""What users bring along: small strategies of their own, good and bad."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

Messages = list[dict[str, Any]]


def newest_three(messages: Messages) -> Messages:
    return [m for m in messages if m["role"] == "system"] + [m for m in messages if m["role"] != "system"][-3:]


def in_place(messages: Messages) -> None:
    del messages[1:3]


def shouting(messages: Messages) -> Messages:
    return [m | {"content": m["content"].upper()} if m["role"] == "tool" else dict(m) for m in messages]


def reversed_order(messages: Messages) -> Messages:
    return messages[::-1]


async def waiting(messages: Messages) -> Messages:
    await asyncio.sleep(0)
    return messages[-2:]


class Summarizing:
    """Wants a client: a callable from messages to text."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __call__(self, messages: Messages) -> Messages:
        return [{"role": "user", "content": self.client(messages[:-1])}, messages[-1]]


def crashing(messages: Messages) -> Messages:
    raise KeyError(messages[0]["no such key"])


def leaving(messages: Messages) -> Messages:
    sys.exit(f"gone with {len(messages)}")


def hanging(messages: Messages) -> Messages:
    threading.Event().wait(60)
    return messages


def confused(messages: Messages) -> Any:
    return {"messages": messages}


def strange_roles(messages: Messages) -> Messages:
    return [*messages, {"role": "wizard", "content": "x"}]


class Fussy:
    """An Agent Framework strategy of a user's own: hides every tool exchange that mentions a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def __call__(self, messages: list[Any]) -> bool:
        await asyncio.sleep(0)
        changed = False
        for message in messages:
            if any(self.word in str(content.result or "") for content in message.contents):
                group = message.additional_properties["_group"]["id"]
                for other in messages:
                    if other.additional_properties["_group"]["id"] == group:
                        other.additional_properties["_excluded"] = True
                        changed = True
        return changed
