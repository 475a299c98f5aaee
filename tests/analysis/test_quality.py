"""Recall counts what was scored, and its interval says how it was made."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from compaction_lab.analysis import probe_recall, rubric_per_turn
from compaction_lab.analysis.quality import wilson_interval
from tests.synthetic_runs import BASIC, HYBRID, SUMMARY, synthetic_run


def test_recall_leaves_rubric_rows_out() -> None:
    recall = probe_recall(synthetic_run().probes).set_index("arm")
    assert recall.loc[HYBRID, "recall"] == 0.5
    assert recall.loc[HYBRID, "probes"] == 20
    assert recall.loc[HYBRID, "evidence_visible"] == 0.5
    assert recall.loc[HYBRID, "recall_without_evidence"] == 0.0
    assert recall.loc[BASIC, "low"] < 1.0 <= recall.loc[BASIC, "high"]


def test_few_transcripts_get_wilson_and_many_a_clustered_interval() -> None:
    few = probe_recall(synthetic_run().probes)
    many = probe_recall(synthetic_run(arms=(BASIC, HYBRID), transcripts=[f"t{i}" for i in range(12)]).probes)
    assert set(few["interval"]) == {"Wilson 95%"}
    assert set(many["interval"]) == {"clustered by transcript 95%"}
    # Every transcript recalls the same half, so there is no variation between clusters.
    hybrid = many.set_index("arm").loc[HYBRID]
    assert (hybrid["low"], hybrid["high"]) == pytest.approx((0.5, 0.5))


def test_a_judge_failure_is_missing_not_zero() -> None:
    probes = synthetic_run().probes
    failed = (probes["kind"] == "fact") & (probes["probe"] == "fact-9")
    probes.loc[failed, "score"] = float("nan")
    recall = probe_recall(probes).set_index("arm")
    assert recall.loc[BASIC, "recall"] == 1.0
    assert (recall.loc[BASIC, "probes"], recall.loc[BASIC, "unscored"]) == (18, 2)


def test_rubric_drops_after_a_summary() -> None:
    scores = rubric_per_turn(synthetic_run().probes)
    low = scores[(scores["arm"] == SUMMARY) & (scores["score"] < 1)]
    assert sorted(low["turn"].unique()) == [11, 20]


def test_no_probes_give_an_empty_frame_with_its_columns() -> None:
    recall = probe_recall(synthetic_run().probes.iloc[:0])
    assert recall.empty
    assert "recall" in recall


def test_wilson_agrees_with_published_values() -> None:
    # Newcombe 1998, table I, method 3: 81 of 263, 15 of 148, 0 of 20.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert all(math.isnan(bound) for bound in wilson_interval(0, 0))


def test_recall_is_a_mean_over_sessions_not_over_values() -> None:
    shares = {"long": [1.0] * 9 + [0.0], "short": [0.0]}
    rows = [
        {"arm": "a", "model": "m", "dataset": "d", "transcript": name, "kind": "reference", "score": score}
        for name, scores in shares.items()
        for score in scores
    ]
    (row,) = probe_recall(pd.DataFrame(rows).assign(evidence_visible=1.0), references=True).to_dict("records")
    assert row["recall"] == pytest.approx((0.9 + 0.0) / 2)
    assert (row["probes"], row["transcripts"]) == (11, 2)
