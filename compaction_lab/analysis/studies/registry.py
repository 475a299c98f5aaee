"""The studies by name; a study's module is imported when it is run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from compaction_lab.analysis.studies.base import Study
from compaction_lab.configuration import did_you_mean
from compaction_lab.errors import ConfigurationError

STUDIES = {
    "complexity_trap": "cost and solve rate of masking and summaries on SWE-bench Verified (R1-R4)",
    "context_rot": "one model on full and focused contexts (R5)",
    "lost_in_compaction": "recall by position and compaction depth, and how far judges agree (R6, R7)",
    "ahc": "five compaction strategies on LongMemEval (R8)",
    "conformance_kit": "the leaderboard of compaction-conformance-kit (R9)",
    "lost_in_the_middle": "the metric and the data of Lost in the Middle (R10)",
    "semantic_kernel": "a laptop_catalog run beside the article (R11)",
    "offline_evidence": "do scores without a model predict what models answered?",
}
"""What each study recomputes."""


def study(name: str) -> Callable[[Path], Study]:
    """Return the function that recomputes a study from the folder with its data.

    Raises
    ------
    ConfigurationError
        There is no such study.
    """
    if name not in STUDIES:
        msg = f"{name!r} is no study.{did_you_mean(name, STUDIES)} Studies: {', '.join(STUDIES)}"
        raise ConfigurationError(msg)
    module = import_module(f"compaction_lab.analysis.studies.{name}")
    return cast("Callable[[Path], Study]", module.recompute)
