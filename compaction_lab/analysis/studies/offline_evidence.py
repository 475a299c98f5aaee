"""Do scores without a model predict what models answered? Asked of the two public data sets with real outcomes.

First, five strategies on LongMemEval: whole histories are compacted once by the nearest presets of ours, and evidence
survival and the calibrated reader are set beside the judged answers to the same questions. Second, recall at five
depths of compaction: the calibrated curve, fitted without a fact, is asked about that fact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compaction_lab.analysis.studies import ahc, lost_in_compaction, recall_model
from compaction_lab.analysis.studies.base import DataAbsent, Line, Measured, Study, files, line
from compaction_lab.analysis.studies.resampling import (
    RESAMPLES,
    Rows,
    area,
    brier,
    measured,
    over_groups,
    over_groups_p,
    slope,
    within_clusters,
)
from compaction_lab.arm import ArmRun, Slot
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import user
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.importers import load_transcripts
from compaction_lab.models.stub_summarizer import ExtractiveSummarizer
from compaction_lab.quality.calibrated import CalibratedReader
from compaction_lab.statistics import estimators
from compaction_lab.statistics.estimators import Interval
from compaction_lab.strategies.registry import PlacedStrategy, strategy

FEWEST_TASKS = 25
"""With fewer matched tasks nothing is called validated."""

BUDGET_TOKENS = 8_000
ORACLE = "task_aware"
SCORES = (("evidence survival", "survival"), ("expected recall", "expected"))
SOURCE = (
    "judged answers of five strategies (adaptive_hybrid_compaction, commit acfb30c) on LongMemEval-S histories, and "
    "recall outcomes of Lost in Compaction (commit 8be3154). Neither project published a score without a model."
)
METHOD = (
    "each history compacted once, at its end, by the nearest preset of ours; summaries by the extractive stub "
    "(simulated). Intervals resample tasks, or facts, with all their rows (percentile, 2,000 resamples, seed 0)."
)

NEAREST: dict[str, Callable[[], PlacedStrategy]] = {
    "full_context": lambda: strategy("none"),
    "task_aware": lambda: strategy(
        "memory_blocks",
        token_limit=400,
        chat_history_token_ratio=0.5,
        token_flush_size=1,
        fact_block=False,
        archive_top_k=5,
    ),
    "rolling_summary": lambda: strategy(
        "chunked_summary", chunk_tokens=4_400, keep=20, unit="turn", merge="join", max_summary_tokens=220
    ),
    "type_aware": lambda: strategy(
        "codex/compact", model_auto_compact_token_limit=BUDGET_TOKENS, compact_user_message_max_tokens=4_800
    ),
    "naive_truncation": lambda: strategy("truncation", max_tokens=BUDGET_TOKENS),
}
"""By strategy of the public rows, the preset of ours that does most nearly the same within the same budget."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One task under one strategy: what we say without a model, and what a model did."""

    task: str
    kind: str
    strategy: str
    right: float
    survival: float
    expected: float
    tokens: int
    public_tokens: float


def recompute(data: Path) -> Study:
    """Return how well our scores without a model predict the public outcomes.

    Raises
    ------
    DataAbsent
        Judged rows, recall rows or LongMemEval tasks are missing.
    """
    (judged,) = files(data, "offline_evidence", "ahc", [ahc.FILE])
    (recall,) = files(data, "offline_evidence", "lost_in_compaction", [lost_in_compaction.DATA])
    rows = ahc.read_rows(judged)
    outcomes = rows[rows["experiment"].isin([ahc.MAIN, ahc.SECOND])]
    tasks = _tasks(data, set(outcomes["question_id"]))
    without = [name for name, transcript in tasks.items() if not transcript.probes[0].evidence]
    frame = pd.DataFrame([one for transcript in tasks.values() for one in scores(transcript, outcomes)])
    matched = int(frame["task"].nunique()) if len(frame) else 0
    lines = [*_counts(len(tasks), len(without), matched)]
    findings = [_verdict(frame, matched)]
    if matched:
        lines += [*_of_strategies(frame), *_agreement(frame)]
        findings += _failures(frame)
    return Study(
        "offline_evidence",
        "Do scores without a model predict what models answered?",
        SOURCE,
        METHOD,
        [*lines, *_depths(recall)],
        findings,
    )


def _tasks(data: Path, wanted: set[str]) -> dict[str, Transcript]:
    """Return the LongMemEval tasks whose ids occur in the judged rows."""
    places = (data / "long_memory", data.parent / "long_memory")
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise DataAbsent(
            f"study offline_evidence: data absent: no folder {places[0]} (nor {places[1]}) with LongMemEval tasks, one "
            "JSON file each; datasets/README.md says where to get them"
        )
    found = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem.removeprefix("lme_") in wanted:
            for transcript in load_transcripts(path):
                found[transcript.id] = transcript
    return {name: transcript for name, transcript in sorted(found.items()) if transcript.probes}


def scores(transcript: Transcript, outcomes: pd.DataFrame) -> list[Scored]:
    """Return a task's scores under every strategy that has a judged answer; none where no turn holds the answer.

    Parameters
    ----------
    transcript
        A LongMemEval task with its probe.
    outcomes
        Judged rows; a task that both seeds judged counts once, with its mean.
    """
    (probe,) = transcript.probes
    if not probe.evidence:
        return []
    judged = outcomes[outcomes["question_id"] == transcript.id].dropna(subset=["right"]).groupby("strategy")
    right, tokens = judged["right"].mean(), judged["compacted_tokens"].mean()
    counter = TokenCounter(tokenizer("o200k_base"))
    log = Log(transcript.messages)
    log.append(user(probe.question))
    found = []
    for name, preset in NEAREST.items():
        if name not in right.index:
            continue
        context = compacted(log, preset(), counter)
        row = CalibratedReader().judged(probe, context, counter)
        found.append(
            Scored(
                transcript.id,
                probe.kind,
                name,
                float(right[name]),
                float(str(row["evidence_visible"])),
                float(str(row["score"])),
                context.tokens(counter),
                float(tokens[name]),
            )
        )
    return found


def compacted(log: Log, placed: PlacedStrategy, counter: TokenCounter) -> Context:
    """Return what a strategy leaves of a whole conversation that ends with a question.

    Parameters
    ----------
    log
        The conversation with the question as its last message.
    placed
        The strategy; its summaries are written by the extractive stub.
    counter
        Its counting rule.
    """
    summarizer = ExtractiveSummarizer()
    slot = Slot(placed.run, placed.when, placed.history, counter, counter.request_overhead)
    occurring = ArmRun(log, (slot,)).occasion(placed.when, len(log))
    try:
        requests = next(occurring)
        while True:
            requests = occurring.send(tuple(summarizer(request) for request in requests))
    except StopIteration as end:
        context: Context = end.value
        return context


def _counts(found: int, without: int, matched: int) -> list[Line]:
    note = "Questions that cannot be answered have no evidence to lose; they are left out." if without else ""
    return [
        line("E1", "LongMemEval tasks with judged rows", "", None, found, digits=0),
        line("E1", "of them without evidence, left out", "", None, without, note=note, digits=0),
        line("E1", "matched tasks", "", None, matched, digits=0),
    ]


def _of_strategies(frame: pd.DataFrame) -> list[Line]:
    """Return what each strategy kept and what models answered from it."""
    lines = []
    for name in NEAREST:
        mine = frame[frame["strategy"] == name]
        ours, theirs = mine["tokens"].mean(), mine["public_tokens"].mean()
        note = f"Tokens left: {ours:,.0f} by our preset, {theirs:,.0f} in the public rows."
        for what, column in (("answered right", "right"), *SCORES):
            values = mine[column].to_numpy(dtype=np.float64)
            found = estimators.clustered_interval(values)
            interval = Interval(found.estimate, max(0.0, found.low), min(1.0, found.high))
            value = Measured(found.estimate, interval, len(mine), len(mine))
            lines.append(line("E1", f"{name}: {what}", "", None, value, note=note, digits=2))
    return lines


def _rows(frame: pd.DataFrame, column: str) -> Rows:
    return Rows.of(frame[column], frame["right"], frame["strategy"].tolist(), frame["task"].tolist())


def _agreement(frame: pd.DataFrame) -> list[Line]:
    """Return how well each score goes with the judged answers."""
    measures = (
        ("rank correlation over strategies (Spearman)", over_groups),
        ("rank correlation within tasks (mean Kendall tau-b)", within_clusters),
        ("area under the ROC curve", area),
        ("Brier score", brier),
        ("slope of outcome on score", slope),
    )
    online = frame[frame["strategy"] != ORACLE]
    lines = []
    for what, column in SCORES:
        for name, measure in measures:
            value = measured(_rows(frame, column), measure)
            lines.append(line("E1", f"{what}: {name}", "", None, value, digits=2))
        value = measured(_rows(online, column), area)
        note = f"{ORACLE} sees the question when it compacts; this line leaves it out."
        lines.append(
            line("E1", f"{what}: area under the ROC curve, four strategies", "", None, value, note=note, digits=2)
        )
    return lines


def _depths(path: Path) -> list[Line]:
    """Return recall by depth beside the curve's expectation for held-out facts and the survival of the evidence."""
    rows = recall_model.read(path)
    used = rows[rows["experiment"].isin(recall_model.USED)].reset_index(drop=True)
    used["expected"] = recall_model.held_out(used)
    used["survival"] = (used["position_pct"] >= used["compaction_pct"]).astype("float64")
    lines = []
    for depth in sorted(set(used["compaction_pct"])):
        part = used[used["compaction_pct"] == depth]
        facts = part["fact_id"].tolist()
        outcome = part["recalled"].to_numpy(dtype=np.float64)
        value = Measured(
            float(outcome.mean()), estimators.clustered_interval(outcome, facts), len(part), len(set(facts))
        )
        note = (
            "Under published stands what the curve expects of facts it has not seen, under ours what was recalled. "
            "The bar is five points."
        )
        expected = float(part["expected"].mean())
        lines.append(line("E2", f"{depth} % compacted: expected, recalled", "", expected, value, bar=0.05, note=note))
    for what, column in (("evidence survival", "survival"), ("expected recall, held-out facts", "expected")):
        table = Rows.of(used[column], used["recalled"], used["compaction_pct"].tolist(), used["fact_id"].tolist())
        for name, measure in (
            ("rank correlation over five depths (Spearman)", over_groups),
            ("area under the ROC curve", area),
            ("Brier score", brier),
            ("slope of outcome on score", slope),
        ):
            value = measured(table, measure, resamples=RESAMPLES // 4)
            lines.append(line("E2", f"{what}: {name}", "", None, value, digits=2))
    return lines


def _verdict(frame: pd.DataFrame, matched: int) -> str:
    if matched < FEWEST_TASKS:
        return f"Not validated: {matched} matched tasks, and at least {FEWEST_TASKS} are asked for."
    parts = []
    for what, column in SCORES:
        table = _rows(frame, column)
        strategies, single = measured(table, over_groups), measured(table, area)
        parts.append(
            f"{what} ranks the five strategies as the judged answers do with Spearman {_with_interval(strategies)}, "
            f"exact p = {over_groups_p(table):.2f}, and tells single right answers from wrong ones with an area under "
            f"the ROC curve of {_with_interval(single)}"
        )
    return f"On {matched} matched tasks, {'; '.join(parts)} (0.5 would be chance)."


def _with_interval(value: Measured) -> str:
    bounds = value.interval
    return f"{value.value:.2f}" if bounds is None else f"{value.value:.2f} ({bounds.low:.2f} to {bounds.high:.2f})"


def _failures(frame: pd.DataFrame) -> list[str]:
    """Say where the scores and the answers part."""
    whole, gone = frame[frame["survival"] == 1], frame[frame["survival"] == 0]
    means = frame.groupby("strategy")[["survival", "right"]].mean()
    gaps = {str(name): float(gap) for name, gap in (means["survival"] - means["right"]).items()}
    over, under = max(gaps, key=gaps.__getitem__), min(gaps, key=gaps.__getitem__)
    errors = {
        str(kind): float(np.square(part["survival"] - part["right"]).mean()) for kind, part in frame.groupby("kind")
    }
    worst, best = max(errors, key=errors.__getitem__), min(errors, key=errors.__getitem__)
    return [
        (
            f"Where all evidence survived, models were right in {whole['right'].mean():.0%} of {len(whole)} cases: "
            "what survives is not always read."
        ),
        (
            f"Where none survived verbatim, they were still right in {gone['right'].mean():.0%} of {len(gone)} cases: "
            "the public strategies write summaries that our stub's extracts do not match word for word."
        ),
        (
            f"Survival promises most too much for {over} ({gaps[over]:+.2f} against the rate of right answers) and too "
            f"little for {under} ({gaps[under]:+.2f})."
        ),
        (
            f"By kind of question it errs most on {worst} (Brier {errors[worst]:.2f}) and least on {best} "
            f"({errors[best]:.2f})."
        ),
        (
            "Reference recall is not scored here: the question comes after the last recorded answer, so no answer in "
            "the history uses what is asked for."
        ),
        (
            "At five depths of compaction the curve, fitted without the facts it is asked about, is calibrated; on the "
            "other data set it ranks answers no better than survival does and expects far too little there. "
            "It does not carry over to other strategies and readers."
        ),
    ]
