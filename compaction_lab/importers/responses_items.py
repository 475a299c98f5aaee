"""Items of the OpenAI Responses interface to messages: what one response says, thinks and calls is one message.

Semantics: the Responses API reference. Calls of hosted tools, which need no result from the client, are carried along.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compaction_lab.conversation.json_values import canonical_json, describe
from compaction_lab.conversation.messages import JSON, Message, Opaque, Part, Reasoning, Role, Text, ToolCall
from compaction_lab.errors import TranscriptError
from compaction_lab.importers.content import arguments_text, content_parts, result_parts
from compaction_lab.importers.fields import Fields

PROVIDER = "openai_responses"
ITEM_TYPES = frozenset(
    {
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "reasoning",
        "item_reference",
    }
)
"""Types of items that are not messages and that no other interface has."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
}
_COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})


class ItemReader:
    """Collects items into messages; :meth:`flush` says that a response ended where no other item shows it.

    Attributes
    ----------
    messages
        The messages that are complete.
    """

    def __init__(self, *, keep_media: bool = False) -> None:
        self.messages: list[Message] = []
        self._keep_media = keep_media
        self._open: Message | None = None

    def add(self, value: JSON, where: str) -> None:
        """Add an item.

        Raises
        ------
        TranscriptError
            If it is not an item.
        """
        item = Fields.of(value, where)
        kind = item.text("type") or "message"
        if kind == "message":
            self._message(item)
        elif kind.endswith("_output"):
            self.flush()
            parts = result_parts(
                item.object.get("output"), f"{where}.output", provider=PROVIDER, keep_media=self._keep_media
            )
            self.messages.append(Message("tool", parts, call_id=item.text("call_id"), id=item.text("id")))
        elif kind in {"function_call", "custom_tool_call", "local_shell_call"}:
            self._assistant(calls=(_call(item, kind),))
        elif kind == "reasoning":
            self._assistant((_reasoning(item),))
        elif kind in _COMPACTIONS:
            self.flush()
            self.messages.append(Message("assistant", (Opaque(PROVIDER, canonical_json(value)),), source="summary"))
        elif kind != "item_reference":  # a hosted tool's call, or a kind of item newer than this
            self._assistant((Opaque(PROVIDER, canonical_json(value)),))

    def flush(self) -> Message | None:
        """End the assistant message that is open, and return it if there was one."""
        ended, self._open = self._open, None
        if ended is not None:
            self.messages.append(ended)
        return ended

    def _message(self, item: Fields) -> None:
        role = _ROLES.get(item.text("role"))
        if role is None:
            raise TranscriptError(
                f"{item.where}: field 'role' is {describe(item.object.get('role'))}, expected one of "
                f"{', '.join(_ROLES)}; correct it."
            )
        parts = content_parts(
            item.object.get("content"), f"{item.where}.content", provider=PROVIDER, keep_media=self._keep_media
        )
        if role == "assistant":
            if self._open is not None and (self._open.calls or any(isinstance(p, Text) for p in self._open.parts)):
                self.flush()
            self._assistant(parts, message_id=item.text("id"))
            return
        self.flush()
        self.messages.append(Message(role, parts, id=item.text("id")))

    def _assistant(
        self, parts: tuple[Part, ...] = (), calls: tuple[ToolCall, ...] = (), *, message_id: str = ""
    ) -> None:
        said = self._open or Message("assistant")
        self._open = replace(said, parts=(*said.parts, *parts), calls=(*said.calls, *calls), id=message_id or said.id)


def messages_from_items(values: Iterable[JSON], where: str, *, keep_media: bool = False) -> list[Message]:
    """Return the messages of a list of items.

    Raises
    ------
    TranscriptError
        If one of them is not an item.
    """
    reader = ItemReader(keep_media=keep_media)
    for at, value in enumerate(values):
        reader.add(value, f"{where}[{at}]")
    reader.flush()
    return reader.messages


def _call(item: Fields, kind: str) -> ToolCall:
    call_id = item.text("call_id") or item.text("id")
    if kind == "function_call":
        return ToolCall(call_id, item.text("name"), arguments_text(item.object.get("arguments")))
    if kind == "custom_tool_call":
        return ToolCall(call_id, item.text("name"), arguments_text(item.object.get("input")))
    return ToolCall(call_id, "local_shell", arguments_text(item.object.get("action")))


def _reasoning(item: Fields) -> Reasoning:
    blocks = [*item.items("summary"), *item.items("content")]
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    return Reasoning("\n".join(map(str, texts)), item.text("encrypted_content"), item.text("id"))
