"""A strategy's memory survives being written as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.errors import StrategyError
from compaction_lab.strategies.ageing import Aged
from compaction_lab.strategies.memory import decode, encode
from compaction_lab.strategies.summarization import Summarised
from compaction_lab.strategies.truncation import Dropped

keys = st.tuples(st.integers(0, 99), st.integers(0, 3))
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
known = st.one_of(
    st.builds(Aged, st.integers(0, 99), st.lists(keys).map(tuple)),
    st.builds(Dropped, keys, st.lists(keys).map(tuple)),
    st.builds(Summarised, st.integers(0, 99), st.none() | keys),
)
memories = st.recursive(values | known, lambda inner: st.lists(inner, max_size=3).map(tuple))


@given(memories)
def test_what_is_decoded_is_what_was_encoded(memory: object) -> None:
    back = decode(json.loads(json.dumps(encode(memory))))
    assert back == memory
    assert type(back) is type(memory)


def test_what_has_no_json_form_is_refused_by_type() -> None:
    with pytest.raises(StrategyError, match="memory of type set"):
        encode({1})
