"""Scores by age of the fact and by its place in what is sent."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis import retention_by_age_and_position


def test_each_probe_counts_once_by_age_and_once_by_place() -> None:
    row = {"arm": "a", "model": "m", "dataset": "d", "transcript": "t", "kind": "fact"}
    probes = pd.DataFrame(
        [
            row | {"score": 1.0, "age_tokens": 300, "position": 0.95},
            row | {"score": 0.0, "age_tokens": 5_000, "position": None},
            row | {"score": 1.0, "age_tokens": None, "position": 1.0},
            row | {"score": None, "age_tokens": 100, "position": 0.1},
            row | {"score": 0.0, "age_tokens": 100, "position": 0.1, "kind": "rubric"},
        ]
    )
    table = retention_by_age_and_position(probes)
    columns = (table[name] for name in ("by", "class", "score", "probes"))
    rows = {(by, name): (score, count) for by, name, score, count in zip(*columns, strict=True)}
    assert rows == {
        ("age", "< 1k"): (1.0, 1),
        ("age", "4k-8k"): (0.0, 1),
        ("position", "0.8-1"): (1.0, 2),
        ("position", "not sent"): (0.0, 1),
    }
