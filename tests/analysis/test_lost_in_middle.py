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
    places_conclusion,
    published_curves,
)
from compaction_lab.cli import main
from compaction_lab.errors import StatisticsError
from compaction_lab.report.figures.lost_in_middle import accuracy_by_place as figure
from compaction_lab.report.style import Look
from compaction_lab.statistics.estimators import wilson_interval
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
    drawn = figure(accuracy_by_place(answers), Look.of(found))
    # Beside 140 pairs, and there alone, stand the two curves that the paper prints.
    assert [axes.get_title(loc="left") for axes in drawn.axes][1] == "key_value items=140 examples=20"
    assert [len(axes.lines) for axes in drawn.axes] == [3, 5, 3]
    everywhere = figure(accuracy_by_place(answers), Look.of(found), published=published_curves().query("items == 140"))
    assert [len(axes.lines) for axes in everywhere.axes] == [5, 5, 5]
    plain = run(tmp_path / "..", monkeypatch, "experiment=key_value", "dataset.examples=5", "reader=stub")
    with_all = accuracy_by_place(placed_answers(plain)).dropna(subset=["place"])
    assert (with_all["accuracy"] == 1).all()


def test_strategies_move_planted_facts_out_of_sight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(tmp_path, monkeypatch, "experiment=facts_in_conversation")
    table = accuracy_by_place(placed_answers(found)).set_index(["arm", "place"])
    assert (table.loc["none", "visible"] == 1).all()
    window = table.loc["sliding_window keep_last=8 unit=step", "visible"]
    assert window.iloc[0] < 0.5 < window.iloc[-1]
    said = places_conclusion(found)
    assert "33% of the facts still in sight" in said
    assert "of this conversation alone" in said
    tested = dip(placed_answers(found)).set_index("arm")
    assert tested.loc["none", "dip"] > 0
    assert tested["p"].isna().all()


def answers(*rows: tuple[str, float, float], arm: str = "a") -> pd.DataFrame:
    """Answers of examples at places."""
    frame = pd.DataFrame(rows, columns=["example", "place", "right"])
    return frame.assign(
        arm=arm, reader="r", dataset="d", task="planted", items=float("nan"), shown="full", visible=1.0, position=0.5
    )


def test_answers_of_one_conversation_are_not_taken_for_independent() -> None:
    # In four conversations all twenty answers of a place agree: four observations, not eighty.
    rights = {"one": 1.0, "two": 1.0, "three": 0.0, "four": 1.0}
    together = answers(*((name, 0.5, right) for name, right in rights.items() for _ in range(20)))
    alone = answers(*((f"{name}{number}", 0.5, right) for name, right in rights.items() for number in range(20)))
    clustered, independent = (accuracy_by_place(frame).iloc[0] for frame in (together, alone))
    assert (clustered["interval"], independent["interval"]) == ("clustered", "wilson")
    assert clustered["accuracy"] == independent["accuracy"] == 0.75
    assert clustered["low"] < 0.2
    assert independent["low"] > 0.6
    assert 0.8 < independent["high"] < clustered["high"] <= 1
    agreed = accuracy_by_place(answers(*((name, 0.5, 1.0) for name in rights for _ in range(20)))).iloc[0]
    assert agreed["low"] == pytest.approx(wilson_interval(4, 4).low)
    assert accuracy_by_place(answers(*[("one", 0.5, 1.0)] * 9)).iloc[0]["interval"] == "wilson, one example"


def test_a_dip_is_tested_over_conversations_and_of_one_alone_has_no_p() -> None:
    rights = {0.0: 1.0, 0.5: 0.0, 1.0: 1.0}
    many = answers(*((f"talk {n}", place, right) for n in range(8) for place, right in rights.items() for _ in "ab"))
    (row,) = dip(many).to_dict("records")
    assert (row["dip"], row["examples"]) == (1, 8)
    assert row["p"] == pytest.approx(2 / 2**8)
    single = many[many["example"] == "talk 0"]
    (row,) = dip(single).to_dict("records")
    assert (row["dip"], row["examples"]) == (1, 1)
    assert 0 < row["low"] < row["dip"]
    assert pd.isna(row["p"])


def test_a_report_draws_the_curve_and_says_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(tmp_path, monkeypatch, "experiment=key_value", "dataset.examples=8", "dataset.shown=full,oracle,none")
    assert main(["report", "middle", "--out", "report", "--format", "svg"]) == 0
    made = {path.name for path in Path("report/figures").glob("accuracy_by_place.*")}
    assert made == {"accuracy_by_place.svg", "accuracy_by_place.csv", "accuracy_by_place.json"}
    said = Path("report/conclusion.md").read_text(encoding="utf-8")
    assert said == places_conclusion(found)
    for words in ("**140 pairs**: ", "at the edges", "p = ", "8 examples", "a right answer cost $", "Liu et al."):
        assert words in said
    assert "closed book, nothing shown (stub_reader): 0% of 8 right" in said
    assert "the answering item alone (stub_reader): 100% of 8 right" in said
    assert "In this run: probe answers simulated (a stub answered)." in said
    page = Path("report/report.html").read_text(encoding="utf-8")
    assert "Right answers by place" in page
    assert {"accuracy_by_place.csv", "cost_per_right.csv"} <= {path.name for path in Path("report/tables").iterdir()}


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
