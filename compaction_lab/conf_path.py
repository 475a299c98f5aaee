"""Where the files that come with the lab lie: its configuration and its small transcripts.

In a checkout they stand beside the package (``conf/``, ``datasets/``); a wheel carries them inside it. The packaged
copy wins, so that an installed lab never reads the folder of a neighbour in site-packages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from compaction_lab.errors import ConfigurationError

_PACKAGE = Path(__file__).resolve().parent


def conf_directory() -> Path:
    """Return the folder of the lab's own Hydra configuration.

    Raises
    ------
    ConfigurationError
        If neither a checkout nor an installed wheel holds it.

    Examples
    --------
    >>> conf_directory().is_dir()
    True
    """
    return find_shipped("conf")


def datasets_directory() -> Path:
    """Return the folder of the transcripts and recipes that come with the lab.

    Raises
    ------
    ConfigurationError
        If neither a checkout nor an installed wheel holds it.
    """
    return find_shipped("datasets")


def find_shipped(name: Literal["conf", "datasets"], package: Path = _PACKAGE) -> Path:
    """Return the shipped folder ``name`` of the lab whose package folder is ``package``."""
    packaged, beside = package / f"_{name}", package.parent / name
    if packaged.is_dir():
        return packaged
    if beside.is_dir() and (package.parent / "pyproject.toml").is_file():
        return beside
    raise ConfigurationError(
        f"The lab's {name} folder is missing: looked for {packaged} (installed wheel) and {beside} (checkout). "
        f"Reinstall compaction-lab, or run from a complete checkout."
    )
