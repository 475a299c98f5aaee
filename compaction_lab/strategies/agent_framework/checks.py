"""Refusing parameters in the framework's own words."""

from __future__ import annotations

from compaction_lab.errors import ConfigurationError


def refuse(wrong: bool, text: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    """Raise the framework's error text as a configuration error when something is wrong.

    Raises
    ------
    ConfigurationError
        With exactly ``text``.
    """
    if wrong:
        raise ConfigurationError(text)
