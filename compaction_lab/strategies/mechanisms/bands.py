"""Banded limits at birth (M16): how long a tool result is when it first appears decides what becomes of it.

A result is looked at once. Stored placement makes that permanent, as in frameworks that cut a result before it enters
their history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.messages import JSON, Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clipping import clip, text_tokens
from compaction_lab.strategies.mechanisms.offloading import TAG
from compaction_lab.strategies.mechanisms.recency import end_of
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import fill, tool_of
from compaction_lab.strategies.registry import register

BAND_KEYS = ("over", "action", "max_characters", "keep", "preview_characters")
KEEPS = ("head", "tail", "head_tail")
ACTIONS = ("pass", "truncate", "spill")
TRUNCATED_CHARACTERS = 4_000
PREVIEW_CHARACTERS = 1_000
HEAD_SHARE = 0.4


@register("limit_results", semantics=1)
@dataclass(frozen=True, slots=True)
class LimitResults:
    """Pass, truncate or offload a tool result by its size when it first appears (mechanism M16).

    What would not be shorter stays as it is.

    Parameters
    ----------
    bands
        ``{over: 10000, action: pass|truncate|spill}``; the largest ``over`` that a result's size reaches decides.
        ``truncate`` takes ``max_characters`` (4000, marker included) and ``keep`` (``head_tail``, with two fifths at
        the head; ``head``; ``tail``). ``spill`` takes ``preview_characters`` (1000).
    measure
        What ``over`` counts: ``characters`` of the text, or ``tokens``.
    per_tool
        Bands that take the place of ``bands`` for single tools, by name.
    exclude_tools
        Tools whose results always pass.
    handle
        Name of a spilled text; may name ``{tool}``, ``{call_id}`` and ``{index}``.
    """

    bands: tuple[Mapping[str, JSON], ...] = ({"over": 10_000, "action": "spill"},)
    measure: Literal["characters", "tokens"] = "characters"
    per_tool: Mapping[str, JSON] | None = None
    exclude_tools: tuple[str, ...] = ()
    handle: str = "result_{index}"

    def __post_init__(self) -> None:
        """Check the bands."""
        for where, band in self._listed():
            _check(where, band)

    def __call__(self, situation: Situation) -> Compaction:
        """Limit the results that have come since the last time."""
        return rewrite_before(situation, end_of(situation.context), self.limit, reason="results over a limit")

    def limit(self, draft: Draft, entry: Placed) -> bool:
        """Do to one result what its band says; say whether it was in one."""
        message = entry.message
        if message.role != "tool" or message.source == "placeholder" or TAG in "".join(message.tags):
            return False
        band = self._band(draft, entry)
        if band is None or band.get("action") == "pass":
            return False
        if band.get("action") == "spill":
            new = self._spilled(draft.context, entry, cast("int", band.get("preview_characters", PREVIEW_CHARACTERS)))
        else:
            most = cast("int", band.get("max_characters", TRUNCATED_CHARACTERS))
            new = replace(message, parts=(Text(truncate(message.text, most, str(band.get("keep", "head_tail")))),))
        if draft.counter.message(new) < draft.counter.message(message):
            draft.put("masked" if new.source == "placeholder" else "clipped", entry.key, new)
        return True

    def _band(self, draft: Draft, entry: Placed) -> Mapping[str, JSON] | None:
        tool = tool_of(draft.context.log, entry)
        if tool in self.exclude_tools:
            return None
        own = (self.per_tool or {}).get(tool)
        bands = self.bands if own is None else cast("list[Mapping[str, JSON]]", own)
        text = entry.message.text
        size = len(text) if self.measure == "characters" else text_tokens(draft, text)
        reached = [band for band in bands if size >= cast("int", band["over"])]
        return max(reached, key=lambda band: cast("int", band["over"]), default=None)

    def _spilled(self, context: Context, entry: Placed, preview_characters: int) -> Message:
        text = entry.message.text
        handle = fill(self.handle, context.log, entry).replace("{index}", str(entry.key[0]))
        head = text[:preview_characters]
        note = f"[{len(text)} characters stored as {handle}; the first {len(head)} follow]\n{head}"
        return replace(entry.message.replaced(note, "placeholder"), tags=(*entry.message.tags, TAG + handle))

    def _listed(self) -> list[tuple[str, Mapping[str, JSON]]]:
        listed = [(f"bands[{at}]", band) for at, band in enumerate(self.bands)]
        for tool, bands in (self.per_tool or {}).items():
            if not isinstance(bands, (list, tuple)):
                msg = f"limit_results: per_tool.{tool}={bands!r}; expected a list of bands {{over: ..., action: ...}}"
                raise ConfigurationError(msg)
            listed += [(f"per_tool.{tool}[{at}]", cast("Mapping[str, JSON]", band)) for at, band in enumerate(bands)]
        return listed


def truncate(text: str, max_characters: int, keep: str = "head_tail") -> str:
    r"""Return a text of at most ``max_characters`` characters, the note of what was left out included.

    Examples
    --------
    >>> truncate("x" * 100, 60)
    'xxxxxxxxxx\n[74 of 100 characters left out]\nxxxxxxxxxxxxxxxx'
    """
    if len(text) <= max_characters:
        return text
    note = "\n[{removed} of {original} characters left out]\n"
    room = max_characters - len(note.replace("{removed}", str(len(text))).replace("{original}", str(len(text))))
    if room <= 0:
        return text[:max_characters]
    head = {"head": room, "tail": 0}.get(keep, int(room * HEAD_SHARE))
    return clip(text, head, room - head, note)


def _check(where: str, band: object) -> None:
    if not isinstance(band, Mapping) or not isinstance(band.get("over"), int) or band.get("action") not in ACTIONS:
        msg = f"limit_results: {where}={band!r}; expected {{over: N, action: {'|'.join(ACTIONS)}}}"
        raise ConfigurationError(msg)
    unknown = [key for key in band if key not in BAND_KEYS]
    if unknown or band["over"] < 0 or band.get("keep", "head_tail") not in KEEPS:
        keys, keeps = ", ".join(BAND_KEYS), ", ".join(KEEPS)
        msg = f"limit_results: {where}={dict(band)!r}; a band has {keys}, with keep one of {keeps}"
        raise ConfigurationError(msg)
