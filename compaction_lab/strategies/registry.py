"""Registry names of strategies, and the way from a preset's YAML or keyword parameters to a strategy object."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import HISTORIES, OCCASIONS, History, Occasion, Strategy, Trigger, Triggered

RESERVED = ("kind", "preset", "about", "trigger", "tokenizer", "placement")
"""Keys of a strategy's configuration that are not parameters of its mechanism."""

_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True)
class _Kind:
    build: type
    semantics: int


_STRATEGIES: dict[str, _Kind] = {}
_TRIGGERS: dict[str, _Kind] = {}


def register(name: str, *, semantics: int) -> Callable[[_Class], _Class]:
    """Give a strategy dataclass its registry name; raise ``semantics`` whenever its results change."""

    def remember(build: _Class) -> _Class:
        _STRATEGIES[name] = _Kind(build, semantics)
        return build

    return remember


def register_trigger(name: str, *, semantics: int = 1) -> Callable[[_Class], _Class]:
    """Give a trigger dataclass its name in configurations."""

    def remember(build: _Class) -> _Class:
        _TRIGGERS[name] = _Kind(build, semantics)
        return build

    return remember


@dataclass(frozen=True, slots=True)
class PlacedStrategy:
    """A strategy with its name, parameters and placement: what an arm is made of.

    Parameters
    ----------
    name
        Preset or registry name.
    run
        The strategy itself, its trigger included.
    when, history
        Its placement.
    tokenizer
        Name of the counting rule it decides by; ``None`` means the run's tokenizer.
    parameters
        Its parameters by name, defaults included.
    semantics
        Version of what it does, part of every key.
    """

    name: str
    run: Strategy
    when: Occasion = "before_call"
    history: History = "view"
    tokenizer: str | None = None
    parameters: Mapping[str, JSON] = dataclasses.field(default_factory=dict)
    semantics: int = 1


def at_least(strategy: object, field: str, lowest: int) -> None:
    """Check a whole-number parameter.

    Raises
    ------
    ConfigurationError
        The parameter is not a whole number, or below ``lowest``.
    """
    value = getattr(strategy, field)
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        msg = f"{type(strategy).__name__}: {field}={value!r}; expected a whole number of at least {lowest}"
        raise ConfigurationError(msg)


def strategy(name: str, **parameters: object) -> PlacedStrategy:
    """Return a strategy by its registry or preset name.

    Parameters
    ----------
    name
        ``observation_masking``, ``semantic_kernel/hybrid``, ...: any that ``compaction-lab options strategy`` lists.
    **parameters
        The preset's parameters; also ``trigger``, ``tokenizer`` and ``placement``. Composed strategies take a list of
        strategies made by this function.

    Raises
    ------
    ConfigurationError
        The name is unknown (the nearest names are given), a parameter is unknown or missing, or a value is refused.

    Examples
    --------
    >>> strategy("sliding_window", keep_last=8).parameters["unit"]
    'turn'
    """
    node = preset(name)
    unknown = [key for key in parameters if key not in node and key not in RESERVED]
    if unknown:
        raise ConfigurationError(unknown_parameter(name, unknown[0], [key for key in node if key not in RESERVED]))
    given = cast("dict[str, JSON]", parameters)
    if isinstance(given.get("placement"), Mapping) and isinstance(node.get("placement"), Mapping):
        given = given | {"placement": {**node["placement"], **given["placement"]}}  # type: ignore[dict-item]
    return build(node | given)


def preset(name: str) -> dict[str, JSON]:
    """Return the configuration that a preset's YAML file holds, with its ``about`` node.

    Raises
    ------
    ConfigurationError
        No preset has this name.
    """
    from compaction_lab.configuration import configuration_files

    return {**configuration_files().read("strategy", name), "preset": name}


def unknown_parameter(name: str, parameter: str, known: list[str]) -> str:
    """Word the error for a parameter that a strategy lacks."""
    near = difflib.get_close_matches(parameter, known, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"strategy '{name}' has no parameter '{parameter}'{hint}; it has: {', '.join(known) or 'none'}"


def build(node: Mapping[str, JSON]) -> PlacedStrategy:
    """Return the strategy a configuration describes.

    Raises
    ------
    ConfigurationError
        The configuration lacks its kind or a parameter, or names one that the kind does not have.
    """
    name = str(node.get("preset") or node.get("kind"))
    kind = _find(_STRATEGIES, node.get("kind"), f"strategy '{name}'")
    own = {field.name for field in dataclasses.fields(kind.build)}
    parameters = {key: value for key, value in node.items() if key not in RESERVED or key in own}
    mechanism = cast("Strategy", _construct(kind.build, parameters, f"strategy '{name}'"))
    # A framework whose strategies take a trigger of their own reads it by its own rule.
    trigger = None if "trigger" in own else node.get("trigger")
    run = mechanism if trigger is None else Triggered(build_trigger(trigger), mechanism)
    placement = node.get("placement") or {}
    if not isinstance(placement, Mapping):
        msg = f"strategy '{name}': placement={placement!r}; expected {{when: ..., history: ...}}"
        raise ConfigurationError(msg)
    when = placement.get("when") or getattr(mechanism, "default_when", "before_call")
    _one_of(when, OCCASIONS, f"strategy '{name}': placement.when")
    history = _one_of(placement.get("history", "view"), HISTORIES, f"strategy '{name}': placement.history")
    if history == "view" and when in ("before_turn", "after_turn"):
        msg = (
            f"strategy '{name}': placement.when={when} with history=view would change no call, since a view lasts for "
            "one call; give history=turn or history=stored, or when=before_call"
        )
        raise ConfigurationError(msg)
    tokenizer = node.get("tokenizer")
    return PlacedStrategy(
        name,
        run,
        cast("Occasion", when),
        cast("History", history),
        tokenizer if isinstance(tokenizer, str) else None,
        {key: _as_json(value) for key, value in parameters.items()},
        kind.semantics,
    )


def _as_json(value: object) -> JSON:
    """Return a parameter as configurations write it: strategies by their presets, other objects by their names."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if isinstance(value, PlacedStrategy):
        return {"preset": value.name, **value.parameters}
    return str(getattr(value, "name", None) or type(value).__qualname__)


def build_trigger(node: JSON) -> Trigger:
    """Return the trigger a configuration describes: ``{tokens_exceed: 32000}``, ``{any: [...]}``, ``always``.

    Raises
    ------
    ConfigurationError
        The trigger is not one the lab knows, or its value is refused.
    """
    if isinstance(node, str):
        node = {node: None}
    if not isinstance(node, Mapping) or len(node) != 1:
        known = ", ".join(sorted(_TRIGGERS))
        msg = f"trigger={node!r}; expected one of {known}, with its value: {{tokens_exceed: 32000}}"
        raise ConfigurationError(msg)
    ((name, value),) = node.items()
    kind = _find(_TRIGGERS, name, "trigger")
    fields = [field.name for field in dataclasses.fields(kind.build)]
    if not fields:
        parameters: Mapping[str, JSON] = {}
    elif isinstance(value, Mapping):
        parameters = value
    else:
        parameters = {fields[0]: value}
    return cast("Trigger", _construct(kind.build, parameters, f"trigger '{name}'"))


def _find(kinds: Mapping[str, _Kind], name: JSON, where: str) -> _Kind:
    _load_all()
    if isinstance(name, str) and name in kinds:
        return kinds[name]
    near = difflib.get_close_matches(str(name), kinds, n=3)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    msg = f"{where}: unknown kind {name!r}; {hint}known kinds: {', '.join(sorted(kinds))}"
    raise ConfigurationError(msg)


def _construct(build_class: type, parameters: Mapping[str, JSON], where: str) -> object:
    fields = {field.name: field for field in dataclasses.fields(build_class)}
    unknown = [key for key in parameters if key not in fields]
    if unknown:
        msg = f"{where} has no parameter '{unknown[0]}'; it has: {', '.join(fields) or 'none'}"
        raise ConfigurationError(msg)
    required = [n for n, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING]
    missing = [n for n in fields if parameters.get(n, "???" if n in required else None) == "???"]
    if missing:
        msg = f"{where} needs {missing[0]}, which has no default: give strategy.{missing[0]}=..."
        raise ConfigurationError(msg)
    hints = typing.get_type_hints(build_class)
    values = {key: _convert(value, hints[key], f"{where}: {key}") for key, value in parameters.items()}
    return build_class(**values)


def _convert(value: object, hint: object, where: str) -> object:
    """Check a configured value against a field's annotation, and build the strategies and triggers inside it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [argument for argument in arguments if argument is not type(None)]
        optional_and_none = value is None and len(rest) < len(arguments)
        return value if optional_and_none or len(rest) > 1 else _convert(value, rest[0], where)
    if origin is Literal:
        return _one_of(value, arguments, where)
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, (list, tuple)):
            raise ConfigurationError(f"{where}={value!r}; expected a list")
        return tuple(_convert(item, arguments[0], f"{where}[{at}]") for at, item in enumerate(value))
    if hint is Strategy:
        return _child(value, where)
    if hint is Trigger:
        return build_trigger(cast("JSON", value)) if isinstance(value, (str, Mapping)) else value
    return _plain(value, hint, where) if hint in _PLAIN else value


_PLAIN: dict[object, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
}
"""What a field of a plain type takes, and how errors call it."""


def _plain(value: object, hint: object, where: str) -> object:
    accepted, expected = _PLAIN[hint]
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        raise ConfigurationError(f"{where}={value!r}; expected {expected}")
    return float(value) if hint is float and isinstance(value, (int, float)) else value


def _child(value: object, where: str) -> Strategy:
    if isinstance(value, PlacedStrategy):
        return value.run
    if isinstance(value, str):
        value = {"preset": value}
    if isinstance(value, Mapping):
        node = dict(cast("Mapping[str, JSON]", value))
        if "kind" not in node and "preset" in node:
            base = preset(str(node["preset"]))
            unknown = [key for key in node if key not in base and key not in RESERVED]
            if unknown:
                known = [key for key in base if key not in RESERVED]
                raise ConfigurationError(f"{where}: " + unknown_parameter(str(node["preset"]), unknown[0], known))
            node = base | node
        return build(node).run
    if callable(value):
        return cast("Strategy", value)
    msg = f"{where}={value!r}; expected a strategy: {{preset: NAME, ...}}, {{kind: NAME, ...}} or a strategy object"
    raise ConfigurationError(msg)


def _one_of(value: object, known: tuple[object, ...], where: str) -> object:
    if value in known:
        return value
    msg = f"{where}={value!r}; expected one of {', '.join(map(str, known))}"
    raise ConfigurationError(msg)


def _load_all() -> None:
    """Import every module that registers a kind."""
    from compaction_lab.strategies import kinds  # noqa: F401 - the kinds import this module
