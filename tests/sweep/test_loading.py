"""A run's tables against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.errors import StoreError
from compaction_lab.records import (
    CALL_COLUMNS,
    COMPACTION_COLUMNS,
    IDENTITY,
    PROBE_COLUMNS,
    TURN_COLUMNS,
    UNIT_COLUMNS,
    Cell,
    Row,
    UnitResult,
)
from compaction_lab.sweep import lines
from compaction_lab.sweep.loading import Coverage, Run, load_run
from compaction_lab.sweep.store import RunStore, Unit

BASIC = Cell("k1", "none", "m", "d", 0, {"baseline_arm": "none", "strategy": {"kind": "none"}, "seed": 0})
MASKING = Cell("k2", "masking", "m", "d", 0, {"baseline_arm": "none", "strategy": {"kind": "masking", "keep_last": 2}})


def call(turn: int, number: int, tokens: int, purpose: str = "agent", **more: object) -> Row:
    row: Row = {"turn": turn, "call": number, "purpose": purpose, "input_tokens": tokens, "output_tokens": 10}
    row |= {
        "reasoning_tokens": 1,
        "tool_calls": 1,
        "cost_uncached_usd": tokens / 1000,
        "cost_cached_usd": tokens / 2000,
    }
    return row | more  # type: ignore[return-value]


def rubric(turn: int, score: float | None) -> Row:
    return {"turn": turn, "probe": f"turn {turn}", "kind": "rubric", "score": score}


def results() -> dict[Unit, UnitResult]:
    basic = UnitResult(
        calls=[
            call(1, 1, 100, cost_billed_usd=0.5),
            call(1, 2, 200, cost_billed_usd=0.5),
            call(2, 3, 400, cost_billed_usd=1),
        ],
        probes=[rubric(1, 1.0), rubric(2, 0.5), {"turn": 2, "probe": "p", "kind": "fact", "score": 0.0}],
    )
    masking = UnitResult(
        calls=[call(1, 1, 100), call(1, 1, 300, "summarizer"), call(1, 2, 50), call(2, 3, 100), call(2, 4, 7, "probe")],
        compactions=[{"turn": 1, "call": 2, "edits": [{"kind": "masked"}], "outcome": "ok"}],
        probes=[rubric(1, None), rubric(2, 0.25)],
    )
    return {("k2", "t", 0): masking, ("k1", "t", 0): basic}


def test_tables_have_the_contract_s_columns() -> None:
    run = Run.from_results([BASIC, MASKING], results())
    for name, columns in (
        ("calls", CALL_COLUMNS),
        ("compactions", COMPACTION_COLUMNS),
        ("probes", PROBE_COLUMNS),
        ("turns", TURN_COLUMNS),
        ("units", UNIT_COLUMNS),
    ):
        table = getattr(run, name)
        assert list(table.columns) == [*IDENTITY, *columns]
        assert list(table["cell"]) == sorted(table["cell"])
    assert list(run.cells.columns) == [
        "cell", "arm", "model", "dataset", "seed", "baseline_arm", "strategy.keep_last", "strategy.kind",
    ]  # fmt: skip
    assert run.compactions["edits"][0] == '[{"kind":"masked"}]'


def test_turns_and_units_are_sums_over_the_agent_s_calls() -> None:
    run = Run.from_results([BASIC, MASKING], results())
    turns = run.turns.set_index(["arm", "turn"])
    assert list(turns["input_tokens"]) == [300, 400, 150, 100]
    assert list(turns["model_calls"]) == [2, 1, 2, 1]
    assert list(turns["tool_calls"]) == [2, 1, 2, 1]
    assert list(turns["summarizer_input_tokens"]) == [0, 0, 300, 0]
    assert list(turns["reduction_vs_baseline"]) == [0, 0, 0.5, 0.75]
    assert turns["score"].tolist()[:2] == [1.0, 0.5]
    assert np.isnan(turns.loc[("masking", 1), "score"])
    units = run.units.set_index("arm")
    assert list(units["input_tokens"]) == [700, 250]
    assert list(units["score"]) == [0.75, 0.25]
    assert list(units["summarizer_output_tokens"]) == [0, 10]
    assert run.bills["summarizer_cost_cached_usd"].tolist() == [0, 0.15]


def test_cost_is_the_first_kind_that_every_agent_call_has() -> None:
    both = Run.from_results([BASIC, MASKING], results())
    assert set(both.calls["cost_kind"]) == set(both.turns["cost_kind"]) == set(both.units["cost_kind"]) == {"cached"}
    assert both.units["cost_usd"].tolist() == pytest.approx([0.35, 0.125])
    alone = Run.from_results([BASIC], {("k1", "t", 0): results()["k1", "t", 0]})
    assert alone.units[["cost_usd", "cost_kind"]].to_numpy().tolist() == [[2.0, "billed"]]
    unpriced = UnitResult(calls=[{"turn": 1, "call": 1, "purpose": "agent", "input_tokens": 5}])
    none = Run.from_results([BASIC], {("k1", "t", 0): unpriced})
    assert none.units["cost_usd"].isna().all()
    assert none.turns["cost_kind"].isna().all()


def test_what_is_missing_stays_missing() -> None:
    part = UnitResult(calls=[call(1, 1, 10, cache_read_tokens=4), call(1, 2, 20), call(2, 3, 30, cache_read_tokens=0)])
    run = Run.from_results([MASKING], {("k2", "t", 0): part})
    assert run.turns["cache_read_tokens"].isna().tolist() == [True, False]
    assert run.units["cache_read_tokens"].isna().all()
    assert run.turns["reduction_vs_baseline"].isna().all()  # no baseline arm here
    assert run.turns["input_tokens"].dtype == "Int64"
    refused = UnitResult("overflow", calls=[call(1, 1, 10), call(1, 2, 99, error="window", cost_cached_usd=None)])
    assert Run.from_results([MASKING], {("k2", "t", 0): refused}).units["cost_cached_usd"].tolist() == [0.005]


def test_reduction_pairs_seed_transcript_trial_and_turn() -> None:
    cells = [
        Cell(f"{arm}{seed}", arm, "m", "d", seed, {"baseline_arm": "none"})
        for arm in ("none", "cut")
        for seed in (0, 1)
    ]
    units = {
        (cell.key, transcript, trial): UnitResult(
            calls=[call(1, 1, (1000 if cell.arm == "none" else 100) * (cell.seed + 1) + 10 * trial + len(transcript))]
        )
        for cell in cells
        for transcript in ("a", "bb")
        for trial in (0, 1)
        if (cell.key, transcript, trial) != ("none1", "bb", 1)
    }
    turns = Run.from_results(cells, units).turns
    for row in turns[turns["arm"] == "cut"].itertuples():
        extra = 10 * row.trial + len(row.transcript)
        expected = 1 - (100 * (row.seed + 1) + extra) / (1000 * (row.seed + 1) + extra)
        if (row.seed, row.transcript, row.trial) == (1, "bb", 1):
            assert np.isnan(row.reduction_vs_baseline)
        else:
            assert row.reduction_vs_baseline == expected


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(["agent", "summarizer", "judge"]),
            st.none() | st.integers(0, 99),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_units_are_the_sums_of_turns(calls: list[tuple[int, str, int | None, bool]]) -> None:
    rows = [
        call(turn, number, 1, purpose, fresh_input_tokens=tokens, error="refused" if failed else "")
        for number, (turn, purpose, tokens, failed) in enumerate(calls)
    ]
    run = Run.from_results([BASIC], {("k1", "t", 0): UnitResult(calls=rows)})
    for name in ("model_calls", "input_tokens", "fresh_input_tokens", "summarizer_input_tokens", "cost_uncached_usd"):
        column = run.turns[name]
        total = run.units[name].iloc[0]
        assert pd.isna(total) if column.isna().any() else total == pytest.approx(column.sum())


def test_a_stored_run_reads_as_it_was_in_memory(tmp_path: Path) -> None:
    memory = Run.from_results([BASIC, MASKING], results())
    with RunStore.open(tmp_path / "r", create=True) as store:
        store.freeze([BASIC, MASKING], {"command": "x"})
        for (key, transcript, trial), result in results().items():
            store.write({"k1": BASIC, "k2": MASKING}[key], transcript, trial, result)
    for stored in (load_run(tmp_path / "r"), load_run("r", root=tmp_path)):
        for name in ("calls", "turns", "compactions", "probes", "units", "cells", "timings"):
            pd.testing.assert_frame_equal(getattr(stored, name), getattr(memory, name))
        assert stored.manifest["command"] == "x"
        assert stored.name == "r"


def test_the_last_units_row_wins_and_rows_without_one_are_ignored(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "r", create=True) as store:
        store.freeze([BASIC], {"transcripts": {"d": ["t", "u", "v"]}, "trials": 2})
        store.write(BASIC, "t", 0, UnitResult(calls=[call(1, 1, 10)]))
        store.write(BASIC, "t", 0, UnitResult(calls=[call(1, 1, 20), call(1, 2, 30)]))
        store.write(BASIC, "u", 1, UnitResult("failed", "refused", calls=[call(1, 1, 40)]))
        store.write(BASIC, "u", 0, UnitResult("overflow", calls=[call(1, 1, 50)]))
        lines.append(tmp_path / "r/calls.jsonl", lines.encode({"cell": "k1", "attempt": "orphan", "turn": 1}))
    run = load_run(tmp_path / "r")
    assert list(run.calls["input_tokens"]) == [20, 30, 50]
    assert list(run.turns["input_tokens"]) == [50, 50]
    failed = run.units.set_index("outcome").loc["failed"]
    assert failed["error"] == "refused"
    assert pd.isna(failed["input_tokens"])
    assert run.coverage == Coverage(planned=6, ran=2, failed=1, missing=3, overflowed=1)
    assert str(run.coverage) == "planned 6, ran 2, failed 1, missing 3, overflowed 1"


def test_of_equal_cells_the_later_frozen_is_shown(tmp_path: Path) -> None:
    later = Cell("k9", "none", "m", "d", 0, {"dataset": {"sha256": "changed"}})
    with RunStore.open(tmp_path / "r", create=True) as store:
        store.freeze([BASIC, MASKING], {})
        store.write(BASIC, "t", 0, UnitResult(calls=[call(1, 1, 10)]))
        store.freeze([later], {})
    run = load_run(tmp_path / "r")
    assert list(run.cells["cell"]) == ["k2", "k9"]
    assert run.units.empty
    assert run.calls.empty
    assert run.coverage.superseded_cells == 1


def test_lost_rows_are_noticed(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "r", create=True) as store:
        store.freeze([BASIC], {})
        store.write(BASIC, "t", 0, UnitResult(calls=[call(1, 1, 10), call(1, 2, 10)]))
    path = tmp_path / "r/calls.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(StoreError, match=r"holds 1 rows of unit .* and 2 were written"):
        _ = load_run(tmp_path / "r").calls


def test_an_empty_run_has_empty_tables(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "r", create=True) as store:
        store.freeze([BASIC], {})
    run = load_run(tmp_path / "r")
    for name in ("calls", "turns", "compactions", "probes", "units"):
        assert getattr(run, name).empty
    assert run.cost_kind is None


def test_unknown_runs_are_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "laptop_catalog", create=True) as store:
        store.freeze([BASIC], {})
    with pytest.raises(StoreError, match="did you mean laptop_catalog"):
        load_run("laptop_catlog", root=tmp_path)


def test_a_spoilt_manifest_is_named(tmp_path: Path) -> None:
    with RunStore.open(tmp_path / "r", create=True) as store:
        store.freeze([BASIC], {})
    (tmp_path / "r/manifest.json").write_text(json.dumps([1]))
    with pytest.raises(StoreError, match=r"manifest\.json: expected one JSON object, found list"):
        load_run(tmp_path / "r")
