"""Messages to the objects of an installed agent-framework-core and back; nothing here imports the package."""

from __future__ import annotations

from typing import Any, TypeAlias

from compaction_lab.conversation.messages import Message
from compaction_lab.strategies.agent_framework.contents import facets, message_of

Theirs: TypeAlias = Any
"""A module or an object of a package that need not be installed."""


def to_framework(message: Message, af: Theirs) -> Theirs:
    """Return a message as the framework's own; ``af`` is its package."""
    shown = facets(message)
    contents = [af.Content.from_dict(content) for content in shown.contents]
    return af.Message(shown.role, contents, author_name=message.name or None, message_id=message.id or None)


def from_framework(message: Theirs) -> Message:
    """Return one of the framework's messages as the lab's, one for one."""
    contents = [content.to_dict() for content in message.contents]
    return message_of(str(message.role), contents, message.message_id or "", message.author_name or "")
