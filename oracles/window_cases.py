"""Random cases for strategies that drop messages, what the lab makes of them, and the comparison with the original.

``python oracles/window_cases.py strands --python .oracles/strands/bin/python -n 500`` compares;
``-n`` counts for each strategy; ``--freeze FILE -n 40`` writes that many cases in all with the original's answers for
the test suite.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, Text, ToolCall
from compaction_lab.strategies.registry import build

HERE = Path(__file__).parent
TOOLS = ("read", "bash")
Case = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What the conversations of a framework's cases may hold."""

    system: bool = True
    middle_system: bool = False
    orphans: bool = False
    unanswered: bool = False
    many_texts: bool = False
    double_user: bool = False


def conversation(rng: random.Random, shape: Shape) -> list[Case]:
    """Return a random conversation; every message says which one it is."""
    out: list[Case] = []

    def say(role: str, *, ids: tuple[str, ...] = (), call_id: str = "", name: str = "") -> None:
        count = rng.choice((1, 1, 1, 2, 3)) if shape.many_texts and role in ("user", "assistant") else 1
        texts = [f"#{len(out)}.{part}" + _filler(rng) for part in range(count)]
        calls = [{"id": i, "name": rng.choice(TOOLS), "arguments": f'{{"p": "{i}", "n": {len(out)}}}'} for i in ids]
        out.append({"role": role, "texts": texts, "calls": calls, "call_id": call_id, "name": name})

    if shape.system and rng.random() < 0.7:
        say("system")
    if rng.random() < 0.1:
        say("assistant")
    for _ in range(rng.randint(1, 6)):
        for _ in range(2 if shape.double_user and rng.random() < 0.15 else 1):
            say("user")
        if shape.middle_system and rng.random() < 0.1:
            say("system")
        for _ in range(rng.randint(0, 5)):
            if rng.random() < 0.3:
                say("assistant")
                continue
            ids = tuple(f"c{len(out)}{letter}" for letter in "abc"[: rng.choice((1, 1, 1, 2, 3))])
            say("assistant", ids=ids)
            names = {call["id"]: call["name"] for call in out[-1]["calls"]}
            for call_id in ids[: len(ids) - (shape.unanswered and rng.random() < 0.1)]:
                say("tool", call_id=call_id, name=names[call_id])
            if shape.orphans and rng.random() < 0.07:
                say("tool", call_id="lost", name="read")
        if rng.random() < 0.5:
            say("assistant")
    return out


def _filler(rng: random.Random) -> str:
    lines = rng.choice((1, 1, 1, 2, 4))
    return "\n".join(" " + "word " * rng.choice((0, 1, 3, 10, 40)) for _ in range(lines)).rstrip(" ")


Parameters = Callable[[random.Random], dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """How one strategy is tried: its parameters, its conversations, and how the lab counts and places it."""

    name: str
    parameters: Parameters
    shape: Shape = Shape()
    counting: str = "characters"
    occasion: str = "before_call"
    history: str = "view"
    stops: int = 1


def _trim(rng: random.Random) -> dict[str, Any]:
    types = ("human", "ai", "tool", "system")
    some: Callable[[], Any] = lambda: rng.choice((None, None, "human", rng.choice(types), rng.sample(types, 2)))  # noqa: E731
    counter = rng.choice(("approximate", "len"))
    first = rng.random() < 0.3
    return {
        "max_tokens": rng.randint(0, 12) if counter == "len" else rng.choice((0, 20, 60, 120, 250, 600)),
        "token_counter": counter,
        "strategy": "first" if first else "last",
        "allow_partial": rng.random() < 0.4,
        "start_on": None if first else some(),
        "end_on": some(),
        "include_system": not first and rng.random() < 0.5,
    }


def _strands(rng: random.Random) -> dict[str, Any]:
    return {"window_size": rng.choice((0, 1, 2, 4, 6, 8, 12)), "pin_first": rng.choice((None, None, 1, 2, 3))}


def _haystack(rng: random.Random) -> dict[str, Any]:
    at = rng.choice((0.2, 0.7, 1.0))
    return {
        "context_window": rng.choice((60, 150, 300, 600)),
        "compact_at": at,
        "compact_to": at * rng.choice((0.1, 0.5, 0.9)),
        "min_keep_steps": rng.randint(0, 3),
        "omission_note": rng.choice((None, "gone {num_removed}", "gone")),
    }


def _pydantic(rng: random.Random) -> dict[str, Any]:
    trigger = rng.choice(({"max_messages": rng.randint(1, 10)}, {"max_tokens": rng.choice((20, 60, 150, 400))}))
    keep = rng.choice(({"keep_messages": rng.randint(0, 8)}, {"keep_tokens": rng.choice((0, 10, 40, 120))}))
    return {**trigger, **keep, "preserve_first_user_message": rng.random() < 0.5}


def _autogen_history(rng: random.Random) -> dict[str, Any]:
    return {"max_messages": rng.choice((None, 1, 2, 3, 5, 10)), "keep_first_message": rng.random() < 0.4}


def _autogen_tokens(rng: random.Random) -> dict[str, Any]:
    most = rng.choice((None, 10, 60, 200))
    return {
        "max_tokens": most,
        "max_tokens_per_message": rng.choice((None, 5, 20, 100)),
        "min_tokens": rng.choice((None, 5)) if most else None,
    }


FRAMEWORKS: dict[str, tuple[Kind, ...]] = {
    "langchain_core": (
        Kind(
            "langchain_core/trim_messages",
            _trim,
            Shape(middle_system=True, orphans=True, many_texts=True),
            "langchain_approximate",
        ),
    ),
    "autogen_core": (
        Kind("autogen_core/buffered_chat_completion_context", lambda r: {"buffer_size": r.randint(1, 15)}),
        Kind(
            "autogen_core/head_and_tail_chat_completion_context",
            lambda r: {"head_size": r.randint(1, 6), "tail_size": r.randint(1, 8)},
        ),
        Kind(
            "autogen_core/token_limited_chat_completion_context",
            lambda r: {"token_limit": r.choice((1, 20, 60, 200, 500))},
            counting="langchain_approximate",
        ),
    ),
    "autogen": (
        Kind("autogen/message_history_limiter", _autogen_history, Shape(middle_system=True, orphans=True)),
        Kind("autogen/message_token_limiter", _autogen_tokens, Shape(middle_system=True, orphans=True)),
    ),
    "ag2": (
        Kind("ag2/history_limiter", lambda r: {"max_events": r.randint(1, 10)}, Shape(system=False, orphans=True)),
        Kind("ag2/token_limiter", lambda r: {"max_tokens": r.choice((1, 20, 60, 200))}, Shape(system=False)),
        Kind("ag2/tail_window_compact", lambda r: {"target": r.randint(1, 10)}, Shape(system=False), stops=2),
    ),
    "strands": (
        Kind(
            "strands/sliding_window_conversation_manager", _strands, Shape(unanswered=True), history="stored", stops=3
        ),
        Kind(
            "strands/sliding_window_conversation_manager",
            _strands,
            Shape(unanswered=True),
            history="stored",
            stops=2,
            occasion="overflow",
        ),
    ),
    "semantic_kernel": (
        Kind(
            "semantic_kernel/chat_history_truncation",
            lambda r: {"target_count": r.randint(1, 14), "threshold_count": r.choice((0, 0, 2, 5))},
            Shape(middle_system=True, orphans=True),
            history="stored",
            stops=3,
        ),
    ),
    "haystack": (
        Kind(
            "haystack/sliding_window_compactor",
            _haystack,
            Shape(middle_system=True, orphans=True, many_texts=True),
            "haystack_approximate",
            history="stored",
            stops=3,
        ),
    ),
    "inspect_ai": (
        Kind(
            "inspect_ai/compaction_trim",
            lambda r: {"preserve": r.choice((0.0, 0.3, 0.5, 0.8, 1.0))},
            Shape(middle_system=True, orphans=True, unanswered=True),
            history="stored",
            stops=2,
        ),
    ),
    "pydantic_ai_harness": (
        Kind(
            "pydantic_ai_harness/sliding_window_compaction",
            _pydantic,
            Shape(),
            "pydantic_ai_harness_approximate",
            history="stored",
            stops=2,
        ),
    ),
    "llama_index": (
        Kind(
            "llama_index/chat_memory_buffer",
            lambda r: {"token_limit": r.choice((1, 20, 60, 200, 500))},
            Shape(middle_system=True, orphans=True),
        ),
        Kind(
            "llama_index/memory",
            lambda r: {
                "token_limit": r.choice((20, 100, 300)),
                "chat_history_token_ratio": r.choice((0.5, 0.7, 1.0)),
                "token_flush_size": r.choice((1, 30, 100)),
            },
            Shape(middle_system=True),
            stops=3,
        ),
    ),
    "google_adk": (
        Kind(
            "google_adk/context_filter_plugin",
            lambda r: {"num_invocations_to_keep": r.choice((None, 1, 2, 3)), "remove_amount": r.choice((1, 1, 2, 3))},
            Shape(orphans=True, double_user=True),
        ),
    ),
    "agents": (Kind("agents/session_settings", lambda r: {"limit": r.choice((None, 0, 1, 4, 8, 15))}),),
    "openhands": (
        Kind("openhands/recent_events", lambda r: {"keep_first": r.randint(0, 3), "max_events": r.randint(1, 12)}),
        Kind(
            "openhands/amortized_forgetting",
            lambda r: {"max_size": (size := r.randint(4, 14)), "keep_first": r.randint(0, size // 2 - 1)},
            history="stored",
            stops=3,
        ),
        Kind("openhands/conversation_window", lambda r: {}, occasion="overflow", history="stored", stops=2),
    ),
}

SWAPPED = {"agents/session_settings": {"counts_input": True}}
"""Parameters of ours that make a strategy what the original does outside a run."""


def case(framework: str, number: int) -> Case:
    """Return one random case; equal numbers give equal cases."""
    rng = random.Random(f"{framework} {number}")
    kinds = FRAMEWORKS[framework]
    kind = kinds[number % len(kinds)]
    messages = conversation(rng, kind.shape)
    stops = sorted({rng.randint(1, len(messages)) for _ in range(kind.stops - 1)} | {len(messages)})
    return {
        "kind": kind.name,
        "parameters": kind.parameters(rng),
        "counting": kind.counting,
        "occasion": kind.occasion,
        "history": kind.history,
        "messages": messages,
        "stops": stops,
    }


def message(m: Case) -> Message:
    """Return a case's message as the lab's."""
    calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in m["calls"])
    return Message(m["role"], tuple(map(Text, m["texts"])), calls, m["call_id"], name=m["name"])


def ours(case: Case) -> list[Any]:
    """Return what the lab keeps at every stop."""
    placement = {"when": case["occasion"], "history": case["history"]}
    placed = build(
        {"kind": case["kind"], **case["parameters"], **SWAPPED.get(case["kind"], {}), "placement": placement}
    )
    log = Log(message(m) for m in case["messages"])
    slot = Slot(placed.run, case["occasion"], case["history"], counting_rule(case["counting"]))
    arm = ArmRun(log, (slot,))
    out = []
    for stop in case["stops"]:
        occurring = arm.occasion(case["occasion"], stop)
        try:
            next(occurring)
        except StopIteration as end:
            context: Context = end.value
        out.append([[m.role, "".join(_texts(m)), [c.id for c in m.calls], m.call_id] for m in context.messages])
    return out


def _texts(m: Message) -> list[str]:
    return [part.text for part in m.parts if isinstance(part, Text)]


def theirs(framework: str, python: str, cases: list[Case]) -> list[Case]:
    """Return the original's answers."""
    lines = "\n".join(map(json.dumps, cases)) + "\n"
    bridge = str(HERE / f"{framework}_windows.py")
    done = subprocess.run([python, bridge], input=lines, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(('{"kept"', '{"error"'))]
    if len(answers) != len(cases):
        sys.exit(f"{framework}: {len(answers)} answers to {len(cases)} cases\n{done.stderr[-2000:]}")
    return answers


def packed(case: Case, kept: list[Any]) -> list[Any]:
    """Return what was kept with messages of the case by their number: what frozen answers hold."""
    lines = [[m["role"], "".join(m["texts"]), [c["id"] for c in m["calls"]], m["call_id"]] for m in case["messages"]]
    numbers = {json.dumps(line): number for number, line in enumerate(lines)}
    return [[numbers.get(json.dumps(line), line) for line in stop] for stop in kept]


def main() -> int:
    """Compare, or freeze; return 1 when an answer differs or is missing."""
    from tally import Tally, report  # here, because tests import this file from elsewhere

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--python", required=True)
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--freeze", type=Path)
    given = parser.parse_args()
    # Cases take the strategies in turn: so many for each.
    count = given.n * (1 if given.freeze else len(FRAMEWORKS[given.framework]))
    cases = [case(given.framework, number) for number in range(given.first, given.first + count)]
    answers = theirs(given.framework, given.python, cases)
    if given.freeze:
        rows = [
            {"case": c, "kept": packed(c, a["kept"])} for c, a in zip(cases, answers, strict=True) if "error" not in a
        ]
        given.freeze.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return 0
    tallies = {kind.name: Tally(kind.name) for kind in FRAMEWORKS[given.framework]}
    for number, (made, answer) in enumerate(zip(cases, answers, strict=True), given.first):
        tally = tallies[made["kind"]]
        tally.cases += 1
        if "error" in answer:
            tally.errors += 1
            if tally.errors <= 2:
                print(number, made["kind"], answer["error"])
            continue
        mine = ours(made)
        tally.acted += any(len(kept) < stop for kept, stop in zip(mine, made["stops"], strict=True))
        if mine == answer["kept"]:
            continue
        tally.differ += 1
        if tally.differ <= 2:
            print(number, made["kind"], json.dumps(made["parameters"]), "stops", made["stops"])
            for m in made["messages"]:
                calls = [call["id"] for call in m["calls"]]
                print("   ", m["role"], [text[:30] for text in m["texts"]], calls, m["call_id"])
            for at, (a, b) in enumerate(zip(mine, answer["kept"], strict=True)):
                if a != b:
                    print("  at", made["stops"][at], "\n  ours  ", _brief(a), "\n  theirs", _brief(b))
                    break
    return report(list(tallies.values()))


def _brief(kept: list[Any]) -> list[str]:
    return [f"{role}:{text[:24]!r}" + ("+" + ",".join(calls) if calls else "") for role, text, calls, _ in kept]


if __name__ == "__main__":
    raise SystemExit(main())
