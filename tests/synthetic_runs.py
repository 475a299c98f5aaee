"""A run made by formula, for tests of analysis and report; nothing in it was measured.

Every turn of the baseline sends ``600 + 500 * turn`` tokens in English, a tenth more in Polish. An arm's turn is that
times a fixed share: masking 0.62 from turn 2 on; summarisation 0.08 right after a summary (turns 11 and 20), growing
by a tenth a turn; hybrid the smaller of the two, less a hundredth when it masks first. A summary reads 4,000 tokens
(1,000 after masking) and writes 300. Turns cost one micro-dollar a token, rubric scores lose 0.3 in the turn after a
summary, and of ten probes a transcript the arms answer 10, 6, 7, 5 and 6.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from compaction_lab.records import CALL_COLUMNS, IDENTITY, PROBE_COLUMNS, TURN_COLUMNS

BASIC = "none"
MASKING = "semantic_kernel/observation_masking"
SUMMARY = "semantic_kernel/summarization"
HYBRID = "semantic_kernel/hybrid"
HYBRID_SUMMARY_FIRST = "semantic_kernel/hybrid order=summarize_first"
ARMS = (BASIC, MASKING, SUMMARY, HYBRID, HYBRID_SUMMARY_FIRST)
RECALLED = {BASIC: 10, MASKING: 6, SUMMARY: 7, HYBRID: 5, HYBRID_SUMMARY_FIRST: 6}
TURNS = 21
SUMMARY_AFTER = (10, 19)


@dataclass(frozen=True)
class SyntheticRun:
    name: str = "synthetic"
    manifest: dict[str, object] = field(default_factory=lambda: {"tokenizer": "o200k_base", "seeds": [0]})
    calls: pd.DataFrame = field(default_factory=pd.DataFrame)
    turns: pd.DataFrame = field(default_factory=pd.DataFrame)
    compactions: pd.DataFrame = field(default_factory=pd.DataFrame)
    probes: pd.DataFrame = field(default_factory=pd.DataFrame)
    units: pd.DataFrame = field(default_factory=pd.DataFrame)
    cells: pd.DataFrame = field(default_factory=pd.DataFrame)


def share(arm: str, turn: int) -> float:
    since = turn - max([0, *(after for after in SUMMARY_AFTER if after < turn)])
    masked = 1.0 if turn == 1 else 0.62
    summarised = 1.0 if turn <= SUMMARY_AFTER[0] else min(1.0, 0.08 + 0.1 * (since - 1))
    return {
        BASIC: 1.0,
        MASKING: masked,
        SUMMARY: summarised,
        HYBRID: min(masked, summarised) - (0.01 if turn > SUMMARY_AFTER[0] else 0.0),
    }.get(arm, min(masked, summarised))


def synthetic_run(arms: tuple[str, ...] = ARMS, transcripts: tuple[str, ...] = ("en", "pl")) -> SyntheticRun:
    calls, turns, probes, units, cells = [], [], [], [], []
    for arm in arms:
        cell = f"cell-{arm}"
        order = {HYBRID: "mask_first", HYBRID_SUMMARY_FIRST: "summarize_first"}.get(arm)
        same = {"model": "stub", "dataset": "laptop_catalog", "seed": 0}
        cells.append({"cell": cell, "arm": arm, **same, "baseline": BASIC, "strategy.order": order})
        for place, transcript in enumerate(transcripts):
            identity = {"cell": cell, "arm": arm, **same, "transcript": transcript, "trial": 0}
            units.append({**identity, "outcome": "ok", "error": "", "score": 0.9})
            for turn in range(1, TURNS + 1):
                base = round((600 + 500 * turn) * (1 + 0.1 * place))
                tokens = round(base * share(arm, turn))
                summarises = turn in SUMMARY_AFTER and arm not in (BASIC, MASKING)
                read = (1000 if arm == HYBRID else 4000) if summarises else 0
                written = 300 if summarises else 0
                score = 0.7 if turn - 1 in SUMMARY_AFTER and arm not in (BASIC, MASKING) else 1.0
                turns.append(
                    {
                        **identity,
                        "turn": turn,
                        "model_calls": 2,
                        "tool_calls": 1 + (arm == MASKING),
                        "input_tokens": tokens,
                        "output_tokens": 200,
                        "reasoning_tokens": 0,
                        "summarizer_input_tokens": read,
                        "summarizer_output_tokens": written,
                        "score": score,
                        "reduction_vs_baseline": 1 - tokens / base,
                    }
                )
                paid = {"cost_kind": "uncached", "simulated": True}
                agent = {"purpose": "agent", "input_tokens": tokens, "cost_usd": tokens * 1e-6, **paid}
                calls.append({**identity, "turn": turn, "call": turn - 1, **agent})
                if summarises:
                    summary = {
                        "purpose": "summarizer",
                        "input_tokens": read,
                        "cost_usd": (read + written) * 1e-6,
                        **paid,
                    }
                    calls.append({**identity, "turn": turn, "call": turn - 1, **summary})
                probes.append({**identity, "turn": turn, "probe": f"turn-{turn}", "kind": "rubric", "score": score})
            probes.extend(
                {
                    **identity,
                    "turn": TURNS,
                    "probe": f"fact-{number}",
                    "kind": "fact",
                    "evidence_visible": float(number < RECALLED.get(arm, 5)),
                    "score": float(number < RECALLED.get(arm, 5)),
                }
                for number in range(10)
            )
    return SyntheticRun(
        calls=_table(calls, [*CALL_COLUMNS, "simulated"]),
        turns=_table(turns, TURN_COLUMNS),
        probes=_table(probes, PROBE_COLUMNS),
        units=pd.DataFrame(units),
        cells=pd.DataFrame(cells),
    )


def _table(rows: list[dict[str, object]], columns: tuple[str, ...] | list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows).reindex(columns=[*IDENTITY, *columns])
    return frame.fillna({column: np.nan for column in frame if frame[column].isna().all()})
