"""Runs whose reports are looked at, made once through the command line as a user makes them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compaction_lab.sweep.loading import Run, load_run
from tests.report.hostile import hostile_session

ROOT = Path(__file__).parents[2]


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb in a folder of its own; its standard streams are text whatever a transcript put into them."""
    return subprocess.run(
        [sys.executable, "-m", "compaction_lab", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def sessions_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the run ``sessions``: a coding session and a hostile one through three arms."""
    folder = tmp_path_factory.mktemp("report")
    hostile_session(folder / "in" / "hostile.jsonl")
    shutil.copy(ROOT / "datasets/coding_session/session.jsonl", folder / "in" / "session.jsonl")
    arms = (
        "strategy=observation_masking strategy.keep_last=2",
        "strategy=summarization strategy.unit=step strategy.every=5",
        "strategy=truncation strategy.max_tokens=2000",
    )
    lines = [word for arm in arms for word in ("--arm", arm)]
    done = command(folder, "run", "dataset.path=in", *lines, "--name", "sessions", "--quiet")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def sessions(sessions_folder: Path) -> Run:
    return load_run(sessions_folder / "experiments" / "sessions")
