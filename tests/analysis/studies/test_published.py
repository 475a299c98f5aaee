"""Published studies come out of their public data again: every line passes or explains itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compaction_lab.analysis.studies.base import DIFFERS, EXPLAINED, PASS, DataAbsent, Study, line
from compaction_lab.analysis.studies.registry import STUDIES, study
from compaction_lab.analysis.studies.tables import to_csv, to_markdown, write_study
from compaction_lab.cli import main
from compaction_lab.errors import ConfigurationError
from tests.documents import ROOT

FROM_DATA = ("complexity_trap", "context_rot", "lost_in_compaction", "ahc", "lost_in_the_middle")


@pytest.fixture(scope="module")
def recomputed(public_data: Callable[[str], Path]) -> Callable[[str], Study]:
    done: dict[str, Study] = {}

    def get(name: str) -> Study:
        if name not in done:
            done[name] = study(name)(public_data("published"))
        return done[name]

    return get


def value(done: Study, quantity: str) -> float:
    (found,) = [one for one in done.lines if one.quantity == quantity and one.unit != "$"]
    assert found.ours is not None
    return found.ours


@pytest.mark.parametrize("name", FROM_DATA)
def test_every_line_passes_or_is_explained(recomputed: Callable[[str], Study], name: str) -> None:
    done = recomputed(name)
    assert [one.quantity for one in done.lines if one.verdict == DIFFERS] == []
    assert [one.quantity for one in done.lines if one.verdict == EXPLAINED and not one.note] == []
    assert done.counts[PASS] >= 9


@pytest.mark.parametrize("name", [*FROM_DATA, "conformance_kit", "offline_evidence"])
def test_kept_tables_equal_those_of_a_fresh_run(
    recomputed: Callable[[str], Study], public_data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    public_data("long_memory" if name == "offline_evidence" else f"published/{name}")
    for path in write_study(recomputed(name), tmp_path):
        assert path.read_bytes() == (ROOT / "reports/studies" / path.name).read_bytes(), f"{path.name}: `make studies`"


def test_the_hybrid_on_the_instances_it_ran_on(recomputed: Callable[[str], Study]) -> None:
    done = recomputed("complexity_trap")
    assert value(done, "hybrid - mask, the same 50 instances: cost") == pytest.approx(-10.3, abs=0.05)
    assert value(done, "hybrid - summary, the same 50 instances: cost") == pytest.approx(-23.9, abs=0.05)
    assert value(done, "hybrid - raw, the same 50 instances: solved") == 0
    refused = [one for one in done.lines if "an unmatched comparison" in one.note]
    assert [one.published for one in refused] == [-7, -11, 2.6]
    assert value(done, "Gemini 2.5 Flash thinking mask - summary: difference") == pytest.approx(5.0, abs=0.1)
    assert value(done, "instances to see 3 points at this variance, paired") == 995


def test_an_undefined_kappa_is_no_number(recomputed: Callable[[str], Study]) -> None:
    (undefined,) = [one for one in recomputed("lost_in_compaction").lines if "0 / 0" in one.note]
    assert undefined.published == 1
    assert undefined.ours is None
    assert undefined.verdict == EXPLAINED


def kit_output(survival: float) -> str:
    from compaction_lab.analysis.studies.conformance_kit import _BUDGETS, _SURVIVAL

    entries = [
        {
            "compactor": name,
            "budget_fraction": budget,
            "randomized": {"overall_final_survival": survival},
            "semantic": {"conflicts": {"n": 64, "resolved": 0}},
        }
        for name in _SURVIVAL
        for budget in _BUDGETS
    ]
    return json.dumps({"kit_version": "0.8.0", "entries": entries})


def test_another_leaderboard_differs(tmp_path: Path) -> None:
    path = tmp_path / "conformance_kit" / "benchmark.json"
    path.parent.mkdir()
    path.write_text(kit_output(0.4), encoding="utf-8")
    done = study("conformance_kit")(tmp_path)
    assert done.counts[PASS] > 0
    assert done.counts[DIFFERS] > 0
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="no entry of"):
        study("conformance_kit")(tmp_path)


@pytest.mark.parametrize("name", STUDIES)
def test_absent_data_is_said(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataAbsent, match=f"study {name}: data absent"):
        study(name)(tmp_path)


def test_verdicts() -> None:
    assert line("R", "q", "", 1.0, 1.05, bar=0.05).verdict == PASS
    assert line("R", "q", "", 1.0, 1.06, bar=0.05).verdict == DIFFERS
    assert line("R", "q", "", 1.0, None, bar=0.05, explained="undefined").verdict == EXPLAINED
    assert line("R", "q", "", 1.0, float("nan"), bar=0.05).ours is None
    assert line("R", "q", "", None, 1.0).verdict == "new"
    assert line("R", "q", "", 1.0, 3.0).verdict == "no bar"


def test_tables_are_written(tmp_path: Path) -> None:
    lines = [
        line("R1", "a|b", "$", 1.0, 1.0, bar=0.1, note="same"),
        line("R1", "c", "%", None, 2.0, note="same", digits=1),
    ]
    done = Study("s", "Title", "Source", "Method", lines, ("Finding.",))
    text = to_markdown(done)
    assert r"| R1 | a\|b, $ | 1.000 | 1.000 | – | – | PASS | 1 |" in text
    assert text.count("same") == 1
    assert to_csv(done).splitlines()[1] == "R1,a|b,$,1,1,,,,,0.1,PASS,same"
    first = [path.read_bytes() for path in write_study(done, tmp_path)]
    assert first == [path.read_bytes() for path in write_study(done, tmp_path)]


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str], public_data: Callable[[str], Path]) -> None:
    data = str(public_data("published"))
    assert main(["study", "context_rot", "--data", data, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "PASS       R5" in printed
    assert (tmp_path / "context_rot.csv").is_file()
    assert main(["study", "context_rott", "--data", data]) == 1
    assert "context_rot" in capsys.readouterr().err


def test_the_verb_without_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COMPACTION_LAB_DATA", raising=False)
    assert main(["study", "ahc"]) == 1
    assert "give --data DIR" in capsys.readouterr().err
    assert main(["study", "list"]) == 0
    assert "offline_evidence" in capsys.readouterr().out
