"""From overrides and grid lines to cells: lines united, values multiplied within a line, duplicates fallen together."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from compaction_lab.configuration import ConfigurationFiles, configuration_files, did_you_mean
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.profiles import profile
from compaction_lab.conversation.tokens import tokenizer
from compaction_lab.errors import ConfigurationError
from compaction_lab.records import Cell
from compaction_lab.sweep.cells import RESULT_KEYS, Identity, cell_key, option_label, path_names, require_values
from compaction_lab.sweep.composer import ARM_GROUPS, Composer
from compaction_lab.sweep.composer import composer as shared_composer
from compaction_lab.sweep.nodes import Node, add, assign, child, delete, show
from compaction_lab.sweep.overrides import Override, OverrideReader, split_line

ARM_KEYS = frozenset({*ARM_GROUPS, "arm"})
RUN_KEYS = frozenset({"experiment", "grid", "trials", "executor", "baseline", "name"})
"""Keys that belong to the run as a whole: they hold one value and are no part of a line."""

ENVIRONMENT_KEYS = ("model", "dataset", "seed")
COMMON_KEYS = frozenset(RESULT_KEYS) - {*ARM_GROUPS, *ENVIRONMENT_KEYS, "mode", "references"}
UNKEPT = frozenset({"grid", "executor", "arm", "name"})
"""What a cell's configuration leaves out: it says nothing about the cell itself."""

MODES = ("replay", "live")


@dataclass(frozen=True, slots=True)
class Grid:
    """Every cell of one invocation, and what holds for all of them.

    ``config`` is the configuration of the run as a whole (``executor``, ``trials``, ...); ``baseline`` is the label of
    the uncompacted arm, ``None`` when it was switched off.
    """

    name: str
    cells: tuple[Cell, ...]
    trials: int
    baseline: str | None
    config: Node


@dataclass(frozen=True, slots=True)
class _Point:
    """One combination of values: its resolved configuration, its arm's name and its options as shipped."""

    config: Node
    shipped: Node
    arm: str | None = None
    is_baseline: bool = False


def expand(
    overrides: Sequence[str],
    arms: Sequence[str] = (),
    *,
    name: str | None = None,
    config_directories: Iterable[str | Path] = (),
    on_error: str | None = None,
    identity: Identity | None = None,
) -> Grid:
    """Expand a command line into cells.

    Parameters
    ----------
    overrides
        In Hydra's grammar, as typed. Those of ``strategy``, ``after_strategy`` and ``summarizer`` form one line that
        replaces the experiment's grid; all others apply to every line and win.
    arms
        Further grid lines (``--arm``).
    name
        The run's name; by default the experiment's, else the dataset's and six digits over the cell keys.
    config_directories
        The user's own folders of configuration files.
    on_error
        ``stop`` or ``skip``: what recorded datasets do with a record that cannot be read; ``None`` leaves it to them.
    identity
        What is hashed beside a configuration; by default what :mod:`compaction_lab.sweep.unit` says.

    Raises
    ------
    ConfigurationError
        When an override, a name or a combination is not one the lab knows.
    """
    files = configuration_files(config_directories)
    composer = shared_composer(files)
    reader = OverrideReader(files)
    given = reader.read_all(overrides)
    run_config, experiment = _run_configuration(composer, given)
    lines = _lines(files, run_config, experiment, given, arms)
    experiment_choice = [each for each in given if each.key == "experiment"]
    common = [*experiment_choice, *(each for each in given if each.group not in ARM_KEYS | RUN_KEYS)]
    points = [point for line in lines for point in _points(composer, reader, line, common)]
    _settle_datasets([child(point.config, "dataset") for point in points], on_error)
    with_baseline = [*_baselines(composer, points, run_config), *points]
    cells, baseline = _cells(with_baseline, run_config, identity or _unit_identity())
    return Grid(
        name=_run_name(name or cast("str | None", run_config.get("name")), experiment, cells),
        cells=cells,
        trials=_positive(run_config, "trials"),
        baseline=baseline,
        config=run_config,
    )


def _unit_identity() -> Identity:
    from compaction_lab.sweep.unit import identity

    return identity


def _run_configuration(composer: Composer, given: Sequence[Override]) -> tuple[Node, str | None]:
    """Compose what holds for the whole run; sweeps have no place in it."""
    choices: dict[str, str | None] = {}
    values: list[Override] = []
    for override in given:
        if override.group not in RUN_KEYS:
            continue
        if len(override.values) > 1:
            raise ConfigurationError(
                f"{override.text!r}: {override.group} holds for the whole run and takes one value; start a run for each"
            )
        if override.action == "choose":
            choices[override.key] = cast("str | None", override.values[0])
        else:
            values.append(override)
    experiment = choices.get("experiment")
    if experiment is not None and "strategy" in composer.files.read("experiment", experiment):
        raise ConfigurationError(
            f"{composer.files.options('experiment')[experiment]}: an experiment holds grid lines, not a strategy body; "
            "write it as a line of grid:, such as - strategy=truncation strategy.max_tokens=4000"
        )
    config = copy.deepcopy(composer(choices))
    for override in values:
        _apply(config, override, override.values[0])
    return config, experiment


def _lines(
    files: ConfigurationFiles, run_config: Node, experiment: str | None, given: Sequence[Override], arms: Sequence[str]
) -> list[tuple[str, ...]]:
    typed = tuple(each.text for each in given if each.group in ARM_KEYS)
    grid = run_config.get("grid")
    if not isinstance(grid, list) or not all(isinstance(line, str) for line in grid):
        where = f"{files.options('experiment')[experiment]}: grid" if experiment else "grid"
        raise ConfigurationError(
            f"{where}: expected a list of override lines, such as [strategy=none, strategy=truncation "
            f"strategy.max_tokens=4000], found {show(grid)}"
        )
    written = [typed] if typed else [tuple(split_line(cast("str", line))) for line in grid]
    return [*written, *(tuple(split_line(line)) for line in arms)] or [()]


def _points(
    composer: Composer, reader: OverrideReader, line: tuple[str, ...], common: Sequence[Override]
) -> Iterator[_Point]:
    """Every combination of a line's values with those given for all lines, which win."""
    own = reader.read_all(line)
    for override in own:
        if override.group in RUN_KEYS:
            raise ConfigurationError(
                f"grid line {' '.join(line)!r}: {override.group} holds for the whole run; give it outside the line"
            )
    winning = {override.key for override in common}
    chosen = {override.key for override in common if override.action == "choose"}
    if "dataset.path" in winning:
        chosen.add("dataset")
    kept = [each for each in own if each.key not in winning and each.group not in chosen]
    combined = [*kept, *common]
    if any(each.key == "dataset.path" for each in combined) and not any(each.key == "dataset" for each in combined):
        combined.append(Override("dataset=recorded", "dataset", ("recorded",), "choose"))
    for values in itertools.product(*(override.values for override in combined)):
        yield _point(composer, list(zip(combined, values, strict=True)))


def _point(composer: Composer, setting: Sequence[tuple[Override, JSON]]) -> _Point:
    choices = {o.key: cast("str | None", value) for o, value in setting if o.action == "choose"}
    if choices.get("strategy", "none") is None:
        raise ConfigurationError("strategy=null: an arm without a strategy is strategy=none")
    shipped = composer(choices)
    config = copy.deepcopy(shipped)
    arm: str | None = None
    for override, value in setting:
        if override.key == "arm":
            arm = show(value)
        elif override.action != "choose":
            _apply(config, override, value)
    for group in ("strategy", "after_strategy"):
        config[group] = composer.expand_presets(config.get(group))
    if config.get("mode") == "live":
        config["references"] = None  # what an agent used and had from earlier is known of recordings alone
    _check(config)
    return _Point(config, shipped, arm)


def _apply(config: Node, override: Override, value: JSON) -> None:
    if override.action == "delete":
        delete(config, override.key)
    elif override.action == "add":
        group = config.get(override.group)
        kind = group.get("kind") if isinstance(group, dict) else None
        if override.group in ARM_GROUPS and kind != "foreign":
            assign(config, override.key, copy.deepcopy(value), override.text)
        add(config, override.key, copy.deepcopy(value))
    else:
        assign(config, override.key, copy.deepcopy(value), override.text)


def _check(config: Node) -> None:
    require_values(config)
    for group in ENVIRONMENT_KEYS[:2]:
        if config.get(group) is None:
            raise ConfigurationError(f"{group}: none is chosen; add {group}=NAME (`compaction-lab options {group}`)")
    if config.get("mode") not in MODES:
        raise ConfigurationError(
            f"mode={show(config.get('mode'))}: expected replay or live.{did_you_mean(show(config.get('mode')), MODES)}"
        )
    if isinstance(config.get("seed"), bool) or not isinstance(config.get("seed"), int):
        raise ConfigurationError(f"seed={show(config.get('seed'))}: expected a whole number")
    _check_mode(config)
    _check_counting(config)
    dataset = child(config, "dataset")
    if isinstance(path := dataset.get("path"), str):
        resolved = Path(path).expanduser().resolve()
        if not resolved.exists():
            raise ConfigurationError(
                f"dataset.path={path}: there is no such file or folder (looked at {resolved}); "
                "expected a recorded session or a folder of them"
            )
        dataset["path"] = str(resolved)


def _check_mode(config: Node) -> None:
    """Refuse what can never be replayed, or never be answered, before a run folder exists."""
    kind = child(config, "dataset").get("kind")
    if config["mode"] == "live" and kind == "recorded":
        raise ConfigurationError(
            "mode=live: a recorded session has no user and no tools to talk to; expected mode=replay, or a scenario "
            "(`compaction-lab options dataset`)"
        )
    if config["mode"] == "replay" and kind == "scenario":
        raise ConfigurationError(
            "mode=replay: a scenario holds no recorded answers; expected mode=live, or a recorded session "
            "(dataset.path=FILE)"
        )
    if config["mode"] == "live" and child(config, "model").get("kind") == "recorded":
        raise ConfigurationError(
            "model=recorded: mode=live needs a model that answers, such as stub_shop; "
            "`compaction-lab options model` lists all"
        )


def _check_counting(config: Node) -> None:
    """Refuse a tokenizer, a provider profile or a window that no unit could use."""
    tokenizer(show(config.get("tokenizer")))
    profile(show(config.get("provider_profile")))
    window = config.get("window")
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < 1):
        raise ConfigurationError(f"window={show(window)}: expected a whole number of tokens of at least 1, or null")


def _settle_datasets(datasets: Sequence[Node], on_error: str | None) -> None:
    """Name recorded datasets after their files, apart from each other, and say what they do with bad records."""
    unnamed = [dataset for dataset in datasets if dataset.get("name") is None]
    names = path_names(sorted({show(dataset.get("path")) for dataset in unnamed}))
    for dataset in unnamed:
        dataset["name"] = names[show(dataset.get("path"))]
    for dataset in datasets:
        if on_error is not None and "on_error" in dataset:
            dataset["on_error"] = on_error


def _baselines(composer: Composer, points: Sequence[_Point], run_config: Node) -> Iterator[_Point]:
    """Give one uncompacted point for each model, dataset and seed."""
    preset = run_config.get("baseline")
    if preset is None:
        return
    composer.files.require("strategy", show(preset))
    strategy = composer.strategy(show(preset))
    arm: Node = {"strategy": strategy, "after_strategy": None, "summarizer": run_config.get("summarizer")}
    seen: set[str] = set()
    for point in points:
        environment = "|".join(show(point.config.get(key)) for key in ENVIRONMENT_KEYS)
        if environment not in seen:
            seen.add(environment)
            config = {**copy.deepcopy(point.config), **copy.deepcopy(arm)}
            require_values(config)
            yield _Point(config, {**point.shipped, **arm}, is_baseline=True)


def _cells(points: Sequence[_Point], run_config: Node, identity: Identity) -> tuple[tuple[Cell, ...], str | None]:
    """Key and label every point; equal ones fall together."""
    _refuse_other_variation(points)
    cells: dict[str, Cell] = {}
    named: dict[str, str] = {}
    baseline_key = ""
    for point in points:
        config = {key: value for key, value in point.config.items() if key not in UNKEPT}
        key = cell_key(config, identity(config))
        baseline_key = key if point.is_baseline else baseline_key
        cells.setdefault(key, _cell(key, point, config, run_config.get("summarizer")))
        if point.arm is not None:
            if named.setdefault(key, point.arm) != point.arm:
                raise ConfigurationError(
                    f"arms {named[key]!r} and {point.arm!r} are the same configuration; keep one of them"
                )
            cells[key] = replace(cells[key], arm=point.arm)
    baseline = cells[baseline_key].arm if baseline_key else None
    shared: Node = {
        "trials": run_config.get("trials"),
        "baseline": run_config.get("baseline"),
        "baseline_arm": baseline,
    }
    finished = [
        replace(cell, config={**cell.config, **shared, "is_baseline": _is_uncompacted(cell)}) for cell in cells.values()
    ]
    _refuse_shared_labels(finished)
    return tuple(finished), baseline


def _is_uncompacted(cell: Cell) -> bool:
    """Whether a recorded bill is this arm's own."""
    return child(dict(cell.config), "strategy").get("kind") == "none" and cell.config.get("after_strategy") is None


def _cell(key: str, point: _Point, config: Node, usual_summarizer: JSON) -> Cell:
    arm = [option_label("strategy", child(config, "strategy"), child(point.shipped, "strategy"), main=True)]
    if isinstance(after := config.get("after_strategy"), dict):
        arm.append(option_label("after_strategy", after, child(point.shipped, "after_strategy")))
    summarizer = config.get("summarizer")
    if summarizer is None and usual_summarizer is not None:
        arm.append("summarizer=null")
    elif isinstance(summarizer, dict) and summarizer != usual_summarizer:
        same = isinstance(usual_summarizer, dict) and usual_summarizer.get("name") == summarizer.get("name")
        label = option_label("summarizer", summarizer, child(point.shipped, "summarizer"))
        arm.append(label.partition(" ")[2] if same else label)
    names = {
        group: option_label(group, child(config, group), child(point.shipped, group), main=True)
        for group in ("model", "dataset")
    }
    return Cell(key, " ".join(arm), names["model"], names["dataset"], cast("int", config["seed"]), config)


def _refuse_other_variation(points: Sequence[_Point]) -> None:
    """Within a run only the arm, the model, the dataset and the seed may vary: the rest is compared across runs."""
    first = points[0].config
    for point in points[1:]:
        for key in sorted(COMMON_KEYS):
            if point.config.get(key) != first.get(key):
                values = sorted({show(each.config.get(key)) for each in points})
                raise ConfigurationError(
                    f"{key} varies within one run ({' and '.join(values[:3])}): only the arm, model, dataset and seed "
                    "may; start a run for each value and compare them with `compaction-lab compare RUN RUN`"
                )


def _refuse_shared_labels(cells: Sequence[Cell]) -> None:
    arms: dict[tuple[str, str], str] = {}
    places: dict[tuple[str, str, str, int], str] = {}
    for cell in cells:
        body = json.dumps([cell.config.get(group) for group in ARM_GROUPS], sort_keys=True)
        if arms.setdefault(("arm", cell.arm), body) != body:
            raise ConfigurationError(
                f"two different arms are called {cell.arm!r}; name one of them in its line with arm=NAME"
            )
        place = (cell.arm, cell.model, cell.dataset, cell.seed)
        if places.setdefault(place, cell.key) != cell.key:
            raise ConfigurationError(
                f"two different cells are called {' · '.join(map(str, place))}; set mode, model.name or dataset.name "
                "so that they differ by name"
            )


def _run_name(given: str | None, experiment: str | None, cells: Sequence[Cell]) -> str:
    if given is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", given):
            raise ConfigurationError(
                f"--name {given!r}: expected letters, digits, dots, dashes and underscores, since it names a folder"
            )
        return given
    if experiment is not None:
        return experiment.replace("/", "_")
    digest = hashlib.sha256("".join(sorted(cell.key for cell in cells)).encode()).hexdigest()[:6]
    dataset = re.sub(r"[^A-Za-z0-9._-]+", "_", show(child(dict(cells[0].config), "dataset").get("name"))).lstrip("._-")
    return f"{dataset or 'run'}-{digest}"


def _positive(config: Node, key: str) -> int:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{key}={show(value)}: expected a whole number of at least 1")
    return value
