"""From a command line to cells: what multiplies, what falls together, what is refused, and what a key depends on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction_lab.configuration import configuration_files
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import CompactionLabError, ConfigurationError
from compaction_lab.sweep.composer import Composer
from compaction_lab.sweep.grid import Grid, expand

SESSION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is the lamp?"},
    {"role": "assistant", "content": "On the desk."},
]


def grid(*overrides: str, arms: tuple[str, ...] = (), identity: JSON = None, **options: object) -> Grid:
    return expand(overrides, arms, identity=lambda _: identity, **options)


def arms(expanded: Grid) -> list[str]:
    return list(dict.fromkeys(cell.arm for cell in expanded.cells))


def write_session(path: Path, last: str = "On the desk.") -> Path:
    messages = [*SESSION[:-1], {"role": "assistant", "content": last}]
    path.write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    return path


def test_values_multiply_within_a_line_and_the_baseline_comes_once_a_seed() -> None:
    expanded = grid("strategy=sliding_window", "strategy.keep_last=2,4,8", "seed=0,1", "dataset=laptop_catalog")
    assert [(cell.arm, cell.seed) for cell in expanded.cells] == [
        ("none", 0),
        ("none", 1),
        *((f"sliding_window{label}", seed) for label in (" keep_last=2", "", " keep_last=8") for seed in (0, 1)),
    ]
    assert expanded.baseline == "none"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=3))
def test_the_union_of_lines_does_not_depend_on_how_values_are_spread_over_lines(lines: list[list[int]]) -> None:
    spread = grid(
        arms=tuple(f"strategy=sliding_window strategy.keep_last={','.join(map(str, line))}" for line in lines)
    )
    flat = sorted({value for line in lines for value in line})
    together = grid("strategy=sliding_window", f"strategy.keep_last={','.join(map(str, flat))}")
    assert {cell.key for cell in spread.cells} == {cell.key for cell in together.cells}
    assert len({cell.key for cell in spread.cells}) == len(spread.cells)


def test_an_experiment_is_its_lines_united_with_arm_lines() -> None:
    expanded = grid("experiment=laptop_catalog", arms=("strategy=truncation strategy.max_tokens=4000",))
    assert arms(expanded) == [
        "none",
        "semantic_kernel/observation_masking",
        "semantic_kernel/summarization",
        "semantic_kernel/hybrid",
        "semantic_kernel/hybrid order=summarize_first",
        "truncation max_tokens=4000",
    ]
    assert expanded.name == "laptop_catalog"


def test_strategy_overrides_replace_an_experiments_lines_and_all_others_apply_to_every_line() -> None:
    replaced = grid("experiment=coding_session", "strategy=hybrid", "seed=7")
    assert arms(replaced) == ["none", "hybrid"]
    assert {cell.dataset for cell in replaced.cells} == {"coding_session"}
    kept = grid("experiment=coding_session", "dataset=laptop_catalog", "seed=7")
    assert len(arms(kept)) > 2
    assert {(cell.dataset, cell.model, cell.seed) for cell in kept.cells} == {("laptop_catalog", "stub_shop", 7)}


def test_overrides_outside_a_line_win_over_those_inside() -> None:
    expanded = grid("seed=5", arms=("strategy=hybrid seed=1,2",))
    assert [cell.seed for cell in expanded.cells] == [5, 5]


def test_glob_chooses_part_by_part() -> None:
    expanded = grid("strategy=glob(semantic_kernel/*,exclude=semantic_kernel/chat*)", "baseline=null")
    assert arms(expanded) == [
        "semantic_kernel/hybrid",
        "semantic_kernel/observation_masking",
        "semantic_kernel/summarization",
    ]


def test_mode_and_model_come_from_the_dataset_unless_given() -> None:
    expanded = grid("dataset=laptop_catalog,coding_session")
    settled = {cell.dataset: (cell.config["mode"], cell.model) for cell in expanded.cells}
    assert settled == {"laptop_catalog": ("live", "stub_shop"), "coding_session": ("replay", "recorded")}
    chosen = grid("dataset=coding_session", "model=stub_shop")
    assert (chosen.cells[0].config["mode"], chosen.cells[0].model) == ("replay", "stub_shop")


def test_labels_say_what_differs_from_the_default_and_nothing_else() -> None:
    expanded = grid(
        "model=stub_shop",
        "model.answer_tokens=7",
        arms=(
            "strategy=summarization strategy.every=10,5 summarizer.blocking=false",
            "strategy=none after_strategy=truncation after_strategy.max_tokens=900",
            "strategy=sliding_window strategy.trigger={any: [{tokens_exceed: 10}, {has_tool_calls: true}]}",
            "strategy=truncation strategy.max_tokens=1e3 arm='short leash'",
        ),
    )
    assert arms(expanded) == [
        "none",
        "summarization summarizer.blocking=false",
        "summarization every=5 summarizer.blocking=false",
        "none after_strategy=truncation after_strategy.max_tokens=900",
        "sliding_window trigger={any: [{tokens_exceed: 10}, {has_tool_calls: true}]}",
        "short leash",
    ]
    assert {cell.model for cell in expanded.cells} == {"stub_shop answer_tokens=7"}
    named = next(cell for cell in expanded.cells if cell.arm == "short leash")
    assert named.config["strategy"]["max_tokens"] == 1000


def test_a_named_uncompacted_line_is_the_baseline() -> None:
    expanded = grid(arms=("strategy=none arm=Basic", "strategy=hybrid"))
    assert arms(expanded) == ["Basic", "hybrid"]
    assert expanded.baseline == "Basic"
    assert grid("baseline=null", "strategy=hybrid").baseline is None


def test_recorded_sessions_are_named_after_their_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for name in ("a/one.jsonl", "b/one.jsonl", "two [x]=1.jsonl"):
        write_session(tmp_path / name)
    expanded = grid(f"dataset.path={tmp_path}/a/one.jsonl,{tmp_path}/b/one.jsonl")
    assert [cell.dataset for cell in expanded.cells] == ["a/one", "b/one"]
    awkward = grid(f"dataset.path={tmp_path}/two [x]=1.jsonl", "experiment=coding_session")
    assert {cell.dataset for cell in awkward.cells} == {"two [x]=1"}


def test_a_key_depends_on_content_and_not_on_where_or_how_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(tmp_path / "session.jsonl")

    def keys(*overrides: str, name: Path = path) -> list[str]:
        return [cell.key for cell in expand([f"dataset.path={name}", "strategy=hybrid", *overrides]).cells]

    plain = keys()
    (tmp_path / "elsewhere").mkdir()
    moved = write_session(tmp_path / "elsewhere" / "session.jsonl")
    monkeypatch.chdir(tmp_path)
    assert (
        plain == keys(name=moved) == keys("trials=3", "executor=processes", "name=other") == keys(name=Path(path.name))
    )
    (tmp_path / "changed").mkdir()
    changed = write_session(tmp_path / "changed" / "session.jsonl", last="Under the desk.")
    for other in (keys(name=changed), keys("seed=1"), keys("tokenizer=cl100k_base"), keys("strategy.every=9")):
        assert other[1] != plain[1]


@pytest.mark.parametrize(
    ("overrides", "lines", "expected"),
    [
        (["strategy=truncatoin"], [], ["no strategy 'truncatoin'", "Did you mean truncation"]),
        (["strategy=observation_maskin"], [], ["semantic_kernel/observation_masking"]),
        (["strategy=sliding_window", "strategy.keep=3"], [], ["'keep'", "Did you mean keep_last", "unit (turn)"]),
        (["strategy=sliding_window", "+strategy.keep=3"], [], ["'keep'"]),
        (["strategy=truncation"], [], ["no value for strategy.max_tokens"]),
        (["strategy=sliding_window", "strategy.keep_last=8k"], [], ["expected a number", "'8k'"]),
        (["strategy=sliding_window", "strategy.unit=hour"], [], ["hour"]),
        (["strategy=null"], [], ["strategy=none"]),
        (["sed=3"], [], ["no key 'sed'", "Did you mean seed"]),
        (["seed="], [], ["seed has no value"]),
        (["seed=1.5"], [], ["whole number"]),
        (["trials=0"], [], ["at least 1"]),
        (["trials=1,2"], [], ["one value"]),
        (["mode=replya"], [], ["Did you mean replay"]),
        (["mode=replay"], [], ["no recorded answers", "mode=live"]),
        (["dataset=coding_session", "mode=live"], [], ["no user", "mode=replay"]),
        (["model=recorded"], [], ["needs a model that answers"]),
        (["tokenizer=o200k"], [], ["Unknown tokenizer 'o200k'", "o200k_base"]),
        (["provider_profile=opneai"], [], ["unknown profile", "openai"]),
        (["window=-5"], [], ["at least 1"]),
        (["seed"], [], ["not an override"]),
        (["model.url=http://h/?q=1"], [], ["quotes of its own", "'model.url=\"http://h/?q=1\"'"]),
        (["tokenizer=o200k_base,cl100k_base"], [], ["tokenizer varies within one run"]),
        (["experiment=laptop"], [], ["no experiment 'laptop'", "laptop_catalog"]),
        (["dataset.path=nowhere.jsonl"], [], ["no such file"]),
        (["strategy={kind: none}"], [], ["chosen by name"]),
        (["name=a/b"], [], ["names a folder"]),
        ([], ["strategy=none arm=A", "strategy=none arm=B"], ["same configuration"]),
        ([], ["strategy=none arm=A", "strategy=hybrid arm=A"], ["two different arms are called 'A'"]),
        ([], ["strategy=hybrid trials=3"], ["outside the line"]),
        ([], ["strategy=sliding_window strategy.trigger={any: ["], ["']' is missing"]),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_a_way_out(
    overrides: list[str], lines: list[str], expected: list[str]
) -> None:
    with pytest.raises(CompactionLabError) as refusal:
        expand(overrides, lines)
    assert refusal.value.exit_code == 1
    for words in expected:
        assert words in str(refusal.value)


def test_own_configuration_files_stand_beside_the_labs(tmp_path: Path) -> None:
    (tmp_path / "strategy").mkdir()
    (tmp_path / "experiment").mkdir()
    (tmp_path / "strategy" / "mine.yaml").write_text("defaults: [sliding_window]\nkeep_last: 2\n")
    (tmp_path / "experiment" / "both.yaml").write_text(
        "# @package _global_\ntrials: 2\ngrid: [strategy=mine, strategy=hybrid]\n"
    )
    expanded = grid("experiment=both", config_directories=[tmp_path])
    assert (arms(expanded), expanded.trials, expanded.name) == (["none", "mine", "hybrid"], 2, "both")
    (tmp_path / "experiment" / "body.yaml").write_text("# @package _global_\nstrategy: {kind: none}\n")
    with pytest.raises(ConfigurationError, match="not a strategy body"):
        grid("experiment=body", config_directories=[tmp_path])
    with pytest.raises(ConfigurationError, match="no such folder"):
        grid(config_directories=[tmp_path / "nowhere"])


def test_presets_inside_a_list_are_written_out_and_checked() -> None:
    composer = Composer(configuration_files())
    expanded = composer.expand_presets({"strategies": [{"preset": "sliding_window", "keep_last": 2}, {"kind": "none"}]})
    assert isinstance(expanded, dict)
    first, second = expanded["strategies"]
    assert (first["kind"], first["keep_last"], first["unit"]) == ("sliding_window", 2, "turn")
    assert second == {"kind": "none"}
    with pytest.raises(ConfigurationError, match="no parameter 'kep'"):
        composer.expand_presets([{"preset": "sliding_window", "kep": 2}])


def test_ten_thousand_cells_expand() -> None:
    expanded = grid("strategy=sliding_window", "strategy.keep_last=range(1,101)", "seed=range(0,100)")
    assert len({cell.key for cell in expanded.cells}) == len(expanded.cells) == 10_100
