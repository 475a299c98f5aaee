"""The lab's own coding session through a few arms, run once for all tests of what is said about recorded sessions."""

from __future__ import annotations

from functools import cache

from compaction_lab.sweep.grid import expand
from compaction_lab.sweep.loading import Run
from compaction_lab.sweep.unit import run_unit, transcript_ids

MASKING = "observation_masking keep_last=2"
WINDOW = "sliding_window unit=step"
IDLE = "truncation max_tokens=90000"
SUMMARY = "summarization unit=step keep_last=2"


@cache
def session_run(*overrides: str) -> Run:
    grid = expand(
        ["dataset=coding_session", *overrides],
        [
            "strategy=observation_masking strategy.keep_last=2",
            "strategy=sliding_window strategy.unit=step strategy.keep_last=4",
            "strategy=truncation strategy.max_tokens=90000",
            "strategy=summarization strategy.unit=step strategy.every=10 strategy.keep_last=2",
        ],
    )
    results = {
        (cell.key, transcript, 0): run_unit(cell, transcript, 0)
        for cell in grid.cells
        for transcript in transcript_ids(cell)
    }
    return Run.from_results(grid.cells, results)
