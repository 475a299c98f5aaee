"""Eighteen messages that golden facts of frameworks were observed on: a task, tool rounds, a second and third turn."""

from __future__ import annotations

from compaction_lab.conversation.messages import Message, Text, ToolCall, assistant, system, tool, user


def f18(size: int = 200) -> list[Message]:
    """Return the conversation; every result is ``OUT id`` and ``size`` letters."""
    messages = [system("SYS"), user("TASK: fix bug, never touch db.py")]
    for round_number in range(6):
        ids = [f"c{round_number}a"] + (["c2b"] if round_number == 2 else [])
        name = "read" if round_number % 2 == 0 else "bash"
        arguments = f'{{"p": "f{round_number}.py"}}'
        calls = (ToolCall(call_id, name, arguments) for call_id in ids)
        messages.append(assistant(f"step {round_number}", *calls))
        messages += [tool(call_id, f"OUT {call_id} " + "x" * size, name=name) for call_id in ids]
        if round_number == 3:
            messages.append(user("also run the tests"))
    return [*messages, Message("assistant", (Text("done"),)), user("summarise changes")]
