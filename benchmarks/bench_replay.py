"""Replay one long transcript through fifty arms and say where the time goes, in tokenizer passes over its text.

The yardstick is one pass of ``tiktoken.encode_ordinary`` (o200k_base, one thread) over the unique texts of the
transcript. Run with ``make bench`` or ``python benchmarks/bench_replay.py [messages]``.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from conversations import coding_session

from compaction_lab.accounting.cache_policy import cache_policy
from compaction_lab.accounting.prices import price_model
from compaction_lab.arm import ArmRun, Occurring, Slot, occasions
from compaction_lab.configuration import configuration_files
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.encodings import load_encoding
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Text
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.quality.findings import ValidityWatch
from compaction_lab.recording import Accounts
from compaction_lab.records import Cell, UnitResult
from compaction_lab.replay import Cast, replay_recorded
from compaction_lab.strategies.registry import PlacedStrategy, strategy
from compaction_lab.sweep.store import RunStore

MESSAGES = 2_000


def arms() -> Iterator[PlacedStrategy]:
    """Yield fifty arms: the baseline and the plain strategies that need no model, with swept parameters."""
    yield strategy("none")
    for keep in (0, 1, 2, 3, 5, 8, 10, 20, 50, 100):
        yield strategy("observation_masking", keep_last=keep)
        yield strategy("observation_masking", keep_last=keep, unit="result")
        yield strategy("sliding_window", keep_last=max(keep, 1), unit="step")
        yield strategy("sliding_window", keep_last=max(keep, 1), unit="message")
    for tokens in (8_000, 16_000, 32_000, 64_000, 128_000):
        yield strategy("truncation", max_tokens=tokens)
    for tokens in (16_000, 32_000, 64_000, 128_000):
        stored = {"when": "before_call", "history": "stored"}
        yield strategy("truncation", max_tokens=tokens, target_tokens=tokens // 2, placement=stored)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def strategies_alone(log: Log, slot: Slot, watch: ValidityWatch | None = None) -> None:
    """Let one arm act on every occasion, nothing counted or recorded; check each call's validity if asked to."""
    arm = ArmRun(log, (slot,))
    for occasion, stop, _ in occasions(log):
        sent = drive(arm.occasion(occasion, stop))
        if watch is not None:
            watch.saw(arm.firings)
            if occasion == "before_call":
                watch.at_call(sent)


def drive(occurring: Occurring) -> Context:
    """Run an occasion that asks no model."""
    try:
        next(occurring)
    except StopIteration as end:
        context: Context = end.value
        return context
    message = "an arm of this benchmark asked a model"
    raise RuntimeError(message)


def main(messages: int) -> None:
    """Measure and print."""
    transcript = coding_session(messages)
    texts = {part.text for message in transcript.messages for part in message.parts if isinstance(part, Text)}
    texts |= {text for message in transcript.messages for call in message.calls for text in (call.name, call.arguments)}
    encoding = load_encoding("o200k_base")
    encoding.encode_ordinary("warm up")
    once = timed(lambda: [encoding.encode_ordinary(text) for text in texts])

    counter = TokenCounter(tokenizer("o200k_base"))
    tokenising = timed(lambda: [counter.message(message) for message in transcript.messages])
    price = price_model("gpt-4o-mini")
    policy = cache_policy(configuration_files().read("cache_policy", "openai"), "gpt-4o-mini")
    accounts = Accounts(counter, price, policy)
    placed = list(arms())
    log = Log(transcript.messages)
    gc.collect()
    gc.freeze()  # as a run does once its transcripts are loaded
    deciding, checking, whole, writing, calls = 0.0, 0.0, 0.0, 0.0, 0
    cells = [
        Cell(f"{number:012x}", f"{arm.name} {number}", "recorded", "bench", 0, {}) for number, arm in enumerate(placed)
    ]
    with tempfile.TemporaryDirectory() as folder, RunStore.open(Path(folder) / "bench", create=True) as store:
        store.freeze(cells, {})
        for cell, arm in zip(cells, placed, strict=True):
            slot = Slot(arm.run, arm.when, arm.history, counter, counter.request_overhead)
            alone = timed(lambda slot=slot: strategies_alone(log, slot))
            deciding += alone
            checking += timed(lambda slot=slot: strategies_alone(log, slot, ValidityWatch(log))) - alone
            made: list[UnitResult] = []
            cast = Cast((slot,))
            whole += timed(lambda cast=cast, made=made: made.append(replay_recorded(transcript, cast, accounts)))
            calls += len(made[0].calls)
            writing += timed(lambda cell=cell, made=made: store.write(cell, "bench", 0, made[0]))
    accounting = whole - deciding - checking
    print(f"{len(placed)} arms x {len(transcript.messages)} messages, {calls} calls; ", end="")
    print(f"one tokenizer pass over {len(texts)} unique texts: {once:.3f} s")
    print(f"{'':24}{'passes':>10}{'passes an arm':>16}{'us a call':>12}")
    for name, seconds in (
        ("tokenising (once)", tokenising),
        ("strategies", deciding),
        ("accounting", accounting),
        ("validity", checking),
        ("writing", writing),
    ):
        print(f"{name:24}{seconds / once:10.2f}{seconds / once / len(placed):16.3f}{seconds / calls * 1e6:12.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES)
