"""Random cases for Agent Framework's strategies, and the lab's own answers to them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

from conversations import talk

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.agent_framework.contents import message_of
from compaction_lab.strategies.registry import build

NAMES = (
    "truncation",
    "sliding_window",
    "selective_tool_call",
    "tool_result",
    "summarization",
    "token_budget_composed",
    "context_window",
)
PROMPT = "Summarise."


class LetterTokenizer:
    """Counts the letter Q."""

    name = "letters"

    def count_tokens(self, text: str) -> int:
        """Count."""
        return text.count("Q")


class WordTokenizer:
    """Counts words and punctuation."""

    name = "words"

    def count_tokens(self, text: str) -> int:
        """Count."""
        return len(text.split()) + text.count('"')


TOKENIZERS = {"characters": "characters", "letters": LetterTokenizer(), "words": WordTokenizer()}
COUNTER = TokenCounter(tokenizer("characters"))


def content(part: Mapping[str, str], rng: random.Random) -> dict[str, Any]:
    """Return a part as the framework's content."""
    match part["type"]:
        case "call":
            call = {
                "type": "function_call",
                "call_id": part["id"],
                "name": part["name"],
                "arguments": part["arguments"],
            }
            if rng.random() < 0.1:
                return {
                    "type": "mcp_server_tool_call",
                    "call_id": part["id"],
                    "tool_name": part["name"],
                    "arguments": part["arguments"],
                    "server_name": "s",
                }
            return call
        case "result":
            result = {
                "type": "function_result",
                "call_id": part["id"],
                "result": part["text"],
                "items": [{"type": "text", "text": part["text"]}],
            }
            if rng.random() < 0.1:
                result["exception"] = "failed"
            if rng.random() < 0.05:
                return {"type": "mcp_server_tool_result", "call_id": part["id"], "output": part["text"]}
            return result
        case "reasoning":
            return {"type": "text_reasoning", "text": part["text"]}
    return {"type": "text", "text": part["text"]}


def strategy_node(name: str, rng: random.Random, tokens: int, *, depth: int = 0) -> dict[str, Any]:
    """Return a strategy with random parameters, fitting a conversation of about so many tokens."""
    keep = rng.choice((0, 1, 1, 2, 3))
    rule = rng.choice(("characters", "characters", "words"))
    scale = tokens if rule == "characters" else tokens // 2
    parameters: dict[str, Any]
    match name:
        case "truncation":
            by_tokens = rng.random() < 0.5
            most = max(1, int(scale * rng.uniform(0.1, 1.0))) if by_tokens else rng.randint(1, 12)
            parameters = {
                "max_n": most,
                "compact_to": rng.randint(1, most),
                "tokenizer": rule if by_tokens else None,
                "preserve_system": rng.random() < 0.7,
                "preserve_first_user_group": rng.random() < 0.3,
            }
        case "sliding_window":
            parameters = {"keep_last_groups": rng.randint(1, 6), "preserve_system": rng.random() < 0.8}
        case "selective_tool_call" | "tool_result":
            parameters = {"keep_last_tool_call_groups": keep}
        case "summarization":
            most_tokens = rng.choice((None, 8000, rng.randint(5, 300)))
            parameters = {
                "target_count": rng.randint(1, 6),
                "threshold": rng.choice((None, 0, 1, 2, 4)),
                "prompt": PROMPT,
                "max_summary_input_tokens": most_tokens,
                "tokenizer": rng.choice((None, rule)),
            }
        case "token_budget_composed":
            names = [n for n in NAMES if n != "token_budget_composed" or depth == 0]
            children = [
                strategy_node(rng.choice(names), rng, tokens, depth=depth + 1) for _ in range(rng.randint(0, 3))
            ]
            parameters = {
                "token_budget": max(0, int(scale * rng.uniform(0.0, 1.0))),
                "tokenizer": rule,
                "strategies": [] if depth else children,
                "early_stop": rng.random() < 0.7,
            }
        case _:
            window = max(8, int(scale * rng.uniform(0.2, 1.5)))
            eviction = rng.choice((0.3, 0.5, 0.6))
            parameters = {
                "max_context_window_tokens": window,
                "max_output_tokens": rng.choice((0, window // 8)),
                "tokenizer": rule if rule != "characters" else rng.choice((None, rule)),
                "tool_eviction_threshold": eviction,
                "truncation_threshold": rng.choice((eviction, 0.8, 1.0)),
                "keep_last_tool_call_groups": keep,
                "preserve_first_user_group": rng.random() < 0.3,
            }
    return {"name": name, "parameters": parameters, "mood": rng.choice(("", "", "moody"))}


def cases(count: int, seed: int, *, names: tuple[str, ...] = NAMES, most_moves: int = 14) -> Iterator[dict[str, Any]]:
    """Yield ``count`` cases for each strategy."""
    for name in names:
        for number in range(count):
            yield case(name, f"{seed}/{name}/{number}", most_moves)


def small_cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield cases of a few messages, to be frozen."""
    yield from cases(count, seed, most_moves=5)


def case(name: str, seed: str, most_moves: int = 14) -> dict[str, Any]:
    """Return the case of a seed."""
    rng = random.Random(seed)
    made = talk(seed, wild=rng.random() < 0.8, most_moves=most_moves)
    messages: list[dict[str, Any]] = [
        {"role": role, "contents": [content(part, rng) for part in parts]} for role, parts in made.messages
    ]
    if rng.random() < 0.3:
        for message in messages:
            if rng.random() < 0.3:
                message["message_id"] = rng.choice((f"m{rng.randint(0, 99)}", f"msg_{rng.randint(0, 9)}", "x" * 40))
    size = sum(len(str(message)) for message in messages) // 4 + 1
    fresh = rng.random() < 0.4
    growing = rng.random() < 0.75
    cuts = sorted(set(rng.choices(range(1, len(messages) + 1), k=6))) if growing else [len(messages)]
    if growing and rng.random() < 0.3:
        cuts = list(range(1, len(messages) + 1))
    if rng.random() < 0.2:
        cuts.append(cuts[-1])
    strategy = strategy_node(name, rng, size)
    for child in strategy["parameters"].get("strategies", ()):
        # One scripted summariser answers for all.
        child["mood"] = strategy["mood"]
    return {
        "seed": seed,
        "strategy": strategy,
        "messages": messages,
        "cuts": cuts,
        "fresh": fresh,
    }


def node_of(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lab's configuration of a case's strategy."""
    parameters = dict(strategy["parameters"])
    if isinstance(parameters.get("tokenizer"), str):
        parameters["tokenizer"] = TOKENIZERS[parameters["tokenizer"]]
    if "strategies" in parameters:
        parameters["strategies"] = [build(node_of(child)) for child in parameters["strategies"]]
    return {"kind": f"agent_framework/{strategy['name']}", **parameters}


def answer(case: Mapping[str, Any]) -> list[list[Any]]:
    """Return what survives at each cut when the lab's strategy acts."""
    messages = [message_of(m["role"], m["contents"], m.get("message_id") or "") for m in case["messages"]]
    log = Log(messages)
    history = "view" if case["fresh"] else "stored"
    run = build(node_of(case["strategy"])).run
    arm = ArmRun(log, (Slot(run, "before_call", history, COUNTER),))
    answers = []
    for cut in case["cuts"]:
        occurring = arm.occasion("before_call", cut)
        try:
            requests = next(occurring)
            while True:
                requests = occurring.send(tuple(_reply(request, case["strategy"]["mood"]) for request in requests))
        except StopIteration as end:
            context = end.value
        answers.append(
            [
                p.key[0] if p.message is messages[p.key[0]] else f"{p.message.role}: {p.message.text}"
                for p in context.entries()
            ]
        )
    return answers


def _reply(request: ModelRequest, mood: str) -> ModelReply:
    transcript = "\n".join(message.text for message in request.messages)
    digest = hashlib.sha256(transcript.encode("utf-8", "surrogatepass")).hexdigest()
    if mood == "moody" and digest[0] in "0123":
        return ModelReply() if digest[0] in "01" else ModelReply(error="scripted")
    return ModelReply(f" SUM {digest[:12]} " + "and so on " * int(digest[1], 16))
