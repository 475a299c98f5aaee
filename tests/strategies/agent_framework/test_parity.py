"""Random conversations, compacted again and again as they grow: the package's survivors, order and texts."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

import pytest

ORACLES = Path(__file__).parents[3] / "oracles"
GOLDEN = Path(__file__).parents[1] / "golden" / "agent_framework.jsonl"
CASES_PER_STRATEGY = 2000
PINNED = "1.23.0"


def script(name: str, path: Path) -> ModuleType:
    """Import a file of ``oracles/``, whose name may be that of the package it talks to."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cases_module() -> ModuleType:
    script("conversations", ORACLES / "conversations.py")
    return script("agent_framework_cases", ORACLES / "agent_framework_cases.py")


CASES = cases_module()


def installed() -> str:
    try:
        return version("agent-framework-core")
    except PackageNotFoundError:
        return ""


@pytest.mark.skipif(installed() != PINNED, reason=f"agent-framework-core {PINNED} is not installed")
@pytest.mark.parametrize("name", CASES.NAMES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_package_keeps_the_same(name: str) -> None:
    bridge = script("agent_framework_bridge", ORACLES / "agent_framework.py")
    for case in CASES.cases(CASES_PER_STRATEGY, seed=1, names=(name,), most_moves=9):
        assert CASES.answer(case) == bridge.answer(case), f"{case['seed']}: {case['strategy']}"


@pytest.mark.parametrize("name", CASES.NAMES)
def test_the_package_once_kept_the_same(name: str) -> None:
    frozen = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    chosen = [row for row in frozen if row["case"]["strategy"]["name"] == name]
    assert len(chosen) >= 10
    for row in chosen:
        assert CASES.answer(row["case"]) == row["answer"], row["case"]["seed"]
