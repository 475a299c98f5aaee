"""Where the configuration files lie and what each group offers, read without Hydra so that it is quick.

Composing them into one configuration is :mod:`compaction_lab.sweep.composer`'s job.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from compaction_lab.conf_path import conf_directory
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError

OVERLAYS: Mapping[str, str] = {"after_strategy": "strategy"}
"""Keys that choose from the files of another group."""

LIKENESS = 0.65
SHORTEST_PART = 3
"""From where on a name resembles another, and a part of a name says something."""


@dataclass(frozen=True, slots=True)
class ConfigurationFile:
    """One option of a group, as the folders were when they were looked through."""

    group: str
    name: str
    path: Path
    changed_ns: int


@dataclass(frozen=True, slots=True)
class ConfigurationFiles:
    """The folders that hold configuration, the lab's first, and the files found in them.

    A folder of the user's adds files; one that shares its name with a file of the lab's is hidden by it.
    """

    directories: tuple[Path, ...]
    files: tuple[ConfigurationFile, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all groups (``strategy``, ``dataset``, ...), sorted; overlays not included."""
        return tuple(sorted({file.group for file in self.files}))

    def options(self, group: str) -> dict[str, Path]:
        """Every file of a group by its name (``agent_framework/truncation``), sorted, plain names first."""
        wanted = OVERLAYS.get(group, group)
        return {file.name: file.path for file in self.files if file.group == wanted}

    def require(self, group: str, name: str) -> Path:
        """Path of one file of a group.

        Raises
        ------
        ConfigurationError
            When the group lacks it; the message suggests names from every folder of the group.
        """
        options = self.options(group)
        if name in options:
            return options[name]
        hint = did_you_mean(name, options)
        listing = "" if hint else f" There are {', '.join(options)}."
        raise ConfigurationError(
            f"{group}={name}: there is no {OVERLAYS.get(group, group)} {name!r}.{hint}{listing} "
            f"`compaction-lab options {OVERLAYS.get(group, group)}` lists them all."
        )

    def read(self, group: str, name: str) -> dict[str, JSON]:
        """One file as it stands, not composed with what it inherits from."""
        import yaml

        path = self.require(group, name)
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ConfigurationError(f"{path}: not readable as YAML: {error}") from error
        if not isinstance(content, dict | None):
            raise ConfigurationError(f"{path}: expected a mapping of keys to values, found {type(content).__name__}")
        return unescaped(cast("dict[str, JSON]", content or {}))

    def description(self, group: str, name: str) -> str:
        """One line about an option: its ``about.description``, else its first comment that is not a directive."""
        about = self.read(group, name).get("about")
        if isinstance(about, dict) and isinstance(text := about.get("description"), str):
            return " ".join(text.split())
        for line in self.options(group)[name].read_text(encoding="utf-8").splitlines():
            if line.startswith("#") and "@package" not in line:
                return line.lstrip("# ").strip()
        return ""


def unescaped(node: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a file's keys as they are meant: ``defaults_`` is ``defaults``, which Hydra would read as its own."""
    return {"defaults" if key == "defaults_" else key: value for key, value in node.items()}


def configuration_files(extra: Iterable[str | Path] = ()) -> ConfigurationFiles:
    """Return the lab's configuration files and those of the user's own folders.

    Raises
    ------
    ConfigurationError
        When a folder does not exist.
    """
    directories = [conf_directory()]
    for given in extra:
        directory = Path(given).expanduser().resolve()
        if not directory.is_dir():
            raise ConfigurationError(
                f"--config-dir {given}: no such folder; expected one laid out like the lab's conf/ "
                "(for instance DIR/strategy/mine.yaml)"
            )
        directories.append(directory)
    found: dict[tuple[str, str], ConfigurationFile] = {}
    for directory in directories:
        for path in sorted(directory.glob("*/**/*.yaml")):
            group, name = path.relative_to(directory).with_suffix("").as_posix().split("/", 1)
            found.setdefault((group, name), ConfigurationFile(group, name, path, path.stat().st_mtime_ns))
    files = sorted(found.values(), key=lambda file: (file.group, file.name.count("/"), file.name))
    return ConfigurationFiles(tuple(directories), tuple(files))


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return a sentence with the likeliest candidates, or nothing; the last part of a path counts as a name too."""
    wanted = name.rsplit("/", 1)[-1].lower()
    scored: list[tuple[float, bool, str]] = []
    for candidate in candidates:
        ratios = [
            difflib.SequenceMatcher(None, mine, theirs).ratio()
            for mine, theirs in ((name.lower(), candidate.lower()), (wanted, candidate.rsplit("/", 1)[-1].lower()))
        ]
        inside = len(wanted) >= SHORTEST_PART and (wanted in candidate.lower() or candidate.lower() in wanted)
        if inside or max(ratios) >= LIKENESS:
            scored.append((-max(ratios), "/" in candidate, candidate))
    best = [candidate for _, _, candidate in sorted(scored)[:5]]
    return f" Did you mean {' or '.join(best)}?" if best else ""
