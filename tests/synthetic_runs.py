"""A run made by formula, for tests of analysis and report; nothing in it was measured.

Every turn of the baseline sends ``600 + 500 * turn`` tokens in English, a tenth more in Polish. An arm's turn is that
times a fixed share: masking 0.62 from turn 2 on; summarisation 0.08 right after a summary (turns 11 and 20), growing
by a tenth a turn; hybrid the smaller of the two, less a hundredth when it masks first. A summary reads 4,000 tokens
(1,000 after masking) and writes 300. Turns cost one micro-dollar a token, rubric scores lose 0.3 in the turn after a
summary, and of ten probes a transcript the arms answer 10, 6, 7, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction_lab.records import Cell, Row, UnitResult
from compaction_lab.sweep.loading import Run

BASIC = "none"
MASKING = "semantic_kernel/observation_masking"
SUMMARY = "semantic_kernel/summarization"
HYBRID = "semantic_kernel/hybrid"
HYBRID_SUMMARY_FIRST = "semantic_kernel/hybrid order=summarize_first"
ARMS = (BASIC, MASKING, SUMMARY, HYBRID, HYBRID_SUMMARY_FIRST)
RECALLED = {BASIC: 10, MASKING: 6, SUMMARY: 7, HYBRID: 5, HYBRID_SUMMARY_FIRST: 6}
TURNS = 21
SUMMARY_AFTER = (10, 19)


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


def synthetic_run(
    arms: Sequence[str] = ARMS, transcripts: Sequence[str] = ("en", "pl"), name: str = "synthetic"
) -> Run:
    cells, results = [], {}
    for arm in arms:
        order = {HYBRID: "mask_first", HYBRID_SUMMARY_FIRST: "summarize_first"}.get(arm)
        strategy = {"preset": arm.split(" ")[0], **({"order": order} if order else {})}
        cells.append(
            Cell(f"cell-{arm}", arm, "stub", "laptop_catalog", 0, {"baseline_arm": BASIC, "strategy": strategy})
        )
        for place, transcript in enumerate(transcripts):
            results[cells[-1].key, transcript, 0] = unit(arm, 1 + 0.1 * place)
    run = Run.from_results(cells, results, name=name)
    run.manifest = {"tokenizer": "o200k_base", "seeds": [0]}
    return run


def unit(arm: str, scale: float) -> UnitResult:
    result = UnitResult()
    for turn in range(1, TURNS + 1):
        base = round((600 + 500 * turn) * scale)
        tokens = round(base * share(arm, turn))
        summarises = turn in SUMMARY_AFTER and arm not in (BASIC, MASKING)
        read, written = (1000 if arm == HYBRID else 4000, 300) if summarises else (0, 0)
        result.calls.append(call(turn, "agent", tokens, 200) | {"tool_calls": 1 + (arm == MASKING)})
        if summarises:
            result.calls.append(call(turn, "summarizer", read, written))
        score = 0.7 if turn - 1 in SUMMARY_AFTER and arm not in (BASIC, MASKING) else 1.0
        result.probes.append({"turn": turn, "probe": f"turn-{turn}", "kind": "rubric", "score": score})
    for number in range(10):
        right = float(number < RECALLED.get(arm, 5))
        fact = {"turn": TURNS, "probe": f"fact-{number}", "kind": "fact", "evidence_visible": right, "score": right}
        result.probes.append(fact)
    return result


def call(turn: int, purpose: str, read: int, written: int) -> Row:
    return {
        "turn": turn,
        "call": turn - 1,
        "purpose": purpose,
        "input_tokens": read,
        "output_tokens": written,
        "reasoning_tokens": 0,
        "tool_calls": 0,
        "cost_uncached_usd": (read + written) * 1e-6,
        "simulated": True,
    }
