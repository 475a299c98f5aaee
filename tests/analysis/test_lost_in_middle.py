"""Accuracy by place from whole runs on the skimming stub, the test for a dip, and the paper's numbers as data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from compaction_lab.analysis.lost_in_middle import (
    accuracy_by_place,
    cost_per_correct,
    dip,
    placed_answers,
    published_curves,
)
from compaction_lab.cli import main
from compaction_lab.errors import StatisticsError
from compaction_lab.report.figures.lost_in_middle import accuracy_by_place as figure
from compaction_lab.report.style import Look
from compaction_lab.sweep.loading import Run, load_run


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str, name: str = "middle") -> Run:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-q", "--name", name, *words]) == 0
    return load_run(Path("experiments") / name)


def test_the_skimming_stub_dips_and_the_plain_one_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(tmp_path, monkeypatch, "experiment=key_value", "dataset.examples=20")
    assert "probe" in found.simulated
    answers = placed_answers(found)
    by_place = accuracy_by_place(answers).set_index(["dataset", "place"])
    curve = by_place.loc["key_value examples=20"]
    assert list(curve.index.round(2)) == [0.0, 0.24, 0.5, 0.74, 1.0]
    assert curve["accuracy"].iloc[0] > 0.8
    assert curve["accuracy"].iloc[2] < 0.7
    assert (curve["low"] <= curve["accuracy"]).all()
    assert (curve["answers"] == 20).all()
    tested = dip(answers)
    assert (tested["p"] < 0.01).all()
    assert (tested["low"] > 0).all()
    lines = accuracy_by_place(answers).query("shown != 'full'").set_index("shown")["accuracy"]
    assert lines.to_dict() == {"oracle": 1.0, "none": 0.0}
    costs = cost_per_correct(found).set_index("dataset")
    assert costs.loc["key_value items=140 examples=20", "usd_per_right"] > 0
    assert pd.isna(costs.loc["key_value examples=20 shown=none", "usd_per_right"])
    drawn = figure(accuracy_by_place(answers), Look.of(found), published=published_curves().query("items == 140"))
    assert len(drawn.axes) == 3
    plain = run(tmp_path / "..", monkeypatch, "experiment=key_value", "dataset.examples=5", "reader=stub")
    with_all = accuracy_by_place(placed_answers(plain)).dropna(subset=["place"])
    assert (with_all["accuracy"] == 1).all()


def test_strategies_move_planted_facts_out_of_sight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(tmp_path, monkeypatch, "experiment=facts_in_conversation")
    table = accuracy_by_place(placed_answers(found)).set_index(["arm", "place"])
    assert (table.loc["none", "visible"] == 1).all()
    window = table.loc["sliding_window keep_last=8 unit=step", "visible"]
    assert window.iloc[0] < 0.5 < window.iloc[-1]
    tested = dip(placed_answers(found)).set_index("arm")
    assert tested.loc["none", "dip"] > 0
    assert tested["p"].isna().all()


def test_a_dip_needs_a_middle() -> None:
    frame = pd.DataFrame({"arm": "a", "reader": "r", "dataset": "d", "place": [0.0, 1.0], "right": 1.0, "example": "e"})
    with pytest.raises(StatisticsError, match="three places"):
        dip(frame)


def test_the_published_numbers_are_those_of_the_paper() -> None:
    curves = published_curves()
    gpt = curves[(curves["task"] == "multi_document") & (curves["items"] == 20) & (curves["reader"] == "GPT-3.5-Turbo")]
    assert list(gpt["accuracy"].round(3)) == [0.758, 0.572, 0.538, 0.554, 0.632]
    closed = curves[curves["task"] == "closed_book"].set_index("reader")["accuracy"]
    assert gpt["accuracy"].min() < closed["GPT-3.5-Turbo"] == pytest.approx(0.561)
    assert curves["accuracy"].between(0, 1).all()
