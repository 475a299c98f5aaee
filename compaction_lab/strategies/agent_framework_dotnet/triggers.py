"""Triggers and targets of .NET: conditions on the included part of a message index, written as in ``trigger:``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.agent_framework_dotnet.index import MessageIndex

IndexTrigger: TypeAlias = Callable[[MessageIndex], bool]

_FIXED: Mapping[str, IndexTrigger] = {
    "always": lambda index: True,  # noqa: ARG005 - a condition on the index like the others
    "never": lambda index: False,  # noqa: ARG005
    "has_tool_calls": lambda index: index.sums.tool_calls > 0,
}
_COUNTED: Mapping[str, Callable[[int], IndexTrigger]] = {
    "tokens_below": lambda most: lambda index: index.sums.tokens < most,
    "tokens_exceed": lambda most: lambda index: index.sums.tokens > most,
    "messages_exceed": lambda most: lambda index: index.sums.messages > most,
    "turns_exceed": lambda most: lambda index: index.sums.turns > most,
    "groups_exceed": lambda most: lambda index: index.sums.groups > most,
}
_COMBINED = ("all", "any")
KNOWN = (*_FIXED, *_COUNTED, *_COMBINED)


def index_trigger(node: object, where: str) -> IndexTrigger:
    """Return the condition that a configuration describes.

    Parameters
    ----------
    node
        ``always``, ``{tokens_exceed: 32000}``, ``{all: [...]}`` and so on, or a callable on a message index.
    where
        What the error names.

    Raises
    ------
    ConfigurationError
        It is none of these, or its number is not one.
    """
    if callable(node):
        return cast("IndexTrigger", node)
    if isinstance(node, str):
        node = {node: None}
    if isinstance(node, Mapping) and len(node) == 1:
        ((name, value),) = node.items()
        if name in _FIXED:
            return _FIXED[name]
        if name in _COUNTED and isinstance(value, int) and not isinstance(value, bool):
            return _COUNTED[name](value)
        if name in _COMBINED and isinstance(value, (list, tuple)):
            parts = [index_trigger(item, where) for item in value]
            return (
                (lambda index: all(p(index) for p in parts))
                if name == "all"
                else (lambda index: any(p(index) for p in parts))
            )
    msg = f"{where}={node!r}; expected one of {', '.join(KNOWN)}, with its value: {{tokens_exceed: 32000}}"
    raise ConfigurationError(msg)
