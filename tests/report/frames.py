"""Frames made by formula for the figures that the synthetic run has no data for; nothing in them was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from tests.synthetic_runs import BASIC

PLACE = {"model": "stub", "dataset": "laptop_catalog"}


def cost_stack(arms: Sequence[str]) -> pd.DataFrame:
    parts = {"fresh_input_usd": 3e-3, "cache_read_usd": 1e-3, "cache_write_usd": 2e-4, "output_usd": 2e-3}
    rows = [
        PLACE | {"arm": arm, "units": 2} | parts | {"summaries_usd": 1e-4 * at, "total_usd": 6.2e-3 + 1e-4 * at}
        for at, arm in enumerate(arms)
    ]
    return pd.DataFrame(rows)


def cost_with_and_without_cache(arms: Sequence[str]) -> pd.DataFrame:
    bills = [(1e-2 / (1 + at / 9), 4e-3 * (1 + at / 5)) for at in range(len(arms))]
    return pd.DataFrame(
        [
            PLACE | {"arm": arm, "uncached_usd": bare, "cached_usd": cached}
            for arm, (bare, cached) in zip(arms, bills, strict=True)
        ]
    )


def differences(arms: Sequence[str]) -> pd.DataFrame:
    """As :func:`compaction_lab.compare` returns them, of twelve transcripts."""
    rows = []
    for metric, mean in (("whole_run_tokens", 40_000.0), ("score", 0.9)):
        for at, arm in enumerate(arm for arm in arms if arm != BASIC):
            difference = -mean * (at + 1) / 20
            interval = {"ci_low": difference * 1.6, "ci_high": difference * 0.4}
            row = {"arm": arm, "baseline": BASIC, "metric": metric, "mean_baseline": mean, "difference": difference}
            rows.append(row | interval | {"n_transcripts": 12, "p_holm": 0.01 * at})
    return pd.DataFrame(rows)


def parameter_sweep(arms: Sequence[str]) -> pd.DataFrame:
    table = differences(arms)
    values = table.groupby("metric").cumcount()
    return table.assign(strategy="lab/sliding_window", parameter="keep_last", line="", value=2.0**values)


def parameter_map(arms: Sequence[str]) -> pd.DataFrame:
    table = differences(arms).query("metric == 'whole_run_tokens'").reset_index(drop=True)
    where = {"row_parameter": "max_tokens", "column_parameter": "target_tokens", "strategy": "truncation"}
    return table.assign(**where, row_value=1000.0 * (table.index % 2), column_value=500.0 * (table.index // 2))


def firing_timeline(arms: Sequence[str]) -> pd.DataFrame:
    unit = PLACE | {"seed": 0, "trial": 0, "calls": 30}
    rows = [
        unit | {"arm": arm, "transcript": f"t{session}", "call": float(call), "reclaimed_share": call / 40}
        for at, arm in enumerate(arms)
        for session in range(5)
        for call in ([float("nan")] if arm == BASIC else range(3 + at, 30, 2 + session))
    ]
    return pd.DataFrame(rows)


def context_over_calls(arms: Sequence[str]) -> pd.DataFrame:
    rows = [
        {
            "arm": arm,
            "transcript": "session",
            "call": call,
            "context_tokens": 100 * min(call, 6 + at),
            "history_tokens": 100 * call,
            "whole_tokens": 100 * call,
            "fired": call > 6 + at,
        }
        for at, arm in enumerate(arms)
        for call in range(1, 20)
    ]
    return pd.DataFrame(rows)


def recall_by_age(arms: Sequence[str]) -> pd.DataFrame:
    rows = [
        PLACE | {"arm": arm, "age": age, "recall": 1 / (1 + at * far), "references": 40 - 9 * far}
        for at, arm in enumerate(arms)
        for far, age in enumerate(("< 1k", "1k-2k", "2k-4k", "4k-8k"))
    ]
    return pd.DataFrame(rows)


def accuracy_by_place(arms: Sequence[str]) -> pd.DataFrame:
    rows = [
        PLACE | {"arm": arm, "shown": "full", "place": place, "answers": 40} | _around(0.9 - 0.05 * at - place / 9)
        for at, arm in enumerate(arms)
        for place in (0.0, 0.5, 1.0)
    ]
    return pd.DataFrame(rows)


def _around(accuracy: float) -> dict[str, float]:
    return {"accuracy": accuracy, "low": accuracy - 0.1, "high": accuracy + 0.1}


FRAMES: dict[str, Callable[[Sequence[str]], pd.DataFrame]] = {
    "cost_stack": cost_stack,
    "cost_with_and_without_cache": cost_with_and_without_cache,
    "paired_differences": differences,
    "parameter_sweep": parameter_sweep,
    "parameter_map": parameter_map,
    "firing_timeline": firing_timeline,
    "context_over_calls": context_over_calls,
    "recall_by_age": recall_by_age,
    "accuracy_by_place": accuracy_by_place,
}
