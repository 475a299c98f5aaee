"""Sweeps are found in the configurations of arms: lines along one number, maps over two."""

from __future__ import annotations

import pandas as pd
import pytest

from compaction_lab.analysis import parameter_map, parameter_sweep, swept, swept_twice
from compaction_lab.records import Cell
from compaction_lab.sweep.loading import Run
from tests.synthetic_runs import BASIC, unit


def run_of(arms: dict[str, dict[str, object]], transcripts: int = 7) -> Run:
    """A run whose arms have these strategy nodes; every arm's numbers are those of a masking arm."""
    cells, results = [], {}
    for arm, strategy in {BASIC: {"kind": "none"}, **arms}.items():
        cells.append(Cell(f"cell-{arm}", arm, "stub", "made", 0, {"baseline_arm": BASIC, "strategy": strategy}))
        for place in range(transcripts):
            name = BASIC if arm == BASIC else "semantic_kernel/observation_masking"
            results[cells[-1].key, f"t{place}", 0] = unit(name, 1 + 0.1 * place)
    return Run.from_results(cells, results)


def window(keep: int, unit: str = "step") -> dict[str, object]:
    return {"kind": "window", "preset": "sliding_window", "keep_last": keep, "unit": unit}


def test_arms_that_differ_in_one_number_lie_on_a_line() -> None:
    run = run_of({"w2": window(2), "w4": window(4), "w8": window(8), "turns": window(4, "turn")})
    lines = swept(run)
    assert list(lines["arm"]) == ["w2", "w4", "w8"]
    assert set(lines["parameter"]) == {"keep_last"}
    assert set(lines["line"]) == {"unit=step"}

    table = parameter_sweep(run, ["input_tokens", "whole_run_tokens"])
    assert list(dict.fromkeys(table["metric"])) == ["input_tokens", "whole_run_tokens"]
    assert list(table["value"]) == [2.0, 4.0, 8.0] * 2
    assert (table["ci_low"] < table["difference"]).all()


def test_two_swept_numbers_make_a_map_and_no_line() -> None:
    arms = {
        f"t{most}-{target}": {"kind": "truncation", "max_tokens": most, "target_tokens": target}
        for most in (4000, 8000)
        for target in (1000, 2000)
    }
    run = run_of(arms)
    assert set(zip(*(swept_twice(run)[name] for name in ("row_value", "column_value")), strict=True)) == {
        (most, target) for most in (4000.0, 8000.0) for target in (1000.0, 2000.0)
    }
    assert len(parameter_map(run, "input_tokens")) == 4
    assert parameter_sweep(run, ["input_tokens"]).empty


@pytest.mark.parametrize("table", [swept, swept_twice])
def test_a_run_without_a_sweep_has_none(table: object) -> None:
    assert callable(table)
    found = table(run_of({"a": {"kind": "truncation", "max_tokens": 1}, "b": {"kind": "window", "keep_last": 2}}))
    assert isinstance(found, pd.DataFrame)
    assert found.empty
