"""Working off a plan: nothing twice, failures owed again, an orderly end; in this process and in several."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from compaction_lab.errors import BudgetReached, ConfigurationError, NotCached
from compaction_lab.records import Cell, UnitResult
from compaction_lab.sweep import lines
from compaction_lab.sweep.executors import Processes
from compaction_lab.sweep.grid import Grid
from compaction_lab.sweep.progress import Progress
from compaction_lab.sweep.runner import Plan, Policy, Tally, execute, plan, settled
from compaction_lab.sweep.store import RunStore

CELLS = tuple(
    Cell(f"cell{i}", arm, "stub", "talks", 0, {"mode": "replay", "baseline_arm": "none"})
    for i, arm in enumerate(("none", "masking", "summaries"))
)
TRANSCRIPTS = ["one", "two", "three"]


class Workshop:
    """A run folder, and work that is written down as it is done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.grid = Grid("run", CELLS, 1, "none", {})
        self.attempts: list[tuple[str, str, int]] = []
        self.said = io.StringIO()

    def plan(self) -> Plan:
        return plan(self.grid, self.folder, lambda _: TRANSCRIPTS)

    def run(self, *, failing: Callable[[str, str], bool] = lambda *_: False, **policy: object) -> Tally:
        def work(cell: Cell, transcript: str, trial: int) -> UnitResult:
            self.attempts.append((cell.arm, transcript, trial))
            if failing(cell.arm, transcript):
                raise ValueError(f"no luck with {transcript}")
            return UnitResult()

        return execute(self.plan(), Policy(**policy), {}, Progress(9, self.said), work)

    def rows(self) -> list[dict[str, object]]:
        return list(lines.read(self.folder / "units.jsonl"))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "run")


def test_a_plan_writes_nothing_and_keeps_a_transcripts_arms_together(workshop: Workshop) -> None:
    planned = workshop.plan()
    assert [unit[:2] for unit in planned.owed[:4]] == [
        ("cell0", "one"),
        ("cell1", "one"),
        ("cell2", "one"),
        ("cell0", "two"),
    ]
    assert not settled(planned)
    assert not workshop.folder.exists()


def test_a_run_does_each_unit_once_and_the_next_does_nothing(workshop: Workshop) -> None:
    assert workshop.run().owed == 0
    assert settled(workshop.plan())
    tally = workshop.run()
    assert (tally.ran, len(workshop.attempts), len(workshop.rows())) == (0, 9, 9)


def test_a_failed_unit_is_a_row_and_stays_owed(workshop: Workshop) -> None:
    tally = workshop.run(failing=lambda _, transcript: transcript == "two")
    assert (tally.ran, tally.failed, tally.owed) == (6, 3, 3)
    assert tally.errors == {"ValueError: no luck with two": 3}
    assert "Traceback" in (workshop.folder / "log.txt").read_text()
    assert "failed: masking · stub · two" in workshop.said.getvalue()
    assert workshop.run().ran == 3
    assert settled(workshop.plan())


def test_limits_stop_early(workshop: Workshop) -> None:
    assert workshop.run(limit=4).owed == 5
    assert workshop.run(failing=lambda *_: True, fail_fast=True).failed == 1
    tally = workshop.run(failing=lambda *_: True, max_error_rate=0.5)
    assert (tally.failed, tally.owed) == (3, 5)
    assert "--max-error-rate" in tally.stopped


def test_existing_runs_can_be_refused_or_redone(workshop: Workshop) -> None:
    assert workshop.run(limit=3).ran == 3
    with pytest.raises(ConfigurationError, match="this run exists"):
        workshop.run(existing="never")
    assert workshop.run(existing="always").ran == 9
    assert len(workshop.attempts) == 12


def test_units_whose_calls_may_not_be_made_are_left_as_they_were(workshop: Workshop) -> None:
    def failing(error: Exception) -> Callable[[str, str], bool]:
        def fail(arm: str, transcript: str) -> bool:
            if (arm, transcript) == ("masking", "two"):
                raise error
            return False

        return fail

    tally = workshop.run(existing="only-cache", failing=failing(NotCached("a reply is missing")))
    assert (tally.ran, tally.failed, tally.uncached, tally.owed, len(workshop.rows())) == (8, 0, 1, 1, 8)
    tally = workshop.run(max_cost_usd=1.0, failing=failing(BudgetReached("0.99 of 1.00 USD are spent")))
    assert (tally.ran, tally.failed, tally.owed, tally.stopped) == (0, 0, 1, "0.99 of 1.00 USD are spent")
    assert workshop.run().ran == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_finishes_the_unit_under_way_and_loses_nothing(workshop: Workshop, number: signal.Signals) -> None:
    def interrupting(_arm: str, _transcript: str) -> bool:
        if len(workshop.attempts) == 2:
            os.kill(os.getpid(), number)
        return False

    before = signal.getsignal(number)
    tally = workshop.run(failing=interrupting)
    assert (tally.interrupted, tally.ran, tally.owed) == (True, 2, 7)
    assert signal.getsignal(number) is before
    assert workshop.run().owed == 0
    assert len(set(workshop.attempts)) == len(workshop.attempts) == 9


def test_units_claimed_by_another_run_are_left_to_it(workshop: Workshop) -> None:
    with RunStore.open(workshop.folder, create=True) as other:
        other.freeze(CELLS, {})
        theirs = other.claim([("cell0", "one", 0), ("cell1", "one", 0)])

        def finishing(_arm: str, transcript: str) -> bool:
            if transcript == "three":
                for key, name, trial in theirs:
                    other.write(next(cell for cell in CELLS if cell.key == key), name, trial, UnitResult())
            return False

        assert workshop.run(failing=finishing).ran == 7
    assert ("none", "one", 0) not in workshop.attempts


def report_process(cell: Cell, transcript_id: str, trial: int) -> UnitResult:
    if (cell.arm, transcript_id, trial) == ("masking", "two", 0):
        os._exit(1)
    return UnitResult(error=str(os.getpid()))


def test_processes_share_the_work_and_survive_the_death_of_one() -> None:
    units = [(cell.key, name, trial) for name in TRANSCRIPTS for trial in range(2) for cell in CELLS]
    executor = Processes(report_process, {cell.key: cell for cell in CELLS}, 2)
    finished = list(executor(units, lambda: False))
    assert sorted(each.unit for each in finished) == sorted(units)
    done = [each for each in finished if each.result.outcome == "ok"]
    died = [each for each in finished if each.result.outcome == "failed"]
    assert str(os.getpid()) not in {each.result.error for each in done}
    assert ("cell1", "two", 0) in {each.unit for each in died}
    assert len(died) <= 4
    assert all("WorkerDied" in each.result.error for each in died)


def name_process(cell: Cell, transcript_id: str, trial: int) -> UnitResult:
    del cell, transcript_id, trial
    return UnitResult(error=str(os.getpid()))


def test_units_that_are_done_at_once_do_not_end_the_workers() -> None:
    units = [(cell.key, name, trial) for name in TRANSCRIPTS for trial in range(30) for cell in CELLS]
    finished = list(Processes(name_process, {cell.key: cell for cell in CELLS}, 2)(units, lambda: False))
    assert len(finished) == len(units)
    assert len({each.result.error for each in finished}) <= 2
