"""The shorthand of the vector files: ``S:`` system, ``U:`` user, ``D:`` developer, ``A:`` assistant, ``R`` reasoning.

``C:id/name,id`` is an assistant message with calls (``RC:`` with reasoning before them), ``T:id=text,id`` a tool
message with results (``ok`` by default), ``CT:id=text`` a call with its result in one message, ``M:id=text`` the same
of an MCP server. ``~`` is a space, ``«text»`` an inserted assistant message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compaction_lab.conversation.context import Context, Edit
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.agent_framework.acting import acted_on
from compaction_lab.strategies.agent_framework.budget import TokenBudgetComposed
from compaction_lab.strategies.agent_framework.contents import facets, message_of
from compaction_lab.strategies.agent_framework.context_window import ContextWindow
from compaction_lab.strategies.agent_framework.ledger import Ledger
from compaction_lab.strategies.agent_framework.sliding_window import SlidingWindow
from compaction_lab.strategies.agent_framework.summarization import Summarization
from compaction_lab.strategies.agent_framework.tool_calls import SelectiveToolCall, ToolResult
from compaction_lab.strategies.agent_framework.truncation import Truncation
from compaction_lab.strategies.base import Situation, Strategy
from tests.strategies.harness import CHARACTERS

ROLES = {"S": "system", "U": "user", "D": "developer", "A": "assistant"}


class LetterTokenizer:
    """Counts the letter Q, so that token numbers can be read off a conversation."""

    def count_tokens(self, text: str) -> int:
        return text.count("Q")


Q = LetterTokenizer()


def vectors(name: str) -> list[list[str]]:
    lines = (Path(__file__).parent / name).read_text().splitlines()[1:]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def conversation(text: str) -> list[Message]:
    return [message(word) for word in text.split()]


def message(word: str) -> Message:
    kind, _, rest = word.partition(":")
    if kind in ROLES:
        return message_of(ROLES[kind], [{"type": "text", "text": rest.replace("~", " ")}])
    if kind == "R":
        return message_of("assistant", [{"type": "text_reasoning", "text": "hm"}])
    items = [item.partition("=") for item in rest.split(",")]
    if kind in ("C", "RC"):
        thought = [{"type": "text_reasoning", "text": "hm"}] if kind == "RC" else []
        return message_of("assistant", thought + [call(item) for item, *_ in items])
    if kind == "T":
        return message_of("tool", [result(item, text) for item, _, text in items])
    ((item, _, text),) = items
    if kind == "CT":
        return message_of("assistant", [call(item), result(item, text)])
    assert kind == "M"
    mcp = {"type": "mcp_server_tool_call", "call_id": item, "tool_name": "search", "arguments": {}}
    return message_of("assistant", [mcp, {"type": "mcp_server_tool_result", "call_id": item, "output": text}])


def call(item: str) -> dict[str, Any]:
    call_id, _, name = item.partition("/")
    return {"type": "function_call", "call_id": call_id, "name": name or "tool", "arguments": '{"v":"x"}'}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_result", "call_id": call_id, "result": text.replace("~", " ") or "ok"}


def written(messages: list[Message]) -> str:
    """Return messages in shorthand, tool names left out."""
    return " ".join(map(_written, messages))


def _written(message: Message) -> str:
    if message.source == "summary":
        return f"«{message.text}»"
    contents = facets(message).contents
    kinds = [str(content["type"]) for content in contents]
    calls = ",".join(str(c["call_id"]) for c in contents if c["type"] == "function_call")
    if calls:
        return f"{'R' if 'text_reasoning' in kinds else ''}C:{calls}"
    if kinds == ["text_reasoning"]:
        return "R"
    if message.role == "tool":
        found = [f"{c['call_id']}={c['result']}".removesuffix("=ok") for c in contents]
        return f"T:{','.join(found)}"
    letter = next(letter for letter, role in ROLES.items() if role == message.role)
    return f"{letter}:{message.text}"


def strategy(text: str) -> Strategy:
    """Return the strategy that a vector names: ``Tr(max=5,to=2)``, ``TB(b=8,Q,[SW(k=1)])``, ..."""
    name, _, rest = text.partition("(")
    arguments, children = rest.removesuffix(")"), ()
    if "[" in arguments:
        before, _, inside = arguments.partition("[")
        inside, _, after = inside.rpartition("]")
        children = tuple(strategy(child + ")") for child in inside.rstrip(")").split("),") if child)
        arguments = before + after
    given = dict(part.partition("=")[::2] for part in arguments.split(",") if part)
    counter = Q if "Q" in given else None
    numbers = {key: int(value) for key, value in given.items() if value.isdigit()}
    first = given.get("first") == "T"
    match name:
        case "Tr":
            kept = given.get("sys") != "F"
            return Truncation(numbers["max"], numbers["to"], counter, kept, first)
        case "SW":
            return SlidingWindow(numbers["k"], given.get("sys") != "F")
        case "Sel":
            return SelectiveToolCall(numbers.get("keep", 1))
        case "TRes":
            return ToolResult(numbers.get("keep", 1))
        case "Sum":
            threshold = None if given.get("th") == "None" else numbers.get("th", 2)
            prompt = given.get("prompt", "").strip("'") or None
            return Summarization(numbers.get("t", 4), threshold, prompt, numbers.get("in", 8000), counter)
        case "TB":
            return TokenBudgetComposed(numbers["b"], Q, children, given.get("early") != "F")
        case "CW":
            return ContextWindow(numbers["win"], numbers["out"], Q, 0.5, 0.8, numbers.get("keep", 4), first)
    raise AssertionError(text)


def reply(text: str) -> ModelReply:
    if "reply=raises" in text:
        return ModelReply(error="scripted")
    return ModelReply("  " if "reply='  '" in text else "SUM")


def acted(text: str, messages: list[Message], hidden: list[int]) -> tuple[str, bool]:
    """Let a strategy act once on a list of which some messages are excluded; return what survives, and its verdict."""
    context = Context(Log(messages), len(messages))
    ledger = Ledger.fresh(context, len(messages))
    if hidden:
        edit = Edit("dropped", tuple((index, 0) for index in hidden))
        ledger.adopt((edit,), context.apply((edit,)))
    chosen = strategy(text)
    counting = chosen.counting()
    if counting is not None:
        ledger.count(counting)
    changed = drive(acted_on(chosen, ledger, Situation(context, "requested", CHARACTERS)), reply(text))
    return written([entry.message for entry in ledger.entries if not entry.excluded]), changed


def drive(acting: Any, answer: ModelReply, asked: list[ModelRequest] | None = None) -> bool:
    try:
        requests = next(acting)
        while True:
            if asked is not None:
                asked.extend(requests)
            requests = acting.send(tuple(answer for _ in requests))
    except StopIteration as end:
        return end.value
