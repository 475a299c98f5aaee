"""Tool results seen together with the calls they answer, and the texts that stand for them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Media, Message, ToolCall
from compaction_lab.strategies.mechanisms.rewriting import Draft

_URL = re.compile(r"https?://[^\s\"'<>)\]]+")


def call_of(log: Log, key: Key) -> ToolCall | None:
    """Return the call that the result at ``key`` answers; ``None`` for an orphan."""
    index, rank = key
    place = None if rank else log.call_of(index)
    return None if place is None else log.messages[place.message].calls[place.position]


def tool_of(log: Log, entry: Placed) -> str:
    """Return the name of the tool that a result came from; empty when neither the result nor its call says."""
    if entry.message.name:
        return entry.message.name
    call = call_of(log, entry.key)
    return "" if call is None else call.name


def asked_just_before(context: Context, entry: Placed) -> bool:
    """Whether the last visible assistant message before a result makes the call that the result answers."""
    for earlier in context.before(entry.key):
        if earlier.message.role == "assistant":
            return any(call.id == entry.message.call_id for call in earlier.message.calls)
    return False


def arguments_of(call: ToolCall | None) -> Mapping[str, JSON]:
    """Return a call's arguments; empty when there is no call or its arguments are no JSON object."""
    if call is None:
        return {}
    try:
        found = json.loads(call.arguments)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def empty_arguments(draft: Draft, log: Log, result: Key) -> None:
    """Let the call that a result answers have no arguments (``{}``)."""
    place = None if result[1] else log.call_of(result[0])
    if place is None:
        return
    key = (place.message, 0)
    message = draft.get(key)
    if message is None or message.pinned:
        return
    wanted = log.messages[place.message].calls[place.position].id
    calls = tuple(
        ToolCall(call.id, call.name, "{}") if call.id == wanted and call.arguments != "{}" else call
        for call in message.calls
    )
    if calls != message.calls:
        draft.put("masked", key, replace(message, calls=calls))


def fill(template: str, log: Log, entry: Placed) -> str:
    """Return a stand-in's text: a template with what it names of the result filled in.

    Known names: ``{tool}``, ``{call_id}``, ``{lines}``, ``{characters}``, ``{images}``, ``{url}``. Other braces are
    text, so that code in a template does no harm.
    """
    if "{" not in template:
        return template
    message = entry.message
    named: tuple[tuple[str, Callable[[], object]], ...] = (
        ("{tool}", lambda: tool_of(log, entry)),
        ("{call_id}", lambda: message.call_id),
        ("{lines}", lambda: len(message.text.splitlines())),
        ("{characters}", lambda: len(message.text)),
        ("{images}", lambda: images_in(message)),
        ("{url}", lambda: url_of(log, entry)),
    )
    for name, value in named:
        if name in template:
            template = template.replace(name, str(value()))
    return template


def images_in(message: Message) -> int:
    """Return how many images a message carries."""
    return sum(isinstance(part, Media) and part.kind == "image" for part in message.parts)


def url_of(log: Log, entry: Placed) -> str:
    """Return the address that a result is about: as recorded with it, from its call, or the first one in its text."""
    recorded = entry.message.extra.get("url") or arguments_of(call_of(log, entry.key)).get("url")
    if isinstance(recorded, str):
        return recorded
    found = _URL.search(entry.message.text)
    return found[0] if found else ""
