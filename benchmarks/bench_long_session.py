"""Import a session of 20,000 messages and replay it through the default grid for own sessions; print time and memory.

Each verb runs in a process of its own. Memory is the largest of any process, its workers included.
Run with ``python benchmarks/bench_long_session.py [messages]``.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conversations import coding_session

from compaction_lab.importers import write_transcripts

MESSAGES = 20_000


def run(*arguments: str | Path) -> tuple[float, float]:
    """Return wall and processor seconds of a command."""
    before, started = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-m", "compaction_lab", *map(str, arguments)], check=True)  # noqa: S603 - our own
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, used


def main() -> None:
    """Do it in a temporary folder."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        if not os.fork():  # so that what generating takes does not count
            write_transcripts(folder / "long.jsonl", [coding_session(messages)])
            os._exit(0)
        os.wait()
        for arguments in (
            ("import", "long.jsonl", "--out", "mine"),
            ("run", "experiment=my_sessions", "dataset.path=mine/long.jsonl", "--name", "long", "-q", *sys.argv[2:]),
        ):
            wall, used = run(*arguments)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(f"{arguments[0]}: {wall:.0f} s, {used:.0f} processor seconds, at most {peak:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
