"""What Google ADK's event compaction keeps; runs with google-adk, imports nothing of the lab."""

from __future__ import annotations

import asyncio
import types
from typing import Any

from google.adk.apps import compaction
from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.flows.llm_flows.context import _compaction
from google.genai import types as genai
from scripted import echo, item, serve, weight


def text(event: Event) -> str:
    """Return the text of an event, that of a compaction or of results included."""
    content = event.content
    if event.actions and event.actions.compaction and event.actions.compaction.compacted_content:
        content = event.actions.compaction.compacted_content
    parts = content.parts if content else []
    return "\n".join(
        str(p.function_response.response["text"]) if p.function_response else (p.text or "") for p in parts or []
    )


compaction._serialized_size = lambda events: sum(weight(text(e)) for e in events)
compaction._latest_prompt_token_count = lambda events, **_: sum(
    weight(text(e)) for e in _compaction._process_compaction_events(events)
)


class Summarizer:
    """Writes the scripted summary."""

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event:
        """Answer."""
        content = genai.Content(role="model", parts=[genai.Part(text=echo("\n".join(text(e) for e in events)))])
        stamps = [e.timestamp for e in events]
        made = EventCompaction(start_timestamp=min(stamps), end_timestamp=max(stamps), compacted_content=content)
        return Event(author="model", invocation_id=Event.new_id(), actions=EventActions(compaction=made))


def events(messages: list[dict[str, Any]]) -> list[tuple[int, Event]]:
    """Return events with the number of messages that they end at; results of one batch are one event."""
    out: list[tuple[int, Event]] = []
    turn = 0
    for at, m in enumerate(messages):
        if m["role"] == "user":
            turn += 1
        if m["role"] == "tool":
            answer = genai.FunctionResponse(id=m["call_id"], name="look", response={"text": m["text"]})
            part = genai.Part(function_response=answer)
            if at and messages[at - 1]["role"] == "tool":
                out[-1][1].content.parts.append(part)
                out[-1] = (at + 1, out[-1][1])
                continue
            parts = [part]
        else:
            parts = [genai.Part(text=m["text"])]
            parts += [genai.Part(function_call=genai.FunctionCall(id=c, name="look", args={})) for c in m["calls"]]
        role = "model" if m["role"] == "assistant" else "user"
        author = "agent" if m["role"] == "assistant" else "user"
        content = genai.Content(role=role, parts=parts)
        out.append((at + 1, Event(author=author, invocation_id=f"i{turn}", content=content, timestamp=float(at + 1))))
    return out


def kept(event: Event) -> list[Any]:
    """Return the messages that an event stands for, in the form that is compared."""
    content = event.content
    parts = content.parts if content else []
    results = [p.function_response for p in parts or [] if p.function_response]
    if results:
        return [item("tool", str(r.response["text"]), [], str(r.id)) for r in results]
    calls = [str(p.function_call.id) for p in parts or [] if p.function_call]
    return [item("user" if event.author == "user" else "assistant", text(event), calls)]


async def compact(case: dict[str, Any], session: Any, service: Any) -> None:
    """Run the compaction that a case names."""
    parameters = case["parameters"]
    config = types.SimpleNamespace(
        summarizer=Summarizer(),
        token_threshold=parameters.get("token_threshold"),
        event_retention_size=parameters.get("event_retention_size"),
        compaction_interval=parameters.get("compaction_interval"),
        overlap_size=parameters.get("overlap_size"),
    )
    if config.token_threshold is not None:
        await compaction._run_compaction_for_token_threshold_config(
            config=config, session=session, session_service=service, agent=None
        )
        return
    app = types.SimpleNamespace(events_compaction_config=config, root_agent=object())
    async for event in compaction._run_compaction_for_sliding_window(app, session, service):
        session.events.append(event)


def answer(case: dict[str, Any]) -> list[Any]:
    """Compact at every stop."""

    async def append_event(*, session: Any, event: Event) -> None:
        session.events.append(event)

    messages = case["messages"]
    head = 0
    while head < len(messages) and messages[head]["role"] == "system":
        head += 1
    every = [(stop + head, event) for stop, event in events(messages[head:])]
    session = types.SimpleNamespace(events=[], id="s")
    service = types.SimpleNamespace(append_event=append_event)
    out, done = [], 0
    for stop in case["stops"]:
        session.events.extend(event for end, event in every if done < end <= stop)
        done = stop
        asyncio.run(compact(case, session, service))
        system = [item("system", m["text"]) for m in messages[: min(head, stop)]]
        shown = _compaction._process_compaction_events(session.events)
        out.append(system + [line for event in shown for line in kept(event)])
    return out


serve(answer)
