from __future__ import annotations

import pytest

from compaction_lab.accounting.latency import LatencyModel
from compaction_lab.conversation.messages import Usage
from compaction_lab.errors import ConfigurationError


def test_the_defaults_give_back_the_published_times() -> None:
    model = LatencyModel()
    assert model.first_token_s(Usage(fresh_input_tokens=10_000)) == pytest.approx(1.6)
    assert model.first_token_s(Usage(fresh_input_tokens=100_000)) == pytest.approx(11.5)
    assert model.first_token_s(Usage(cache_read_tokens=100_000)) == pytest.approx(2.4)


def test_written_tokens_are_processed_and_reasoning_is_written() -> None:
    model = LatencyModel(base_s=1, fresh_input_s=0.1, cache_read_s=0.01, output_s=0.5)
    assert model.seconds(Usage(1, 100, 2, 3, 4)) == pytest.approx(1 + 0.3 + 1.0 + 3.5)


def test_a_coefficient_that_is_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"latency\.output_s: found -1"):
        LatencyModel(output_s=-1)
