"""From a cell's configuration to one finished unit: builds what takes part, runs it, and returns its rows.

Datasets and models are built once per process and shared by all cells, so text is tokenised once.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from compaction_lab.accounting.cache_policy import cache_policy
from compaction_lab.accounting.latency import LatencyModel
from compaction_lab.arm import Slot
from compaction_lab.conf_path import datasets_directory
from compaction_lab.configuration import configuration_files
from compaction_lab.conversation.counting import counting_rule
from compaction_lab.conversation.messages import JSON, ToolDefinition
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError
from compaction_lab.importers.lab import transcript_line
from compaction_lab.importers.load import ImportReport, read_transcripts
from compaction_lab.models.base import Model
from compaction_lab.models.registry import SEMANTICS as MODEL_SEMANTICS
from compaction_lab.models.registry import Role, build_model
from compaction_lab.quality.calibrated import SEMANTICS as CALIBRATED_SEMANTICS
from compaction_lab.quality.calibrated import CalibratedReader
from compaction_lab.quality.judges import SEMANTICS as JUDGE_SEMANTICS
from compaction_lab.quality.judges import Judge, judge
from compaction_lab.quality.llm_judge import SEMANTICS as LLM_JUDGE_SEMANTICS
from compaction_lab.quality.llm_judge import ModelJudge, Pool
from compaction_lab.quality.references import SEMANTICS as REFERENCE_SEMANTICS
from compaction_lab.quality.references import ReferenceRules
from compaction_lab.recording import Accounts
from compaction_lab.records import Cell, UnitResult
from compaction_lab.replay import Cast, replay_recorded, run_live
from compaction_lab.scenarios.base import Scenario
from compaction_lab.scenarios.planted_facts import plant_from
from compaction_lab.scenarios.registry import SEMANTICS as SCENARIO_SEMANTICS
from compaction_lab.scenarios.registry import scenarios
from compaction_lab.scenarios.retrieval import retrieval_transcripts
from compaction_lab.strategies.registry import PlacedStrategy, build
from compaction_lab.sweep.endpoints import (
    check_models,
    endpoint_price,
    is_real,
    price_named,
    priced_as,
    pricing_of,
    real_models,
)

Config = Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class _Dataset:
    """Transcripts by id, the hash of their content, and what the import of recorded ones had to say."""

    transcripts: dict[str, Transcript]
    sha256: str
    report: ImportReport | None = None


@cache
def counter(name: str) -> TokenCounter:
    """Return the counting rule of a tokenizer, one object per process."""
    return TokenCounter(tokenizer(name))


def run_unit(cell: Cell, transcript_id: str, trial: int) -> UnitResult:
    """Run one unit.

    Raises
    ------
    CompactionLabError
        The configuration cannot be honoured, a model failed, or a strategy broke the rules.
    """
    config = cell.config
    accounts = _accounts(config, recorded_bill=cell.arm == config.get("baseline_arm"))
    live = config["mode"] == "live"
    dataset = _node(config, "dataset")
    seed = unit_seed(cell, transcript_id, trial)
    if live:
        scenario = _scenarios(_text(dataset))[transcript_id]
        model = _model(config, "model", "agent")
        if model is None:
            msg = "mode=live needs a model that answers, such as stub_shop; 'compaction-lab options model' lists all"
            raise ConfigurationError(msg)
        tools = tuple(tool.definition for tool in scenario.tools)
        return run_live(scenario, model, _cast(config, tools, accounts, model, seed), accounts)
    transcript = _transcripts(_text(dataset))[transcript_id]
    return replay_recorded(transcript, _cast(config, transcript.tools, accounts, None, seed), accounts, cell.model)


def transcript_ids(cell: Cell) -> list[str]:
    """Return the ids of the transcripts of a cell's dataset, in order."""
    dataset = _node(cell.config, "dataset")
    return list(_scenarios(_text(dataset)) if dataset["kind"] == "scenario" else _transcripts(_text(dataset)))


def import_report(cell: Cell) -> ImportReport | None:
    """Return what was odd or left out when a cell's dataset was read; ``None`` for one that is generated."""
    dataset = _node(cell.config, "dataset")
    return None if dataset["kind"] == "scenario" else _recorded(_text(dataset)).report


def identity(config: Config) -> JSON:
    """Return what a configuration stands for beyond its own text: content hashes and semantics versions."""
    check_models(config)
    strategies = [
        _strategy(_text(cast("Config", config[key]))).semantics
        for key in ("strategy", "after_strategy")
        if config.get(key) is not None
    ]
    found: dict[str, JSON] = {
        "dataset": _content_hash(_text(_node(config, "dataset"))),
        "strategy": cast("JSON", strategies),
        "judge": LLM_JUDGE_SEMANTICS if _judging(config).get("kind") == "llm" else JUDGE_SEMANTICS,
        "model": MODEL_SEMANTICS,
        "scenario": SCENARIO_SEMANTICS,
    }
    if _references(config) is not None:
        found["references"] = REFERENCE_SEMANTICS
    if _reads_by_curve(config):
        found["calibrated"] = CALIBRATED_SEMANTICS
    return found


def unit_seed(cell: Cell, transcript_id: str, trial: int) -> int:
    """Return the seed of a unit: from the run's seed, what is asked and the trial, never from the arm.

    Arms of one pairing share it, so that what differs between them is the strategy.
    """
    text = json.dumps([cell.seed, cell.model, cell.dataset, transcript_id, trial])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _cast(
    config: Config, tools: tuple[ToolDefinition, ...], accounts: Accounts, agent: Model | None, seed: int
) -> Cast:
    summarizer = config.get("summarizer")
    blocks = True
    model: Model | None = None
    if isinstance(summarizer, Mapping):
        blocks = bool(summarizer.get("blocking", True))
        model = _model(config, "summarizer", "summarizer")
    scoring = _judge(config)
    name = scoring.name if isinstance(scoring, ModelJudge) else str(_judging(config).get("kind") or "subspan")
    return Cast(
        tuple(_slots(config, tools, accounts)),
        model,
        _reader(config, agent),
        scoring,
        name,
        blocks,
        _window(config),
        seed,
        _references(config),
    )


def _model(config: Config, part: str, role: Role, agent: Model | None = None) -> Model | None:
    node = _node(config, part)
    price = endpoint_price(node, config) if is_real(part, node) else None
    return build_model(node, role=role, agent=agent, price=price)


def _judging(config: Config) -> Config:
    judging = config.get("judge")
    return judging if isinstance(judging, Mapping) else {}


def _judge(config: Config) -> Judge | ModelJudge:
    node = _judging(config)
    if node.get("kind") != "llm":
        return judge(str(node.get("kind") or "subspan"))
    model = _model(config, "judge", "judge")
    if model is None:
        raise ConfigurationError("judge.kind=llm needs a model that answers; give judge.model=")
    top, repeats = (_whole(node, name) for name in ("top", "repeats"))
    return ModelJudge(model, top, repeats, cast("Pool", node.get("pool", "median")))


def _whole(node: Config, name: str) -> int:
    value = node.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"judge.{name}={value!r}; expected a whole number of at least 1")
    return value


def _reader(config: Config, agent: Model | None) -> Model | CalibratedReader | None:
    reader = config.get("reader")
    if not isinstance(reader, Mapping):
        return None
    if _reads_by_curve(config):
        return CalibratedReader.of(reader)
    return _model(config, "reader", "reader", agent)


def _reads_by_curve(config: Config) -> bool:
    reader = config.get("reader")
    return isinstance(reader, Mapping) and reader.get("kind") == "calibrated"


def _references(config: Config) -> ReferenceRules | None:
    node = config.get("references")
    return ReferenceRules.of(node) if isinstance(node, Mapping) and node.get("enabled", True) else None


def _slots(config: Config, tools: tuple[ToolDefinition, ...], accounts: Accounts) -> list[Slot]:
    slots = []
    for key in ("strategy", "after_strategy"):
        node = config.get(key)
        if node is None:
            continue
        placed = _strategy(_text(cast("Config", node)))
        rule = accounts.counter if placed.tokenizer is None else counting_rule(placed.tokenizer)
        overhead = rule.tools(tools) + rule.request_overhead
        slots.append(Slot(placed.run, placed.when, placed.history, rule, overhead))
    return slots


def _accounts(config: Config, *, recorded_bill: bool) -> Accounts:
    model = str(pricing_of(config).get("model") or "")
    policy = config.get("cache_policy")
    if isinstance(policy, str):
        policy = configuration_files().read("cache_policy", policy)
    caching = cache_policy(cast("Config | None", policy), model)
    price = price_named(model, config) if model else None
    return Accounts(
        counter(str(config.get("tokenizer") or "o200k_base")),
        price.with_long_writes() if price is not None and caching.long_writes else price,
        caching,
        LatencyModel(),
        recorded_bill,
        {str(node["model"]): endpoint_price(node, config) for _, node in real_models(config)},
        lambda name: price_named(name, config),
    )


def _window(config: Config) -> int | None:
    window = config.get("window")
    if isinstance(window, int):
        return window
    agent = dict(real_models(config)).get("model")
    model = priced_as(agent) if agent is not None else str(pricing_of(config).get("model") or "")
    price = price_named(model, config) if model else None
    return price.context_window if price is not None else None


@cache
def _strategy(node: str) -> PlacedStrategy:
    return build(json.loads(node))


@cache
def _scenarios(dataset: str) -> dict[str, Scenario]:
    return {scenario.id: scenario for scenario in scenarios(json.loads(dataset))}


def _transcripts(dataset: str) -> dict[str, Transcript]:
    return _recorded(dataset).transcripts


def _content_hash(dataset: str) -> str:
    node = json.loads(dataset)
    return _spoken(dataset) if node["kind"] == "scenario" else _recorded(dataset).sha256


@cache
def _generated(dataset: str) -> _Dataset:
    """Return the transcripts of a retrieval task."""
    return _hashed(retrieval_transcripts(json.loads(dataset)))


def _recorded(dataset: str) -> _Dataset:
    """Return a dataset; read again when its files have changed."""
    node = json.loads(dataset)
    if node["kind"] == "retrieval":
        return _generated(dataset)
    path = Path(node["path"]) if node.get("path") else datasets_directory() / node["file"]
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    state = tuple((str(file), (stat := file.stat()).st_mtime_ns, stat.st_size) for file in files if file.is_file())
    return _read(dataset, path, state)


@cache
def _read(dataset: str, path: Path, state: tuple[tuple[str, int, int], ...]) -> _Dataset:
    del state  # part of the cache's key
    node = json.loads(dataset)
    loaded, report = read_transcripts(path, format=node.get("format"), on_error=node.get("on_error") or "stop")
    if node.get("planted") is not None:
        loaded = [plant_from(transcript, node["planted"]) for transcript in loaded]
    return _hashed(loaded, report)


def _hashed(transcripts: list[Transcript], report: ImportReport | None = None) -> _Dataset:
    digest = hashlib.sha256()
    for transcript in transcripts:
        digest.update(transcript_line(transcript))
    # Transcripts stay for the life of the process; the collector need not look through them again and again.
    gc.collect()
    gc.freeze()
    return _Dataset({transcript.id: transcript for transcript in transcripts}, digest.hexdigest(), report)


@cache
def _spoken(dataset: str) -> str:
    """Return the hash of everything fixed that is said in a scenario: openings, turns, tools and probes."""
    said = [
        [
            scenario.id,
            [message.text for message in scenario.opening],
            [turn.user for turn in scenario.turns],
            [[tool.definition.name, tool.definition.description] for tool in scenario.tools],
            [[number, probe.question, *probe.gold] for number, asked in scenario.probes.items() for probe in asked],
        ]
        for scenario in _scenarios(dataset).values()
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _node(config: Config, key: str) -> Config:
    node = config.get(key)
    if not isinstance(node, Mapping):
        msg = f"{key}={node!r}; expected one of the options that 'compaction-lab options {key}' lists"
        raise ConfigurationError(msg)
    return node


def _text(node: Config) -> str:
    return json.dumps(node, sort_keys=True)
