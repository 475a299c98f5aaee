"""Parameters: the framework's defaults, and its own words for what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

import compaction_lab as lab
from compaction_lab.errors import ConfigurationError

KEEP = "keep_last_tool_call_groups must be greater than or equal to 0."


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        ("truncation", {"max_n": 0, "compact_to": 1}, "max_n must be greater than 0."),
        ("truncation", {"max_n": 1, "compact_to": 0}, "compact_to must be greater than 0."),
        ("truncation", {"max_n": 1, "compact_to": 2}, "compact_to must be less than or equal to max_n."),
        ("sliding_window", {"keep_last_groups": 0}, "keep_last_groups must be more than 0, got 0"),
        ("selective_tool_call", {"keep_last_tool_call_groups": -1}, KEEP),
        ("tool_result", {"keep_last_tool_call_groups": -1}, KEEP),
        ("summarization", {"target_count": 0}, "target_count must be greater than 0."),
        ("summarization", {"threshold": -1}, "threshold must be greater than or equal to 0."),
        ("summarization", {"max_summary_input_tokens": 0}, "max_summary_input_tokens must be greater than 0."),
        ("context_window", {"max_context_window_tokens": 0}, "max_context_window_tokens must be positive."),
        (
            "context_window",
            {"max_output_tokens": 100},
            "max_output_tokens must be >= 0 and < max_context_window_tokens.",
        ),
        (
            "context_window",
            {"max_output_tokens": -1},
            "max_output_tokens must be >= 0 and < max_context_window_tokens.",
        ),
        ("context_window", {"tool_eviction_threshold": 0.0}, "tool_eviction_threshold must be in (0.0, 1.0]."),
        ("context_window", {"truncation_threshold": 1.5}, "truncation_threshold must be in (0.0, 1.0]."),
        ("context_window", {"truncation_threshold": 0.4}, "truncation_threshold must be >= tool_eviction_threshold."),
        ("context_window", {"max_context_window_tokens": 1, "max_output_tokens": 0}, "max_n must be greater than 0."),
        ("context_window", {"keep_last_tool_call_groups": -1}, KEEP),
    ],
)
def test_what_is_refused(name: str, parameters: dict[str, Any], text: str) -> None:
    if name == "context_window":
        parameters = {"max_context_window_tokens": 100, "max_output_tokens": 10} | parameters
    with pytest.raises(ConfigurationError) as refused:
        lab.strategy(f"agent_framework/{name}", **parameters)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("truncation", "max_n"),
        ("sliding_window", "keep_last_groups"),
        ("token_budget_composed", "token_budget"),
        ("context_window", "max_context_window_tokens"),
    ],
)
def test_what_has_no_default_must_be_given(name: str, missing: str) -> None:
    with pytest.raises(ConfigurationError, match=f"needs {missing}"):
        lab.strategy(f"agent_framework/{name}")


def test_a_budget_may_be_anything_but_needs_a_tokenizer() -> None:
    children = [lab.strategy("agent_framework/sliding_window", keep_last_groups=1)]
    lab.strategy("agent_framework/token_budget_composed", token_budget=-5, tokenizer="characters", strategies=children)
    with pytest.raises(ConfigurationError, match="tokenizer"):
        lab.strategy("agent_framework/token_budget_composed", token_budget=5, strategies=children)


def test_any_object_that_counts_is_a_tokenizer() -> None:
    class Words:
        def count_tokens(self, text: str) -> int:
            return len(text.split())

    talk = [{"role": "user", "content": f"message {n}"} for n in range(9)]
    truncating = lab.strategy("agent_framework/truncation", max_n=60, compact_to=30, tokenizer=Words())
    assert [m["content"] for m in lab.compact(talk, truncating).messages] == ["message 7", "message 8"]
    with pytest.raises(ConfigurationError, match="count_tokens"):
        lab.strategy("agent_framework/truncation", max_n=60, compact_to=30, tokenizer=object())


def test_the_defaults_are_the_frameworks() -> None:
    import inspect

    framework = pytest.importorskip("agent_framework")
    classes = {
        "truncation": framework.TruncationStrategy,
        "sliding_window": framework.SlidingWindowStrategy,
        "selective_tool_call": framework.SelectiveToolCallCompactionStrategy,
        "tool_result": framework.ToolResultCompactionStrategy,
        "summarization": framework.SummarizationStrategy,
        "token_budget_composed": framework.TokenBudgetComposedStrategy,
        "context_window": framework.ContextWindowCompactionStrategy,
    }
    from compaction_lab.strategies.registry import RESERVED, preset

    for name, theirs in classes.items():
        ours = preset(f"agent_framework/{name}")
        parameters = inspect.signature(theirs).parameters
        own = {key for key in ours if key not in RESERVED}
        assert own == {key for key in parameters if key not in {"client", "tokenizer"}}, name
        for key in own | {"tokenizer"} & set(parameters):
            default = parameters[key].default
            assert ours[key] == ("???" if default is inspect.Parameter.empty else default), f"{name}.{key}"


def test_the_parameters_of_a_composition_can_be_written_down() -> None:
    child = lab.strategy("agent_framework/sliding_window", keep_last_groups=1)
    budget = lab.strategy(
        "agent_framework/token_budget_composed", token_budget=5, tokenizer="characters", strategies=[child]
    )
    written = json.loads(json.dumps(budget.parameters))
    assert written["strategies"] == [
        {
            "preset": "agent_framework/sliding_window",
            "keep_last_groups": 1,
            "preserve_system": True,
        }
    ]
    assert lab.strategy("agent_framework/token_budget_composed", **written).run == budget.run
