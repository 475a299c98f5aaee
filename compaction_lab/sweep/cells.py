"""Cells: what an arm is called, and which part of a configuration can change results and so makes a cell's key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import PurePath

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.records import Cell
from compaction_lab.sweep.endpoints import HOW_ASKED, REAL, ROLES
from compaction_lab.sweep.nodes import MISSING, Node, leaves, show

Identity = Callable[[Mapping[str, JSON]], JSON]
"""What a configuration stands for beyond its own text: content hashes, semantics versions."""

RESULT_KEYS = (
    "strategy",
    "after_strategy",
    "summarizer",
    "model",
    "dataset",
    "mode",
    "reader",
    "judge",
    "pricing",
    "tokenizer",
    "seed",
    "window",
    "cache_policy",
    "provider_profile",
    "references",
)
"""All that can change a result. Trials count units, the rest says what else runs, where and how fast."""

UNHASHED = frozenset(
    {"dataset.path", "dataset.on_error"} | {f"{role}.{setting}" for role in ROLES for setting in HOW_ASKED}
)
"""Where a dataset lies (its content is hashed instead), and how a real model is asked."""

LABEL_IGNORES = frozenset({"preset", "name", "path", "on_error", "base_url"})
KEY_DIGITS = 12


def cell_key(config: Mapping[str, JSON], identity: JSON = None) -> str:
    """Hash what can change results: sha256 of canonical JSON, the first 12 hexadecimal digits.

    Parameters
    ----------
    config
        A resolved configuration.
    identity
        What is hashed beside it: the dataset's content hash, semantics versions of strategies and scorers.
    """
    present = {key: config.get(key) for key in RESULT_KEYS if key != "references" or config.get(key) is not None}
    relevant = {name: value for name, value in leaves(present) if name not in UNHASHED}
    text = json.dumps([relevant, identity], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def option_label(group: str, node: Node, defaults: Node, *, main: bool = False) -> str:
    """Name an option and each parameter that differs from its default.

    Parameters
    ----------
    group
        Its group; parameters carry it as prefix unless ``main``.
    node, defaults
        The option as configured and as shipped.
    main
        Whether the name stands alone (``sliding_window keep_last=8``), as the strategy of an arm and a model do.
    """
    # An endpoint is called what its model is called, and how it is asked is no part of a name.
    endpoint = node.get("kind") == REAL
    called = node.get("model") if endpoint and node.get("name") == node.get("kind") else None
    ignored = LABEL_IGNORES | HOW_ASKED | {"model"} if endpoint else LABEL_IGNORES
    name = show(called or node.get("preset") or node.get("name") or node.get("kind"))
    shipped = dict(leaves(defaults))
    prefix = "" if main else f"{group}."
    differing = [
        f"{prefix}{key}={show(value)}"
        for key, value in leaves(node)
        if key not in ignored and (key not in shipped or shipped[key] != value)
    ]
    return " ".join([name if main else f"{group}={name}", *differing])


def require_values(config: Node) -> None:
    """Refuse a configuration with parameters that have no value yet.

    Raises
    ------
    ConfigurationError
        Naming each of them and the override that would set it.
    """
    missing = [key for key, value in leaves(config) if value == MISSING]
    if missing:
        group = missing[0].partition(".")[0]
        node = config.get(group)
        chosen = node.get("preset") or node.get("name") or node.get("kind") if isinstance(node, dict) else None
        of = f" of {group} {show(chosen)}" if chosen else ""
        raise ConfigurationError(
            f"no value for {', '.join(missing)}{of}: a parameter without default; "
            f"add {' '.join(f'{key}=VALUE' for key in missing)}"
        )


def path_names(paths: list[str]) -> dict[str, str]:
    """Name each path by its stem, with as many of its folders as it takes to tell them apart.

    >>> path_names(["/a/one.jsonl", "/b/one.jsonl", "/b/two.traj"])
    {'/a/one.jsonl': 'a/one', '/b/one.jsonl': 'b/one', '/b/two.traj': 'two'}
    """
    names: dict[str, str] = {}
    pure = {path: PurePath(path) for path in paths}
    for path, parts in pure.items():
        for depth in range(1, len(parts.parts) + 1):
            name = "/".join([*parts.parts[-depth:-1], parts.stem])
            rivals = [p for p in pure.values() if "/".join([*p.parts[-depth:-1], p.stem]) == name]
            if len(rivals) == 1 or depth == len(parts.parts):
                names[path] = name.strip("/")
                break
    return names


def unit_name(cell: Cell, transcript_id: str, trial: int) -> str:
    """One unit as text, as ``show --unit`` takes it."""
    return f"{cell.key}/{transcript_id}/{trial}"
