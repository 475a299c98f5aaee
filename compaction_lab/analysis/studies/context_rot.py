"""Context Rot (Chroma 2025): one model on the same questions with the whole history and with what matters (R5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from compaction_lab.analysis.studies.base import Measured, Study, files, line
from compaction_lab.analysis.studies.pairs import paired, scaled
from compaction_lab.statistics import estimators

SOURCE = (
    "Hong et al., Context Rot (Chroma, 2025), repository chroma-core/context-rot, commit 1091346, MIT. The report "
    "plots these rates; published here are the judgements counted by hand in its result files."
)
METHOD = "the judge's verdicts as released, paired by question; McNemar exact, matched-rates interval."
_FILES = ("gpt_4_1_longmemeval_full_evaluated.csv", "gpt_4_1_longmemeval_focused_evaluated.csv")


def recompute(data: Path) -> Study:
    """Return the study recomputed from the judged answers."""
    full, focused = (
        pd.read_csv(path, dtype={"llm_judge_output": str}).set_index("custom_id").sort_index()
        for path in files(data, "context_rot", "context_rot", _FILES)
    )
    common = full.index.intersection(focused.index)
    full, focused = full.loc[common], focused.loc[common]
    right = {
        name: (table["llm_judge_output"].str.strip().str.lower() == "true").to_numpy(dtype=np.float64)
        for name, table in (("full", full), ("focused", focused))
    }
    found = paired(right["focused"], right["full"])
    gained = int((right["focused"] > right["full"]).sum())
    lost = int((right["focused"] < right["full"]).sum())
    lines = []
    for name, published, tokens, table in (
        ("full", 62.4, 112_673.0, full),
        ("focused", 87.3, 269.0, focused),
    ):
        rate = estimators.wilson_interval(int(right[name].sum()), len(common))
        measured = Measured(rate.estimate, rate, len(common), len(common))
        lines += [
            line("R5", f"{name} context: right", "%", published, scaled(measured, 100), bar=0.05, digits=1),
            line(
                "R5", f"{name} context: mean tokens", "", tokens, float(table["token_count"].mean()), bar=0.5, digits=0
            ),
        ]
    power = (
        f"Correlation of the pairs {found.correlation:.2f}; unpaired the standard error would be "
        f"{100 * found.unpaired_error:.2f}."
    )
    lines += [
        line("R5", "focused - full", "points", 24.8, scaled(found.difference, 100), bar=0.05, digits=1),
        line(
            "R5",
            "standard error of the difference, paired",
            "points",
            2.9,
            100 * found.error,
            bar=0.05,
            note=power,
            digits=2,
        ),
        line("R5", "right only with the focused context", "questions", 87, gained, bar=0, digits=0),
        line("R5", "right only with the full context", "questions", 11, lost, bar=0, digits=0),
        line("R5", "McNemar exact p", "", 8e-16, found.p, bar=5e-17),
        line("R5", "smallest difference seen with 80 % power", "points", None, 100 * found.detectable, digits=1),
    ]
    return Study(
        "context_rot",
        "Context Rot: what 112,000 tokens of history cost a reader",
        SOURCE,
        METHOD,
        lines,
        (
            (
                "The same model answers 25 points more questions right from 269 tokens than from the whole history: "
                "a compaction that kept just what is asked for would raise quality, not lower it. The focused "
                "context was made knowing the question; it is an upper bound, not a strategy."
            ),
        ),
    )
