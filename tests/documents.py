"""Documents whose command and Python blocks are run as a reader would run them."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "and again"},
    {"role": "assistant", "content": "hello again"},
    {"role": "user", "content": "a third time"},
]


@dataclass(frozen=True)
class Document:
    """A Markdown file's fenced blocks, as kind and body, in order."""

    path: Path
    blocks: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> Document:
        text = path.read_text(encoding="utf-8")
        return cls(path, tuple(re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)))

    def bodies(self, kind: str) -> list[str]:
        return [body for found, body in self.blocks if found == kind]

    @property
    def commands(self) -> list[str]:
        """The lines of console blocks that begin with a prompt."""
        return [line[2:] for body in self.bodies("console") for line in body.splitlines() if line[:2] == "$ "]


def reader_folder(folder: Path) -> Path:
    """Put into a folder what the documents speak of: a session, ten and two dozen sessions, and a message list."""
    shutil.copy(ROOT / "datasets/coding_session/session.jsonl", folder / "session.jsonl")
    shutil.copy(ROOT / "datasets/help_desk/sessions.jsonl", folder / "sessions.jsonl")
    write_sessions(folder / "two_dozen_sessions.jsonl", 24)
    (folder / "messages.json").write_text(json.dumps(MESSAGES), encoding="utf-8")
    return folder


def write_sessions(path: Path, number: int) -> None:
    """Write help desk sessions, the ten of the dataset first."""
    session = runpy.run_path(str(ROOT / "datasets/help_desk/make.py"))["session"]
    path.write_text("".join(f"{json.dumps(session(at))}\n" for at in range(number)), encoding="utf-8")


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python on this checkout in a folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def run_command(command: str, folder: Path) -> None:
    """Run a line of a console block; it must succeed and say something."""
    words = shlex.split(command)
    assert words[0] == "compaction-lab"
    done = python(folder, "-m", "compaction_lab", *words[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
