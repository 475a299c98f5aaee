"""Our time beside Agent Framework's own, strategy by strategy, on the same growing conversations.

One list is kept and compacted before every model call, as in a long agent run (two calls and four messages a turn).
Both sides see the same messages, count with the same four-characters estimate and ask the same scripted summariser. The
framework gets two minutes a strategy and size; where it is stopped, the number of messages reached is printed and
nothing is extrapolated. Times are processor seconds of one thread, so that a busy machine changes them little; nothing
here waits for anything.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Message, ToolCall, assistant, system, tool, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.models.base import ModelReply
from compaction_lab.strategies.registry import build

WORDS = "one turn of an ordinary conversation about a build that fails and what to do about it next "
STRATEGIES: dict[str, dict[str, Any]] = {
    "sliding_window": {"keep_last_groups": 50},
    "truncation": {"max_n": 100, "compact_to": 50},
    "truncation (tokens)": {"max_n": 8000, "compact_to": 4000, "tokenizer": "characters"},
    "selective_tool_call": {"keep_last_tool_call_groups": 5},
    "tool_result": {"keep_last_tool_call_groups": 5},
    "summarization": {"target_count": 20, "threshold": 5},
    "token_budget_composed": {
        "token_budget": 8000,
        "tokenizer": "characters",
        "strategies": [
            {"kind": "agent_framework/tool_result", "keep_last_tool_call_groups": 2},
            {"kind": "agent_framework/sliding_window", "keep_last_groups": 40},
        ],
    },
    "context_window": {"max_context_window_tokens": 16000, "max_output_tokens": 2000},
}
SUMMARY = "They looked into the build, found the failing line and agreed on what to change."


def conversation(size: int) -> list[Message]:
    """Return a system message and turns of four: a question, a call, its result, an answer."""
    messages = [system("You help with builds.")]
    turn = 0
    while len(messages) < size:
        turn += 1
        messages += [
            user((f"{turn} " + WORDS * 2)[:120]),
            assistant("", ToolCall(f"call_{turn}", "search", f'{{"q": "{turn}"}}')),
            tool(f"call_{turn}", (f"{turn} " + WORDS * 6)[:400]),
            assistant((f"{turn} " + WORDS * 4)[:250]),
        ]
    return messages[:size]


def calls(messages: list[Message]) -> Iterator[int]:
    """Yield how many messages there are before each model call."""
    for stop in range(1, len(messages) + 1):
        if messages[stop - 1].role in ("user", "tool"):
            yield stop


def ours(name: str, messages: list[Message]) -> float:
    """Return the seconds that the lab takes for a whole replay."""
    node = {"kind": f"agent_framework/{name.split(maxsplit=1)[0]}", **STRATEGIES[name]}
    arm = ArmRun(Log(messages), (Slot(build(node).run, "before_call", "stored", COUNTER),))
    started = time.process_time()
    for stop in calls(messages):
        occurring = arm.occasion("before_call", stop)
        try:
            requests = next(occurring)
            while True:
                requests = occurring.send(tuple(ModelReply(SUMMARY) for _ in requests))
        except StopIteration:
            pass
    return time.process_time() - started


def theirs(name: str, messages: list[Message], limit_s: float) -> tuple[float, int]:
    """Return the framework's seconds, and how many messages it reached within the limit."""
    import agent_framework as af

    async def replay() -> tuple[float, int]:
        strategy = _theirs(af, name.split(maxsplit=1)[0], STRATEGIES[name])
        kept: list[Any] = []
        have = 0
        started = time.process_time()
        for stop in calls(messages):
            kept.extend(_message(af, message) for message in messages[have:stop])
            have = stop
            await af.apply_compaction(kept, strategy=strategy)
            if time.process_time() - started > limit_s:
                return time.process_time() - started, stop
        return time.process_time() - started, len(messages)

    return asyncio.run(replay())


def _message(af: Any, message: Message) -> Any:
    contents = [af.Content.from_function_call(c.id, c.name, arguments=c.arguments) for c in message.calls]
    if message.role == "tool":
        contents = [af.Content.from_function_result(message.call_id, result=message.text)]
    elif message.text:
        contents = [af.Content.from_text(message.text)]
    return af.Message(message.role, contents)


def _theirs(af: Any, name: str, parameters: dict[str, Any]) -> Any:
    class Client:
        async def get_response(self, messages: list[Any], **_: object) -> Any:  # noqa: ARG002 - the client's shape
            return af.ChatResponse(messages=[af.Message("assistant", [SUMMARY])])

    classes = {
        "truncation": af.TruncationStrategy,
        "sliding_window": af.SlidingWindowStrategy,
        "selective_tool_call": af.SelectiveToolCallCompactionStrategy,
        "tool_result": af.ToolResultCompactionStrategy,
        "summarization": af.SummarizationStrategy,
        "token_budget_composed": af.TokenBudgetComposedStrategy,
        "context_window": af.ContextWindowCompactionStrategy,
    }
    given = dict(parameters)
    if given.get("tokenizer"):
        given["tokenizer"] = af.CharacterEstimatorTokenizer()
    if "strategies" in given:
        given["strategies"] = [
            _theirs(af, child["kind"].split("/")[1], {k: v for k, v in child.items() if k != "kind"})
            for child in given["strategies"]
        ]
    if name == "summarization":
        given["client"] = Client()
    return classes[name](**given)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--limit-s", type=float, default=120.0, help="most seconds for the framework, a strategy and size"
    )
    parser.add_argument("--ours", default="100,1000,5000,10000", help="sizes in messages")
    parser.add_argument("--theirs", default="100,1000,5000", help="sizes in messages")
    parser.add_argument("--only", default="", help="one strategy")
    parser.add_argument("--quick", action="store_true", help="small sizes only: under a minute")
    options = parser.parse_args()
    if options.quick:
        options.ours, options.theirs = "100,1000", "100,300"
    logging.getLogger("agent_framework").disabled = True
    chosen = [name for name in STRATEGIES if options.only in name]
    _warm(chosen)
    for at, name in enumerate(chosen, 1):
        print(f"[{at}/{len(chosen)}] {name}, {time.strftime('%H:%M:%S')}", flush=True)
        own = {
            size: _timed(lambda size=size, name=name: ours(name, conversation(size))) for size in _sizes(options.ours)
        }
        print(
            f"{name}: ours   " + "   ".join(f"{size:,}: {seconds:.3f} s" for size, seconds in own.items()), flush=True
        )
        shown = []
        for size in _sizes(options.theirs):
            seconds, reached = theirs(name, conversation(size), options.limit_s)
            if reached < size:
                shown.append(f"{size:,}: stopped at {reached:,} after {seconds:.0f} s")
            else:
                ratio = f" ({seconds / own[size]:,.0f} x ours)" if size in own else ""
                shown.append(f"{size:,}: {seconds:.2f} s{ratio}")
        if shown:
            print(f"{name}: theirs " + "   ".join(shown), flush=True)


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",") if size]


def _timed(run: Callable[[], float]) -> float:
    gc.collect()
    return run()


def _warm(names: list[str]) -> None:
    for name in names:
        ours(name, conversation(100))


COUNTER = TokenCounter(tokenizer("characters"))

if __name__ == "__main__":
    main()
