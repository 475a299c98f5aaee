"""The calibrated reader expects, never measures: its curve is the public data's, and it is used only when asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from compaction_lab.conversation.context import Context, Edit
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import assistant, user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.transcript import Probe
from compaction_lab.errors import ConfigurationError
from compaction_lab.quality.calibrated import FITTED, CalibratedReader, fit, read_rows
from compaction_lab.sweep.totals import unit_totals

COUNTER = TokenCounter(tokenizer("characters"))


def test_the_shipped_coefficients_are_those_of_the_public_data(public_data: Callable[[str], Path]) -> None:
    rows = read_rows(public_data("published/lost_in_compaction/recall_model_data.csv"))
    again = dataclasses.astuple(fit(rows))
    assert again == pytest.approx(dataclasses.astuple(FITTED), abs=6e-6)


def test_the_curve_reproduces_the_recall_of_the_public_data(public_data: Callable[[str], Path]) -> None:
    rows = read_rows(public_data("published/lost_in_compaction/recall_model_data.csv"))
    for depth in ("0", "50", "98"):
        chosen = [row for row in rows if row["compaction_pct"] == depth and row["experiment"] != "strategy"]
        expected = [
            CalibratedReader(float(row["batch_size"]), float(row["density"])).expected(
                float(row["position_pct"]) / 100, float(row["compaction_pct"]) / 100, row["category"]
            )
            for row in chosen
        ]
        observed = sum(float(row["recalled"]) for row in chosen) / len(chosen)
        assert sum(expected) / len(expected) == pytest.approx(observed, abs=0.08)


def test_a_fact_out_of_sight_is_expected_at_zero_and_one_in_sight_by_place_and_depth() -> None:
    log = Log([user("The key is under the mat."), *(assistant(f"Noted {n}." * 9) for n in range(8)), user("Where?")])
    probe = Probe("key", "fact", "Where?", ("mat",), ("under the mat",))
    reader, whole = CalibratedReader(), Context(log, len(log))
    seen = reader.judged(probe, whole, COUNTER)
    assert seen["score"] == pytest.approx(reader.expected(0.05, 0.0), abs=0.05)
    compacted = reader.judged(probe, whole.apply([Edit("dropped", ((4, 0), (5, 0), (6, 0)))]), COUNTER)
    assert compacted["score"] < seen["score"]  # type: ignore[operator]
    assert reader.judged(probe, whole.apply([Edit("dropped", ((0, 0),))]), COUNTER)["score"] == 0.0
    assert (seen["judge"], seen["reader"], seen["answer"]) == ("expected_recall", "calibrated", None)


def test_expected_recall_is_labelled_in_the_units_row() -> None:
    assert unit_totals([], [{"judge": "expected_recall", "score": 0.4}])["simulated"] == ["expectation"]
    assert unit_totals([], [{"judge": "subspan", "score": 0.4}])["simulated"] == []


def test_parameters_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"reader\.facts=0"):
        CalibratedReader.of({"facts": 0})
