"""Replay through many arms and say where the time goes, in tokenizer passes over the text.

    python benchmarks/bench_replay.py [--messages 2000] [--sessions 200] [--path FILE] [--profile]

Two parts: one long coding session through fifty arms of the plain strategies; and many short sessions, generated or
recorded (``--path``), through the arms of ``experiment=my_sessions`` that ask no model, with the memory that 100,000
messages of such sessions take. The yardstick is one pass of ``tiktoken.encode_ordinary`` (o200k_base, one thread) over
the unique texts. Times are of the processor, so that a busy machine changes them less.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import os
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conversations import coding_session, service_session

from compaction_lab.accounting.cache_policy import cache_policy
from compaction_lab.accounting.prices import price_model
from compaction_lab.arm import ArmRun, Occurring, Slot, occasions
from compaction_lab.configuration import configuration_files
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.encodings import load_encoding
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import Text
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers import load_transcripts, write_transcripts
from compaction_lab.quality.findings import ValidityWatch
from compaction_lab.recording import Accounts
from compaction_lab.records import Cell, UnitResult
from compaction_lab.replay import Cast, replay_recorded
from compaction_lab.strategies.registry import PlacedStrategy, build, strategy
from compaction_lab.sweep.grid import expand
from compaction_lab.sweep.store import RunStore
from compaction_lab.sweep.unit import counter

MESSAGES, SESSIONS = 2_000, 200
WEIGHED = 100_000
HEAVIEST = 15
ENCODING = "o200k_base"


class AsksModelError(RuntimeError):
    """An arm of this benchmark asked a model."""


def plain_arms() -> Iterator[PlacedStrategy]:
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


def usual_arms(path: Path, logs: Sequence[Log]) -> Iterator[PlacedStrategy]:
    """Yield the arms of the usual comparison of own sessions that ask no model on any of them."""
    for cell in expand(["experiment=my_sessions", f"dataset.path={path}"]).cells:
        node = cell.config["strategy"]
        if not isinstance(node, Mapping):
            continue
        arm = build(node)
        try:
            for log in logs:
                strategies_alone(log, slot_of(arm))
        except AsksModelError:
            continue
        yield arm


def slot_of(arm: PlacedStrategy) -> Slot:
    """Return an arm's slot with the counting rule it decides by."""
    rule = counter(ENCODING) if arm.tokenizer is None else counting_rule(arm.tokenizer)
    return Slot(arm.run, arm.when, arm.history, rule, rule.request_overhead)


def timed(work: Callable[[], object]) -> float:
    """Return the processor seconds that ``work`` takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


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
    raise AsksModelError


def accounts() -> Accounts:
    """Return how calls are counted and priced here."""
    policy = cache_policy(configuration_files().read("cache_policy", "openai"), "gpt-4o-mini")
    return Accounts(counter(ENCODING), price_model("gpt-4o-mini"), policy)


def one_pass(transcripts: Sequence[Transcript]) -> tuple[float, int]:
    """Return the seconds of a tokenizer pass over the unique texts, and their number."""
    messages = [message for transcript in transcripts for message in transcript.messages]
    texts = {part.text for message in messages for part in message.parts if isinstance(part, Text)}
    texts |= {text for message in messages for call in message.calls for text in (call.name, call.arguments)}
    encoding = load_encoding(ENCODING)
    encoding.encode_ordinary("warm up")
    return timed(lambda: [encoding.encode_ordinary(text) for text in texts]), len(texts)


@dataclass
class Parts:
    """Processor seconds by part, and how much was done in them."""

    arms: int
    units: int = 0
    calls: int = 0
    tokenising: float = 0.0
    strategies: float = 0.0
    validity: float = 0.0
    whole: float = 0.0
    writing: float = 0.0

    def print(self, once: float) -> None:
        """Print the parts in passes, and units a second."""
        print(f"{'':24}{'passes':>10}{'passes an arm':>16}{'us a call':>12}")
        for name, seconds in (
            ("tokenising (once)", self.tokenising),
            ("strategies", self.strategies),
            ("accounting", self.whole - self.strategies - self.validity),
            ("validity", self.validity),
            ("writing", self.writing),
        ):
            print(f"{name:24}{seconds / once:10.2f}{seconds / once / self.arms:16.3f}", end="")
            print(f"{seconds / self.calls * 1e6:12.1f}")
        print(f"{self.units / (self.tokenising + self.whole + self.writing):,.0f} units a second on one core\n")


def measured(transcripts: Sequence[Transcript], placed: Sequence[PlacedStrategy]) -> Parts:
    """Replay every transcript through every arm, each part timed on its own."""
    bills, parts = accounts(), Parts(len(placed))
    logs = [transcript.log for transcript in transcripts]
    gc.collect()
    gc.freeze()  # as a run does once its transcripts are loaded
    cells = [Cell(f"{number:012x}", f"{arm.name} {number}", "m", "bench", 0, {}) for number, arm in enumerate(placed)]
    with tempfile.TemporaryDirectory() as folder, RunStore.open(Path(folder) / "bench", create=True) as store:
        store.freeze(cells, {})
        for cell, arm in zip(cells, placed, strict=True):
            slot = slot_of(arm)
            cast = Cast((slot,))
            for transcript, log in zip(transcripts, logs, strict=True):
                made: list[UnitResult] = []
                alone = timed(lambda log=log, slot=slot: strategies_alone(log, slot))
                checked = timed(lambda log=log, slot=slot: strategies_alone(log, slot, ValidityWatch(log)))
                parts.strategies += alone
                parts.validity += checked - alone
                parts.whole += timed(
                    lambda one=transcript, cast=cast, made=made: made.append(replay_recorded(one, cast, bills))
                )
                parts.writing += timed(
                    lambda cell=cell, one=transcript, made=made: store.write(cell, one.id, 0, made[0])
                )
                parts.calls += len(made[0].calls)
                parts.units += 1
    return parts


def tokenised(transcripts: Sequence[Transcript]) -> float:
    """Count every message for the first time, and return the seconds."""
    rule = counter(ENCODING)
    return timed(lambda: [rule.message(message) for transcript in transcripts for message in transcript.messages])


def long_session(messages: int) -> None:
    """Measure one long session through fifty arms."""
    transcripts = [coding_session(messages)]
    once, texts = one_pass(transcripts)
    seconds, placed = tokenised(transcripts), list(plain_arms())
    parts = measured(transcripts, placed)
    parts.tokenising = seconds
    print(f"{len(placed)} arms x {len(transcripts[0].messages)} messages, {parts.calls} calls; ", end="")
    print(f"one tokenizer pass over {texts} unique texts: {once:.3f} s")
    parts.print(once)


def many_sessions(path: Path, *, profile: bool) -> None:
    """Measure many sessions through the usual arms that ask no model."""
    transcripts = load_transcripts(path)
    once, texts = one_pass(transcripts)
    seconds = tokenised(transcripts)
    messages = [message for transcript in transcripts for message in transcript.messages]
    tokens = sum(map(counter(ENCODING).message, messages))
    placed = list(usual_arms(path, [transcript.log for transcript in transcripts]))
    if profile:
        bills = accounts()
        with cProfile.Profile() as profiler:
            for arm in placed:
                for transcript in transcripts:
                    replay_recorded(transcript, Cast((slot_of(arm),)), bills)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(HEAVIEST)
    parts = measured(transcripts, placed)
    parts.tokenising = seconds
    print(
        f"{len(placed)} arms x {len(transcripts)} sessions ({len(messages) / len(transcripts):.0f} messages and ",
        end="",
    )
    print(f"{tokens / len(transcripts):,.0f} tokens each), {parts.calls} calls; ", end="")
    print(f"one tokenizer pass over {texts} unique texts: {once:.3f} s")
    parts.print(once)


def resident_mebibytes() -> float:
    """Return the memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def apart(work: Callable[[], object]) -> None:
    """Do it in a process of its own, so that its memory counts for nothing else."""
    if not (child := os.fork()):
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        message = f"{work} ended with {status}"
        raise RuntimeError(message)


def weigh(path: Path) -> None:
    """Print the memory of loaded and counted sessions, and what a replay of them adds."""
    before = resident_mebibytes()
    transcripts = load_transcripts(path)
    tokenised(transcripts)
    messages = sum(len(transcript.messages) for transcript in transcripts)
    gc.collect()
    loaded = resident_mebibytes()
    cast = Cast((slot_of(strategy("observation_masking", keep_last=3)),))
    bills = accounts()
    for transcript in transcripts:
        replay_recorded(transcript, cast, bills)
    size = path.stat().st_size / 2**20
    print(f"memory: {messages:,} messages ({size:.0f} MiB as a file) take {loaded - before:.0f} MiB ", end="")
    print(f"loaded and counted, {resident_mebibytes() - loaded:.0f} MiB more after a replay of all", flush=True)


def write_until(path: Path, messages: int) -> None:
    """Write as many sessions as hold so many messages."""
    sessions: list[Transcript] = []
    count = 0
    while count < messages:
        sessions.append(service_session(len(sessions)))
        count += len(sessions[-1].messages)
    write_transcripts(path, sessions)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of the long session; 0 leaves it out")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="how many to generate")
    parser.add_argument("--path", type=Path, help="recorded sessions instead of generated ones")
    parser.add_argument("--profile", action="store_true", help="also print what the replay of sessions spends most on")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        generated, heavy = Path(name) / "sessions.jsonl", Path(name) / "heavy.jsonl"
        apart(lambda: write_until(heavy, WEIGHED))
        apart(lambda: weigh(heavy))
        if args.messages:
            long_session(args.messages)
        if args.path is None:
            write_transcripts(generated, [service_session(number) for number in range(args.sessions)])
        many_sessions(args.path or generated, profile=args.profile)


if __name__ == "__main__":
    main()
