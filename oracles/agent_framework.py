"""What Microsoft Agent Framework itself does with a case: reads cases as JSON lines, writes what survives.

Runs in an environment with agent-framework-core; imports nothing of the lab. A case names a strategy with its
parameters, messages as the framework's own contents, and at how many messages compaction is applied; ``fresh`` says
whether each application starts from new copies, as context providers hand them out, or goes on with the same list.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from typing import Any

import agent_framework as af

logging.getLogger("agent_framework").disabled = True


class LetterTokenizer:
    """Counts the letter Q, so that token numbers can be read off a case."""

    def count_tokens(self, text: str) -> int:
        """Count."""
        return text.count("Q")


class WordTokenizer:
    """Counts words and punctuation: neither a character estimate nor an encoding."""

    def count_tokens(self, text: str) -> int:
        """Count."""
        return len(text.split()) + text.count('"')


TOKENIZERS = {"characters": af.CharacterEstimatorTokenizer, "letters": LetterTokenizer, "words": WordTokenizer}


def summary(transcript: str, mood: str) -> str:
    """Return the scripted summary of a transcript, so that equal summaries mean equal transcripts."""
    digest = hashlib.sha256(transcript.encode("utf-8", "surrogatepass")).hexdigest()
    if mood == "moody" and digest[0] in "0123":
        return "" if digest[0] in "01" else "raise"
    return f" SUM {digest[:12]} " + "and so on " * int(digest[1], 16)


class Client:
    """A chat client that answers with the scripted summary."""

    def __init__(self, mood: str) -> None:
        self.mood = mood

    async def get_response(self, messages: list[Any], **_: object) -> Any:
        """Answer."""
        text = summary("\n".join(m.text for m in messages), self.mood)
        if text == "raise":
            raise RuntimeError("scripted")
        return af.ChatResponse(messages=[af.Message("assistant", [text])])


def build(node: dict[str, Any]) -> Any:
    """Return the strategy that a case names."""
    parameters = dict(node["parameters"])
    if isinstance(parameters.get("tokenizer"), str):
        parameters["tokenizer"] = TOKENIZERS[parameters["tokenizer"]]()
    if "strategies" in parameters:
        parameters["strategies"] = [build(child) for child in parameters["strategies"]]
    if node["name"] == "summarization":
        parameters["client"] = Client(node.get("mood", ""))
    return CLASSES[node["name"]](**parameters)


CLASSES = {
    "truncation": af.TruncationStrategy,
    "sliding_window": af.SlidingWindowStrategy,
    "selective_tool_call": af.SelectiveToolCallCompactionStrategy,
    "tool_result": af.ToolResultCompactionStrategy,
    "summarization": af.SummarizationStrategy,
    "token_budget_composed": af.TokenBudgetComposedStrategy,
    "context_window": af.ContextWindowCompactionStrategy,
}


def message(node: dict[str, Any]) -> Any:
    """Return one of the framework's messages."""
    contents = [af.Content.from_dict(content) for content in node["contents"]]
    return af.Message(node["role"], contents, message_id=node.get("message_id"))


def shown(kept: list[Any]) -> list[Any]:
    """Return what survives: the number of an original message, or the text of a new one."""
    return [m.additional_properties.get("number", f"{m.role}: {m.text}") for m in kept]


async def survivors(case: dict[str, Any]) -> list[list[Any]]:
    """Return what survives at each cut."""
    strategy = build(case["strategy"])
    kept: list[Any] = []
    answers = []
    for cut in case["cuts"]:
        kept = [] if case["fresh"] else kept
        have = sum("number" in m.additional_properties for m in kept)
        for number in range(have, cut):
            new = message(case["messages"][number])
            new.additional_properties["number"] = number
            kept.append(new)
        answers.append(shown(await af.apply_compaction(kept, strategy=strategy)))
    return answers


def answer(case: dict[str, Any]) -> Any:
    """Return the framework's answer to a case."""
    running = survivors(case)
    try:
        running.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a strategy waits for something; none of the framework's does")


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
