"""What each provider refuses: the validity rules that are errors there, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compaction_lab.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Profile:
    """One provider's demands on a list of messages.

    Parameters
    ----------
    name
        As given to ``provider_profile``.
    errors
        Validity rules whose findings this provider answers with an error; other findings are remarks.
    wire_keys
        Keys beyond the messages' own that it accepts; ``None`` means any.
    """

    name: str
    errors: frozenset[str]
    wire_keys: frozenset[str] | None = None


_PAIRS = frozenset({"V1", "V2", "V3", "V4"})
_OURS = frozenset({"V14", "V15", "V16"})
"""Broken promises of the lab's own strategies, whoever the provider is; checked only where they can be."""

_OPENAI_KEYS = frozenset({"annotations", "audio", "content", "function_call", "name", "refusal", "tool_calls"})

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        # Chat completions in strict mode; system messages may stand anywhere, roles need not alternate.
        Profile("openai", _PAIRS | _OURS | {"V5", "V8", "V13"}, _OPENAI_KEYS),
        # Messages API: system is a field of its own, and the conversation opens with the user.
        Profile("anthropic", _PAIRS | _OURS | {"V5", "V6", "V7", "V8", "V10", "V11", "V13"}, frozenset({"content"})),
        # generateContent: as many responses as calls, directly after them; the last turn is the user's.
        Profile("gemini", _PAIRS | _OURS | {"V5", "V6", "V7", "V8", "V10", "V11", "V13"}, frozenset({"content"})),
        # Local gateways: chat templates that check next to nothing.
        Profile("lenient", _OURS | {"V1"}),
    )
}


def profile(name: str) -> Profile:
    """Return the profile of that name.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    if name not in PROFILES:
        raise ConfigurationError(
            f"provider_profile={name!r}: found an unknown profile, expected one of {', '.join(PROFILES)}; choose one."
        )
    return PROFILES[name]
