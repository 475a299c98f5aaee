"""A strategy's memory as JSON and back: plain values, tuples, and the few classes that memories are made of."""

from __future__ import annotations

from typing import TypeVar, cast

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import StrategyError

_Class = TypeVar("_Class", bound=type)
_CLASSES: dict[str, type] = {}


def remembered(kind: _Class) -> _Class:
    """Let a class be part of memories that are written as JSON.

    A named tuple is written item by item. Any other class says with ``to_memory()`` which values it is made from.
    """
    _CLASSES[kind.__name__] = kind
    return kind


def encode(memory: object) -> JSON:
    """Return a memory as JSON.

    Raises
    ------
    StrategyError
        The memory holds something that has no JSON form.
    """
    if memory is None or isinstance(memory, (bool, int, float, str)):
        return memory
    if isinstance(memory, tuple):
        name = type(memory).__name__
        tag = name if type(memory) is _CLASSES.get(name) else "tuple"
        if tag == "tuple" and type(memory) is not tuple:
            msg = f"memory of type {name} has no JSON form; mark the class with @remembered"
            raise StrategyError(msg)
        return {tag: [encode(item) for item in memory]}
    kind = type(memory).__name__
    to_memory = getattr(memory, "to_memory", None)
    if to_memory is not None and type(memory) is _CLASSES.get(kind):
        return {kind: [encode(item) for item in to_memory()]}
    msg = f"memory of type {kind} has no JSON form; use plain values, tuples and @remembered named tuples"
    raise StrategyError(msg)


def decode(value: JSON) -> object:
    """Return the memory that :func:`encode` wrote."""
    if isinstance(value, dict):
        ((tag, items),) = value.items()
        values = tuple(map(decode, cast("list[JSON]", items)))
        return values if tag == "tuple" else _CLASSES[tag](*values)
    return value
