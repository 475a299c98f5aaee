"""Names, defaults and errors: what a configuration or a keyword call gets."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Pipeline, Triggered
from compaction_lab.strategies.hybrid import Hybrid
from compaction_lab.strategies.plain import SlidingWindow
from compaction_lab.strategies.registry import build, build_trigger, strategy
from compaction_lab.strategies.triggers import AllOf, AnyOf, HasToolCalls, Never, TokensExceed

CONTRACT = {
    "none": ({}, "before_call", "view"),
    "sliding_window": ({"keep_last": 4, "unit": "turn"}, "before_call", "view"),
    "observation_masking": (
        {"keep_last": 10, "unit": "step", "placeholder": "[tool result removed]"},
        "before_call",
        "view",
    ),
    "summarization": (
        {"every": 10, "unit": "turn", "keep_last": 0, "role": "user", "max_summary_tokens": 500},
        "after_turn",
        "stored",
    ),
    "hybrid": (
        {
            "mask_keep_last": 10,
            "mask_unit": "step",
            "every": 10,
            "unit": "turn",
            "keep_last": 0,
            "order": "mask_first",
        },
        "after_turn",
        "stored",
    ),
    "semantic_kernel/observation_masking": (
        {"keep_last": 0, "placeholder": "[TOOL_OBSERVATION_MASKED]"},
        "after_turn",
        "stored",
    ),
    "semantic_kernel/summarization": ({"every": 10}, "after_turn", "stored"),
    "semantic_kernel/hybrid": ({"every": 10, "order": "mask_first"}, "after_turn", "stored"),
}


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contracts_defaults(name: str) -> None:
    parameters, when, history = CONTRACT[name]
    placed = strategy(name)
    assert placed.name == name
    assert (placed.when, placed.history, placed.tokenizer) == (when, history, None)
    assert {key: placed.parameters[key] for key in parameters} == parameters


def test_truncation_stops_where_it_starts_unless_told_otherwise() -> None:
    assert strategy("truncation", max_tokens=100).parameters == {"max_tokens": 100, "target_tokens": None}


@pytest.mark.parametrize("name", ["summarization", "hybrid"])
def test_counting_steps_moves_the_occasion_before_the_call(name: str) -> None:
    placed = strategy(name, unit="step")
    assert (placed.when, placed.history) == ("before_call", "stored")


def test_a_placement_given_in_part_keeps_the_presets_rest() -> None:
    placed = strategy("semantic_kernel/observation_masking", placement={"history": "turn"})
    assert (placed.when, placed.history) == ("after_turn", "turn")


def test_one_placed_by_python_and_one_by_configuration_are_equal() -> None:
    node = {"kind": "sliding_window", "keep_last": 8, "unit": "turn", "placement": {"when": "overflow"}}
    assert build(node).run == SlidingWindow(8) == strategy("sliding_window", keep_last=8).run
    assert build(node).when == "overflow"


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("slidng_window", {}, "no strategy 'slidng_window'.*sliding_window"),
        ("observation_maskin", {}, "semantic_kernel/observation_masking"),
        ("sliding_window", {"keep": 3}, "no parameter 'keep'.*did you mean 'keep_last'.*it has: keep_last, unit"),
        ("none", {"keep_last": 3}, "no parameter 'keep_last'; it has: none"),
        ("truncation", {}, "truncation.*needs max_tokens.*strategy.max_tokens="),
        ("truncation", {"max_tokens": 0}, "max_tokens=0; expected a whole number of at least 1"),
        ("truncation", {"max_tokens": 5, "target_tokens": 9}, r"target_tokens \(9\) is above max_tokens \(5\)"),
        ("truncation", {"max_tokens": "many"}, "max_tokens='many'; expected a whole number"),
        ("truncation", {"max_tokens": 4.5}, "max_tokens=4.5; expected a whole number"),
        ("sliding_window", {"keep_last": -1}, "keep_last=-1; expected a whole number of at least 0"),
        ("sliding_window", {"keep_last": True}, "keep_last=True; expected a whole number"),
        ("sliding_window", {"unit": "turns"}, "unit='turns'; expected one of turn, step, group, message"),
        ("observation_masking", {"unit": "message"}, "unit='message'; expected one of step, turn, result"),
        ("observation_masking", {"placeholder": 3}, "placeholder=3; expected text"),
        ("summarization", {"every": 0}, "every=0; expected a whole number of at least 1"),
        ("summarization", {"role": "tool"}, "role='tool'; expected one of user, assistant, system"),
        ("hybrid", {"every": 0}, "every=0; expected a whole number of at least 1"),
        ("hybrid", {"order": "both"}, "order='both'; expected one of mask_first, summarize_first"),
        ("sliding_window", {"placement": {"when": "later"}}, "placement.when='later'; expected one of before_call"),
        ("sliding_window", {"placement": {"history": "never"}}, "placement.history='never'; expected one of view"),
        ("sliding_window", {"placement": "view"}, "placement='view'; expected {when"),
        ("sliding_window", {"trigger": {"tokens": 3}}, "trigger: unknown kind 'tokens'; did you mean tokens_"),
        ("sliding_window", {"trigger": {"tokens_exceed": "x"}}, "tokens='x'; expected a whole number"),
        ("sliding_window", {"trigger": {"a": 1, "b": 2}}, "expected one of all, always, any"),
    ],
)
def test_what_is_refused_says_what_was_found_and_what_was_expected(
    name: str, parameters: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        strategy(name, **parameters)
    assert re.search(words, str(refused.value)), str(refused.value)


def test_triggers_nest() -> None:
    node = {"any": [{"tokens_exceed": 32_000}, {"all": ["has_tool_calls", "never"]}]}
    assert build_trigger(node) == AnyOf((TokensExceed(32_000), AllOf((HasToolCalls(), Never()))))
    triggered = strategy("sliding_window", trigger=node).run
    assert triggered == Triggered(build_trigger(node), SlidingWindow())


def test_parameters_are_json_so_that_configurations_can_be_stored() -> None:
    for name in CONTRACT:
        parameters = dict(strategy(name).parameters)
        assert json.loads(json.dumps(parameters)) == parameters


def test_every_kind_is_known_whichever_module_was_imported_first() -> None:
    program = (
        "import compaction_lab.strategies.plain\n"
        "from compaction_lab import strategy\n"
        "strategy('truncation', max_tokens=5, trigger='always')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_strategy_is_a_value() -> None:
    assert strategy("hybrid") == strategy("hybrid")
    assert hash(strategy("hybrid").run) == hash(Hybrid())
    assert Pipeline((SlidingWindow(),)) == Pipeline((SlidingWindow(),))


@pytest.mark.parametrize("when", ["before_turn", "after_turn"])
def test_a_view_that_no_call_would_see_is_refused(when: str) -> None:
    with pytest.raises(ConfigurationError, match="would change no call"):
        strategy("sliding_window", placement={"when": when, "history": "view"})
