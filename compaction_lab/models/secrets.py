"""Keys of endpoints live in environment variables only; here they are taken out of text that is about to be kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from compaction_lab.conversation.messages import JSON

HIDDEN = "***"
SHORTEST = 6
"""A value shorter than this is no key, and hiding it would tear up ordinary words."""


def redacted(text: str, variables: Iterable[str]) -> str:
    """Return ``text`` without the values of the environment variables named.

    Parameters
    ----------
    text
        An error, a traceback or a server's answer: servers like to repeat the key they were sent.
    variables
        Names of environment variables that hold keys.
    """
    for name in variables:
        value = os.environ.get(name, "").strip() if name else ""
        if len(value) >= SHORTEST:
            text = text.replace(value, HIDDEN)
    return text


def key_variables(config: Mapping[str, JSON]) -> Iterator[str]:
    """Yield the environment variables that the models of a configuration take their keys from.

    Examples
    --------
    >>> list(key_variables({"model": {"key_variable": "MY_KEY"}, "judge": {"kind": "exact"}}))
    ['MY_KEY']
    """
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from key_variables(value)
        elif key == "key_variable" and isinstance(value, str):
            yield value
