"""Superseded content (M12): what a newer result says again, or says better, is cleared from the older one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compaction_lab.conversation.context import Context, Key, Placed
from compaction_lab.conversation.json_values import canonical_json
from compaction_lab.strategies.base import Compaction, Situation, start
from compaction_lab.strategies.mechanisms.recency import end_of
from compaction_lab.strategies.mechanisms.rewriting import START, Draft
from compaction_lab.strategies.mechanisms.tool_results import arguments_of, call_of, fill
from compaction_lab.strategies.memory import remembered
from compaction_lab.strategies.registry import at_least, register

Supersede = Callable[[Draft, Placed], None]
"""Changes, in the draft, an older message that a newer one with the same key supersedes."""


@remembered
class Latest(NamedTuple):
    """Memory of a search for superseded content: how far it has come, and the newest message under every key."""

    edge: Key
    newest: tuple[tuple[str, Key], ...] = ()


def supersede_older(
    situation: Situation, key_of: Callable[[Context, Placed], str | None], supersede: Supersede, *, reason: str
) -> Compaction:
    """Walk over what is new; where its key was seen before, hand the older message to ``supersede``.

    A message without a key takes no part. Pinned messages supersede, but are never superseded.
    """
    context, base, continues = start(situation)
    seen = situation.memory if continues and isinstance(situation.memory, Latest) else Latest(START)
    draft = Draft(context, situation.counter)
    newest = dict(seen.newest)
    for entry in context.entries(seen.edge):
        key = key_of(context, entry)
        if key is None:
            continue
        older = newest.get(key)
        standing = None if older is None else draft.get(older)
        if older is not None and standing is not None and not standing.pinned:
            supersede(draft, Placed(older, standing))
        newest[key] = entry.key
    edits = draft.edits
    return Compaction(edits, Latest(end_of(context), tuple(newest.items())), base, reason if edits else "")


@register("clear_superseded", semantics=1)
@dataclass(frozen=True, slots=True)
class ClearSuperseded:
    """Clear a tool result once a newer one reads the same thing (mechanism M12).

    Parameters
    ----------
    by
        ``arguments``: the calls were for the same thing, as ``arguments`` says. ``content``: the texts are the same.
    tools
        Tools whose results take part; empty means all.
    arguments
        With ``by=arguments``: names of call arguments, the first that is given being the key (a path, say).
    same_range
        With ``by=arguments``: a newer result supersedes only if all other arguments are equal too, so that reading
        other lines of a file clears nothing.
    min_characters
        Results of fewer characters take no part.
    placeholder
        Stands for a superseded result; may name ``{tool}``, ``{call_id}``, ``{lines}``, ``{characters}``.
    only_if_shorter
        Leave a result alone when its stand-in would not be shorter.
    """

    by: Literal["arguments", "content"] = "arguments"
    tools: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("path", "file_path")
    same_range: bool = False
    min_characters: int = 0
    placeholder: str = "[superseded by a newer result]"
    only_if_shorter: bool = True

    def __post_init__(self) -> None:
        """Check the parameters."""
        at_least(self, "min_characters", 0)

    def __call__(self, situation: Situation) -> Compaction:
        """Clear what the new results supersede."""
        return supersede_older(situation, self.key_of, self.clear, reason="superseded by newer results")

    def key_of(self, context: Context, entry: Placed) -> str | None:
        """Return what a result is about; ``None`` when it takes no part."""
        message = entry.message
        if message.role != "tool" or message.source == "placeholder":
            return None
        call = call_of(context.log, entry.key)
        tool = message.name if call is None else call.name
        if (self.tools and tool not in self.tools) or len(message.text) < self.min_characters:
            return None
        if self.by == "content":
            return hashlib.sha256(message.text.encode("utf-8", "replace")).hexdigest()
        given = arguments_of(call)
        key = next((given[name] for name in self.arguments if name in given), None)
        if key is None:
            return None
        return canonical_json(dict(given) if self.same_range else key)

    def clear(self, draft: Draft, entry: Placed) -> None:
        """Clear a superseded result."""
        message = entry.message
        if message.source == "placeholder":
            return
        stand_in = message.replaced(fill(self.placeholder, draft.context.log, entry), "placeholder")
        if not self.only_if_shorter or draft.counter.message(stand_in) < draft.counter.message(message):
            draft.put("masked", entry.key, stand_in)
