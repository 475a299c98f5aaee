"""A run beside the article: what is published stands as published, and the distance is said."""

from __future__ import annotations

import pytest

from compaction_lab.analysis.published import ARTICLE
from compaction_lab.analysis.studies import semantic_kernel
from compaction_lab.analysis.summary import summary_table
from tests.synthetic_runs import synthetic_run


def test_a_run_stands_beside_the_article() -> None:
    summary = summary_table(synthetic_run())
    lines = [made for row in ARTICLE for made in semantic_kernel._beside(row, summary)]
    masking = next(one for one in lines if "masking" in one.quantity)
    assert masking.published == 37.5
    assert masking.ours == pytest.approx(38, abs=0.1)
    assert "ours is inside it" in masking.note
    peak = next(one for one in lines if one.quantity.startswith("semantic_kernel/summarization"))
    assert peak.published == 93
    assert "points" in peak.note or "inside" in peak.note
    assert {one.verdict for one in lines} <= {"no bar", "new"}
