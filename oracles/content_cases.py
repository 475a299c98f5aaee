"""Seeded random cases for the frameworks that change what messages say: conversations, parameters and moments.

Only the standard library is used, so that bridges in other environments may import this file. A message is a mapping:
``role``, ``text``, ``calls`` (``id``, ``name``, ``arguments``), ``call_id``, ``name``, ``reasoning``. Sizes are counted
in characters of text, names and arguments, by both sides.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
WORDS = [
    "the",
    "build",
    "fails",
    "at",
    "line",
    "42",
    "of",
    "parser.py",
    "since",
    "token",
    "7f3a",
    "is",
    "gone",
    "and",
    "Zoë",
    "asks",
    "für",
    "später",
    "naïve",
    "ログ",
    "{x}",
]
TOOLS = ("read", "bash", "search")


def size(message: Message) -> int:
    """Return how much a message counts."""
    calls = sum(len(call["name"]) + len(call["arguments"]) for call in message["calls"])
    return len(message["text"]) + calls


def words(rng: random.Random, most: int = 40) -> str:
    """Return a text, at times an empty or a long one, sometimes of several lines."""
    count = rng.choice((0, 1, 3, most // 4, most, most * 8)) if rng.random() < 0.5 else rng.randint(1, most)
    return rng.choice((" ", " ", "\n")).join(rng.choices(WORDS, k=count))


def message(role: str, text: str, **more: Any) -> Message:
    """Return a message with every key."""
    return {"role": role, "text": text, "calls": [], "call_id": "", "name": "", "reasoning": "", **more}


def conversation(
    rng: random.Random, *, wild: str = "", reasoning: bool = False, ordered: bool = False, most: int = 24
) -> list[Message]:
    """Return a conversation; ``orphans``: with late, lost and foreign results; ``all``: also doubled ones and used ids.

    ``ordered``: results come in the order of their calls, as Inspect takes for granted when it removes them.
    """
    talk = [message("system", words(rng, 8) or "be brief")] if rng.random() < 0.8 else []
    number = 0
    for _ in range(rng.randint(1, most)):
        kind = rng.choices(("user", "answer", "exchange"), (2, 2, 7))[0]
        if kind == "user":
            talk.append(message("user", words(rng, 12) or "go on"))
            continue
        thought = words(rng, 6) if reasoning and rng.random() < 0.5 else ""
        if kind == "answer":
            talk.append(message("assistant", words(rng, 12) or "done", reasoning=thought))
            continue
        calls = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            number += 1
            call_id = f"c{rng.randint(1, 4)}" if wild == "all" and rng.random() < 0.2 else f"call{number}"
            path = f"f{rng.randint(1, 4)}.py"
            arguments: dict[str, Any] = {"path": path} if rng.random() < 0.8 else {"q": words(rng, 30)}
            arguments_text = json.dumps(arguments, ensure_ascii=False)
            calls.append({"id": call_id, "name": rng.choice(TOOLS), "arguments": arguments_text})
        spoken = words(rng, 6) if rng.random() < 0.4 else ""
        talk.append(message("assistant", spoken, calls=calls, reasoning=thought))
        results = [message("tool", words(rng, 40), call_id=call["id"], name=call["name"]) for call in calls]
        if rng.random() < 0.2 and not ordered:
            rng.shuffle(results)
        if wild and rng.random() < 0.25:
            _disturb(rng, results, wild)
        talk += results
    return talk


def _disturb(rng: random.Random, results: list[Message], wild: str) -> None:
    what = rng.choice(("lose", "orphan", "user between") + (("double",) if wild == "all" else ()))
    at = rng.randrange(len(results))
    if what == "lose":
        results.pop(at)
    elif what == "orphan":
        results.append(message("tool", words(rng), call_id="gone", name=rng.choice(TOOLS)))
    elif what == "double":
        results.append(dict(results[at]))
    else:
        results.insert(at, message("user", "wait"))


def moments(rng: random.Random, messages: list[Message]) -> list[int]:
    """Return after how many messages compaction is applied: a few moments, the last one the end."""
    stops = sorted({rng.randint(1, len(messages)) for _ in range(rng.randint(0, 3))} | {len(messages)})
    return [stop for stop in stops if stop]


def _langchain(rng: random.Random, total: int) -> dict[str, Any]:
    return {
        "trigger": rng.choice((0, total // 2, total)),
        "keep": rng.randint(0, 5),
        "clear_at_least": rng.choice((0, 0, rng.randint(1, total + 1))),
        "clear_tool_inputs": rng.random() < 0.4,
        "exclude_tools": rng.sample(TOOLS, rng.choice((0, 0, 1))),
        "placeholder": rng.choice(("[cleared]", "")),
    }


def _pydantic_clear(rng: random.Random, total: int) -> dict[str, Any]:
    return {
        "keep_pairs": rng.randint(0, 5),
        "clear_tool_inputs": rng.random() < 0.4,
        "exclude_tools": rng.sample(TOOLS, rng.choice((0, 0, 1))),
        "min_clear_tokens": rng.choice((None, None, rng.randint(0, total))),
    }


def _pydantic_clamp(rng: random.Random, total: int) -> dict[str, Any]:
    return {
        "max_part_chars": rng.choice((None, rng.randint(1, 300))),
        "max_part_tokens": rng.randint(1, 300),
        "keep_head_chars": rng.randint(0, 60),
        "keep_tail_chars": rng.randint(0, 60),
        "clamp_tool_call_args": rng.random() < 0.6,
    }


def _inspect(rng: random.Random, total: int) -> dict[str, Any]:
    return {
        "keep_thinking_turns": rng.choice(("all", 0, 1, 2)),
        "keep_tool_uses": rng.randint(0, 4),
        "keep_tool_inputs": rng.random() < 0.6,
        "exclude_tools": rng.sample(TOOLS, rng.choice((0, 0, 1))),
    }


def _haystack(rng: random.Random, total: int) -> dict[str, Any]:
    return {
        "min_keep_steps": rng.randint(1, 3),
        "min_tokens": rng.choice((0, 20, 100)),
        "target_tokens": rng.randint(0, total + 10),
    }


def _agents(rng: random.Random, total: int) -> dict[str, Any]:
    return {
        "recent_turns": rng.randint(1, 3),
        "max_output_chars": rng.choice((1, 50, 200, 500)),
        "preview_chars": rng.choice((0, 20, 200)),
        "trimmable_tools": rng.sample(TOOLS, rng.choice((0, 0, 1, 2))),
    }


def _sweagent(rng: random.Random, total: int) -> dict[str, Any]:
    return {"n": rng.randint(1, 6), "polling": rng.choice((1, 1, 2, 3, 5))}


def _prune(rng: random.Random, total: int) -> dict[str, Any]:
    last = f"before-last-{rng.randint(1, 6)}-messages"
    return {
        "reasoning": rng.choice(("none", "all", "before-last-message")),
        "tool_calls": rng.choice(("none", "all", "before-last-message", last, last)),
        "tools": rng.sample(TOOLS, rng.choice((0, 0, 1))),
        "empty_messages": rng.choice(("remove", "keep")),
    }


Draw = Callable[[random.Random, int], dict[str, Any]]
STRATEGIES: dict[str, tuple[str, Draw, dict[str, Any]]] = {
    "langchain/clear_tool_uses_edit": ("langchain", _langchain, {"wild": "all"}),
    "pydantic_ai_harness/clear_tool_results": ("pydantic_ai_harness", _pydantic_clear, {}),
    "pydantic_ai_harness/clamp_oversized_messages": ("pydantic_ai_harness", _pydantic_clamp, {}),
    "pydantic_ai_harness/deduplicate_file_reads": (
        "pydantic_ai_harness",
        lambda rng, total: {"read_tools": ["read", "search"], "path_arguments": ["path"]},
        {},
    ),
    "inspect_ai/compaction_edit": ("inspect_ai", _inspect, {"wild": "orphans", "reasoning": True, "ordered": True}),
    "haystack/tool_result_pruning_compactor": ("haystack", _haystack, {}),
    "haystack/tool_result_offload_compactor": ("haystack", _haystack, {}),
    "strands/truncate_results": ("strands", lambda rng, total: {}, {}),
    "agents/tool_output_trimmer": ("agents", _agents, {}),
    "sweagent/last_n_observations": ("sweagent", _sweagent, {"wild": "all"}),
    "sweagent/closed_window_history": ("sweagent", lambda rng, total: {}, {}),
    "sweagent/remove_regex": (
        "sweagent",
        lambda rng, total: {"remove": ["line.*?of", r"\bthe\b"], "keep_last": rng.randint(0, 4)},
        {"wild": "all"},
    ),
    "openhands/observation_masking": (
        "openhands",
        lambda rng, total: {"attention_window": rng.randint(0, 8)},
        {},
    ),
    "openhands/browser_output": (
        "openhands",
        lambda rng, total: {"attention_window": rng.randint(0, 3), "browser_tools": ["search"]},
        {},
    ),
    "ai/prune_messages": ("ai", _prune, {"reasoning": True}),
    "deepagents/truncate_args": (
        "deepagents",
        lambda rng, total: {
            "keep_messages": rng.randint(0, 8),
            "max_length": rng.choice((0, 3, 40)),
            "tools": ["read"],
        },
        {},
    ),
}


def case(strategy: str, seed: int) -> dict[str, Any]:
    """Return one case of a strategy."""
    _, draw, shape = STRATEGIES[strategy]
    rng = random.Random(f"{strategy} {seed}")
    messages = conversation(rng, **shape)
    if strategy == "sweagent/closed_window_history":
        _open_windows(rng, messages)
    parameters = draw(rng, sum(map(size, messages)))
    return {
        "strategy": strategy,
        "seed": seed,
        "parameters": parameters,
        "messages": messages,
        "stops": moments(rng, messages),
    }


def _open_windows(rng: random.Random, messages: list[Message]) -> None:
    """Let some messages show numbered lines of a file, as SWE-agent's older tools print them in the user's role."""
    for each in messages:
        if each["role"] == "tool":
            each.update(role="user", call_id="", name="")
        if each["role"] == "user" and rng.random() < 0.6:
            start = rng.randint(1, 30)
            header = f"[File: f{rng.randint(1, 3)}.py (40 lines total)]\n" if rng.random() < 0.85 else ""
            lines = "\n".join(f"{start + at}:{words(rng, 4)}" for at in range(rng.randint(0, 4)))
            each["text"] = header + lines + rng.choice(("", "\n(more below)"))
        each["calls"] = []
