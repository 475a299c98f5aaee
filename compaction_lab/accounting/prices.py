"""What a model call costs, from the price list that ships with genai-prices and the user's own prices.

Nothing here asks the network: the library's updater is never started, and only its bundled data is read.
"""

from __future__ import annotations

import difflib
import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from compaction_lab.errors import ConfigurationError

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import MatchLogic, ModelInfo, ModelPrice, Provider, TieredPrices

    from compaction_lab.conversation.messages import JSON, Usage

MatchKind = Literal["listed", "dated", "override"]

_RATES = ("fresh", "cache_read", "cache_write", "long_cache_write", "output", "reasoning")
_OVERRIDES = ("fresh", "cache_read", "cache_write", "long_cache_write", "output", "reasoning", "context_window")
_DATE = re.compile(r"[-@](20\d\d)-?(\d\d)-?(\d\d)$")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens, for requests of more than ``above_input_tokens`` tokens of input.

    ``cache_write`` is for the ordinary lifetime (five minutes at Anthropic), ``long_cache_write`` for the longer one.
    """

    above_input_tokens: int
    fresh: float
    cache_read: float
    cache_write: float
    long_cache_write: float
    output: float
    reasoning: float


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model on one day.

    Parameters
    ----------
    model
        The name asked for.
    provider, matched
        The entry of the price list that answered; ``("", "")`` when all comes from an override.
    match
        ``listed``: the list has this very name; ``dated``: it has the name less its date; ``override``: the user's.
    on
        The day the price is of.
    tiers
        Rates by size of the input, smallest first; the tier reached prices the whole request.
    request_usd
        Fee of each request.
    context_window
        Tokens, when known.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import Usage
    >>> price = price_model("claude-sonnet-4-5")
    >>> round(price.cost(Usage(3_000, 6_000, 1_000, 500)), 6)
    0.02205
    """

    model: str
    provider: str
    matched: str
    match: MatchKind
    on: date
    tiers: tuple[Rates, ...]
    request_usd: float = 0.0
    context_window: int | None = None

    def rates(self, input_tokens: int = 0) -> Rates:
        """Return the rates of a request with ``input_tokens`` of input, cached ones included."""
        found = self.tiers[0]
        for tier in self.tiers[1:]:
            if input_tokens <= tier.above_input_tokens:
                break
            found = tier
        return found

    def cost(self, usage: Usage, *, long_cache_write_tokens: int = 0) -> float:
        """Return the US dollars of one call.

        ``long_cache_write_tokens`` of the written tokens are charged for the longer lifetime.
        """
        rates = self.tiers[0] if len(self.tiers) == 1 else self.rates(usage.input_tokens)
        return (
            self.request_usd
            + (
                usage.fresh_input_tokens * rates.fresh
                + usage.cache_read_tokens * rates.cache_read
                + usage.cache_write_tokens * rates.cache_write
                + long_cache_write_tokens * (rates.long_cache_write - rates.cache_write)
                + usage.output_tokens * rates.output
                + usage.reasoning_tokens * rates.reasoning
            )
            / 1_000_000
        )

    def cost_uncached(self, usage: Usage) -> float:
        """Return the US dollars the call would cost if every input token were fresh."""
        rates = self.rates(usage.input_tokens)
        return (
            self.request_usd
            + (
                usage.input_tokens * rates.fresh
                + usage.output_tokens * rates.output
                + usage.reasoning_tokens * rates.reasoning
            )
            / 1_000_000
        )

    def with_long_writes(self) -> Price:
        """Return this price with every cache write charged for the longer lifetime."""
        tiers = tuple(replace(tier, cache_write=tier.long_cache_write) for tier in self.tiers)
        return replace(self, tiers=tiers)


def price_model(
    name: str, *, overrides: Mapping[str, Mapping[str, JSON]] | None = None, on: date | None = None
) -> Price | None:
    """Return the price of a model, or ``None`` with one warning when no price is known.

    Parameters
    ----------
    name
        Model name, with or without ``provider/`` in front.
    overrides
        By model name: ``fresh, cache_read, cache_write, long_cache_write, output, reasoning`` in US dollars per
        million tokens and ``context_window`` in tokens. What is given wins; the price list fills in the rest.
    on
        The day of the price; today (UTC) when ``None``. Prices that change within a day are taken at noon UTC.

    Raises
    ------
    ConfigurationError
        For an override that is not a price.

    Notes
    -----
    A name that the list does not have is priced as a listed one only when the rest is a real date, so that
    ``gpt-5-2025-08-07`` is ``gpt-5`` and ``gpt-5-anything`` is unknown. A price list without a price for cache reads
    or writes means they cost what fresh input costs; reasoning is output unless listed.
    """
    own = (overrides or {}).get(name)
    on = on or datetime.now(tz=UTC).date()
    if own is None:
        return _listed_price(name, on)
    return _overridden(name, own, _find_price(name, on)[0], on)


def context_window(name: str, *, overrides: Mapping[str, Mapping[str, JSON]] | None = None) -> int | None:
    """Return the tokens a model can read at once, or ``None`` when neither the overrides nor the list know."""
    own = (overrides or {}).get(name, {}).get("context_window")
    if isinstance(own, int):
        return own
    found = _find_model(name)
    return found[1].context_window if found else None


def price_list() -> str:
    """Return name and version of the price list, for manifests."""
    return f"genai-prices {version('genai-prices')}"


@lru_cache(maxsize=1024)
def _listed_price(name: str, on: date) -> Price | None:
    price, reason = _find_price(name, on)
    if price is None:
        _log.warning(
            "no price for model %r: %s; its costs stay empty. Give it under pricing.overrides (US dollars per million "
            "tokens) or name a listed model as pricing.model",
            name,
            reason,
        )
    return price


def _find_price(name: str, on: date) -> tuple[Price | None, str]:
    found = _find_model(name)
    if found is None:
        return None, f"{price_list()} does not list it"
    provider, model, match = found
    listed = model.get_prices(datetime(on.year, on.month, on.day, 12, tzinfo=UTC))
    tiers = _tiers(listed)
    if not tiers:
        return None, f"{price_list()} lists {provider.id}/{model.id} without a price per input and output token"
    fee = _flat(listed.requests_kcount) / 1000
    return Price(name, provider.id, model.id, match, on, tiers, fee, model.context_window), ""


def _tiers(listed: ModelPrice) -> tuple[Rates, ...]:
    from genai_prices.types import TieredPrices

    values = {
        rate: getattr(listed, key)
        for rate, key in {
            "fresh": "input_mtok",
            "cache_read": "cache_read_mtok",
            "cache_write": "cache_write_mtok",
            "long_cache_write": "cache_write_1h_mtok",
            "output": "output_mtok",
            "reasoning": "output_reasoning_mtok",
        }.items()
    }
    if values["fresh"] is None or values["output"] is None:
        return ()
    starts = sorted({t.start for v in values.values() if isinstance(v, TieredPrices) for t in v.tiers})
    tiers = []
    for above in (0, *starts):
        at: dict[str, float | None] = {}
        for rate, value in values.items():
            if isinstance(value, TieredPrices):
                reached = [tier.price for tier in value.tiers if tier.start <= above and above in starts]
                at[rate] = float(reached[-1] if reached else value.base)
            else:
                at[rate] = None if value is None else float(value)
        tiers.append(_complete(above, at))
    return tuple(tiers)


def _flat(value: Decimal | TieredPrices | None) -> float:
    """Return a fee that does not depend on the size of the input (the list has no other)."""
    from genai_prices.types import TieredPrices

    return float(value.base if isinstance(value, TieredPrices) else value or 0)


def _complete(above: int, rates: Mapping[str, float | None] | Mapping[str, float]) -> Rates:
    def first(*names: str) -> float:
        return next(value for name in names if (value := rates.get(name)) is not None)

    return Rates(
        above,
        first("fresh"),
        first("cache_read", "fresh"),
        first("cache_write", "fresh"),
        first("long_cache_write", "cache_write", "fresh"),
        first("output"),
        first("reasoning", "output"),
    )


def _overridden(name: str, own: Mapping[str, JSON], listed: Price | None, on: date) -> Price:
    where = f"pricing.overrides.{name}"
    given: dict[str, float] = {}
    for key, value in own.items():
        if key not in _OVERRIDES:
            close = difflib.get_close_matches(key, _OVERRIDES, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigurationError(f"{where}.{key}: no such key, expected one of {list(_OVERRIDES)}{hint}")
        whole = key == "context_window"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 <= value < math.inf:
            wanted = "a number of tokens" if whole else "US dollars per million tokens, 0 or more"
            raise ConfigurationError(f"{where}.{key}: found {value!r}, expected {wanted}")
        given[key] = value
    window = given.pop("context_window", None)
    if listed is None:
        missing = [key for key in ("fresh", "output") if key not in given]
        if missing:
            raise ConfigurationError(
                f"{where}: {name!r} is in no price list, so {' and '.join(missing)} must be given "
                "(US dollars per million tokens)"
            )
        return Price(name, "", "", "override", on, (_complete(0, given),), context_window=_whole(window))
    if "output" in given:
        given.setdefault("reasoning", given["output"])
    return replace(
        listed,
        match="override",
        tiers=tuple(_complete(tier.above_input_tokens, {**asdict(tier), **given}) for tier in listed.tiers),
        context_window=listed.context_window if window is None else _whole(window),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


@lru_cache(maxsize=1024)
def _find_model(name: str) -> tuple[Provider, ModelInfo, MatchKind] | None:
    """Return the list's entry for ``name``, or for ``name`` less a date that directly follows a listed name."""
    name = name.strip().lower().removeprefix("models/")
    found = _entry(name)
    if found:
        provider, model, rest = found
        if any(rest == listed for listed in _listed_names(model.match, model.id)):
            return provider, model, "listed"
    dated = _DATE.search(name)
    if not dated or not _is_date(dated):
        return None
    family = name[: dated.start()]
    found = _entry(family)
    if found:
        provider, model, rest = found
        if any(rest == listed for listed in _listed_names(model.match, model.id)):
            return provider, model, "dated"
    return None


def _is_date(found: re.Match[str]) -> bool:
    try:
        date(*(int(part) for part in found.groups()))
    except ValueError:
        return False
    return True


def _entry(name: str) -> tuple[Provider, ModelInfo, str] | None:
    """Return what the library matches ``name`` to, and the name without its provider."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot, find_provider_by_id

    head, slash, tail = name.partition("/")
    provider = find_provider_by_id(providers, head) if slash else None
    rest = tail if provider else name
    try:
        found = DataSnapshot(providers, from_auto_update=False).find_provider_model(rest, provider, None, None)
    except LookupError:
        return None
    return (*found, rest)


def _listed_names(match: MatchLogic, model_id: str) -> Iterator[str]:
    """Yield the names that an entry lists outright; patterns that only start or contain a name list that name."""
    from genai_prices.types import ClauseEquals, ClauseOr, ClauseStartsWith

    yield model_id.lower()
    if isinstance(match, ClauseOr):
        for clause in match.or_:
            yield from _listed_names(clause, model_id)
    elif isinstance(match, ClauseEquals):
        yield match.equals.lower()
    elif isinstance(match, ClauseStartsWith):
        yield match.starts_with.lower().rstrip("-@")
