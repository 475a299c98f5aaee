"""Every command block of the README runs, in an empty folder, as a reader would run it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Edit
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import assistant, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.registry import register

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
COMMANDS = [line[2:] for kind, body in BLOCKS if kind == "console" for line in body.splitlines() if line[:2] == "$ "]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "and again"},
    {"role": "assistant", "content": "hello again"},
    {"role": "user", "content": "a third time"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: a recorded session and a message list."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copy(ROOT / "datasets/coding_session/session.jsonl", folder / "session.jsonl")
    (folder / "messages.json").write_text(json.dumps(MESSAGES), encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs(command: str, folder: Path) -> None:
    words = shlex.split(command)
    assert words[0] == "compaction-lab"
    done = subprocess.run(
        [sys.executable, "-m", "compaction_lab", *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_make_targets_exist() -> None:
    targets = [
        words[1] for kind, body in BLOCKS if kind == "bash" for words in map(str.split, body.splitlines()) if words
    ]
    assert {"lab", "test"} <= set(targets)
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)  # noqa: S607 - whichever make the reader has


def test_python_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    using, adding = [body for kind, body in BLOCKS if kind == "python"]
    exec(compile(using, "README", "exec"), {"messages": MESSAGES})  # noqa: S102 - our own README
    assert "observation_masking" in capsys.readouterr().out

    names = {
        "register": register,
        "dataclass": dataclass,
        "Situation": Situation,
        "Compaction": Compaction,
        "Edit": Edit,
    }
    exec(compile(adding, "README", "exec"), names)  # noqa: S102 - our own README
    log = Log([user("note: me"), assistant("yes"), user("task")])
    arm = ArmRun(log, (Slot(names["DropNotes"](), "before_call", "view", TokenCounter(tokenizer("characters"))),))
    with pytest.raises(StopIteration) as end:
        next(arm.occasion("before_call", len(log)))
    assert [message.text for message in end.value.value.messages] == ["yes", "task"]
