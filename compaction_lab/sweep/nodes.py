"""Configuration as plain nested mappings: reading, setting with a check against typos and types, and flattening."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from compaction_lab.configuration import did_you_mean
from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError

Node = dict[str, JSON]

WHOLE = frozenset({"arguments", "target", "trigger"})
"""Keys whose mapping is one value: assigning replaces it, since its keys are alternatives."""

STRATEGY_KEYS: Mapping[str, JSON] = {"trigger": None, "tokenizer": None}
"""What every strategy takes, whether or not its preset mentions it."""

MISSING = "???"


def child(node: Node, key: str) -> Node:
    """Return the mapping under a key.

    Raises
    ------
    ConfigurationError
        When there is a value of another kind.
    """
    value = node.get(key)
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{key}: expected a mapping of parameters, found {show(value)}; choose an option by name"
        )
    return value


def add_missing_strategy_keys(node: Node) -> Node:
    """Give a strategy the keys that every strategy takes; of its placement only what its preset states."""
    return {**{key: value for key, value in STRATEGY_KEYS.items() if key not in node}, **node}


def assign(config: Node, key: str, value: JSON, text: str) -> None:
    """Set an existing dotted key in place.

    A mapping is merged into a mapping, except under ``trigger`` and ``target``, which are replaced whole. A whole
    number written as a float (``1e3``) becomes an integer.

    Raises
    ------
    ConfigurationError
        When there is no such key (the message lists those there are), or a number or truth value is expected and
        something else was found. ``text`` is the override as written.
    """
    *path, last = key.split(".")
    node = config
    for depth, part in enumerate(path):
        below = node.get(part)
        if part in WHOLE and part in node and depth == len(path) - 1:
            node[part] = {**(below if isinstance(below, dict) else {}), last: value}
            return
        if not isinstance(below, dict):
            raise _unknown(config, node, path[:depth], part, text)
        node = below
    if last not in node:
        raise _unknown(config, node, path, last, text)
    before = node[last]
    if isinstance(before, dict) and isinstance(value, dict) and last not in WHOLE:
        for name, item in value.items():
            assign(config, f"{key}.{name}", item, text)
        return
    node[last] = _typed(before, value, text)


def merge_parameters(node: Node, parameters: Node, where: str) -> Node:
    """Set the parameters of a nested strategy in place and return it, with the checks of :func:`assign`."""
    holder: Node = {"strategy": node}
    for name, value in parameters.items():
        assign(holder, f"strategy.{name}", value, f"{where}: {name}={show(value)}")
    return node


def add(config: Node, key: str, value: JSON) -> None:
    """Set a dotted key whether or not it exists (Hydra's ``+key=value``)."""
    *path, last = key.split(".")
    node = config
    for part in path:
        below = node.setdefault(part, {})
        if not isinstance(below, dict):
            raise ConfigurationError(
                f"+{key}={show(value)}: {part} holds {show(below)}, so nothing can be added under it"
            )
        node = below
    node[last] = value


def delete(config: Node, key: str) -> None:
    """Remove a dotted key (Hydra's ``~key``)."""
    *path, last = key.split(".")
    node = config
    for part in path:
        below = node.get(part)
        node = below if isinstance(below, dict) else {}
    if last not in node:
        raise ConfigurationError(f"~{key}: the configuration has no {key}, so it cannot be removed")
    del node[last]


def leaves(node: Mapping[str, JSON], prefix: str = "") -> Iterator[tuple[str, JSON]]:
    """Every value with its dotted key; mappings under ``trigger`` and ``target`` count as one value."""
    for key, value in node.items():
        if isinstance(value, dict) and value and key not in WHOLE:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def show(value: JSON) -> str:
    """Write a value as it would be typed in an override."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {show(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    return json.dumps(value)


def _typed(before: JSON, value: JSON, text: str) -> JSON:
    if before is None or value is None or before == MISSING:
        return int(value) if isinstance(value, float) and value.is_integer() and before == MISSING else value
    expected = _kind(before)
    found = _kind(value)
    if expected == "a number" and found == expected:
        whole = isinstance(before, int) and isinstance(value, float) and value.is_integer()
        return int(cast("float", value)) if whole else value
    if expected in {"a number", "true or false"} and expected != found:
        raise ConfigurationError(f"{text!r}: expected {expected} (the default is {show(before)}), found {value!r}")
    return value


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "another"


def _unknown(config: Node, node: Node, path: list[str], name: str, text: str) -> ConfigurationError:
    hint = did_you_mean(name, node)
    top = config.get(path[0]) if path else None
    if path and path[0] in {"strategy", "after_strategy"} and isinstance(top, dict):
        known = ", ".join(f"{key} ({show(value)})" for key, value in leaves(node) if key not in {"kind", "preset"})
        chosen = top.get("preset") or top.get("kind")
        what = f"parameter {'.'.join([*path[1:], name])!r}"
        return ConfigurationError(f"{text!r}: {path[0]} {chosen} has no {what}.{hint} It takes {known or 'none'}.")
    where = ".".join(path) or "the configuration"
    if path and top is None:
        return ConfigurationError(f"{text!r}: {path[0]} is null, so it has no {name!r}; choose one: {path[0]}=NAME")
    return ConfigurationError(f"{text!r}: {where} has no key {name!r}.{hint} It has {', '.join(sorted(node))}.")
