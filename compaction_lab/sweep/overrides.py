"""Overrides in Hydra's grammar: what one says, and the values it sweeps over; applying them happens elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from compaction_lab.configuration import OVERLAYS, ConfigurationFiles
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override as HydraOverride

OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Override:
    """One override and every value it stands for.

    ``action`` is ``choose`` for a group (``strategy=truncation``), ``set`` for a value of the configuration, and
    ``add`` or ``delete`` for Hydra's ``+key=value`` and ``~key``.
    """

    text: str
    key: str
    values: tuple[JSON, ...]
    action: Literal["choose", "set", "add", "delete"]

    @property
    def group(self) -> str:
        """The first part of the key: ``strategy`` for ``strategy.keep_last``."""
        return self.key.partition(".")[0]


def split_line(line: str) -> list[str]:
    """Cut a grid line into its overrides: at spaces outside quotes and brackets.

    >>> split_line("strategy=truncation strategy.trigger={any: [{tokens_exceed: 100}]} arm='my arm'")
    ['strategy=truncation', 'strategy.trigger={any: [{tokens_exceed: 100}]}', "arm='my arm'"]
    """
    words: list[str] = []
    word = ""
    quote = ""
    closing: list[str] = []
    for character in line:
        if quote:
            quote = "" if character == quote and not word.endswith("\\") else quote
        elif character in "'\"":
            quote = character
        elif character in OPENING:
            closing.append(OPENING[character])
        elif closing and character == closing[-1]:
            closing.pop()
        elif character.isspace() and not closing:
            words.append(word)
            word = ""
            continue
        word += character
    if quote or closing:
        raise ConfigurationError(f"grid line {line!r}: {quote or closing[-1]!r} is missing; close the quote or bracket")
    return [each for each in (*words, word) if each]


class OverrideReader:
    """Reads overrides; it knows the groups, so that it can tell a choice from a value and expand ``glob``."""

    def __init__(self, files: ConfigurationFiles) -> None:
        from hydra.core.override_parser.overrides_parser import OverridesParser

        self._files = files
        self._groups = {*files.groups, *OVERLAYS}
        self._parser = OverridesParser.create()

    def read_all(self, texts: Iterable[str]) -> list[Override]:
        """Every override of a command line or grid line; of two for one key the later holds."""
        found: dict[str, Override] = {}
        for text in texts:
            override = self.read(text)
            found.pop(override.key, None)
            found[override.key] = override
        return list(found.values())

    def read(self, text: str) -> Override:
        """Understand one override.

        Raises
        ------
        ConfigurationError
            When it is not in Hydra's grammar, has no value, or chooses what its group does not offer.
        """
        name, equals, value = text.partition("=")
        if name in {"dataset.path", "+dataset.path"} and value and Path(value).expanduser().exists():
            return Override(text, "dataset.path", (value,), "set")  # a real file may have any name
        parsed = self._parse(text)
        key = parsed.key_or_group
        if parsed.is_delete():
            return Override(text, key, (None,), "delete")
        if not equals or not value:
            raise ConfigurationError(f"{text!r}: {key} has no value; write {key}=VALUE, or {key}=null for none")
        values = self._values(parsed, text)
        if key in self._groups and all(isinstance(each, str | None) for each in values):
            for each in values:
                if each is not None:
                    self._files.require(key, str(each))
            return Override(text, key, values, "choose")
        if key in self._groups:
            raise ConfigurationError(
                f"{text!r}: {key} is chosen by name, found {values[0]!r}; "
                f"`compaction-lab options {OVERLAYS.get(key, key)}` lists the names"
            )
        if parsed.is_force_add() or parsed.is_add():
            return Override(text, key, values, "add")
        return Override(text, key, values, "set")

    def _parse(self, text: str) -> HydraOverride:
        from hydra.errors import HydraException

        try:
            return self._parser.parse_override(text)
        except HydraException as error:
            raise ConfigurationError(_explain(text, error)) from error

    def _values(self, parsed: HydraOverride, text: str) -> tuple[JSON, ...]:
        from hydra.core.override_parser.types import Glob
        from hydra.errors import HydraException

        if not parsed.is_sweep_override():
            return (cast("JSON", parsed.value()),)
        swept: object = parsed.value()
        if isinstance(swept, Glob):
            names = self._files.options(parsed.key_or_group) if parsed.key_or_group in self._groups else {}
            matching = tuple(name for name in names if _globbed(name, swept.include, swept.exclude))
            if not matching:
                raise ConfigurationError(f"{text!r}: the pattern matches no option; there are {', '.join(names)}")
            return matching
        try:
            words = list(parsed.sweep_string_iterator())
        except HydraException as error:
            raise ConfigurationError(f"{text!r}: {error}; list the values instead: a,b or range(0,3)") from error
        values = [cast("JSON", self._parse(f"value={word}").value()) for word in words]
        if "" in values:
            raise ConfigurationError(f"{text!r}: one of its values is empty; drop the surplus comma")
        return tuple(values)


def _globbed(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    return any(_match(name, p) for p in include) and not any(_match(name, p) for p in exclude)


def _match(name: str, pattern: str) -> bool:
    """Match part by part, so that ``*`` means the plain names and ``agent_framework/*`` those of one framework."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _explain(text: str, error: Exception) -> str:
    name, equals, value = text.partition("=")
    reason = str(error).strip().splitlines()[0]
    if not equals:
        return f"{text!r} is not an override: expected KEY=VALUE, such as strategy=truncation or seed=0,1"
    if not any(character in value for character in "'\""):
        return (
            f"{text!r}: the value cannot be read ({reason}). A value with = ( ) [ ] {{ }} : or quotes in it needs "
            f"quotes of its own inside the shell's: '{name}=\"{value}\"'"
        )
    return f"{text!r}: the value cannot be read ({reason}); check its quotes and brackets"
