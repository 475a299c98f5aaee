"""What the article on the laptop conversation published, as data, for putting a run beside it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from compaction_lab.analysis.arms import family

SOURCE = (
    "Article on context management with Semantic Kernel; code: github.com/L3mur1/SemanticKernelContextManagement "
    "(commit 9cee459, April 2026). Two percentages are all it prints; its charts are images and no model is named."
)


@dataclass(frozen=True, slots=True)
class PublishedReduction:
    """One published statement: input tokens per turn saved against Basic, in percent.

    Equal bounds are a single value; without bounds the statement has no number.
    """

    strategy: str
    low_percent: float | None
    high_percent: float | None
    statement: str
    statistic: str
    """Which of our columns it speaks of: ``mean`` or ``peak``."""


ARTICLE = (
    PublishedReduction("observation_masking", 35, 40, "35-40 % per turn, stable from turn 2 on", "mean"),
    PublishedReduction("summarization", 93, 93, "about 93 % in later turns", "peak"),
    PublishedReduction("hybrid", None, None, "both effects together", "peak"),
)
"""The article's numbers. It leaves the summariser's own calls out and gives no whole-conversation total."""


def article_table() -> pd.DataFrame:
    """Return :data:`ARTICLE` as a frame with its source."""
    return pd.DataFrame(
        [
            {
                "strategy": row.strategy,
                "statistic": row.statistic,
                "low_percent": row.low_percent,
                "high_percent": row.high_percent,
                "statement": row.statement,
                "source": SOURCE,
            }
            for row in ARTICLE
        ]
    )


def beside_article(summary: pd.DataFrame) -> pd.DataFrame:
    """Put a run's reductions beside the article's: a row an arm whose strategy the article has.

    Parameters
    ----------
    summary
        What :func:`compaction_lab.analysis.summary_table` returns.

    Returns
    -------
    DataFrame
        ``arm, published``, then the summary's mean, peak, peak turn and whole-run saving. The peak repeats what the
        article's charts show; the whole-run saving is what a bill would show.
    """
    statements = {row.strategy: row.statement for row in ARTICLE}
    ours = [
        "mean reduction %",
        "peak reduction %",
        "peak at turn",
        "whole-run saving incl. summaries %",
    ]
    rows = summary[summary["arm"].map(family).isin(list(statements))]
    published = rows["arm"].map(family).map(statements)
    keys = [key for key in ("arm", "model", "dataset") if key in rows]
    return pd.concat([rows[keys], published.rename("published"), rows[ours]], axis=1).reset_index(drop=True)
