"""Which arm is the baseline, in which order arms are shown, and what they are called in print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pandas as pd

FAMILIES = ("none", "observation_masking", "summarization", "hybrid", "truncation", "sliding_window")
"""Strategies whose place (and colour) is the same in every run; all others follow in the order of their labels."""


def family(arm: str) -> str:
    """Return the strategy's own name: the label without framework and parameters.

    Examples
    --------
    >>> family("semantic_kernel/hybrid order=summarize_first")
    'hybrid'
    """
    return arm.split(" ", 1)[0].rsplit("/", 1)[-1]


def baseline_arm(cells: pd.DataFrame) -> str | None:
    """Return the label of the uncompacted arm, or ``None`` when the run has none (``baseline=null``).

    Parameters
    ----------
    cells
        The *cells* table; its column ``baseline_arm`` (or ``baseline``), when present, holds the label.
    """
    arms = set(cells["arm"])
    column = next((name for name in ("baseline_arm", "baseline") if name in cells), None)
    configured = set(cells[column].dropna()) if column else {"none"}
    found = sorted(arms & {str(name) for name in configured})
    return found[0] if found else None


def _natural(text: str) -> tuple[tuple[int, float, str], ...]:
    parts = re.findall(r"\d+(?:\.\d+)?|[^\d]+", text)
    return tuple((0, float(part), "") if part[0].isdigit() else (1, 0.0, part) for part in parts)


def arm_order(arms: Iterable[str], baseline: str | None = "none") -> list[str]:
    """Return the distinct arms as tables and figures list them: baseline, known families, then by label.

    Numbers inside labels sort as numbers.

    Examples
    --------
    >>> arm_order(["sliding_window keep_last=10", "hybrid", "sliding_window keep_last=2", "none"])
    ['none', 'hybrid', 'sliding_window keep_last=2', 'sliding_window keep_last=10']
    """

    def place(arm: str) -> tuple[bool, int, tuple[tuple[int, float, str], ...]]:
        name = family(arm)
        return arm != baseline, FAMILIES.index(name) if name in FAMILIES else len(FAMILIES), _natural(arm)

    return sorted({str(arm) for arm in arms}, key=place)


def short_labels(arms: Iterable[str], baseline: str | None = "none") -> dict[str, str]:
    """Return what each arm is called in print: the framework is left out where all arms that name one name the same.

    The uncompacted arm is called Basic, as in the article the laptop conversation comes from.

    Examples
    --------
    >>> short_labels(["none", "truncation", "semantic_kernel/hybrid"])["semantic_kernel/hybrid"]
    'hybrid'
    >>> short_labels(["none", "truncation", "langchain/truncation"])["langchain/truncation"]
    'langchain/truncation'
    >>> short_labels(["none", "semantic_kernel/hybrid", "cline/truncate"])["cline/truncate"]
    'cline/truncate'
    """
    distinct = arm_order(arms, baseline)
    presets = {arm.split(" ", 1)[0] for arm in distinct}
    several = len({preset.rpartition("/")[0] for preset in presets} - {""}) > 1
    alike = Counter(map(family, presets))
    labels = {}
    for arm in distinct:
        preset, _, parameters = arm.partition(" ")
        name = preset if several or alike[family(arm)] > 1 else family(arm)
        labels[arm] = f"{name} {parameters}".strip()
        if arm == baseline:
            labels[arm] = "Basic (none)" if arm == "none" else f"{labels[arm]} (baseline)"
    return labels
