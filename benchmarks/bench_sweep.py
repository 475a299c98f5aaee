"""Run a hundred thousand small units from the command line: units a second, memory as the run grows, resuming, workers.

Every figure is of whole processes, from start to exit. Run with ``make bench`` or
``python benchmarks/bench_sweep.py [units]``. The hundred thousand units are of three short turns under sliding
windows, so that what is measured is the engine around a unit; workers are compared on sessions of recorded size.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from conversations import coding_session

from compaction_lab.conversation.wire import to_openai
from compaction_lab.sweep.store import RunStore

UNITS, ARMS = 100_000, 50
SESSIONS, SESSION_MESSAGES = 60, 40
RAY_UNITS, CELLS = 2_000, 10_000
SAMPLE_S = 0.5
QUARTERS = 4


@dataclass
class Process:
    """A command that ran: how long, in processor time too, and the memory of it and its workers on the way."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    megabytes: list[float] = field(default_factory=list)

    def by_quarter(self) -> list[float]:
        """Return the largest memory seen in each quarter of the run."""
        size = max(1, len(self.megabytes) // QUARTERS)
        return [max(self.megabytes[at * size : (at + 1) * size] or [0.0]) for at in range(QUARTERS)]


def main(units: int) -> int:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_talks(folder / "many.jsonl", units // ARMS)
        write_talks(folder / "few.jsonl", RAY_UNITS // ARMS)
        write_sessions(folder / "sessions.jsonl", SESSIONS)
        large_run(folder, units)
        two_workers(folder)
        planned = command(
            folder,
            "plan",
            "strategy=sliding_window",
            f"strategy.keep_last=range(1,{CELLS + 1})",
            "dataset.path=few.jsonl",
        )
        say(f"composing, freezing and keying {CELLS:,} cells", f"{planned.wall_s:.1f} s")
        ray(folder)
    return 0


def large_run(folder: Path, units: int) -> None:
    """Run all units and ask for them again."""
    done = run(folder, "many.jsonl", "large", "-j", "2")
    say(f"{units:,} units of three turns, -j 2", f"{done.wall_s:.0f} s, {units / done.wall_s:,.0f} units a second")
    say("  processor time a unit", f"{1000 * done.cpu_s / units:.2f} ms")
    quarters = ", ".join(f"{megabytes:,.0f}" for megabytes in done.by_quarter())
    say("  memory of all processes, by quarter", f"{quarters} MB")
    again = run(folder, "many.jsonl", "large", "-j", "2")
    start = run(folder, "few.jsonl", "none", "--limit", "1")
    say("  the same command again, table included", f"{again.wall_s:.1f} s; a run of one unit {start.wall_s:.1f} s")
    say("  of that, finding out what is done", f"{scan_s(folder / 'experiments' / 'large'):.2f} s")


def two_workers(folder: Path) -> None:
    """Run sessions of recorded size in one process and in two."""
    one = run(folder, "sessions.jsonl", "one", "-j", "1")
    two = run(folder, "sessions.jsonl", "two", "-j", "2")
    units = SESSIONS * ARMS
    say(
        f"{units:,} units of {SESSION_MESSAGES} messages, -j 1",
        f"{one.wall_s:.1f} s, {units / one.cpu_s:,.0f} a core second",
    )
    say("  -j 2", f"{two.wall_s:.1f} s: {one.wall_s / two.wall_s:.2f} times as fast, start and table included")


def ray(folder: Path) -> None:
    """Run the same units in processes and on a Ray cluster of this machine, when it is installed."""
    if find_spec("ray") is None:
        say("Ray", "not installed")
        return
    local = run(folder, "few.jsonl", "local", "-j", "2")
    cluster = run(folder, "few.jsonl", "cluster", "-j", "2", "executor=ray")
    more = 1000 * (cluster.wall_s - local.wall_s) / RAY_UNITS
    say(f"{RAY_UNITS:,} units in processes / on Ray", f"{local.wall_s:.1f} / {cluster.wall_s:.1f} s")
    say("  more for a thousand units, start included", f"{more:.1f} s")


def write_talks(path: Path, count: int) -> None:
    """Write transcripts of three short turns."""
    with path.open("w", encoding="utf-8") as file:
        for talk in range(count):
            messages = [{"role": "system", "content": "Be brief."}]
            for turn in range(3):
                messages.append({"role": "user", "content": f"Question {turn} of talk {talk}: what is {talk * turn}?"})
                messages.append({"role": "assistant", "content": f"It is {talk * turn}, as computed."})
            file.write(json.dumps({"messages": messages}) + "\n")


def write_sessions(path: Path, count: int) -> None:
    """Write coding sessions of about the length of recorded ones."""
    with path.open("w", encoding="utf-8") as file:
        for seed in range(count):
            messages = coding_session(SESSION_MESSAGES, seed=seed).messages
            file.write(json.dumps({"messages": [to_openai(message) for message in messages]}) + "\n")


def run(folder: Path, talks: str, name: str, *more: str) -> Process:
    """Run the arms over the transcripts of a file."""
    sweep = f"strategy.keep_last=range(1,{ARMS})"
    return command(
        folder, "run", "strategy=sliding_window", sweep, f"dataset.path={talks}", "--name", name, "-q", *more
    )


def command(folder: Path, *words: str) -> Process:
    """Run one command of the lab in a folder."""
    started, spent = time.perf_counter(), children_cpu_s()
    child = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "compaction_lab", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = Process()
    watch = threading.Thread(target=sample, args=(child, seen.megabytes), daemon=True)
    watch.start()
    _, error = child.communicate()
    watch.join()
    if child.returncode:
        sys.exit(f"compaction-lab {' '.join(words)}\n{error[-2000:]}")
    seen.wall_s, seen.cpu_s = time.perf_counter() - started, children_cpu_s() - spent
    return seen


def sample(child: subprocess.Popen[str], megabytes: list[float]) -> None:
    """Add up the memory of a process and its descendants until it ends; pages shared by several count once."""
    while child.poll() is None:
        kilobytes = sum(map(proportional_kilobytes, descendants(child.pid)))
        megabytes.append(kilobytes / 1000)
        time.sleep(SAMPLE_S)


def descendants(pid: int) -> list[int]:
    """Return a process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(below for child in children for below in descendants(int(child)))]


def proportional_kilobytes(pid: int) -> int:
    """Return a process's share of memory (PSS), 0 when it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def children_cpu_s() -> float:
    """Return the processor time of all children that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scan_s(folder: Path) -> float:
    """Return the seconds it takes to find out which units of a run are stored."""
    started = time.perf_counter()
    RunStore(folder).done()
    return time.perf_counter() - started


def say(what: str, figure: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{what:52} {figure}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else UNITS))
