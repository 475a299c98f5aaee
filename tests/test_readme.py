"""Every command block of the README runs, in an empty folder, as a reader would run it."""

import subprocess
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
from tests.documents import MESSAGES, ROOT, Document, reader_folder, run_command

README = Document.read(ROOT / "README.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reader_folder(tmp_path_factory.mktemp("reader"))


@pytest.mark.parametrize("command", README.commands)
def test_each_command_runs(command: str, folder: Path) -> None:
    run_command(command, folder)


def test_make_targets_exist() -> None:
    targets = [words[1] for body in README.bodies("bash") for words in map(str.split, body.splitlines()) if words]
    assert {"lab", "test"} <= set(targets)
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)  # noqa: S607 - whichever make the reader has


def test_python_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    using, adding = README.bodies("python")
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
