"""Units on a real Ray cluster of two machines (nodes on this one), with workers and machines that die in the middle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from compaction_lab.errors import ConfigurationError
from compaction_lab.models.budget import ENVIRONMENT as BUDGET
from compaction_lab.records import Cell, UnitResult
from compaction_lab.sweep.executors import Finished
from compaction_lab.sweep.ray_cluster import RayCluster

Cluster = pytest.importorskip(
    "ray.cluster_utils", reason="ray is not installed (pip install 'compaction-lab[ray]')"
).Cluster

CELLS = {key: Cell(key, key, "stub", "talks", 0, {}) for key in ("none", "masking", "summaries")}
UNITS = [(key, transcript, 0) for transcript in ("one", "two", "three", "four") for key in CELLS]
DEADLY = ("masking", "two", 0)


def leave_a_mark(folder: Path, cell: Cell, transcript: str, trial: int) -> UnitResult:
    """Do a unit and leave its process id in a file; kill the process in the middle of one unit, the first time."""
    name = f"{cell.key}-{transcript}-{trial}"
    mark = folder / f"{name}-{len(list(folder.glob(name + '*')))}"
    mark.write_text(str(os.getpid()))
    if (cell.key, transcript, trial) == DEADLY and mark.name.endswith("-0"):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return UnitResult(error=str(os.getpid()))


def die(cell: Cell, transcript: str, trial: int) -> UnitResult:
    """End the process."""
    if (cell.key, transcript, trial) == DEADLY:
        os._exit(1)
    return UnitResult()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two machines with a processor each beside one that only leads."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # the machines send nothing anywhere
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def address(cluster: Cluster) -> str:
    return str(cluster.address)


def work_off(cluster: RayCluster) -> list[Finished]:
    return list(cluster(UNITS, lambda: False))


def test_a_unit_whose_worker_is_killed_is_done_again_and_counts_once(address: str, tmp_path: Path) -> None:
    finished = work_off(RayCluster(partial(leave_a_mark, tmp_path), CELLS, 2, address))
    assert sorted(each.unit for each in finished) == sorted(UNITS)
    assert {each.result.outcome for each in finished} == {"ok"}
    assert str(os.getpid()) not in {each.result.error for each in finished}
    attempts = [path.name.rpartition("-")[0] for path in tmp_path.iterdir()]
    assert {name: attempts.count(name) for name in attempts if attempts.count(name) > 1} == {"masking-two-0": 2}


def test_a_unit_that_kills_every_worker_fails_and_the_others_go_on(address: str) -> None:
    finished = work_off(RayCluster(die, CELLS, 2, address))
    assert sorted(each.unit for each in finished) == sorted(UNITS)
    ((unit, error),) = [(each.unit, each.result.error) for each in finished if each.result.outcome == "failed"]
    assert unit == DEADLY
    assert "WorkerDied" in (error or "")


def test_a_machine_that_is_lost_costs_no_unit(cluster: Cluster, tmp_path: Path) -> None:
    lost = cluster.add_node(num_cpus=1)
    finished: list[Finished] = []
    for each in RayCluster(partial(leave_a_mark, tmp_path), CELLS, 3, cluster.address)(UNITS, lambda: False):
        finished.append(each)
        if len(finished) == 3:
            cluster.remove_node(lost, allow_graceful=False)
    assert sorted(each.unit for each in finished) == sorted(UNITS)
    assert {each.result.outcome for each in finished} == {"ok"}


def test_a_told_stop_begins_no_more_and_lets_those_under_way_end(address: str, tmp_path: Path) -> None:
    seen = list(RayCluster(partial(leave_a_mark, tmp_path), CELLS, 1, address)(UNITS, lambda: any(tmp_path.iterdir())))
    assert 1 <= len(seen) <= 3
    assert {each.result.outcome for each in seen} == {"ok"}


def test_what_cannot_be_joined_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="no-cluster-here"):
        work_off(RayCluster(die, CELLS, 2, "ray://no-cluster-here:1"))
    monkeypatch.setenv(BUDGET, "{}")
    with pytest.raises(ConfigurationError, match="--max-cost"):
        work_off(RayCluster(die, CELLS, 2, "auto"))
