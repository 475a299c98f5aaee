"""What Google ADK's ContextFilterPlugin keeps; runs with google-adk, imports nothing of the lab."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.genai import types
from scripted import serve


def append(state: list[Any], m: dict[str, Any]) -> None:
    """Add a message; the results of a batch share a content."""
    text = m["texts"][0]
    if m["role"] == "tool":
        answer = types.FunctionResponse(id=m["call_id"], name=m["name"], response={"result": text})
        part = types.Part(function_response=answer)
        if state and state[-1].parts[0].function_response:
            state[-1].parts.append(part)
        else:
            state.append(types.Content(role="user", parts=[part]))
        return
    calls = [
        types.Part(function_call=types.FunctionCall(id=c["id"], name=c["name"], args=json.loads(c["arguments"])))
        for c in m["calls"]
    ]
    role = "model" if m["role"] == "assistant" else "user"
    state.append(types.Content(role=role, parts=[types.Part(text=text), *calls]))


def kept(content: Any) -> list[Any]:
    """Return the messages that a content stands for, in the form that is compared."""
    answers = [part.function_response for part in content.parts if part.function_response]
    if answers:
        return [["tool", a.response["result"], [], a.id] for a in answers]
    text = "".join(part.text for part in content.parts if part.text)
    calls = [part.function_call.id for part in content.parts if part.function_call]
    return [["assistant" if content.role == "model" else "user", text, calls, ""]]


def answer(case: dict[str, Any]) -> list[Any]:
    """Filter at every stop."""
    plugin = ContextFilterPlugin(**case["parameters"])
    out = []
    for stop in case["stops"]:
        messages = case["messages"][:stop]
        head = 1 if messages[0]["role"] == "system" else 0
        state: list[Any] = []
        for m in messages[head:]:
            append(state, m)
        request = SimpleNamespace(contents=state)
        asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=request))
        system = [["system", m["texts"][0], [], ""] for m in messages[:head]]
        out.append(system + [line for content in request.contents for line in kept(content)])
    return out


serve(answer)
