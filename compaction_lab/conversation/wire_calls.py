"""Tool calls and tool definitions of the OpenAI chat format to the lab's and back, arguments as the text they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import cast

from compaction_lab.conversation.json_values import Object, canonical_json, describe, pop_required_text
from compaction_lab.conversation.messages import JSON, ToolCall, ToolDefinition
from compaction_lab.errors import TranscriptError


def tools_from_openai(definitions: JSON, where: str = "tools") -> tuple[ToolDefinition, ...]:
    """Return the tools of a request's ``tools`` (or legacy ``functions``) list.

    Raises
    ------
    TranscriptError
        For what is not a list of objects that name their tool.
    """
    if definitions is None:
        return ()
    if not isinstance(definitions, list):
        raise TranscriptError(f"{where}: found {describe(definitions)}, expected a list of tools; leave the field out.")
    tools = []
    for index, definition in enumerate(definitions):
        at = f"{where}[{index}]"
        body = definition.get("function", definition) if isinstance(definition, dict) else definition
        if not isinstance(definition, dict) or not isinstance(body, dict):
            raise TranscriptError(f"{at}: found {describe(body)}, expected an object with a name; write it as one.")
        name = body.get("name", definition.get("type"))
        description = body.get("description") or ""
        parameters = body.get("parameters") or body.get("input_schema") or {}
        if not isinstance(name, str) or not isinstance(description, str) or not isinstance(parameters, dict):
            raise TranscriptError(
                f"{at}: found name {describe(name)}, description {describe(description)} and parameters "
                f"{describe(parameters)}, expected text, text and an object; correct the definition."
            )
        tools.append(ToolDefinition(name, description, parameters))
    return tuple(tools)


def tools_to_openai(tools: Sequence[ToolDefinition]) -> list[JSON]:
    """Return tool definitions as the ``tools`` list of an OpenAI chat request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in tools
    ]


def read_calls(extra: Object, where: str) -> tuple[list[ToolCall], list[Object]]:
    """Take the calls out of a message, ``tool_calls`` before the legacy ``function_call``, each with its shape."""
    calls: list[ToolCall] = []
    shapes: list[Object] = []
    recorded = extra.get("tool_calls")
    if isinstance(recorded, list) and recorded:
        del extra["tool_calls"]
        for index, item in enumerate(recorded):
            call, shape = _call(item, f"{where}.tool_calls[{index}]")
            calls.append(call)
            shapes.append(shape)
    elif recorded is not None and recorded != []:
        raise TranscriptError(
            f"{where}: field 'tool_calls' is {describe(recorded)}, expected a list of calls or null; write it so."
        )
    legacy = extra.get("function_call")
    if legacy is not None:
        del extra["function_call"]
        call, shape = _call({"type": "function", "function": legacy}, f"{where}.function_call")
        calls.append(call)
        shapes.append({**shape, "at": "function_call"})
    return calls, shapes


def write_call(call: ToolCall, shape: Object) -> Object:
    """Return the item of ``tool_calls`` that states a call, in the shape it was read in."""
    kind = shape.get("type", "function")
    out: Object = {"id": call.id} if call.id else {}
    if isinstance(kind, str) and kind not in {"", "function", "custom"}:
        stated = _parsed(call.arguments, lambda value: isinstance(value, dict))
        return {**out, "type": kind, **cast("Object", stated if isinstance(stated, dict) else {})}
    custom = kind == "custom"
    arguments: JSON = call.arguments
    written = shape.get("arguments")
    if written == "value":
        arguments = _parsed(call.arguments, lambda value: not isinstance(value, str))
    body: Object = {"name": call.name}
    if not (written == "absent" and not call.arguments):
        body["input" if custom else "arguments"] = None if written == "null" and not call.arguments else arguments
    body.update(cast("Object", shape.get("inner", {})))
    if kind != "":
        out["type"] = kind
    out["custom" if custom else "function"] = body
    return {**out, **cast("Object", shape.get("extra", {}))}


def _call(item: JSON, where: str) -> tuple[ToolCall, Object]:
    if not isinstance(item, dict):
        raise TranscriptError(f"{where}: found {describe(item)}, expected a call object; write it as one.")
    rest = dict(item)
    shape: Object = {}
    call_id = rest.get("id")
    if call_id is not None and not isinstance(call_id, str):
        raise TranscriptError(f"{where}: field 'id' is {describe(call_id)}, expected text; write it in quotes.")
    if call_id:
        del rest["id"]
    kind = rest.get("type", "function")
    if kind == "function" and isinstance(rest.get("function"), dict):
        body = dict(cast("Object", rest.pop("function")))
        name, arguments = _named(body, "arguments", shape, where)
        if "type" not in rest:
            shape["type"] = ""
        rest.pop("type", None)
    elif kind == "custom" and isinstance(rest.get("custom"), dict):
        body = dict(cast("Object", rest.pop("custom")))
        name, arguments = _named(body, "input", shape, where)
        shape["type"] = rest.pop("type")
    elif isinstance(kind, str) and kind not in {"function", "custom"}:
        # A hosted tool's call: named by its type, everything it states is its arguments.
        del rest["type"]
        return ToolCall(call_id or "", kind, canonical_json(rest)), {"type": kind}
    else:
        raise TranscriptError(
            f"{where}: found no object {kind!r} in a call of type {describe(kind)}, expected "
            '{"id": ..., "type": "function", "function": {"name": ..., "arguments": "..."}}; write the call so.'
        )
    if rest:
        shape["extra"] = rest
    if body:
        shape["inner"] = body
    return ToolCall(call_id or "", name, arguments), shape


def _named(body: Object, key: str, shape: Object, where: str) -> tuple[str, str]:
    name = pop_required_text(body, "name", where)
    if key not in body:
        shape["arguments"] = "absent"
        return name, ""
    arguments = body.pop(key)
    if isinstance(arguments, str):
        return name, arguments
    if arguments is None:
        shape["arguments"] = "null"
        return name, ""
    shape["arguments"] = "value"
    return name, json.dumps(arguments, ensure_ascii=False)


def _parsed(text: str, accept: Callable[[JSON], bool]) -> JSON:
    try:
        value = cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        return text
    return value if accept(value) else text
