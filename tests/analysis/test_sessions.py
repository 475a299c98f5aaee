"""What is said of a recorded session agrees with its calls, its messages and its bill."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from compaction_lab import analysis
from compaction_lab.analysis.buckets import BUCKETS
from compaction_lab.analysis.firing import firing_table
from compaction_lab.analysis.prices import cell_windows
from compaction_lab.importers.lab import message_from_lab
from compaction_lab.quality.evidence import searchable
from compaction_lab.report import write_report
from compaction_lab.sweep.tables import export
from tests.analysis.sessions import IDLE, MASKING, SUMMARY, WINDOW, session_run

ARMS = {"none", MASKING, WINDOW, IDLE, SUMMARY}


def by_arm(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_index("arm")


def test_firings_are_those_of_the_compactions_table_and_idle_arms_are_named() -> None:
    run = session_run()
    table = by_arm(firing_table(run))
    assert set(table.index) == ARMS
    for arm in ARMS:
        fired = run.compactions[(run.compactions["arm"] == arm) & (run.compactions["edits"] != "[]")]
        assert table.loc[arm, "firings"] == len(fired)
        if len(fired):
            assert table.loc[arm, "first_firing_call"] == fired["call"].min()
    assert table.loc[IDLE, "remark"] == table.loc["none", "remark"] == "never fires on these sessions"
    assert table.loc[WINDOW, "remark"].startswith("always fires")  # type: ignore[union-attr]
    # One user turn: what came since the last firing is counted in steps, and a window moves at every step.
    assert table.loc[WINDOW, "thrash_counts"] == "steps"
    assert table.loc[WINDOW, "thrash_percent"] == 100.0
    assert table.loc[SUMMARY, "thrash_percent"] == 0.0


def test_overflow_counts_the_calls_above_the_window_and_is_missing_without_one() -> None:
    run = session_run("window=3000")
    assert set(cell_windows(run).values()) == {3000}
    agent = run.calls[run.calls["purpose"] == "agent"]
    table = by_arm(firing_table(run))
    for arm, calls in agent.groupby("arm"):
        assert table.loc[arm, "window_overflows"] == (calls["input_tokens"] > 3000).sum()
    assert "does not fit the window" in str(table.loc["none", "remark"])
    unknown = by_arm(firing_table(session_run("pricing.model=null")))
    assert unknown["window_overflows"].isna().all()


def test_a_miss_names_places_that_hold_the_value_and_no_text_is_kept() -> None:
    run = session_run()
    missed = analysis.misses(run)
    assert set(missed["arm"]) <= {MASKING, WINDOW, SUMMARY}
    assert not set(missed["arm"]) & {"none", IDLE}
    for miss in missed.to_dict("records"):
        log = run.log((miss["cell"], miss["transcript"], miss["trial"]))
        used, source = (
            searchable(message_from_lab(run.messages[log[miss[f"{at}_message"]]])) for at in ("use", "source")
        )
        value = used[miss["use_start"] : miss["use_end"]]
        assert hashlib.sha256(value.encode()).hexdigest() == miss["sha256"]
        assert source[miss["source_start"] : miss["source_end"]] == value
        assert miss["source_message"] <= miss["newest_message"] < miss["use_message"]
    worth = analysis.misses_worth_reading(run, most=5)
    assert len(worth) == 3  # at most three of one transcript
    assert all(value in said for value, said in zip(worth["value"], worth["said"], strict=True))


def test_recall_by_age_and_by_kind_add_up_to_reference_recall() -> None:
    run = session_run()
    whole = by_arm(analysis.reference_recall(run.probes))
    for parts in (analysis.recall_by_age(run.probes), analysis.value_kinds(run)):
        kept = (parts["recall"] * parts["references"]).groupby(parts["arm"]).sum()
        assert (kept / parts.groupby("arm")["references"].sum()).to_dict() == pytest.approx(whole["recall"].to_dict())
    assert whole.loc["none", "recall"] == whole.loc[IDLE, "recall"] == 1.0
    assert whole.loc[WINDOW, "recall"] < 1.0
    probes = analysis.probe_recall(run.probes)
    assert (probes["probes"] == 8).all(), "references are no probes"


def test_the_buckets_of_a_bill_sum_to_the_bill() -> None:
    run = session_run()
    table = by_arm(analysis.cost_buckets(run))
    paid = run.calls[run.calls["purpose"].isin(["agent", "summarizer"])]
    bills = paid.groupby("arm")["cost_cached_usd"].sum()
    assert table["total_usd"].to_dict() == pytest.approx(bills.to_dict())
    assert table[list(BUCKETS)].sum(axis=1).to_dict() == pytest.approx(bills.to_dict())
    summaries = paid[paid["purpose"] == "summarizer"].groupby("arm")["cost_cached_usd"].sum()
    assert table.loc[SUMMARY, "summaries_usd"] == pytest.approx(summaries[SUMMARY])
    both = by_arm(analysis.cost_with_and_without_cache(run))
    assert both["cached_usd"].to_dict() == pytest.approx(bills.to_dict())
    assert both.loc["none", "cache_breaks"] == 0
    assert both.loc[WINDOW, "cache_breaks"] > 0


def test_break_even_tells_what_a_firing_costs_at_once_from_what_it_saves() -> None:
    firings = analysis.firings_paid(session_run())
    assert set(firings["arm"]) == {MASKING, WINDOW, SUMMARY}
    assert (firings.loc[firings["arm"] != SUMMARY, "summary_usd"] == 0).all()
    assert (firings.loc[firings["arm"] == SUMMARY, "summary_usd"] > 0).all()
    paid = firings[firings["paid"]]
    assert (paid["further_calls"] <= paid["calls_left"]).all()
    table = by_arm(analysis.break_even_table(session_run()))
    assert table.loc[SUMMARY, "firings"] == (firings["arm"] == SUMMARY).sum()


def test_the_frontier_holds_what_nothing_else_beats() -> None:
    table = analysis.frontier(session_run(), "none")
    for mine in table.to_dict("records"):
        better = [
            other["arm"]
            for other in table.to_dict("records")
            if other["cost_usd"] <= mine["cost_usd"]
            and other["recall"] >= mine["recall"]
            and (other["cost_usd"], other["recall"]) != (mine["cost_usd"], mine["recall"])
        ]
        assert mine["on_frontier"] == (not better)
        assert bool(mine["beaten_by"]) == bool(better)
    indexed = by_arm(table)
    assert indexed.loc["none", "cost_percent"] == indexed.loc[IDLE, "cost_percent"] == 100.0
    assert math.isnan(float(indexed.loc[WINDOW, "cost_low"])), "one session has no interval over sessions"


def test_validity_is_told_by_rule_and_provider() -> None:
    run = session_run()
    assert not len(run.validity[run.validity["arm"].isin(["none", MASKING, IDLE])].query("V1 > 0 or V2 > 0 or V7 > 0"))
    refused = by_arm(analysis.refusals(run))
    assert (refused["openai"] == 0).all()
    assert (refused["calls_unchecked"] == 0).all()
    broken = analysis.validity_table(run)
    assert (broken["percent_of_calls"] == 100 * broken["calls_broken"] / broken["calls_checked"]).all()


def test_the_exported_tables_have_the_contracts_columns_alone() -> None:
    run = session_run()
    for table in ("calls", "probes"):
        header = export(run, table).decode().splitlines()[0]
        assert not {"findings", "reference", "stale", "sha256"} & set(header.split(","))
    rows = export(run, "probes").decode()
    assert "reference" in rows


def test_planted_facts_are_told_by_kind_age_and_staleness() -> None:
    run = session_run("dataset.planted={facts: 24, seed: 1}")
    kept = analysis.retention(run.probes)
    assert {"name", "update", "constraint"} <= set(kept["kind"])
    assert (kept.loc[kept["arm"] == "none", "visible"] == 1).all()
    stale = by_arm(analysis.stale_answers(run.probe_details))
    assert (stale["updated"] == 4).all()
    assert stale[["current", "both", "stale", "neither"]].sum(axis=1).to_numpy() == pytest.approx([1.0] * len(stale))
    rules = by_arm(analysis.constraint_survival(run.probes))
    assert rules.loc["none", "survived"] == 1.0
    assert rules.loc[MASKING, "survived"] < 1.0


def test_the_report_of_a_session_holds_its_figures_tables_and_a_conclusion(tmp_path: Path) -> None:
    written = {path.relative_to(tmp_path).as_posix() for path in write_report(session_run(), tmp_path, ("svg",))}
    drawn = {"cost_stack", "cost_with_and_without_cache", "context_over_calls", "recall_by_age", "frontier"}
    assert {f"figures/{name}.svg" for name in drawn} <= written
    assert {f"tables/{name}.csv" for name in ("firing", "reference_recall", "misses", "frontier")} <= written
    left_out = json.loads((tmp_path / "report.json").read_text())["left_out"]
    assert not drawn & set(left_out)
    text = (tmp_path / "conclusion.md").read_text()
    assert "Never fires on these sessions" in text
    assert "truncation max_tokens=90000" in text
    assert re.search(r"sliding_window.*cost.*still in sight", text)
    assert "simulated" in text
