"""Random cases for summarising strategies, what the lab makes of them, and the comparison with the original.

``python oracles/summary_cases.py langchain --python .oracles/langchain/bin/python -n 500`` compares;
``--freeze FILE -n 40`` writes cases with the original's answers for the test suite.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from scripted import echo, item, weight
from tally import Tally, report

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, ToolCall
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.registry import build

HERE = Path(__file__).parent


class Weights:
    """The counting rule of scripted cases: the weights that texts name."""

    def message(self, message: Message) -> int:
        """Return a message's weight."""
        return weight(message.text)


WEIGHTS = Weights()


def conversation(rng: random.Random, *, wild: bool = False, middle_system: bool = False) -> list[dict[str, Any]]:
    """Return a random conversation whose messages carry markers and weights."""
    out: list[dict[str, Any]] = []

    def say(role: str, calls: tuple[str, ...] = (), call_id: str = "") -> None:
        number = len(out)
        lines = 1 + (rng.random() < 0.15) * rng.randint(1, 3)
        text = "\n".join(f"#{number} w{rng.choice((1, 2, 5, 10, 40))} line {line}" for line in range(lines))
        out.append({"role": role, "text": text, "calls": list(calls), "call_id": call_id})

    if rng.random() < 0.7:
        say("system")
    for turn in range(rng.randint(1, 5)):
        if turn or rng.random() < 0.95:
            say("user")
        if middle_system and rng.random() < 0.1:
            say("system")
        for _ in range(rng.randint(0, 5)):
            if rng.random() < 0.25:
                say("assistant")
                continue
            ids = tuple(f"c{len(out)}{letter}" for letter in "abc"[: rng.choice((1, 1, 1, 2, 3))])
            say("assistant", ids)
            answered = list(ids)
            if wild and rng.random() < 0.1:
                answered.pop()
            for call_id in answered:
                say("tool", (), call_id)
            if wild and rng.random() < 0.05:
                say("tool", (), "lost")
        if rng.random() < 0.6:
            say("assistant")
    return out


def _stops(rng: random.Random, size: int) -> list[int]:
    return sorted({rng.randint(1, size) for _ in range(rng.choice((0, 1, 2)))} | {size})


Parameters = Callable[[random.Random], dict[str, Any]]


def _langchain(rng: random.Random) -> dict[str, Any]:
    def size(most: int) -> dict[str, Any]:
        kind = rng.choice(("messages", "tokens", "fraction"))
        return {kind: {"messages": rng.randint(1, most), "tokens": rng.randint(1, 150), "fraction": 0.3}[kind]}

    trigger: Any = rng.choice((size(12), [size(12), size(20)], {**size(8), "messages": rng.randint(1, 8)}))
    trim = rng.choice((None, None, 30, 80, 4000))
    return {"trigger": trigger, "keep": size(8), "trim_tokens_to_summarize": trim}


def _strands(rng: random.Random) -> dict[str, Any]:
    return {
        "summary_ratio": rng.choice((0.05, 0.3, 0.5, 0.9)),
        "preserve_recent_messages": rng.randint(0, 8),
        "pin_first": rng.choice((None, None, 1, 2)),
        "always": True,
    }


def _semantic_kernel(rng: random.Random) -> dict[str, Any]:
    return {
        "target_count": rng.randint(1, 12),
        "threshold_count": rng.choice((0, 0, 2, 5)),
        "use_single_summary": rng.random() < 0.6,
        "include_function_content_in_summary": rng.random() < 0.5,
    }


def _llama_index(rng: random.Random) -> dict[str, Any]:
    return {"token_limit": rng.choice((1, 20, 60, 120)), "system_in_history": True}


def _haystack(rng: random.Random) -> dict[str, Any]:
    at = rng.choice((0.2, 0.7, 1.0))
    return {
        "compact_at": at,
        "compact_to": at * rng.choice((0.1, 0.5, 0.9)),
        "min_keep_steps": rng.randint(0, 3),
        "approximate_summary_tokens": rng.choice((1, 5, 50)),
    }


def _inspect_ai(rng: random.Random) -> dict[str, Any]:
    return {"threshold": rng.choice((10, 40, 100, 200))}


def _kimi_cli(rng: random.Random) -> dict[str, Any]:
    return {
        "max_preserved_messages": rng.randint(0, 5),
        "trigger_ratio": rng.choice((0.1, 0.5, 0.85)),
        "reserved_context_size": rng.choice((0, 50, 500)),
    }


def _aider(rng: random.Random) -> dict[str, Any]:
    return {"max_tokens": rng.choice((10, 40, 100, 200)), "max_input_tokens": rng.choice((520, 560, 650, 2000))}


def _crewai(rng: random.Random) -> dict[str, Any]:
    return {"context_window": rng.choice((200, 250, 400)), "always": True}


def _langmem(rng: random.Random) -> dict[str, Any]:
    most = rng.choice((30, 60, 120))
    return {
        "max_tokens": most,
        "max_tokens_before_summary": rng.choice((None, 10, 40, 100)),
        "max_summary_tokens": rng.choice((5, 10, 20)),
    }


def _adk_token(rng: random.Random) -> dict[str, Any]:
    return {"token_threshold": rng.choice((1, 40, 120)), "event_retention_size": rng.randint(0, 8)}


def _adk_interval(rng: random.Random) -> dict[str, Any]:
    return {"compaction_interval": rng.randint(1, 3), "overlap_size": rng.randint(0, 3)}


def _memory(rng: random.Random) -> dict[str, Any]:
    return {
        "token_limit": rng.choice((30, 100, 200)),
        "chat_history_token_ratio": rng.choice((0.3, 0.7)),
        "token_flush_size": rng.choice((1, 20, 100)),
    }


def _pydantic(rng: random.Random) -> dict[str, Any]:
    return {
        "max_messages": rng.randint(1, 12),
        "keep_messages": rng.randint(0, 8),
        "preserve_first_user_message": rng.random() < 0.7,
        "incremental": rng.random() < 0.7,
        "keep_user_messages": False,
    }


FRAMEWORKS: dict[str, tuple[str, Parameters, dict[str, bool]]] = {
    "langchain": ("langchain/summarization_middleware", _langchain, {"wild": True}),
    "aider": ("aider/chat_summary", _aider, {"wild": True}),
    "crewai": ("crewai/summarize_messages", _crewai, {"wild": True, "middle_system": True}),
    "google_adk": ("google_adk/events_compaction_token", _adk_token, {"wild": True, "whole_batches": True}),
    "google_adk_interval": ("google_adk/events_compaction_interval", _adk_interval, {"whole_batches": True}),
    "kimi_cli": ("kimi_cli/simple_compaction", _kimi_cli, {"wild": True}),
    "langmem": ("langmem/summarize_messages", _langmem, {"wild": True}),
    "haystack": ("haystack/summarization_compactor", _haystack, {"wild": True, "middle_system": True}),
    "inspect_ai": ("inspect_ai/compaction_summary", _inspect_ai, {"wild": True}),
    "llama_index": ("llama_index/chat_summary_memory_buffer", _llama_index, {"wild": True, "middle_system": True}),
    "llama_index_memory": ("memory_blocks", _memory, {"wild": True}),
    "pydantic_ai_harness": ("pydantic_ai_harness/summarizing_compaction", _pydantic, {"task_first": True}),
    "semantic_kernel": (
        "semantic_kernel/chat_history_summarization",
        _semantic_kernel,
        {"wild": True, "middle_system": True},
    ),
    "strands": ("strands/summarizing_conversation_manager", _strands, {"wild": True}),
}


ORDERED = ("langmem", "pydantic_ai_harness")
"""Originals that show an earlier summary behind the messages, where the lab shows it before them."""

WINDOWLESS = ("inspect_ai",)
"""Originals that make their summariser's input fit the window by a count of their own."""


def case(framework: str, number: int) -> dict[str, Any]:
    """Return one random case; equal numbers give equal cases."""
    kind, parameters, shape = FRAMEWORKS[framework]
    rng = random.Random(f"{framework} {number}")
    shape = dict(shape)
    task_first = shape.pop("task_first", False)
    whole = shape.pop("whole_batches", False) or task_first
    messages: list[dict[str, Any]] = []
    while not messages or (task_first and "user" not in (messages[0]["role"], messages[1:2] and messages[1]["role"])):
        messages = conversation(rng, **shape)
    stops = _stops(rng, len(messages))
    if whole:
        roles = [m["role"] for m in messages] + ["user"]
        stops = [stop for stop in stops if roles[stop] != "tool" and (stop > 1 or not task_first)] or [len(messages)]
    return {
        "kind": kind,
        "parameters": parameters(rng),
        "window": None if framework in WINDOWLESS else rng.choice((60, 200, 1000)),
        "messages": messages,
        "stops": stops,
        "ordered": framework in ORDERED,
        "history": "view" if framework in ("langmem", "llama_index_memory") else "stored",
    }


def message(m: dict[str, Any]) -> Message:
    """Return a case's message as the lab's."""
    calls = tuple(ToolCall(call_id, "look", "{}") for call_id in m["calls"])
    return Message(m["role"], (Text(m["text"]),), calls, m["call_id"])


def scripted(request: ModelRequest, *, ordered: bool = False) -> ModelReply:
    """Answer a summary request as the bridges' models do."""
    return ModelReply(echo("\n".join(m.text for m in request.messages), ordered=ordered))


def ours(case: dict[str, Any]) -> list[Any]:
    """Return what the lab keeps at every stop."""
    placement = {"when": "before_call", "history": case.get("history", "stored")}
    placed = build({"kind": case["kind"], "placement": placement, **case["parameters"]})
    log = Log(message(m) for m in case["messages"])
    arm = ArmRun(log, (Slot(placed.run, "before_call", case.get("history", "stored"), WEIGHTS),), (), case["window"])
    out = []
    for stop in case["stops"]:
        occurring = arm.occasion("before_call", stop)
        try:
            requests = next(occurring)
            while True:
                requests = occurring.send(tuple(scripted(r, ordered=case.get("ordered", False)) for r in requests))
        except StopIteration as end:
            context: Context = end.value
        out.append([item(m.role, m.text, [c.id for c in m.calls], m.call_id) for m in context.messages])
    return out


def theirs(framework: str, python: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the original's answers."""
    lines = "\n".join(map(json.dumps, cases)) + "\n"
    bridge = str(HERE / f"{framework.removesuffix('_interval')}_summaries.py")
    done = subprocess.run([python, bridge], input=lines, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(answers) != len(cases):
        sys.exit(f"{framework}: {len(answers)} answers to {len(cases)} cases\n{done.stderr[-2000:]}")
    return answers


def main() -> int:
    """Compare, or freeze; return 1 when something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--python", required=True)
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--freeze", type=Path)
    given = parser.parse_args()
    cases = [case(given.framework, number) for number in range(given.first, given.first + given.n)]
    answers = theirs(given.framework, given.python, cases)
    if given.freeze:
        rows = [{"case": c, **a} for c, a in zip(cases, answers, strict=True)]
        given.freeze.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return 0
    tally = Tally(FRAMEWORKS[given.framework][0], cases=len(cases))
    for number, (made, answer) in enumerate(zip(cases, answers, strict=True), given.first):
        if "error" in answer:
            tally.errors += 1
            if tally.errors <= 3:
                print(number, answer["error"])
            continue
        mine = ours(made)
        tally.acted += any(
            len(kept) < stop or any("S(" in line[1] for line in kept)
            for kept, stop in zip(mine, made["stops"], strict=True)
        )
        if mine != answer["kept"]:
            tally.differ += 1
            if tally.differ <= 1:
                print(number, json.dumps(made["parameters"]), "window", made["window"], "stops", made["stops"])
                for m in made["messages"]:
                    print("   ", m["role"], m["text"].replace("\n", "|"), m["calls"], m["call_id"])
                for at, (a, b) in enumerate(zip(mine, answer["kept"], strict=True)):
                    if a != b:
                        print("  at", made["stops"][at], "\n  ours  ", a, "\n  theirs", b)
                        break
    return report([tally])


if __name__ == "__main__":
    raise SystemExit(main())
