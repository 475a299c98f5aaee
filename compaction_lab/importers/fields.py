"""Typed reading of untrusted JSON objects: each getter returns the type it names or refuses, saying where and what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from compaction_lab.conversation.json_values import describe
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import TranscriptError


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object; absent and null fields are empty.

    Parameters
    ----------
    object
        What was found.
    where
        Its place, for error messages.
    """

    object: dict[str, JSON]
    where: str

    @classmethod
    def of(cls, value: JSON, where: str) -> Fields:
        """Return the fields of ``value``, which must be an object."""
        if not isinstance(value, dict):
            raise TranscriptError(f"{where}: found {describe(value)}, expected an object; write it as one.")
        return cls(value, where)

    def text(self, key: str) -> str:
        """Return a text, empty when absent."""
        value = self.object.get(key)
        return value if isinstance(value, str) else "" if value is None else self._refuse(key, "text")

    def flag(self, key: str) -> bool:
        """Return a boolean, false when absent."""
        value = self.object.get(key)
        return value if isinstance(value, bool) else False if value is None else self._refuse(key, "true or false")

    def number(self, key: str) -> float | None:
        """Return a number."""
        value = self.object.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self._refuse(key, "a number")
        try:
            return float(value)
        except OverflowError:
            self._refuse(key, "a number below 1e308")

    def whole(self, key: str) -> int | None:
        """Return a whole number, zero or more."""
        value = self.object.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self._refuse(key, "a whole number, zero or more")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty when absent."""
        found = [item for item in self.items(key) if isinstance(item, str)]
        if len(found) != len(self.items(key)):
            self._refuse(key, "a list of texts")
        return tuple(found)

    def items(self, key: str) -> list[JSON]:
        """Return a list, empty when absent."""
        value = self.object.get(key)
        return value if isinstance(value, list) else [] if value is None else self._refuse(key, "a list")

    def mapping(self, key: str) -> dict[str, JSON]:
        """Return an object, empty when absent."""
        value = self.object.get(key)
        return value if isinstance(value, dict) else {} if value is None else self._refuse(key, "an object")

    def _refuse(self, key: str, expected: str) -> NoReturn:
        raise TranscriptError(
            f"{self.where}: field {key!r} is {describe(self.object.get(key))}, expected {expected}; "
            "correct the field or leave it out."
        )
