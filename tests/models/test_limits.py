"""What may be asked a minute, and what may be spent, over all who share the file."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from compaction_lab.accounting.prices import price_model
from compaction_lab.conversation.messages import user
from compaction_lab.errors import BudgetReached, ModelError
from compaction_lab.models.base import ModelRequest
from compaction_lab.models.budget import Budget, BudgetedModel
from compaction_lab.models.limiter import Limits, RateLimiter
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.models.patience import LONGEST_PAUSE_S, asked_pause_s, backoff_s, passes
from compaction_lab.models.shared_file import transaction
from tests.models.faulty_server import Fault, FaultyServer, completion, error, running


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def time(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def limiter(path: Path, clock: Clock, provider: str = "a", **limits: int) -> RateLimiter:
    return RateLimiter(path, provider, Limits(**limits), clock=clock.time, sleep=clock.sleep)


def test_requests_a_minute_are_counted_over_all_limiters_of_a_provider(tmp_path: Path) -> None:
    path, clock = tmp_path / "limits.sqlite", Clock()
    one, two, other = (limiter(path, clock, provider, requests_per_minute=2) for provider in "aab")
    assert (one.wait(1), two.wait(1), other.wait(1)) == (0, 0, 0)
    assert 60 <= one.wait(1) <= 66


def test_tokens_a_minute_are_kept_and_an_oversized_request_goes_alone(tmp_path: Path) -> None:
    one = limiter(tmp_path / "limits.sqlite", Clock(), tokens_per_minute=100)
    assert (one.wait(60), one.wait(40)) == (0, 0)
    assert one.wait(500) >= 60
    assert one.wait(1) >= 60


def test_a_clock_that_is_set_back_holds_nobody(tmp_path: Path) -> None:
    clock = Clock()
    one = limiter(tmp_path / "limits.sqlite", clock, requests_per_minute=1)
    one.wait(1)
    one.hold(30)
    clock.now_s -= 86_400
    assert one.wait(1) == 0
    assert 60 <= one.wait(1) <= 66


def test_a_pause_that_a_provider_asks_for_holds_all_who_ask_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "limits.sqlite", Clock()
    one, two, other = limiter(path, clock), limiter(path, clock, requests_per_minute=9), limiter(path, clock, "b")
    one.hold(30)
    one.hold(5)
    assert other.wait(1) == 0
    assert 30 <= two.wait(1) <= 33
    assert one.wait(1) == 0


def test_every_attempt_takes_a_place_and_retry_after_goes_through_the_limiter(tmp_path: Path) -> None:
    clock = Clock()
    one = limiter(tmp_path / "limits.sqlite", clock, tokens_per_minute=10_000)
    with running(FaultyServer(faults=[Fault(429, error("slow down"), {"Retry-After": "20"})])) as server:
        model = OpenAICompatible("m", server.url, key_variable="", max_output_tokens=90, retries=1, limiter=one)
        assert model(ModelRequest((user("hi"),))).text
    assert server.requests == 2
    assert 1_020 <= clock.now_s <= 1_022
    with transaction(one.path, write=False) as database:
        reserved = [tokens for (tokens,) in database.execute("select tokens from spent").fetchall()]
    assert len(reserved) == 2
    assert min(reserved) > 90


def test_a_server_that_asks_for_hours_is_not_waited_for() -> None:
    with running(FaultyServer(always=Fault(429, error("daily limit"), {"Retry-After": "7200"}))) as server:
        model = OpenAICompatible("m", server.url, key_variable="", retries=3)
        with pytest.raises(ModelError, match=r"come back in 7,200 s"):
            model(ModelRequest((user("hi"),)))
    assert server.requests == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_pause_s(headers) == seconds


def test_a_date_is_a_pause_and_backoff_grows_with_jitter() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 <= (asked_pause_s({"retry-after": in_a_minute}) or 0) <= 60
    pauses = [[backoff_s(attempt) for _ in range(20)] for attempt in range(4)]
    assert all(max(earlier) <= 2 * min(later) for earlier, later in itertools.pairwise(pauses))
    assert all(len(set(drawn)) > 1 for drawn in pauses)
    assert backoff_s(40) <= LONGEST_PAUSE_S
    assert [passes(status, {}) for status in (408, 429, 503, 404)] == [True, True, True, False]
    assert not passes(429, {"x-should-retry": "false"})


def budgeted(server: FaultyServer, budget: Budget, **settings: object) -> BudgetedModel:
    price = price_model("gpt-5-mini")
    assert price is not None
    endpoint = OpenAICompatible("m", server.url, **{"key_variable": "", "retries": 0, **settings})
    return BudgetedModel(endpoint, endpoint, budget, price)


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
