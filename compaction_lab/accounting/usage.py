"""Usage payloads of providers and log formats, read into disjoint token buckets; the payload is kept raw beside them.

Providers count in opposite directions (cached tokens inside the prompt or beside it, reasoning inside the output or
beside it). Each dialect states its direction once, as data; a payload whose own numbers contradict it is read the other
way and said to be odd.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from compaction_lab.conversation.messages import JSON, Usage
from compaction_lab.errors import ConfigurationError

Path: TypeAlias = tuple[str, ...]
"""Keys from the payload down to a number."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where a format keeps its numbers, and what they include.

    The first path that holds a number is taken; ``input_also`` and ``output_also`` are added to it when present.
    """

    input: tuple[Path, ...]
    output: tuple[Path, ...]
    read: tuple[Path, ...] = ()
    written: tuple[Path, ...] = ()
    reasoning: tuple[Path, ...] = ()
    total: tuple[Path, ...] = ()
    input_also: tuple[Path, ...] = ()
    cache_inside: bool = True
    reasoning_inside: bool = True
    hidden_reasoning: bool = False
    """Whether what the total has beyond input and output is reasoning that no field names."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A usage, and where its payload's numbers contradict the dialect.

    ``odd`` holds ``cache_beside_input``, ``cache_inside_input``, ``reasoning_beside_output`` or
    ``reasoning_inside_output``.
    """

    usage: Usage
    odd: tuple[str, ...] = ()


def _paths(*dotted: str) -> tuple[Path, ...]:
    return tuple(tuple(path.split(".")) for path in dotted)


_OPENAI_CHAT = Dialect(
    input=_paths("prompt_tokens"),
    output=_paths("completion_tokens"),
    read=_paths("prompt_tokens_details.cached_tokens"),
    written=_paths("prompt_tokens_details.cache_write_tokens"),
    reasoning=_paths("completion_tokens_details.reasoning_tokens"),
    total=_paths("total_tokens"),
)

DIALECTS: Mapping[str, Dialect] = {
    "openai_chat": _OPENAI_CHAT,
    "vllm": _OPENAI_CHAT,
    "openai_responses": Dialect(
        input=_paths("input_tokens"),
        output=_paths("output_tokens"),
        read=_paths("input_tokens_details.cached_tokens"),
        written=_paths("input_tokens_details.cache_write_tokens"),
        reasoning=_paths("output_tokens_details.reasoning_tokens"),
        total=_paths("total_tokens"),
    ),
    "anthropic": Dialect(
        input=_paths("input_tokens"),
        output=_paths("output_tokens"),
        read=_paths("cache_read_input_tokens"),
        written=_paths("cache_creation_input_tokens"),
        reasoning=_paths("output_tokens_details.thinking_tokens"),
        cache_inside=False,
    ),
    "gemini": Dialect(
        input=_paths("promptTokenCount", "prompt_token_count"),
        input_also=_paths("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
        output=_paths("candidatesTokenCount", "candidates_token_count"),
        read=_paths("cachedContentTokenCount", "cached_content_token_count"),
        reasoning=_paths("thoughtsTokenCount", "thoughts_token_count"),
        total=_paths("totalTokenCount", "total_token_count"),
        reasoning_inside=False,
    ),
    "gemini_openai": Dialect(
        input=_OPENAI_CHAT.input,
        output=_OPENAI_CHAT.output,
        read=_OPENAI_CHAT.read,
        reasoning=_OPENAI_CHAT.reasoning,
        total=_OPENAI_CHAT.total,
        hidden_reasoning=True,
    ),
    "deepseek": Dialect(
        input=_paths("prompt_tokens"),
        output=_paths("completion_tokens"),
        read=_paths("prompt_cache_hit_tokens", "prompt_tokens_details.cached_tokens"),
        reasoning=_paths("completion_tokens_details.reasoning_tokens"),
        total=_paths("total_tokens"),
    ),
    "litellm": Dialect(
        input=_paths("prompt_tokens"),
        output=_paths("completion_tokens"),
        read=_paths("cache_read_input_tokens", "cache_read_tokens", "prompt_tokens_details.cached_tokens"),
        written=_paths(
            "cache_creation_input_tokens", "cache_write_tokens", "prompt_tokens_details.cache_creation_tokens"
        ),
        reasoning=_paths("completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
        total=_paths("total_tokens"),
    ),
    "otel": Dialect(
        input=(("gen_ai.usage.input_tokens",), ("gen_ai.usage.prompt_tokens",)),
        output=(("gen_ai.usage.output_tokens",), ("gen_ai.usage.completion_tokens",)),
        read=(("gen_ai.usage.cache_read.input_tokens",),),
        written=(("gen_ai.usage.cache_creation.input_tokens",),),
        reasoning=(("gen_ai.usage.reasoning.output_tokens",),),
    ),
    "langsmith": Dialect(
        input=_paths("input_tokens"),
        output=_paths("output_tokens"),
        read=_paths("input_token_details.cache_read"),
        written=_paths("input_token_details.cache_creation"),
        reasoning=_paths("output_token_details.reasoning"),
        total=_paths("total_tokens"),
    ),
    "inspect": Dialect(
        input=_paths("input_tokens"),
        output=_paths("output_tokens"),
        read=_paths("input_tokens_cache_read"),
        written=_paths("input_tokens_cache_write"),
        reasoning=_paths("reasoning_tokens"),
        total=_paths("total_tokens"),
        cache_inside=False,
    ),
    "langfuse": Dialect(
        input=_paths("input"),
        output=_paths("output"),
        read=(
            *_paths("input_cache_read", "input_cached_tokens", "cache_read_input_tokens"),
            ("prompt_details.cache_read",),
            ("prompt_details.cached_tokens",),
        ),
        written=_paths("input_cache_creation", "cache_creation_input_tokens"),
        reasoning=(
            *_paths("output_reasoning", "output_reasoning_tokens"),
            ("completion_details.reasoning",),
            ("completion_details.reasoning_tokens",),
        ),
        total=_paths("total"),
        cache_inside=False,
        reasoning_inside=False,
    ),
    "codex": Dialect(
        input=_paths("last_token_usage.input_tokens", "input_tokens"),
        output=_paths("last_token_usage.output_tokens", "output_tokens"),
        read=_paths("last_token_usage.cached_input_tokens", "cached_input_tokens"),
        written=_paths("last_token_usage.cache_write_input_tokens", "cache_write_input_tokens"),
        reasoning=_paths("last_token_usage.reasoning_output_tokens", "reasoning_output_tokens"),
        total=_paths("last_token_usage.total_tokens", "total_tokens"),
    ),
    "agent_framework": Dialect(
        input=_paths("input_token_count"),
        output=_paths("output_token_count"),
        read=_paths("cache_read_input_token_count"),
        written=_paths("cache_creation_input_token_count"),
        reasoning=_paths("reasoning_output_token_count"),
        total=_paths("total_token_count"),
    ),
}
"""By format. The Agent Framework passes on what its provider counted: its direction is a guess that totals correct."""


def read_usage(payload: Mapping[str, JSON] | None, dialect: str) -> Reading | None:
    """Return a payload's usage in disjoint buckets, or ``None`` when input or output is not reported.

    Parameters
    ----------
    payload
        The usage object as recorded (for ``codex`` also the ``info`` of a token count: its last call, not the running
        totals; for ``otel`` the span's attributes).
    dialect
        A key of `DIALECTS`.

    Raises
    ------
    ConfigurationError
        For an unknown dialect.

    Notes
    -----
    Contradictions are resolved in this order: more cached than input means cached tokens are beside it; a total that
    only the other direction explains decides; more reasoning than output means reasoning is beside it. No bucket is
    ever negative, and the buckets add up to what the payload says was sent and received.

    Examples
    --------
    >>> odd = read_usage(
    ...     {"prompt_tokens": 50, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5383}},
    ...     "openai_chat",
    ... )
    >>> odd.usage.fresh_input_tokens, odd.usage.cache_read_tokens, odd.odd
    (50, 5383, ('cache_beside_input',))
    """
    if dialect not in DIALECTS:
        raise ConfigurationError(f"usage dialect: found {dialect!r}, expected one of {sorted(DIALECTS)}")
    if payload is None:
        return None
    form = DIALECTS[dialect]
    sent, received = _first(payload, form.input), _first(payload, form.output)
    if sent is None or received is None:
        return None
    sent += _first(payload, form.input_also) or 0
    read, written = _first(payload, form.read) or 0, _first(payload, form.written) or 0
    reasoning, total = _first(payload, form.reasoning) or 0, _first(payload, form.total)
    if form.hidden_reasoning and total is not None and not reasoning:
        reasoning = max(0, total - sent - received)

    cache_inside, reasoning_inside = _directions(form, sent, received, read + written, reasoning, total)
    odd = []
    if cache_inside != form.cache_inside:
        odd.append("cache_inside_input" if cache_inside else "cache_beside_input")
    if reasoning_inside != form.reasoning_inside and not form.hidden_reasoning:
        odd.append("reasoning_inside_output" if reasoning_inside else "reasoning_beside_output")
    fresh = sent - read - written if cache_inside else sent
    visible = received - reasoning if reasoning_inside else received
    return Reading(Usage(fresh, read, written, visible, reasoning, payload), tuple(odd))


def long_cache_write_tokens(usage: Usage) -> int:
    """Return how many written tokens a recorded Anthropic usage keeps for an hour, as its raw payload says."""
    found = _first(usage.raw, _paths("cache_creation.ephemeral_1h_input_tokens"))
    return min(found or 0, usage.cache_write_tokens)


def _directions(
    form: Dialect, sent: int, received: int, cached: int, reasoning: int, total: int | None
) -> tuple[bool, bool]:
    """Return whether cached tokens are inside the input and reasoning inside the output, as the numbers allow."""
    possible = [
        (cache_inside, reasoning_inside)
        for cache_inside in (form.cache_inside, not form.cache_inside)
        for reasoning_inside in (form.reasoning_inside, not form.reasoning_inside)
        if (cached <= sent or not cache_inside)
        and (reasoning <= received or not reasoning_inside)
        and (cached or cache_inside == form.cache_inside)
        and (reasoning or reasoning_inside == form.reasoning_inside)
    ]
    for cache_inside, reasoning_inside in possible:
        if total == sent + received + (0 if cache_inside else cached) + (0 if reasoning_inside else reasoning):
            return cache_inside, reasoning_inside
    return possible[0]


def _first(payload: Mapping[str, JSON], paths: tuple[Path, ...]) -> int | None:
    for path in paths:
        value: JSON | Mapping[str, JSON] = payload
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == int(value):
            return int(value)
    return None
