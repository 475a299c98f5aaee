"""Token-level compression: an installed compressor drops the tokens that say least (mechanism M31).

No compressor comes with the lab and none is imitated; without one the strategy says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

from compaction_lab.conversation.context import Edit, Placed
from compaction_lab.errors import StrategyError
from compaction_lab.strategies.ageing import boundary, newly_aged
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.registry import at_least, register


class Compressor(Protocol):
    """Anything that shortens a text to about ``rate`` of its tokens, the same text always alike."""

    def __call__(self, text: str, rate: float) -> str:
        """Return the compressed text."""
        ...


@register("token_compression", semantics=1)
@dataclass(frozen=True, slots=True)
class TokenCompression:
    """Compress the text of messages that are no longer recent.

    Parameters
    ----------
    model
        Weights that LLMLingua loads; a folder on this machine, or a name it can download.
    rate
        Share of the tokens to keep.
    keep_last, unit
        Newest complete units left alone.
    min_tokens
        Shorter messages are left alone (LLMLingua fails on empty texts).
    roles
        Whose messages are compressed.
    force_tokens
        Tokens that are never dropped (LLMLingua-2).
    compressor
        A compressor of the user's own instead of LLMLingua; from Python only.
    """

    model: str = "microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank"
    rate: float = 0.5
    keep_last: int = 2
    unit: Literal["turn", "step"] = "turn"
    min_tokens: int = 50
    roles: tuple[str, ...] = ("tool", "assistant")
    force_tokens: tuple[str, ...] = ("\n", "?", ".", "!", ",")
    compressor: Compressor | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)
        at_least(self, "min_tokens", 1)

    def __call__(self, situation: Situation) -> Compaction:
        """Compress what fell behind the window."""
        newly = newly_aged(situation, boundary(situation, self.unit, self.keep_last))
        edits = []
        count = situation.counter.message
        for entry in newly.entries:
            message = entry.message
            if message.role not in self.roles or message.source != "recorded" or not message.text.strip():
                continue
            if count(message) < self.min_tokens:
                continue
            compress = self.compressor or llmlingua(self.model, self.force_tokens)
            stand_in = message.replaced(compress(message.text, self.rate), "placeholder")
            if stand_in.text.strip() and count(stand_in) < count(message):
                edits.append(Edit("clipped", (entry.key,), Placed(entry.key, stand_in)))
        reason = f"older than the last {self.keep_last} {self.unit}s" if edits else ""
        return Compaction(tuple(edits), newly.memory, newly.base, reason)


@cache
def llmlingua(model: str, force_tokens: tuple[str, ...]) -> Compressor:
    """Return LLMLingua's compressor.

    Raises
    ------
    StrategyError
        The package, or the weights it needs, are not there.
    """
    try:
        from llmlingua import PromptCompressor
    except ImportError as error:
        msg = (
            "token_compression: LLMLingua is not installed; pip install llmlingua (0.2.2), or give a compressor of "
            "your own from Python"
        )
        raise StrategyError(msg) from error
    second = "llmlingua-2" in model
    try:
        loaded = PromptCompressor(model_name=model, use_llmlingua2=second)
    except (OSError, ValueError, RuntimeError) as error:
        msg = (
            f"token_compression: LLMLingua cannot load the weights of {model!r} ({error}); give strategy.model= a "
            "folder that holds them"
        )
        raise StrategyError(msg) from error

    def compress(text: str, rate: float) -> str:
        extra = {"force_tokens": list(force_tokens)} if second else {}
        return str(loaded.compress_prompt(text, rate=rate, **extra)["compressed_prompt"])

    return compress
