"""How comparisons with the frameworks are counted and shown; what is compared is tested beside the strategies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ORACLES = Path(__file__).parents[1] / "oracles"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    # Last: a bridge there has the name of the package that it imports.
    monkeypatch.setattr(sys, "path", [*sys.path, str(ORACLES)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def test_a_printed_tally_is_read_back() -> None:
    from tally import Tally

    tally = Tally("strands/truncate_results", 500, 76, 2, 1)
    assert Tally.read(str(tally)) == tally
    assert Tally.read("    agrees after 5 s") is None


def test_what_the_original_refused_is_no_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    from tally import Tally, report

    assert report([Tally("a/b", 500, 500)]) == 0
    assert report([Tally("a/b", 500, 500), Tally("a/c", 500, 0, errors=500)]) == 1
    assert report([]) == 1
    assert "500 errors" in capsys.readouterr().out


def test_a_failed_script_differs_and_the_rest_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    from run import AGREES, DIFFERS, table, watch
    from tally import Tally

    code, tallies = watch(["-c", "print('a/b: 3 cases, 1 acted on, 2 differ, 0 errors'); raise SystemExit(1)"])
    assert (code, tallies) == (DIFFERS, [Tally("a/b", 3, 1, 2)])
    shown = table([("a_windows", code, tallies, 1.0), ("c_windows", AGREES, [Tally("c/d", 5)], 2.0)])
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["a_windows", "1", "3", "2", "0", "1", "DIFFERS"],
        ["c_windows", "1", "5", "0", "0", "2", "agrees"],
        ["1", "of", "2", "agree"],
    ]
    assert "2 differ" in capsys.readouterr().out
