"""Answers of chat-completions endpoints read into replies: whole ones, and streams put together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from compaction_lab.accounting.usage import read_usage
from compaction_lab.conversation.messages import JSON, ToolCall
from compaction_lab.models.base import ModelReply

Payload = Mapping[str, JSON]


class MalformedAnswer(Exception):
    """The server answered, but not with a completion."""


def read_answer(text: str) -> Payload:
    """Return the JSON object of a response body.

    Raises
    ------
    MalformedAnswer
        It is none.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"the answer is not JSON ({error}): {text[:200]}") from None
    if not isinstance(payload, dict):
        raise MalformedAnswer(f"the answer is not a JSON object: {text[:200]}")
    return payload


def read_reply(payload: Payload, dialect: str, *, id_prefix: str) -> ModelReply:
    """Return the first choice of a completion; latency is left to who measured it.

    Parameters
    ----------
    payload
        A chat completion.
    dialect
        How the endpoint words usage (:mod:`compaction_lab.accounting.usage`).
    id_prefix
        Begins the ids of tool calls that came without one.

    Raises
    ------
    MalformedAnswer
        There is no choice with a message in it.
    """
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        said = payload.get("error") or payload
        raise MalformedAnswer(f"the answer has no choices: {json.dumps(said)[:400]}")
    refusal = message.get("refusal")
    calls = message.get("tool_calls")
    found = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    usage = payload.get("usage")
    reading = read_usage(usage, dialect) if isinstance(usage, Mapping) else None
    return ModelReply(
        _text(message.get("content")) or _text(refusal),
        tuple(_call(call, f"{id_prefix}{number}") for number, call in enumerate(found)),
        "refusal" if refusal else str(choice.get("finish_reason") or "stop"),
        None if reading is None else reading.usage,
    )


def joined(chunks: Iterable[Payload], clock: Callable[[], float]) -> tuple[Payload, float | None]:
    """Return the chunks of a stream as one completion, and the time of the first that said something.

    Raises
    ------
    MalformedAnswer
        The stream ended before the answer did.
    """
    text: list[str] = []
    refusal: list[str] = []
    calls: dict[int, dict[str, JSON]] = {}
    finish: JSON = None
    usage: JSON = None
    first: float | None = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in _mappings(chunk.get("choices")):
            delta = choice.get("delta")
            finish = choice.get("finish_reason") or finish
            if not isinstance(delta, Mapping):
                continue
            parts = list(_mappings(delta.get("tool_calls")))
            if first is None and (delta.get("content") or delta.get("reasoning_content") or parts):
                first = clock()
            text.append(_text(delta.get("content")))
            refusal.append(_text(delta.get("refusal")))
            for part in parts:
                _grow(calls, part)
    if finish is None:
        raise MalformedAnswer("the stream ended before the answer did")
    message: dict[str, JSON] = {
        "content": "".join(text),
        "refusal": "".join(refusal) or None,
        "tool_calls": cast("JSON", [calls[at] for at in sorted(calls)]),
    }
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}, first


def _grow(calls: dict[int, dict[str, JSON]], part: Payload) -> None:
    index = part.get("index")
    at = index if isinstance(index, int) else len(calls)
    call = calls.setdefault(at, {"id": "", "function": {"name": "", "arguments": ""}})
    call["id"] = call["id"] or part.get("id") or ""
    function, said = cast("dict[str, JSON]", call["function"]), part.get("function")
    if isinstance(said, Mapping):
        for key in ("name", "arguments"):
            function[key] = _text(function[key]) + _text(said.get(key))


def _mappings(value: JSON) -> Iterable[Payload]:
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _call(call: Payload, missing_id: str) -> ToolCall:
    function = call.get("function")
    named = function if isinstance(function, Mapping) else {}
    arguments = named.get("arguments")
    # Some servers send the arguments as an object, not as its text.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments is not None else ""
    return ToolCall(_text(call.get("id")) or missing_id, _text(named.get("name")), text)


def _text(value: JSON) -> str:
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in _mappings(value))
    return value if isinstance(value, str) else "" if value is None else str(value)
