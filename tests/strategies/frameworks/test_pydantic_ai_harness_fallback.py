"""The harness's chain: the next strategy only when the one before failed, and only beyond the limit or when asked."""

from __future__ import annotations

import pytest

from compaction_lab.arm import ArmRun
from compaction_lab.conversation.log import Log
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.faulty import FaultySummarizer
from compaction_lab.strategies.base import Occasion
from compaction_lab.strategies.registry import strategy
from tests.strategies.fixture_f18 import f18
from tests.strategies.harness import CHARACTERS, Scribe, Slot, answered

CHAIN = [strategy("summarize", keep=0), strategy("sliding_window", keep_last=0)]


def kept(ask: object, occasion: Occasion = "before_call", **limits: object) -> list[str]:
    placed = strategy("pydantic_ai_harness/fallback_compaction", fallback_chain=CHAIN, **limits)
    arm = ArmRun(Log(f18()), (Slot(placed.run, placed.when, placed.history, CHARACTERS),), (), 500)
    return [message.text[:8] for message in answered(arm.occasion(occasion, 18), ask).messages]


def test_the_first_that_does_not_fail_decides() -> None:
    assert kept(Scribe(), max_tokens=100) == ["SYS", "Summary ", "summaris"]
    assert kept(FaultySummarizer("raising"), max_tokens=100) == ["SYS", "summaris"]


def test_without_a_limit_it_acts_only_when_asked() -> None:
    assert len(kept(Scribe())) == 18
    assert len(kept(Scribe(), "requested")) == 3
    assert len(kept(Scribe(), max_fraction=0.9)) == 3
    assert len(kept(Scribe(), max_fraction=0.9, context_window=10_000)) == 18


def test_a_chain_needs_a_strategy_and_one_limit_at_most() -> None:
    with pytest.raises(ConfigurationError, match="must not be empty"):
        strategy("pydantic_ai_harness/fallback_compaction", fallback_chain=[])
    with pytest.raises(ConfigurationError, match="set at most one"):
        kept(Scribe(), max_tokens=1, max_fraction=0.5)
