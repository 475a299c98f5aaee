"""What may be asked a minute, and what may be spent, over all who share the file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compaction_lab.accounting.prices import price_model
from compaction_lab.conversation.messages import user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.errors import BudgetReached, ModelError
from compaction_lab.models.base import ModelRequest
from compaction_lab.models.budget import Budget, BudgetedModel
from compaction_lab.models.limiter import LimitedModel, Limits, RateLimiter
from compaction_lab.models.openai_compatible import OpenAICompatible
from tests.models.faulty_server import Fault, FaultyServer, completion, error, running


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def time(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def waits(limiter: RateLimiter, clock: Clock, tokens: list[int]) -> list[float]:
    return [round(limiter.wait(count, clock=clock.time, sleep=clock.sleep)) for count in tokens]


def test_requests_a_minute_are_counted_over_all_limiters_of_a_provider(tmp_path: Path) -> None:
    path, clock, limits = tmp_path / "limits.sqlite", Clock(), Limits(requests_per_minute=2)
    one, two = RateLimiter(path, "a", limits), RateLimiter(path, "a", limits)
    assert waits(one, clock, [1]) + waits(two, clock, [1]) == [0, 0]
    assert waits(RateLimiter(path, "b", limits), clock, [1]) == [0]
    assert 60 <= waits(one, clock, [1])[0] <= 66


def test_tokens_a_minute_are_kept_and_an_oversized_request_goes_alone(tmp_path: Path) -> None:
    clock = Clock()
    limiter = RateLimiter(tmp_path / "limits.sqlite", "a", Limits(tokens_per_minute=100))
    assert waits(limiter, clock, [60, 40]) == [0, 0]
    assert waits(limiter, clock, [500])[0] >= 60
    assert waits(limiter, clock, [1])[0] >= 60


def test_the_longest_answer_counts(tmp_path: Path) -> None:
    clock = Clock()
    with running() as server:
        endpoint = OpenAICompatible("m", server.url, key_variable="", max_output_tokens=90)
        limiter = RateLimiter(tmp_path / "limits.sqlite", "a", Limits(tokens_per_minute=100))
        LimitedModel(endpoint, limiter, TokenCounter(tokenizer("o200k_base")))(ModelRequest((user("hi"),)))
        assert limiter._reserve(50, clock.now_s) >= 0
        with limiter._transaction() as database:
            ((tokens,),) = database.execute("select tokens from spent").fetchall()
    assert tokens > 90


def budgeted(server: FaultyServer, budget: Budget, **settings: object) -> BudgetedModel:
    price = price_model("gpt-5-mini")
    assert price is not None
    endpoint = OpenAICompatible("m", server.url, **{"key_variable": "", "retries": 0, **settings})
    return BudgetedModel(endpoint, endpoint, budget, price, TokenCounter(tokenizer("o200k_base")))


def test_no_call_is_made_that_could_exceed_the_budget(tmp_path: Path) -> None:
    # gpt-5-mini: 2 USD a million tokens of answer; at most 1,000 tokens, so 0.002 USD; each answer has 100.
    answer = completion(usage={"prompt_tokens": 10, "completion_tokens": 100})
    with running(FaultyServer(answer=lambda _: answer)) as server:
        budget = Budget.start(tmp_path / "budget.sqlite", 0.0025)
        model = budgeted(server, budget, max_output_tokens=1000)
        for _ in range(3):
            model(ModelRequest((user("hi"),)))
        assert budget.spent_usd() == pytest.approx(3 * (10 * 0.25 + 100 * 2) / 1e6)
        with pytest.raises(BudgetReached, match="--max-cost"):
            model(ModelRequest((user("hi"),)))
        assert server.requests == 3


def test_concurrent_calls_reserve_before_they_ask(tmp_path: Path) -> None:
    with running(FaultyServer(delay_s=0.2)) as server:
        budget = Budget.start(tmp_path / "budget.sqlite", 0.005)
        model = budgeted(server, budget, max_output_tokens=1000)

        def ask(number: int) -> bool:
            try:
                model(ModelRequest((user(f"hi {number}"),)))
            except BudgetReached:
                return False
            return True

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(ask, range(6))) == 2
        assert server.requests == 2


def test_a_failed_call_costs_nothing_and_workers_find_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget.start(tmp_path / "with:colon.sqlite", 1.0)
    with running(FaultyServer(always=Fault(500, error("oops")))) as server, pytest.raises(ModelError):
        budgeted(server, budget)(ModelRequest((user("hi"),)))
    assert budget.spent_usd() == 0
    assert Budget.of_environment() is None
    monkeypatch.setenv("COMPACTION_LAB_BUDGET", budget.announce())
    assert Budget.of_environment() == budget
