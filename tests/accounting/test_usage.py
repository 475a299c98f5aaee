from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction_lab.accounting.usage import DIALECTS, long_cache_write_tokens, read_usage
from compaction_lab.errors import ConfigurationError

OPENAI = {
    "prompt_tokens": 2006,
    "completion_tokens": 300,
    "total_tokens": 2306,
    "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 192, "audio_tokens": None},
}

# payload -> fresh, read, written, output, reasoning
READ = [
    ("openai_chat", OPENAI, (86, 1920, 0, 108, 192)),
    ("openai_chat", {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": None}, (7, 0, 0, 3, 0)),
    (
        "openai_responses",
        {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 300},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 20},
            "total_tokens": 1050,
        },
        (60, 640, 300, 30, 20),
    ),
    (
        "anthropic",
        {
            "input_tokens": 12,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 5000,
            "output_tokens": 120,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
        },
        (12, 5000, 300, 120, 0),
    ),
    (
        "gemini",
        {
            "promptTokenCount": 204082,
            "cachedContentTokenCount": 200658,
            "candidatesTokenCount": 100,
            "thoughtsTokenCount": 2326,
            "toolUsePromptTokenCount": 10,
            "totalTokenCount": 206518,
        },
        (3434, 200658, 0, 100, 2326),
    ),
    ("gemini", {"prompt_token_count": 9, "candidates_token_count": 4, "total_token_count": 13}, (9, 0, 0, 4, 0)),
    ("gemini_openai", {"prompt_tokens": 5, "completion_tokens": 10, "total_tokens": 515}, (5, 0, 0, 10, 500)),
    (
        "deepseek",
        {
            "prompt_tokens": 500,
            "prompt_cache_hit_tokens": 448,
            "prompt_cache_miss_tokens": 52,
            "completion_tokens": 40,
            "total_tokens": 540,
        },
        (52, 448, 0, 40, 0),
    ),
    ("vllm", {"prompt_tokens": 31, "completion_tokens": 8, "total_tokens": 39}, (31, 0, 0, 8, 0)),
    (
        "litellm",
        {
            "prompt_tokens": 3486,
            "completion_tokens": 1135,
            "total_tokens": 4621,
            "prompt_tokens_details": {"cached_tokens": 0},
            "cache_creation_input_tokens": 3482,
            "cache_read_input_tokens": 0,
        },
        (4, 0, 3482, 1135, 0),
    ),
    (
        "litellm",  # written tokens are inside the prompt: billing them beside it would charge them twice
        {"prompt_tokens": 2000, "cache_read_tokens": 500, "cache_write_tokens": 300, "completion_tokens": 10},
        (1200, 500, 300, 10, 0),
    ),
    (
        "otel",
        {
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_creation.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        (10, 60, 30, 15, 5),
    ),
    (
        "inspect",
        {
            "input_tokens": 10,
            "output_tokens": 20,
            "total_tokens": 130,
            "input_tokens_cache_read": 60,
            "input_tokens_cache_write": 40,
            "reasoning_tokens": 8,
        },
        (10, 60, 40, 12, 8),
    ),
    (
        "langfuse",
        {"input": 40, "output": 15, "total": 155, "input_cache_read": 80, "output_reasoning": 20},
        (40, 80, 0, 15, 20),
    ),
    (
        "langsmith",
        {
            "input_tokens": 350,
            "output_tokens": 240,
            "total_tokens": 590,
            "input_token_details": {"cache_creation": 200, "cache_read": 100},
            "output_token_details": {"reasoning": 200},
        },
        (50, 100, 200, 40, 200),
    ),
    (
        "codex",
        {
            "last_token_usage": {
                "input_tokens": 900,
                "cached_input_tokens": 800,
                "output_tokens": 60,
                "reasoning_output_tokens": 10,
                "total_tokens": 960,
            },
            "total_token_usage": {"input_tokens": 90_000, "output_tokens": 6_000},
        },
        (100, 800, 0, 50, 10),
    ),
    (
        "agent_framework",
        {"input_token_count": 30, "cache_read_input_token_count": 20, "output_token_count": 4},
        (10, 20, 0, 4, 0),
    ),
]


@pytest.mark.parametrize(("dialect", "payload", "buckets"), READ)
def test_buckets_are_disjoint(dialect: str, payload: dict[str, object], buckets: tuple[int, ...]) -> None:
    reading = read_usage(payload, dialect)
    assert reading is not None
    usage = reading.usage
    assert (
        usage.fresh_input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    ) == buckets
    assert reading.odd == ()
    assert usage.raw == payload


def test_every_dialect_has_a_case() -> None:
    assert {dialect for dialect, _, _ in READ} == set(DIALECTS)


def test_more_cached_than_prompt_means_beside_it() -> None:
    payload = {"prompt_tokens": 50, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5383}}
    reading = read_usage(payload, "openai_chat")
    assert reading is not None
    assert (reading.usage.input_tokens, reading.odd) == (5433, ("cache_beside_input",))


def test_a_total_that_only_the_other_direction_explains_decides() -> None:
    beside = read_usage(
        {"prompt_tokens": 80, "completion_tokens": 9, "total_tokens": 129, "cache_read_tokens": 40}, "litellm"
    )
    inside = read_usage({"input": 80, "output": 9, "total": 89, "input_cache_read": 40}, "langfuse")
    thinking = read_usage({**OPENAI, "total_tokens": 2306 + 192}, "openai_chat")
    assert beside is not None
    assert inside is not None
    assert thinking is not None
    assert (beside.usage.input_tokens, beside.odd) == (120, ("cache_beside_input",))
    assert (inside.usage.fresh_input_tokens, inside.odd) == (40, ("cache_inside_input",))
    assert (thinking.usage.output_tokens, thinking.odd) == (300, ("reasoning_beside_output",))


@pytest.mark.parametrize(
    "payload",
    [None, {}, {"prompt_tokens": 5}, {"prompt_tokens": "5", "completion_tokens": -1}, {"prompt_tokens": True}],
)
def test_unknown_is_not_zero(payload: dict[str, object] | None) -> None:
    assert read_usage(payload, "openai_chat") is None


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="found 'cobol', expected one of"):
        read_usage({}, "cobol")


def test_the_share_written_for_an_hour_is_read_from_the_raw_payload() -> None:
    reading = read_usage(READ[3][1], "anthropic")
    assert reading is not None
    assert long_cache_write_tokens(reading.usage) == 200


@given(st.sampled_from(sorted(DIALECTS)), st.tuples(*[st.none() | st.integers(0, 50)] * 6))
def test_no_bucket_is_ever_negative_and_nothing_is_lost(dialect: str, numbers: tuple[int | None, ...]) -> None:
    form = DIALECTS[dialect]
    payload: dict[str, object] = {}
    fields = (form.input, form.output, form.read, form.written, form.reasoning, form.total)
    for paths, number in zip(fields, numbers, strict=True):
        if paths:
            node = payload
            for key in paths[0][:-1]:
                node = node.setdefault(key, {})  # type: ignore[assignment]
            node[paths[0][-1]] = number
    reading = read_usage(payload, dialect)
    sent, received = numbers[0], numbers[1]
    if sent is None or received is None:
        assert reading is None
        return
    assert reading is not None
    usage = reading.usage
    assert min(usage.fresh_input_tokens, usage.output_tokens, usage.reasoning_tokens) >= 0
    assert usage.input_tokens in (sent, sent + usage.cache_read_tokens + usage.cache_write_tokens)
    assert usage.output_tokens + usage.reasoning_tokens in (received, received + usage.reasoning_tokens)
