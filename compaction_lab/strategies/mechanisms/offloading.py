"""Offloading (M17): a long tool result leaves the prompt, a preview and a handle stay; the log keeps the text.

In a replay the recorded messages never ask for an offloaded text. A live agent can, with the tool that
``OffloadResults.read_back_tool`` describes: an arm that offers it is live-only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from compaction_lab.conversation.context import Context, Placed
from compaction_lab.conversation.log import Log
from compaction_lab.conversation.messages import JSON, Message, ToolDefinition
from compaction_lab.errors import ConfigurationError
from compaction_lab.strategies.base import Compaction, Situation
from compaction_lab.strategies.mechanisms.clipping import text_tokens
from compaction_lab.strategies.mechanisms.recency import RecentUnit, end_of, recent_edge
from compaction_lab.strategies.mechanisms.rewriting import Draft, Reclaim, rewrite_before
from compaction_lab.strategies.mechanisms.tool_results import fill, tool_of
from compaction_lab.strategies.registry import at_least, register

HASH_DIGITS = 32
TAG = "offloaded:"
"""Begins the label under which a stand-in carries its handle."""


@register("offload_results", semantics=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadResults:
    """Put a preview and a handle in the place of long tool results (mechanism M17).

    Parameters
    ----------
    min_tokens, min_characters
        Offload results of more than this, by the strategy's tokenizer or in characters; at least one is needed.
    measure
        Whether ``min_tokens`` counts the whole ``message`` or its ``text`` alone.
    keep_last, unit
        Newest units whose results stay; 0 offloads at once, when a result first appears.
    down_to_tokens
        Offload the oldest first and stop once the request has no more tokens than this.
    head, tail
        Size of the preview at either end.
    preview
        What ``head`` and ``tail`` count: ``characters`` or ``lines``.
    gap
        Stands between the two ends when both are shown.
    ellipsis
        Put behind a head that was cut short, when there is no tail.
    handle
        Name of the offloaded text; may name ``{tool}``, ``{call_id}``, ``{index}`` (its place in the conversation) and
        ``{hash}`` (32 digits of its own).
    stand_in
        Text that stands for the result; may name ``{handle}``, ``{preview}``, ``{characters}``, ``{lines}`` and
        ``{tool}``.
    exclude_tools, only_tools
        Tools whose results are never, or alone, offloaded; ``only_tools`` empty means all.
    roles
        Whose messages are offloaded.
    keep_errors
        Leave results of failed calls alone.
    only_if_shorter
        Leave a result alone when its stand-in would not be shorter.
    """

    min_tokens: int | None = None
    min_characters: int | None = None
    measure: Literal["message", "text"] = "message"
    keep_last: int = 0
    unit: RecentUnit = "step"
    down_to_tokens: int | None = None
    head: int = 200
    tail: int = 0
    preview: Literal["characters", "lines"] = "characters"
    gap: str = "\n...\n"
    ellipsis: str = "..."
    handle: str = "result_{index}"
    stand_in: str = "[{characters} characters moved to {handle}. Preview:]\n{preview}"
    exclude_tools: tuple[str, ...] = ()
    only_tools: tuple[str, ...] = ()
    roles: tuple[str, ...] = ("tool",)
    keep_errors: bool = False
    only_if_shorter: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.min_tokens is None and self.min_characters is None:
            msg = "offload_results: neither min_tokens nor min_characters is given; say from which size on to offload"
            raise ConfigurationError(msg)
        for field in ("keep_last", "head", "tail"):
            at_least(self, field, 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Offload what is long and no longer recent."""
        context = situation.context
        edge = recent_edge(context, self.unit, self.keep_last) if self.keep_last else end_of(context)
        reclaim = Reclaim(down_to_tokens=self.down_to_tokens)
        return rewrite_before(situation, edge, self.offload, reclaim, reason="results too long to keep")

    def offload(self, draft: Draft, entry: Placed) -> bool:
        """Offload one result that is long enough; say whether it was."""
        message = entry.message
        if message.role not in self.roles or message.source == "placeholder" or not message.text:
            return False
        if (self.keep_errors and message.is_error) or not self._admits(draft.context, entry):
            return False
        if not self.is_long(draft, message):
            return False
        handle = self.handle_of(draft.context.log, entry)
        text = fill(self.stand_in, draft.context.log, entry)
        text = text.replace("{handle}", handle).replace("{preview}", self.preview_of(message.text))
        stand_in = replace(message.replaced(text, "placeholder"), tags=(*message.tags, TAG + handle))
        if self.only_if_shorter and draft.counter.message(stand_in) >= draft.counter.message(message):
            return True
        draft.put("masked", entry.key, stand_in)
        return True

    def is_long(self, draft: Draft, message: Message) -> bool:
        """Whether a result is longer than the least that is offloaded."""
        if self.min_characters is not None and len(message.text) > self.min_characters:
            return True
        if self.min_tokens is None:
            return False
        whole = self.measure == "message"
        tokens = draft.counter.message(message) if whole else text_tokens(draft, message.text)
        return tokens > self.min_tokens

    def handle_of(self, log: Log, entry: Placed) -> str:
        """Return the name under which a result is offloaded."""
        digest = hashlib.sha256(f"{entry.key[0]} {entry.message.text}".encode("utf-8", "replace")).hexdigest()
        named = fill(self.handle, log, entry).replace("{index}", str(entry.key[0]))
        return named.replace("{hash}", digest[:HASH_DIGITS])

    def preview_of(self, text: str) -> str:
        """Return the ends of a text that stay visible."""
        if self.preview == "lines":
            lines = text.splitlines()
            if len(lines) <= self.head + self.tail:
                return text
            tail = lines[len(lines) - self.tail :] if self.tail else []
            return "\n".join(lines[: self.head]) + (self.gap + "\n".join(tail) if tail else self.ellipsis)
        if len(text) <= self.head + self.tail:
            return text
        return text[: self.head] + (self.gap + text[len(text) - self.tail :] if self.tail else self.ellipsis)

    @property
    def read_back_tool(self) -> ToolDefinition:
        """The tool with which a live agent asks for an offloaded text by its handle."""
        parameters: dict[str, JSON] = {
            "type": "object",
            "properties": {"handle": {"type": "string", "description": "The name given in the place of the result"}},
            "required": ["handle"],
        }
        return ToolDefinition(
            "read_offloaded_result", "Read a tool result that was moved out of the prompt", parameters
        )

    def _admits(self, context: Context, entry: Placed) -> bool:
        if not self.only_tools and not self.exclude_tools:
            return True
        tool = tool_of(context.log, entry)
        return tool not in self.exclude_tools and (not self.only_tools or tool in self.only_tools)


def read_offloaded(context: Context, handle: str) -> str | None:
    """Return the text that was offloaded under ``handle``, from the log; ``None`` when no stand-in names it."""
    for entry in context.entries():
        if TAG + handle in entry.message.tags and entry.key[1] == 0:
            return context.log.messages[entry.key[0]].text
    return None


def handles(context: Context) -> tuple[str, ...]:
    """Return the handles that visible stand-ins name, in order."""
    return tuple(
        tag.removeprefix(TAG) for entry in context.entries() for tag in entry.message.tags if tag.startswith(TAG)
    )
