"""Secrets and names out of transcripts: keys, e-mail addresses, home folders; equal values stay equal.

Every text of a transcript is looked at, also arguments, metadata and what the provider's payload says. What is found is
replaced by a numbered stand-in, the same for the same value in all transcripts of one redactor. Patterns find what
looks like a secret; they cannot promise that nothing else is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from compaction_lab.conversation.messages import JSON, Media, Message, Opaque, Part, Reasoning, Text, ToolDefinition
from compaction_lab.conversation.transcript import Probe, Transcript

_START = r"(?:(?<=\\[nrtbf])|(?<![A-Za-z0-9_]))"
"""Where a word begins, also after a line feed that stands as two characters in JSON text."""

_KEYS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    _START
    + r"(?:sk-(?:ant-|proj-|or-|svcacct-|admin-|lf-)?[A-Za-z0-9_-]{16,}"
    + r"|pk-lf-[A-Za-z0-9-]{16,}"
    + r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{16,}"
    + r"|xox[abeprs]-[A-Za-z0-9-]{10,}"
    + r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
    + r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    + r"|hf_[A-Za-z0-9]{20,}|lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}"
    + r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    + r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)",
)
_KEY = re.compile("|".join(_KEYS), re.DOTALL)
_ASSIGNED = re.compile(
    r"(?P<before>(?:api[_-]?key|access[_-]?key|secret(?:[_-]?key)?|auth[_-]?token|access[_-]?token|refresh[_-]?token"
    r"|passwo?r?d|client[_-]?secret|authorization)\\*[\"']?\s*[:=]\s*\\*[\"']?(?:bearer\s+|basic\s+)?)"
    r"(?P<value>[A-Za-z0-9+/_.~-]{12,}+={0,2}+)(?!\()",
    re.IGNORECASE,
)
_ASSIGNED_WORDS = ("key", "secret", "token", "passw", "authorization")
_IN_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,80}:)(?P<value>[^\s/@\"']{1,200})(?=@)")
_EMAIL = re.compile(
    r"(?:(?<=\\[nrtbf])|(?<=\\)(?![nrtbfu])|(?<![A-Za-z0-9._%+\\-]))"
    r"(?!REDACTED-KEY-)[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)
_HOME = re.compile(
    r"(?P<before>(?:(?:(?<=\\[nrtbf])|(?<![\w.]))/(?:home|Users)/|" + _START + r"[A-Za-z]:(?:\\+|/)Users(?:\\+|/)))"
    r"(?P<value>[^\s/\\\"'<>|:*?,;()\[\]{}`$]+)"
)
_KEPT = frozenset(
    {"Shared", "Public", "Default", "All", "shared", "..", ".", "...", "git@github.com", "git@gitlab.com"}
)
"""Homes and addresses of no one in particular."""

_STAND_INS = {"key": "REDACTED-KEY-{}", "email": "person{}@redacted.invalid", "home": "user{}"}
_STAND_IN = re.compile(r"REDACTED-KEY-\d+|person\d+@redacted\.invalid|user\d+")
_OPAQUE_RUNS = re.compile(r"[A-Za-z0-9+/]{2000,}={0,2}")
"""Payloads in base64, which hold none of this and would take long to look through."""


@dataclass(slots=True)
class Redactor:
    """Replaces secrets and names, and counts what it replaced.

    Attributes
    ----------
    replaced
        Number of places by kind: ``key``, ``email``, ``home``.

    Examples
    --------
    >>> redactor = Redactor()
    >>> redactor.text("mail ann@example.com from /home/ann/notes, cc ann@example.com")
    'mail person1@redacted.invalid from /home/user1/notes, cc person1@redacted.invalid'
    >>> dict(redactor.replaced), redactor.distinct
    ({'home': 1, 'email': 2}, {'email': 1, 'home': 1})
    """

    replaced: Counter[str] = field(default_factory=Counter)
    _known: dict[str, dict[str, str]] = field(default_factory=lambda: {kind: {} for kind in ("key", "email", "home")})

    @property
    def distinct(self) -> dict[str, int]:
        """Number of different values by kind."""
        return {kind: len(values) for kind, values in self._known.items() if values}

    def text(self, text: str) -> str:
        """Return a text with what it holds replaced."""
        if len(text) < 6:  # noqa: PLR2004 - shorter than anything that is looked for
            return text
        if len(text) > 2000 and (runs := _OPAQUE_RUNS.split(text)) and len(runs) > 1:  # noqa: PLR2004
            payloads = _OPAQUE_RUNS.findall(text)
            pieces = [part for pair in zip(map(self._plain, runs), [*payloads, ""], strict=True) for part in pair]
            return "".join(pieces)
        return self._plain(text)

    def transcript(self, transcript: Transcript) -> Transcript:
        """Return a transcript with every text of it replaced; ids, numbers and the shape stay."""
        return replace(
            transcript,
            messages=tuple(map(self._message, transcript.messages)),
            tools=tuple(map(self._tool, transcript.tools)),
            probes=tuple(map(self._probe, transcript.probes)),
            meta=self._mapping(transcript.meta),
        )

    def _plain(self, text: str) -> str:
        text = _KEY.sub(lambda found: self._stand_in("key", found.group()), text)
        if any(word in text.lower() for word in _ASSIGNED_WORDS):
            text = _ASSIGNED.sub(self._inside("key"), text)
        if "://" in text:
            text = _IN_URL.sub(self._inside("key"), text)
        if "/" in text or "\\" in text:
            text = _HOME.sub(self._inside("home"), text)
        return _EMAIL.sub(lambda found: self._stand_in("email", found.group()), text) if "@" in text else text

    def _inside(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda found: found["before"] + self._stand_in(kind, found["value"])

    def _stand_in(self, kind: str, value: str) -> str:
        if _STAND_IN.fullmatch(value) or value in _KEPT:
            return value
        self.replaced[kind] += 1
        known = self._known[kind]
        return known.setdefault(value, _STAND_INS[kind].format(len(known) + 1))

    def _message(self, message: Message) -> Message:
        usage = message.usage
        return replace(
            message,
            parts=tuple(map(self._part, message.parts)),
            calls=tuple(replace(call, arguments=self.text(call.arguments)) for call in message.calls),
            name=self.text(message.name),
            tags=tuple(map(self.text, message.tags)),
            usage=None if usage is None else replace(usage, raw=self._mapping(usage.raw)),
            extra=self._mapping(message.extra),
        )

    def _part(self, part: Part) -> Part:
        match part:
            case Text():
                return Text(self.text(part.text))
            case Reasoning():
                return replace(part, text=self.text(part.text))
            case Media():
                return replace(part, payload=self.text(part.payload))
            case Opaque():
                return replace(part, data=self.text(part.data))

    def _tool(self, tool: ToolDefinition) -> ToolDefinition:
        return replace(tool, description=self.text(tool.description), parameters=self._mapping(tool.parameters))

    def _probe(self, probe: Probe) -> Probe:
        return replace(
            probe,
            question=self.text(probe.question),
            gold=tuple(map(self.text, probe.gold)),
            evidence=tuple(map(self.text, probe.evidence)),
        )

    def _mapping(self, value: Mapping[str, JSON]) -> dict[str, JSON]:
        return cast("dict[str, JSON]", self._json(dict(value)))

    def _json(self, value: JSON) -> JSON:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._keyed(key, item) for key, item in value.items()}
        return value

    def _keyed(self, key: str, value: JSON) -> JSON:
        """Return a value, seen with its key: a password in an object is one as much as one in text."""
        if isinstance(value, str) and _ASSIGNED.fullmatch(f"{key}={value}"):
            return self._stand_in("key", value)
        return self._json(value)
