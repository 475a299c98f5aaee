"""What a provider's prompt cache keeps, for how long and in which steps: data, read from ``conf/cache_policy``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from compaction_lab.conversation.messages import JSON
from compaction_lab.errors import ConfigurationError

CacheKind = Literal["none", "automatic", "breakpoints"]


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """One provider's prompt-cache rules.

    Parameters
    ----------
    kind
        ``none``; ``automatic``: any prefix of an earlier prompt can be read; ``breakpoints``: only prefixes that an
        earlier request marked can be read, and marking one is a write.
    minimum_tokens
        Shorter prefixes are neither written nor read.
    block_tokens
        Automatic reads are floored to a multiple of it.
    lifetime_s
        Seconds since the last use after which a prefix is gone; ``None``: never.
    lookback_blocks
        Content blocks that a breakpoint looks back over for a marked prefix, itself included; ``None``: all.
    mark_prefix
        Whether requests mark the end of tools and leading system messages.
    mark_last
        How many marks requests put at the end: the last message, and before it the ends of earlier runs of user or
        tool messages.
    writes_cost
        Whether written tokens are a bucket of their own, billed at the write price (the one-hour price if
        ``long_writes``); otherwise they are fresh input.
    """

    kind: CacheKind = "none"
    minimum_tokens: int = 0
    block_tokens: int = 1
    lifetime_s: float | None = None
    lookback_blocks: int | None = None
    mark_prefix: bool = True
    mark_last: int = 1
    writes_cost: bool = False
    long_writes: bool = False

    def __post_init__(self) -> None:
        """Refuse what no provider can mean."""
        if self.kind not in ("none", "automatic", "breakpoints"):
            raise ConfigurationError(f"cache_policy.kind: found {self.kind!r}, expected none, automatic or breakpoints")
        lowest = {"minimum_tokens": 0, "block_tokens": 1, "lifetime_s": 0, "lookback_blocks": 1, "mark_last": 0}
        for name, low in lowest.items():
            value = getattr(self, name)
            optional = name in ("lifetime_s", "lookback_blocks")
            if value is None and optional:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value < low:
                raise ConfigurationError(
                    f"cache_policy.{name}: found {value!r}, expected a number of at least {low}"
                    + (" or null" if optional else "")
                )


def cache_policy(config: Mapping[str, JSON] | None, model: str = "") -> CachePolicy:
    """Return the policy a ``cache_policy`` node describes; ``about`` is documentation, ``None`` no cache.

    ``minimum_tokens`` may be a mapping of model names to tokens with a ``default``: the longest name that ``model``
    (less any ``provider/``) starts with decides.

    Raises
    ------
    ConfigurationError
        For an unknown key, or a value no provider can mean.

    Examples
    --------
    >>> cache_policy({"kind": "automatic", "minimum_tokens": {"default": 1024, "tiny": 64}}, "tiny-2").minimum_tokens
    64
    """
    if config is None:
        return CachePolicy()
    known = {field.name for field in fields(CachePolicy)}
    values: dict[str, JSON] = {}
    for key, value in config.items():
        if key == "about":
            continue
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigurationError(f"cache_policy.{key}: no such key, expected one of {sorted(known)}{hint}")
        values[key] = value
    minimum = values.get("minimum_tokens")
    if isinstance(minimum, Mapping):
        values["minimum_tokens"] = _of_model(minimum, model)
    return CachePolicy(**values)  # type: ignore[arg-type]


def _of_model(by_model: Mapping[str, JSON], model: str) -> JSON:
    name = model.rpartition("/")[2].lower().replace(".", "-")
    matching = [key for key in by_model if name.startswith(key.lower().replace(".", "-"))]
    if matching:
        return by_model[max(matching, key=len)]
    if "default" not in by_model:
        raise ConfigurationError(
            f"cache_policy.minimum_tokens: nothing for model {model!r} among {sorted(by_model)}; add it or a default"
        )
    return by_model["default"]
