"""What the OpenAI Agents SDK's trimmer does with a case; runs in an environment with openai-agents."""

from __future__ import annotations

from typing import Any

from agents.extensions import ToolOutputTrimmer
from agents.run_config import CallModelData, ModelInputData
from content_bridge import Message, answer_all


def apply(strategy: str, parameters: dict[str, Any], messages: list[Message]) -> list[Message]:
    """Let the framework act once."""
    parameters = dict(parameters)
    parameters["trimmable_tools"] = parameters["trimmable_tools"] or None
    items: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            item = {"type": "function_call_output", "call_id": message["call_id"], "output": message["text"]}
            items.append(item | {"as": message})
            continue
        items.append({"role": message["role"], "content": message["text"], "as": message})
        items += [
            {"type": "function_call", "call_id": c["id"], "name": c["name"], "arguments": c["arguments"]}
            for c in message["calls"]
        ]
    data = CallModelData(model_data=ModelInputData(input=items, instructions="x"), agent=None, context=None)
    done = ToolOutputTrimmer(**parameters)(data).input
    return [{**item["as"], "text": item.get("output", item["as"]["text"])} for item in done if "as" in item]


if __name__ == "__main__":
    answer_all(apply)
