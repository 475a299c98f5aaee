from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import compaction_lab as lab
from compaction_lab.conf_path import conf_directory, datasets_directory, find_shipped
from compaction_lab.errors import ConfigurationError

ROOT = Path(__file__).resolve().parent.parent
HEAVY = (
    "hydra",
    "jupyter_core",
    "matplotlib",
    "numpy",
    "omegaconf",
    "openai",
    "pandas",
    "scipy",
    "seaborn",
    "tiktoken",
)
HELP = """
import sys
from contextlib import redirect_stdout, suppress
from compaction_lab.cli import main
with redirect_stdout(sys.stderr), suppress(SystemExit):
    main(["--help"])
"""


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_every_public_name_can_be_used() -> None:
    assert {name for name in lab.__all__ if not callable(getattr(lab, name))} == set()
    assert set(lab.__all__) <= set(dir(lab))
    with pytest.raises(AttributeError, match="has no attribute 'compcat'"):
        _ = lab.compcat


@pytest.mark.parametrize("name", ["compact", "replay"])
@pytest.mark.parametrize(
    "imports",
    [
        "import compaction_lab as lab",
        "import compaction_lab as lab; import compaction_lab.{name}",
        "import compaction_lab.{name}; import compaction_lab as lab",
        "from compaction_lab.{name} import {name}; import compaction_lab as lab",
        "import compaction_lab as lab; lab.{name}; import compaction_lab.{name}",
    ],
)
def test_a_public_function_wins_over_the_module_of_its_name(name: str, imports: str) -> None:
    shown = python(f"{imports.format(name=name)}; print(type(lab.{name}).__name__)")

    assert shown == "function"


@pytest.mark.parametrize(
    "code",
    [
        "import compaction_lab",
        "import compaction_lab.conversation.tokens, compaction_lab.strategies.registry",
        HELP,
    ],
    ids=["the package", "tokens and strategies", "--help"],
)
def test_heavy_libraries_are_not_imported_by(code: str) -> None:
    assert python(f"{code}\nimport sys; print(sorted(set({HEAVY}) & set(sys.modules)))") == "[]"


def test_shipped_folders_are_found_in_this_checkout_or_installation() -> None:
    assert (conf_directory() / "config.yaml").is_file()
    assert (datasets_directory() / "README.md").is_file()


def test_shipped_folders_are_found_in_a_wheel_and_a_checkout_but_not_in_a_neighbour(tmp_path: Path) -> None:
    package = tmp_path / "compaction_lab"
    package.mkdir()
    (tmp_path / "conf").mkdir()
    with pytest.raises(ConfigurationError, match="Reinstall compaction-lab"):
        find_shipped("conf", package)

    (tmp_path / "pyproject.toml").touch()
    assert find_shipped("conf", package) == tmp_path / "conf"

    (package / "_conf").mkdir()
    assert find_shipped("conf", package) == package / "_conf"


def test_what_the_build_declares_exists() -> None:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("not a checkout")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, function = declared["project"]["scripts"]["compaction-lab"].split(":")
    wheel = declared["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert callable(getattr(import_module(module), function))
    assert [folder for folder in wheel["only-include"] if not (ROOT / folder).is_dir()] == []
    assert wheel["sources"] == {"conf": "compaction_lab/_conf", "datasets": "compaction_lab/_datasets"}
    assert (ROOT / declared["project"]["readme"]).is_file()
