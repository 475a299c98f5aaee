"""Compaction by the provider: an opaque item stands for what came before it (mechanism M28).

What a provider puts into such an item cannot be known here, so nothing is made up: items that a recording holds are
played back, or an endpoint that the user configures is asked. A summariser that writes text is no such endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from compaction_lab.conversation.context import Edit
from compaction_lab.conversation.messages import JSON, Message, Opaque, user
from compaction_lab.conversation.wire import to_openai
from compaction_lab.models.base import ModelReply, ModelRequest
from compaction_lab.strategies.base import Compaction, Situation, Steps
from compaction_lab.strategies.pins import unpinned
from compaction_lab.strategies.registry import register
from compaction_lab.strategies.spans import leading_system, span
from compaction_lab.strategies.summaries import continuing, replacement

COMPACTION_TYPES = ("compaction", "compaction_summary", "compaction_delta")


class CompactionEndpoint(Protocol):
    """A provider's compaction endpoint: messages in OpenAI chat form in, one opaque item out."""

    def __call__(self, messages: list[dict[str, JSON]], instructions: str) -> Mapping[str, JSON]:
        """Return the compaction item, with its ``type``."""
        ...


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """A compaction endpoint in a summariser's place: its reply's text is the item as JSON."""

    endpoint: CompactionEndpoint
    name: str = "compaction_endpoint"
    simulated: bool = False

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Ask the endpoint."""
        *messages, instructions = request.messages
        item = self.endpoint([to_openai(message) for message in messages], instructions.text)
        return ModelReply(json.dumps(dict(item), sort_keys=True))


@register("opaque_compaction", semantics=1)
@dataclass(frozen=True, slots=True)
class OpaqueCompaction:
    """Hide what came before a provider's compaction item.

    Parameters
    ----------
    source
        ``recorded``: items that the conversation itself holds take effect where they stand, as the provider lets them.
        ``endpoint``: the configured summariser is an endpoint (:class:`EndpointModel`) and is asked for an item.
    provider
        Whose item it is.
    threshold
        With ``endpoint``: act when the request has more tokens than this.
    instructions
        Handed to the endpoint.
    keep_system
        Whether leading system messages are sent beside the item.
    """

    source: Literal["recorded", "endpoint"] = "recorded"
    provider: str = ""
    threshold: int = 150_000
    instructions: str = ""
    keep_system: bool = True

    def __call__(self, situation: Situation) -> Steps:
        """Play back or ask."""
        return continuing(self._play if self.source == "recorded" else self._ask, situation)

    def _play(self, situation: Situation) -> Compaction:
        entries = list(situation.context.entries())
        newest = next((at for at in range(len(entries) - 1, -1, -1) if _holds_item(entries[at].message)), None)
        if newest is None:
            return Compaction()
        head = leading_system(entries) if self.keep_system else 0
        gone = tuple(entry.key for entry in unpinned(situation.context, entries[head:newest]))
        return Compaction((Edit("dropped", gone),) if gone else (), reason="a recorded compaction item" if gone else "")

    def _ask(self, situation: Situation) -> Steps:
        found = situation.tokens(situation.context)
        if found <= self.threshold:
            return Compaction()
        entries = list(situation.context.entries())
        head = leading_system(entries) if self.keep_system else 0
        old = span(entries, head, len(entries))
        if not old.hidden:
            return Compaction()
        asked = (*situation.context.messages, user(self.instructions))
        (reply,) = yield (ModelRequest(asked, "summarizer", situation.tools),)
        if reply.error:
            return Compaction(outcome=f"rejected: compaction endpoint failed ({reply.error})")
        item = _item(reply.text)
        if item is None:
            # A text, an empty answer or a null item: nothing that the provider would take back.
            return Compaction(
                outcome="rejected: no compaction item came back; configure an endpoint of the provider as summarizer"
            )
        made = Message("assistant", (Opaque(self.provider, item),), source="summary")
        reason = f"{found} tokens > {self.threshold}"
        return Compaction(replacement(situation.context, old.hidden, old.before, (made,)), reason=reason)


def _holds_item(message: Message) -> bool:
    return any(isinstance(part, Opaque) and _item(part.data) is not None for part in message.parts)


def _item(text: str) -> str | None:
    """Return a compaction item as JSON, or ``None`` for anything else; one whose content is null is a failed no-op."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("type") not in COMPACTION_TYPES:
        return None
    if "content" in found and found["content"] is None and not found.get("encrypted_content"):
        return None
    return json.dumps(found, sort_keys=True)
