"""How long a call would take, for models whose time cannot be measured: a stated formula, never a measurement."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from compaction_lab.errors import ConfigurationError

if TYPE_CHECKING:
    from compaction_lab.conversation.messages import Usage


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """Seconds = ``base_s`` + per-token costs of reading fresh input, reading the cache, and writing the answer.

    The defaults are solved from the time-to-first-token figures of Anthropic's prompt-caching announcement (14 August
    2024, Claude 3.5 Sonnet): 10,000 tokens take 1.6 s and 100,000 take 11.5 s without a cache, which gives 0.5 s plus
    0.11 ms a token; 100,000 cached tokens take 2.4 s, which leaves 0.019 ms a token (its 10,000-token figure, 1.1 s, is
    0.4 s above this line). Answers are written at 64 tokens a second, which Artificial Analysis measured for that model
    at Anthropic. Written tokens count as fresh, reasoning as output.

    Parameters
    ----------
    base_s
        Seconds before any token is read: network, queue, scheduling.
    fresh_input_s, cache_read_s
        Seconds for each input token that is processed, and for each that is read from the prompt cache.
    output_s
        Seconds for each token of the answer, reasoning included.
    """

    base_s: float = 0.5
    fresh_input_s: float = 0.000_11
    cache_read_s: float = 0.000_019
    output_s: float = 0.0156

    def __post_init__(self) -> None:
        """Refuse coefficients that would make time run backwards."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ConfigurationError(f"latency.{field.name}: found {value!r}, expected seconds, 0 or more")

    def first_token_s(self, usage: Usage) -> float:
        """Return the modelled seconds to the first token."""
        processed = usage.fresh_input_tokens + usage.cache_write_tokens
        return self.base_s + processed * self.fresh_input_s + usage.cache_read_tokens * self.cache_read_s

    def seconds(self, usage: Usage) -> float:
        """Return the modelled seconds of the whole call.

        Examples
        --------
        >>> from compaction_lab.conversation.messages import Usage
        >>> round(LatencyModel().seconds(Usage(fresh_input_tokens=10_000, output_tokens=100)), 3)
        3.16
        """
        return self.first_token_s(usage) + (usage.output_tokens + usage.reasoning_tokens) * self.output_s
