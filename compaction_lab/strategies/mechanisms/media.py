"""Media degradation (M14): images, sounds and files of older messages become a line of text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.messages import Media, Part, Text
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.recency import newest
from compaction_lab.strategies.mechanisms.rewriting import Draft, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import tool_of
from compaction_lab.strategies.registry import at_least, register

_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,80}")


@register("clear_media", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearMedia:
    """Put a line of text in the place of media that are no longer recent (mechanism M14).

    Parameters
    ----------
    keep_last
        Newest items that stay; a message in which the count ends keeps all of its own.
    unit
        What ``keep_last`` counts: single ``media``, or each ``message`` that carries some.
    kinds
        Which media: ``image``, ``audio``, ``file``.
    of
        Whose: ``all`` messages', ``results`` of tools alone, or all ``others``.
    exclude_tools
        Tools whose results keep their media.
    placeholder
        Stands for one item; may name ``{kind}``, ``{mime}``, ``{bytes}``, ``{width}``, ``{height}``. The type is what a
        tool supplied: anything that is no plain media type is written as ``application/octet-stream``, so that no text
        can be smuggled in with it. Empty: nothing stands for it.
    """

    keep_last: int = 3
    unit: Literal["media", "message"] = "media"
    kinds: tuple[str, ...] = ("image",)
    of: Literal["all", "results", "others"] = "all"
    exclude_tools: tuple[str, ...] = ()
    placeholder: str = "[{kind} removed: {mime}, {bytes} bytes]"

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "keep_last", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Replace what is no longer recent."""
        context = situation.context
        edge = newest(context, self.keep_last, lambda entry: self._weigh(context, entry))
        return rewrite_before(situation, edge, self.clear, reason=f"media older than the last {self.keep_last}")

    def clear(self, draft: Draft, entry: Placed) -> bool:
        """Replace the media of one message; say whether it had any."""
        message = draft.get(entry.key)
        if message is None or not self._counted(draft.context, entry):
            return False
        parts = [self._stand_in(part) if self._is_meant(part) else part for part in message.parts]
        draft.put("masked", entry.key, replace(message, parts=tuple(part for part in parts if part is not None)))
        return True

    def _counted(self, context: Context, entry: Placed) -> int:
        message = entry.message
        if (self.of == "results" and message.role != "tool") or (self.of == "others" and message.role == "tool"):
            return 0
        if message.role == "tool" and self.exclude_tools and tool_of(context.log, entry) in self.exclude_tools:
            return 0
        return sum(map(self._is_meant, message.parts))

    def _weigh(self, context: Context, entry: Placed) -> int:
        counted = self._counted(context, entry)
        return counted if self.unit == "media" else min(counted, 1)

    def _is_meant(self, part: Part) -> bool:
        return isinstance(part, Media) and part.kind in self.kinds

    def _stand_in(self, part: Part) -> Part | None:
        if not self.placeholder or not isinstance(part, Media):
            return None
        return Text(describe_media(part, self.placeholder))


def describe_media(media: Media, template: str) -> str:
    """Return a template with a medium's kind, type and size filled in."""
    mime = media.mime if _MIME.fullmatch(media.mime) else "application/octet-stream"
    named = {"kind": media.kind, "mime": mime, "bytes": media.byte_size, "width": media.width, "height": media.height}
    for name, value in named.items():
        template = template.replace(f"{{{name}}}", str(value))
    return template
