"""Whole messages as text for people: besides what is said, the parts that text alone would hide."""

from __future__ import annotations

from compaction_lab.conversation.messages import Media, Message, Opaque, Reasoning
from compaction_lab.conversation.printable import printable
from compaction_lab.strategies.reading import rendered


def written(message: Message) -> str:
    """Return a message as text in which nothing acts on a screen: its words and calls, and a line for each other part.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import Text
    >>> print(written(Message("user", (Text("What is this?"), Media("image", "image/png", 2048, 640, 480)))))
    user: What is this?
    [image image/png, 2,048 bytes, 640x480]
    """
    lines = [rendered(message)]
    for part in message.parts:
        if isinstance(part, Media):
            size = [f"{part.byte_size:,} bytes"] if part.byte_size else []
            size += [f"{part.width}x{part.height}"] if part.width and part.height else []
            lines.append(f"[{', '.join([f'{part.kind} {part.mime}'.strip(), *size])}]")
        elif isinstance(part, Reasoning):
            lines.append(
                f"[reasoning] {part.text}" if part.text else f"[reasoning, opaque, {len(part.opaque):,} signs]"
            )
        elif isinstance(part, Opaque):
            lines.append(f"[{part.provider} item, {len(part.data):,} signs]")
    return printable("\n".join(line for line in lines if line))
