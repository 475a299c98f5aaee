"""Random conversations for property tests: valid ones with everything a strategy may meet, and messy ones beside them.

Valid means that rules V1-V5, V8, V13 and V16 hold. Messy ones add what recordings really contain: orphaned, late and
duplicate results, calls that nobody answered, empty messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from compaction_lab.conversation.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    system,
    tool,
    user,
)

CALL_IDS = ("a", "b", "c", "d", "e")
"""Few, so that ids are reused once their call was answered, as recorded sessions do."""
SENTENCE = "the build failed at line 42 of parser.py because token 7f3a is missing while Zoë waits für später "

words = st.integers(1, 400).map(lambda length: (SENTENCE * 4)[:length])
result_texts = st.one_of(st.sampled_from(["", "ok", "[tool result removed]"]), words)
seldom = st.integers(0, 7).map(lambda number: number == 0)


@st.composite
def openings(draw: st.DrawFn) -> list[Message]:
    """What precedes the first user message: system and developer messages, sometimes a greeting."""
    messages = [system(draw(words), pinned=draw(seldom)) for _ in range(draw(st.integers(0, 1)))]
    if draw(seldom):
        messages.append(Message("developer", (Text(draw(words)),)))
    if draw(seldom):
        messages.append(assistant(draw(words)))
    return messages


@st.composite
def steps(draw: st.DrawFn, *, pins: bool) -> list[Message]:
    """One model call and its results, in one of the shapes that recordings have."""
    pinned = pins and draw(seldom)
    thought = (Reasoning(draw(words), opaque=draw(st.sampled_from(["", "signed"]))),)
    shape = draw(st.sampled_from(["text", "calls", "calls", "calls", "thought first", "in pieces"]))
    if shape == "text":
        return [replace(assistant(draw(words)), pinned=pinned)]
    ids = draw(st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True))
    calls = tuple(ToolCall(call_id, "look", f'{{"at": "{draw(words)}"}}') for call_id in ids)
    results = [replace(tool(call_id, draw(result_texts)), pinned=pins and draw(seldom)) for call_id in ids]
    if shape == "calls":
        spoken = (Text(draw(words)),) if draw(st.booleans()) else ()
        return [Message("assistant", spoken, calls, pinned=pinned), *results]
    response_id = draw(st.uuids()).hex[:8]
    if shape == "thought first":
        return [
            Message("assistant", thought, response_id=response_id),
            Message("assistant", (), calls, response_id=response_id, pinned=pinned),
            *results,
        ]
    pieces = [Message("assistant", (), (call,), response_id=response_id) for call in calls]
    return [Message("assistant", (Text(draw(words)),), response_id=response_id), *pieces, *results]


@st.composite
def turns(draw: st.DrawFn, *, pins: bool, most_steps: int) -> list[Message]:
    """A user message, sometimes two in a row or after a summary, and the steps that follow."""
    messages = []
    if draw(seldom):
        messages.append(Message("user", (Text("Summary: " + draw(words)),), source="summary"))
    messages += [replace(user(draw(words)), pinned=pins and draw(seldom)) for _ in range(1 + draw(seldom))]
    if draw(seldom):
        messages.append(system(draw(words)))
    for _ in range(draw(st.integers(0, most_steps))):
        messages += draw(steps(pins=pins))
    return messages


@st.composite
def conversations(draw: st.DrawFn, *, most_turns: int = 6, most_steps: int = 5, pins: bool = True) -> list[Message]:
    """A valid conversation; the calls at its end may still be open, wholly or in part."""
    messages = draw(openings())
    for _ in range(draw(st.integers(0, most_turns))):
        messages += draw(turns(pins=pins, most_steps=most_steps))
    if draw(st.booleans()):
        open_end = 1 + sum(message.role == "tool" for message in messages[-3:]) if messages else 0
        if messages and messages[-1].role == "tool":
            messages = messages[: len(messages) - draw(st.integers(0, min(open_end - 1, 3)))]
    return messages


@st.composite
def messy_conversations(draw: st.DrawFn) -> list[Message]:
    """A conversation as it may be recorded: messages lost, doubled, moved or emptied."""
    messages = draw(conversations(most_turns=4, most_steps=4))
    for _ in range(draw(st.integers(1, 4))):
        if not messages:
            break
        at = draw(st.integers(0, len(messages) - 1))
        what = draw(st.sampled_from(["lose", "double", "move", "empty", "orphan"]))
        if what == "lose":
            messages = messages[:at] + messages[at + 1 :]
        elif what == "double":
            messages.insert(draw(st.integers(0, len(messages))), messages[at])
        elif what == "move":
            messages.insert(draw(st.integers(0, len(messages) - 1)), messages.pop(at))
        elif what == "empty":
            messages[at] = replace(messages[at], parts=())
        else:
            messages.insert(at, tool(draw(st.sampled_from(CALL_IDS)), draw(result_texts)))
    return messages


def shown(messages: Sequence[Message]) -> list[str]:
    """Return messages as short texts (``role text [calls]``) that a failing test prints readably."""
    lines = []
    for message in messages:
        calls = " ".join(f"{call.id}:{call.name}" for call in message.calls)
        about = message.call_id and f"<{message.call_id}> "
        lines.append(f"{message.role} {about}{message.text}" + (f" -> {calls}" if calls else ""))
    return lines
