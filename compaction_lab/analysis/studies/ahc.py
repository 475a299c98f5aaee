"""Five compaction strategies on LongMemEval with an LLM reader and judge (adaptive_hybrid_compaction, R8)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from compaction_lab.analysis.studies.base import Line, Measured, Study, files, line
from compaction_lab.analysis.studies.pairs import paired, scaled
from compaction_lab.statistics import estimators

SOURCE = (
    "`references/mle-harness/results/longmemeval_main.jsonl` of AlekseiSDev/adaptive_hybrid_compaction, commit acfb30c "
    "(no licence stated; the rows are read, not copied)."
)
METHOD = (
    "judge labels of the main experiment (seed 42, budget 8,000 tokens, 120 questions), paired by question; McNemar "
    "exact, Holm over four strategies, matched-rates intervals."
)
FILE = "longmemeval_main.jsonl"
MAIN = "main_seed42_b8k"
SECOND = "main_seed43_b8k"
BASELINE = "full_context"
_PUBLISHED = {
    "full_context": (65.0, 103_122, 0.0418, None),
    "task_aware": (73.3, 1_705, 0.0009, 8.3),
    "rolling_summary": (55.8, 11_470, 0.0048, -9.2),
    "type_aware": (45.8, 7_895, 0.0044, -19.2),
    "naive_truncation": (18.3, 7_775, 0.0041, -46.7),
}
_SECOND_PUBLISHED = {
    "full_context": 66.0,
    "task_aware": 86.0,
    "rolling_summary": 54.0,
    "type_aware": 36.0,
    "naive_truncation": 24.0,
}


def recompute(data: Path) -> Study:
    """Return the study recomputed from the judged rows."""
    (path,) = files(data, "ahc", "ahc", [FILE])
    rows = read_rows(path)
    main = rows[rows["experiment"] == MAIN]
    second = rows[rows["experiment"] == SECOND]
    return Study(
        "ahc",
        "Five compaction strategies on LongMemEval",
        SOURCE,
        METHOD,
        [*_strategies(main), *_differences(main), *_second(second), *_budget(main)],
        (
            (
                "Only truncation and the structural strategy are told apart from the full context after Holm's "
                "correction; the gain of query-aware extraction and the loss of the rolling summary are within what "
                "120 questions cannot resolve."
            ),
            (
                "Query-aware extraction sees the question when it compacts: an upper bound, not an online strategy. "
                "The rolling summary is over its budget of 8,000 tokens."
            ),
        ),
    )


def read_rows(path: Path) -> pd.DataFrame:
    """Return the judged rows; ``right`` is 1, 0 or missing."""
    rows = pd.read_json(path, lines=True, dtype={"question_id": str})
    rows["right"] = rows["judge_label"].astype("float64")
    return rows


def _by_question(rows: pd.DataFrame, strategy: str) -> pd.DataFrame:
    return rows[rows["strategy"] == strategy].set_index("question_id").sort_index()


def _rate(rows: pd.DataFrame) -> Measured:
    known = rows["right"].dropna()
    interval = estimators.wilson_interval(int(known.sum()), len(known))
    return scaled(Measured(interval.estimate, interval, len(known), len(known)), 100)


def _strategies(main: pd.DataFrame) -> list[Line]:
    lines = []
    for strategy, (right, tokens, usd, _) in _PUBLISHED.items():
        mine = _by_question(main, strategy)
        lines += [
            line("R8", f"{strategy}: right", "%", right, _rate(mine), bar=0.05, digits=1),
            line(
                "R8",
                f"{strategy}: tokens after compaction",
                "",
                tokens,
                float(mine["compacted_tokens"].mean()),
                bar=0.5,
                digits=0,
            ),
            line("R8", f"{strategy}: cost a question", "$", usd, float(mine["driver_usd"].mean()), bar=5e-5, digits=4),
        ]
    return lines


def _differences(main: pd.DataFrame) -> list[Line]:
    full = _by_question(main, BASELINE)
    names = [name for name in _PUBLISHED if name != BASELINE]
    found = [
        paired(_by_question(main, name)["right"].loc[full.index].to_numpy(), full["right"].to_numpy()) for name in names
    ]
    adjusted = estimators.holm([one.p for one in found])
    return [
        line(
            "R8",
            f"{name} - full_context",
            "points",
            _PUBLISHED[name][3],
            scaled(one.difference, 100),
            bar=0.05,
            note=f"McNemar exact p = {one.p:.2g}, Holm {p:.2g}; standard error {100 * one.error:.1f}; a difference of "
            f"{100 * one.detectable:.0f} points would have been seen with 80 % power.",
            digits=1,
        )
        for name, one, p in zip(names, found, adjusted, strict=True)
    ]


def _second(second: pd.DataFrame) -> list[Line]:
    return [
        line("R8", f"{name}, second seed: right", "%", right, _rate(_by_question(second, name)), bar=0.05, digits=1)
        for name, right in _SECOND_PUBLISHED.items()
    ]


def _budget(main: pd.DataFrame) -> list[Line]:
    rolling = _by_question(main, "rolling_summary")
    over = int((rolling["compacted_tokens"] > rolling["budget"]).sum())
    return [
        line(
            "R8",
            "rolling_summary: questions over the budget",
            "",
            None,
            Measured(float(over), n=len(rolling)),
            digits=0,
        )
    ]
