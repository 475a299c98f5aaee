"""What a recording says it used and cost: each call once, priced as the model that answered."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compaction_lab.accounting.prices import price_model
from compaction_lab.accounting.recorded import recorded_bill, stated
from compaction_lab.analysis import recorded_usage
from compaction_lab.conversation.messages import JSON, Message, Text, Usage
from compaction_lab.sweep.grid import expand
from compaction_lab.sweep.loading import Run
from compaction_lab.sweep.unit import run_unit, transcript_ids

CLAUDE_CODE = Path(__file__).parents[1] / "importers" / "fixtures" / "claude_code_session.jsonl"
SAID = Message("assistant", (Text("done"),), model="claude-sonnet-4-5")


def replayed(path: Path, *overrides: str) -> Run:
    grid = expand([f"dataset.path={path}", *overrides], ["strategy=sliding_window strategy.keep_last=1"])
    units = {(c.key, t, 0): run_unit(c, t, 0) for c in grid.cells for t in transcript_ids(c)}
    return Run.from_results(grid.cells, units)


def test_a_usage_on_several_messages_of_one_call_is_billed_once_and_the_last_counts() -> None:
    early, whole = Usage(100, 0, 0, 1), Usage(100, 900, 0, 50)
    answer = (replace(SAID, usage=early), replace(SAID, usage=whole))
    price = price_model("claude-sonnet-4-5")
    assert price is not None
    assert recorded_bill(answer, price_model) == price.cost(whole)
    assert stated(answer) is answer[1]


def test_a_stated_cost_comes_before_a_price_and_what_is_unknown_stays_so() -> None:
    used = replace(SAID, usage=Usage(10))
    assert recorded_bill((replace(used, cost_usd=0.5), used), price_model) == 0.5
    assert recorded_bill((SAID,), price_model) is None
    assert recorded_bill((replace(used, model=""),), price_model) is None
    assert recorded_bill((used,), lambda _: None) is None


def test_tokens_kept_for_an_hour_are_billed_so() -> None:
    raw: dict[str, JSON] = {"cache_creation": {"ephemeral_1h_input_tokens": 1000}}
    price = price_model("claude-sonnet-4-5")
    assert price is not None
    hour, minutes = (replace(SAID, usage=Usage(0, 0, 1000, 0, raw=each)) for each in (raw, {}))
    more = recorded_bill((hour,), price_model), recorded_bill((minutes,), price_model)
    rates = price.rates()
    assert more == pytest.approx((rates.long_cache_write / 1000, rates.cache_write / 1000))


def test_a_session_with_rewinds_and_side_chains_is_billed_call_by_call_on_the_recorded_arm_alone(
    tmp_path: Path,
) -> None:
    session = tmp_path / "session.jsonl"
    session.write_text(CLAUDE_CODE.read_text("utf-8").replace("claude-x", "claude-sonnet-4-5"), "utf-8")
    run = replayed(session)
    agent = run.calls[run.calls["purpose"] == "agent"]
    recorded = agent[agent["arm"] == "none"]
    assert recorded["cost_billed_usd"].notna().sum() == 5
    assert agent.loc[agent["arm"] != "none", "cost_billed_usd"].isna().all()
    assert set(agent["cost_kind"].dropna()) == {"cached"}
    table = recorded_usage(run)
    assert int(table["calls"].sum()) == 5
    assert table["billed_usd"].sum() == pytest.approx(recorded["cost_billed_usd"].sum())


def test_recorded_cache_buckets_stand_beside_the_simulated_ones(public_data: Callable[[str], Path]) -> None:
    run = replayed(
        public_data("transcripts/openhands/basic.json"),
        "cache_policy=anthropic_5m",
        "pricing.model=claude-3-5-sonnet-20241022",
    )
    (row,) = recorded_usage(run).to_dict("records")
    assert (row["sessions"], row["of"], row["calls"]) == (1, 1, 2)
    assert (row["recorded_cache_read_tokens"], row["recorded_cache_write_tokens"]) == (3482, 4640)
    # The log holds neither instructions nor tools: too little to be cached at the first call.
    assert row["simulated_input_tokens"] < row["recorded_input_tokens"] / 3
    assert row["simulated_cache_read_tokens"] == 0
