"""What a summariser is shown of old messages: which of their parts, how long, and what is left out to make it fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction_lab.conversation.context import Context, Counter, Placed
from compaction_lab.conversation.messages import Message, user

Shows = Literal["visible", "original"]
Fit = Literal["drop_oldest", "drop_newest", "halve_biggest", "middle_out"]

HALVINGS = 12
MIDDLE_OUT_SHARES = (0.0, 0.1, 0.2, 0.5, 1.0)
OMITTED = "[tool result left out]"
CLIPPED = " [...] "


@dataclass(frozen=True, slots=True)
class Reading:
    """How messages are put before a summariser.

    Parameters
    ----------
    shows
        ``visible``: as they stand, stand-ins included; ``original``: as the log has them.
    arguments, outputs
        Whether tool calls are shown with their arguments, and whether tool results are shown at all.
    calls
        Whether tool calls are shown.
    item_characters
        Longest rendering of one message; longer ones keep head and tail. ``None``: unlimited.
    output_characters
        The same for tool results alone.
    input_tokens
        Most tokens of the whole transcript (guard G7); ``None``: unlimited.
    fit
        What gives way when it is longer: ``drop_oldest`` and ``drop_newest`` leave whole messages out,
        ``halve_biggest`` halves the largest tool result up to 12 times, ``middle_out`` leaves out 10, 20, 50, then all
        of the tool results, from the middle outwards. Where that is not enough, texts are clipped alike.
    """

    shows: Shows = "visible"
    arguments: bool = True
    outputs: bool = True
    calls: bool = True
    item_characters: int | None = None
    output_characters: int | None = None
    input_tokens: int | None = None
    fit: Fit = "drop_oldest"

    def messages(self, context: Context, entries: Iterable[Placed]) -> tuple[Message, ...]:
        """Return the messages behind entries as this reading shows them."""
        if self.shows == "visible":
            return tuple(entry.message for entry in entries)
        log = context.log.messages
        return tuple(log[entry.key[0]] if entry.key[1] == 0 else entry.message for entry in entries)

    def transcript(self, messages: Sequence[Message], counter: Counter) -> Transcript:
        """Render messages and make them fit."""
        items = [(message, self._rendered(message)) for message in messages]
        items = [(message, text) for message, text in items if text]
        if self.input_tokens is None:
            return Transcript("\n".join(text for _, text in items), len(items), len(items))
        return _fitted(items, self.input_tokens, self.fit, counter)

    def _rendered(self, message: Message) -> str:
        if message.role == "tool" and not self.outputs:
            return ""
        text = rendered(message, arguments=self.arguments, calls=self.calls)
        limit = self.item_characters
        if message.role == "tool" and self.output_characters is not None:
            limit = self.output_characters if limit is None else min(limit, self.output_characters)
        return text if limit is None else clipped(text, limit)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The text put before a summariser, and how many of the messages that had something to show are in it."""

    text: str
    shown: int
    given: int

    @property
    def left_out(self) -> int:
        """Messages that the summariser will never see."""
        return self.given - self.shown


def rendered(message: Message, *, arguments: bool = True, calls: bool = True) -> str:
    """Return one message as lines of text for a summariser: ``role: text``, one line a tool call.

    Examples
    --------
    >>> rendered(user("Which has 16 GB?"))
    'user: Which has 16 GB?'
    """
    lines = []
    text = message.text
    if message.role == "tool":
        lines.append(f"tool {message.name}: {text}" if message.name else f"tool: {text}")
    elif text:
        lines.append(f"{message.role}: {text}")
    if calls:
        lines.extend(f"{message.role} -> {call.name}({call.arguments if arguments else ''})" for call in message.calls)
    return "\n".join(lines)


def clipped(text: str, characters: int) -> str:
    """Return head and tail of a text, at most ``characters`` long.

    Examples
    --------
    >>> clipped("abcdefghijklmnop", 11)
    'ab [...] op'
    """
    if len(text) <= characters:
        return text
    left = characters - len(CLIPPED)
    if left <= 0:
        return text[: max(characters, 0)]
    tail = left // 2
    return text[: left - tail] + CLIPPED + (text[-tail:] if tail else "")


def text_tokens(text: str, counter: Counter) -> int:
    """Return what a text costs as a message, by a counting rule."""
    return counter.message(user(text))


def _fitted(items: list[tuple[Message, str]], limit: int, fit: Fit, counter: Counter) -> Transcript:
    given = len(items)
    tokens = [text_tokens(text, counter) for _, text in items]
    total = sum(tokens)
    if total <= limit:
        return Transcript("\n".join(text for _, text in items), given, given)
    if fit in ("drop_oldest", "drop_newest"):
        first, last = 0, given
        while first < last and total > limit:
            total -= tokens[first] if fit == "drop_oldest" else tokens[last - 1]
            first, last = (first + 1, last) if fit == "drop_oldest" else (first, last - 1)
        if first < last:
            return Transcript("\n".join(text for _, text in items[first:last]), last - first, given)
        kept = items[-1:] if fit == "drop_oldest" else items[:1]
        return Transcript("\n".join(_evenly(kept, limit, counter)), len(kept), given)
    items = _halved(items, limit, counter) if fit == "halve_biggest" else _middle_out(items, limit, counter)
    texts = [text for _, text in items]
    if sum(text_tokens(text, counter) for text in texts) > limit:
        texts = _evenly(items, limit, counter)
    return Transcript("\n".join(texts), len(texts), given)


def _halved(items: list[tuple[Message, str]], limit: int, counter: Counter) -> list[tuple[Message, str]]:
    for _ in range(HALVINGS):
        if sum(text_tokens(text, counter) for _, text in items) <= limit:
            break
        results = [at for at, (message, text) in enumerate(items) if message.role == "tool" and text]
        if not results:
            break
        at = max(results, key=lambda index: len(items[index][1]))
        message, text = items[at]
        items = [*items[:at], (message, clipped(text, len(text) // 2)), *items[at + 1 :]]
    return items


def _middle_out(items: list[tuple[Message, str]], limit: int, counter: Counter) -> list[tuple[Message, str]]:
    results = [at for at, (message, _) in enumerate(items) if message.role == "tool"]
    middle = (len(results) - 1) / 2
    outwards = sorted(range(len(results)), key=lambda at: (abs(at - middle), at))
    shown = items
    for share in MIDDLE_OUT_SHARES:
        gone = {results[at] for at in outwards[: round(share * len(results))]}
        shown = [(message, OMITTED if at in gone else text) for at, (message, text) in enumerate(items)]
        if sum(text_tokens(text, counter) for _, text in shown) <= limit:
            break
    return shown


def _evenly(items: list[tuple[Message, str]], limit: int, counter: Counter) -> list[str]:
    """Clip every text to one length, halved until all of them fit; texts that vanish are left out."""
    characters = max((len(text) for _, text in items), default=0)
    texts = [text for _, text in items]
    while characters > 1 and sum(text_tokens(text, counter) for text in texts) > limit:
        characters //= 2
        texts = [clipped(text, characters) for _, text in items]
    return texts
