"""Reductions are paired by conversation and turn, and averages never hide what is missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.analysis import (
    input_tokens_per_turn,
    reduction_summary,
    reduction_vs_baseline,
    total_tokens,
    whole_run_saving,
)
from tests.synthetic_runs import BASIC, HYBRID, MASKING, SUMMARY, synthetic_run


def test_reduction_is_what_the_turns_table_says() -> None:
    turns = synthetic_run().turns
    ours = reduction_vs_baseline(turns, BASIC)
    keys = ["arm", "transcript", "turn"]
    both = ours.merge(turns, on=keys, validate="one_to_one")
    np.testing.assert_allclose(both["reduction_percent"], 100 * both["reduction_vs_baseline"])


def test_mean_and_peak_leave_out_the_first_turn_and_average_over_transcripts() -> None:
    summary = reduction_summary(synthetic_run().turns, BASIC).set_index("arm")
    assert summary.loc[MASKING, "mean_reduction_percent"] == pytest.approx(38, abs=0.1)
    assert summary.loc[SUMMARY, "peak_reduction_percent"] == pytest.approx(92, abs=0.1)
    assert summary.loc[SUMMARY, "transcripts"] == 2
    assert set(summary.loc[SUMMARY, "peak_turns"].split(", ")) <= {"11", "20"}


def test_a_turn_the_baseline_lacks_is_missing_not_saved() -> None:
    turns = synthetic_run().turns
    without = turns[~((turns["arm"] == BASIC) & (turns["transcript"] == "pl") & (turns["turn"] == 21))]
    paired = reduction_vs_baseline(without, BASIC)
    lacking = paired[(paired["transcript"] == "pl") & (paired["turn"] == 21) & (paired["arm"] == MASKING)]
    assert lacking["reduction_percent"].isna().all()
    assert lacking["input_tokens"].notna().all()


def test_whole_run_saving_pays_for_the_summaries() -> None:
    turns = synthetic_run(arms=(BASIC, SUMMARY), transcripts=("en",)).turns
    saving = whole_run_saving(turns, BASIC).set_index("arm")
    sent = turns.groupby("arm")["input_tokens"].sum()
    summaries = 2 * (4000 + 300)
    expected = 100 * (1 - (sent[SUMMARY] + summaries) / sent[BASIC])
    assert saving.loc[SUMMARY, "saving_percent"] == pytest.approx(expected)
    assert saving.loc[BASIC, "saving_percent"] == 0


def test_whole_run_saving_is_unknown_when_one_count_is() -> None:
    turns = synthetic_run(arms=(BASIC, SUMMARY)).turns
    turns.loc[turns["turn"] == 5, "input_tokens"] = pd.NA
    assert whole_run_saving(turns, BASIC)["saving_percent"].isna().all()


def test_totals_split_into_agent_and_summariser() -> None:
    totals = total_tokens(synthetic_run(transcripts=("en",)).turns).set_index("arm")
    assert totals.loc[HYBRID, "summarizer_tokens"] == 2 * (1000 + 300)
    assert totals.loc[BASIC, "agent_output_tokens"] == 21 * 200
    parts = ["agent_input_tokens", "agent_output_tokens", "summarizer_tokens"]
    np.testing.assert_allclose(totals[parts].sum(axis=1), totals["total_tokens"])


SMALL = synthetic_run(arms=(BASIC, MASKING, SUMMARY), transcripts=("en",))


@settings(max_examples=10)
@given(factor=st.integers(min_value=2, max_value=50))
def test_reductions_do_not_depend_on_the_size_of_tokens(factor: int) -> None:
    turns = SMALL.turns
    scaled = turns.assign(input_tokens=turns["input_tokens"] * factor)
    pd.testing.assert_frame_equal(reduction_summary(turns, BASIC), reduction_summary(scaled, BASIC))
    assert (
        input_tokens_per_turn(scaled)["input_tokens"] == factor * input_tokens_per_turn(turns)["input_tokens"]
    ).all()
