"""``python -m compaction_lab.hydra_app``: the same runs through ``@hydra.main``, for its launchers and completion.

A job runs the cells of its own overrides into the same store as ``compaction-lab run``; jobs of one ``name`` share it.
Hydra reads the overrides first, so ``dataset.path=FILE`` needs ``dataset=recorded`` before it here.
"""

from __future__ import annotations

import sys

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from compaction_lab.cli import main as command_line
from compaction_lab.conf_path import conf_directory


@hydra.main(version_base="1.3", config_path=str(conf_directory()), config_name="config")
def main(_config: DictConfig) -> None:
    """Run one job's cells."""
    overrides = list(HydraConfig.get().overrides.task)
    if code := command_line(["run", *overrides, "--quiet"]):
        sys.exit(code)


if __name__ == "__main__":
    main()
