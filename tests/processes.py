"""The lab's command line in a process of its own, to be interrupted or killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def spawned(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder; its output comes in one stream."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    line = [sys.executable, "-m", "compaction_lab", *words]
    return subprocess.Popen(
        line, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()
