"""What is printed fits eighty columns, breaks no name that is to be copied, and holds no escape codes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import compaction_lab as lab
from compaction_lab.commands.text import definitions, money, text_table
from compaction_lab.conversation.messages import Media, Message, Reasoning, Text, assistant
from compaction_lab.sweep.inspection import context_text
from tests.documents import ROOT, python, reader_folder

LONG = "a-run-on-recorded-sessions-with-a-name-that-says-all-there-is-to-say"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = reader_folder(tmp_path_factory.mktemp("terminal"))
    arms = (
        "strategy=agent_framework/truncation strategy.max_n=9 strategy.compact_to=5 strategy.preserve_system=false",
        "strategy=observation_masking strategy.keep_last=3 strategy.trigger={tokens_exceed:2000}",
    )
    lines = [word for arm in arms for word in ("--arm", arm)]
    done = python(folder, "-m", "compaction_lab", "run", "dataset.path=sessions.jsonl", *lines, "--name", LONG)
    assert done.returncode == 0, done.stderr
    *table, where = done.stdout.splitlines()
    assert max(map(len, table)) <= 80
    assert where == f"Run: experiments/{LONG}"  # whole, to be copied
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["show", LONG],
        ["show", LONG, "--unit", "none/help-desk-00"],
        ["compare", LONG],
        ["options"],
        ["options", "strategy"],
        ["options", "strategy/agent_framework/context_window"],
        ["options", "model/openai_compatible"],
    ],
    ids=" ".join,
)
def test_every_verb_fits_eighty_columns(folder: Path, words: list[str]) -> None:
    done = python(folder, "-m", "compaction_lab", *words)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout + done.stderr


def test_a_runs_name_can_be_copied_from_the_list(folder: Path) -> None:
    assert LONG in python(folder, "-m", "compaction_lab", "list").stdout.splitlines()


def test_no_colour_is_asked_of_a_terminal_that_wants_none(folder: Path) -> None:
    reading, writing = pty.openpty()
    command = [sys.executable, "-m", "compaction_lab", "show", LONG]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "xterm"}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=writing, stderr=writing, check=False)
    os.close(writing)
    said = b""
    while chunk := _read(reading):
        said += chunk
    assert done.returncode == 0
    assert b"none" in said
    assert b"\x1b" not in said


def _read(reading: int) -> bytes:
    try:
        return os.read(reading, 65_536)
    except OSError:  # the other end is closed: that is how a terminal says so
        return b""


def test_small_amounts_keep_three_digits_that_count() -> None:
    assert [money(amount) for amount in (0.000012345, 0.0036942, 12.5, 0, None)] == [
        "0.0000123",
        "0.00369",
        "12.50",
        "0.00",
        "-",
    ]


def test_long_names_stand_alone() -> None:
    lines = definitions({"a": "short " * 20, "x" * 50: "long"}).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-2:] == ["  " + "x" * 50, " " * 10 + "long"]
    table = text_table(["run", "arms"], [["r" * 100, "3"]], whole_labels=True).splitlines()
    assert table[1:] == ["r" * 100, " " * 76 + "3".rjust(4)]


def test_a_call_shows_the_parts_that_are_no_text() -> None:
    picture = Media("image", "image/png", 2048, 640, 480)
    said = (
        Message("user", (Text("What is this?"), picture)),
        Message("assistant", (Reasoning("A cat?"), Text("A cat."))),
    )
    run = lab.replay(
        lab.Transcript("t", (*said, Message("user", (Text("Sure?"),)), assistant("Yes."))), lab.strategy("none")
    )
    _, sent = context_text(run, next(iter(run.unit_rows)), 2)
    assert "[image image/png, 2,048 bytes, 640x480]" in sent
    assert "[reasoning] A cat?" in sent
