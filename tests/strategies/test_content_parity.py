"""The presets that clear, clip and collapse against what their frameworks did: frozen answers, and langchain itself."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from oracles.content_ours import ours

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*_content.jsonl"))
LIVE_CASES = 500


def unpacked(messages: list[dict[str, Any]], rows: list[Any]) -> list[dict[str, Any]]:
    return [messages[row] if isinstance(row, int) else row for row in rows]


def told_apart(mine: list[list[dict[str, Any]]], theirs: list[list[dict[str, Any]]]) -> str:
    for at, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        for number, (one, other) in enumerate(zip(left, right, strict=False)):
            if one != other:
                return f"moment {at}, message {number}:\n  ours   {one}\n  theirs {other}"
        if len(left) != len(right):
            return f"moment {at}: ours has {len(left)} messages, theirs {len(right)}"
    return ""


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_frozen_answers_of_the_frameworks(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        case = json.loads(line)
        theirs = [unpacked(case["messages"], rows) for rows in case["answers"]]
        assert not told_apart(ours(case), theirs), (case["strategy"], case["seed"], told_apart(ours(case), theirs))


def test_langchain_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain.agents.middleware", reason="langchain is not installed (it is part of [test])")
    monkeypatch.syspath_prepend(str(ROOT / "oracles"))
    bridge = importlib.import_module("langchain_content")
    cases = importlib.import_module("content_cases")
    name = "langchain/clear_tool_uses_edit"
    acted = 0
    for seed in range(5_000, 5_000 + LIVE_CASES):
        case = cases.case(name, seed)
        theirs = [bridge.apply(name, case["parameters"], case["messages"][:stop]) for stop in case["stops"]]
        acted += theirs[-1] != case["messages"]
        assert not told_apart(ours(case), theirs), (seed, told_apart(ours(case), theirs))
    assert acted > LIVE_CASES // 3
