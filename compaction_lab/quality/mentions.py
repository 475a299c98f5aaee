"""What in an agent's message could be taken from earlier: paths, addresses, identifiers, numbers, quotations, names.

Rules on the form of a text only; whether anything earlier really said it is :mod:`compaction_lab.quality.references`'
question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction_lab.conversation.messages import Message, ToolCall

MentionKind = Literal["path", "address", "identifier", "number", "quoted", "name"]

LONGEST_WHOLE = 120
"""Characters up to which a whole string argument is looked for as it stands."""

_DIGITS = 3
_LETTERS = 3
_QUOTED_WORDS = 2
_SHORTEST_NAME, _LONGEST_NAME = 2, 4

_CAPITALISED = r"[A-Z\u00c0-\u00de][\w'\u2019]*[a-z\u00df-\u00ff]"
_TOKEN = re.compile(
    rf"""(?P<address>https?://[^\s"'`<>()\[\]{{}}|\\]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    |(?P<path>(?:~|\.{{1,2}}|[\w@-][\w.@-]*)?(?:/[\w.@+-]+)+/?|[A-Za-z]:\\[\w.\\ -]+)
    |(?P<quoted>`[^`\n]{{3,80}}`|"[^"\n]{{3,80}}"|\u201c[^\u201d\n]{{3,80}}\u201d|(?<!\w)'[^'\n]{{3,80}}'(?!\w))
    |(?P<number>[$\u20ac\u00a3]?\d[\d,]*(?:\.\d+)?%?(?!\w)|\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)
    |(?P<name>(?<![\w.]){_CAPITALISED}(?:[ ]{_CAPITALISED})+)
    |(?P<word>\w+(?:[-.:]\w+)*)""",
    re.VERBOSE,
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CAMEL = re.compile(r"[a-z][A-Z]")
_CODE = re.compile(r"[A-Z]{3,}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_KEY = re.compile(r"\s*:")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_NUMBER_LEAF = re.compile(r"\d+(?:\.\d+)?")
_PIECE = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of an agent's message that says something specific.

    Parameters
    ----------
    kind
        What it looks like.
    value
        As it reads, JSON escapes resolved.
    start, end
        Where it stands in :func:`compaction_lab.quality.evidence.searchable` text, in characters.
    parts
        Smaller mentions inside it, which count when nothing earlier says the whole.
    """

    kind: MentionKind
    value: str
    start: int
    end: int
    parts: tuple[Mention, ...] = ()


def mentions(message: Message) -> Iterator[Mention]:
    """Yield what the text and the tool arguments of a message mention, in order.

    In tool arguments every string of up to 120 characters is looked at as a whole first: names of one word, codes in
    capitals and phrases count there, because an agent fills them in deliberately. Keys of JSON objects never count.

    Examples
    --------
    >>> from compaction_lab.conversation.messages import assistant
    >>> [(found.kind, found.value) for found in mentions(assistant("Ada Byron moved order K-771 to /srv/new.csv."))]
    [('name', 'Ada Byron'), ('identifier', 'K-771'), ('path', '/srv/new.csv')]
    """
    text = message.text
    yield from in_text(text)
    at = len(text) + 1
    for call in message.calls:
        yield from _in_arguments(call, at)
        at += len(call.arguments) + 1


def in_text(text: str, at: int = 0) -> Iterator[Mention]:
    """Yield what a text mentions; ``at`` is added to every place."""
    for match in _TOKEN.finditer(text):
        found = _mention(match.lastgroup or "", match[0], at + match.start())
        if found is not None:
            yield found


def _mention(group: str, token: str, start: int) -> Mention | None:
    if group == "quoted":
        return _quotation(token[1:-1], start + 1)
    if group == "name":
        return _name(token, start)
    value = token.rstrip(".,;:!?)") if group in ("address", "path") else token
    end = start + len(value)
    if group == "address":
        return Mention("address", value, start, end)
    if group == "path":
        return Mention("path", value, start, end) if _is_path(value) else None
    if group == "number":
        value = value.rstrip(",%").lstrip("$\u20ac\u00a3")
        start += token.index(value) if value else 0
        return Mention("number", value, start, start + len(value)) if _says_much(value) else None
    value = value.strip("_")
    if value and _is_identifier(value):
        start += token.index(value)
        kind: MentionKind = "number" if _DATE.match(value) else "identifier"
        return Mention(kind, value, start, start + len(value))
    return None


def _quotation(inside: str, start: int) -> Mention | None:
    """Return a quoted phrase with what it mentions; a short plain word in quotes says too little."""
    parts = tuple(in_text(inside, start))
    letters = sum(map(str.isalpha, inside))
    plain = letters < _LETTERS or inside != inside.strip() or (inside.isalpha() and letters < 2 * _LETTERS)
    if parts and (plain or (len(parts) == 1 and parts[0].value == inside)):
        return parts[0]
    return None if plain else Mention("quoted", inside, start, start + len(inside), parts)


def _name(token: str, start: int) -> Mention:
    """Return a name of several words; a first word that only opens the sentence is tried without."""
    words = token.split(" ")
    rest: tuple[Mention, ...] = ()
    if _SHORTEST_NAME < len(words) <= _LONGEST_NAME:
        rest = (_name(token[len(words[0]) + 1 :], start + len(words[0]) + 1),)
    return Mention("name", token, start, start + len(token), rest)


def _in_arguments(call: ToolCall, at: int) -> Iterator[Mention]:
    raw = call.arguments
    try:
        json.loads(raw)
    except ValueError:
        yield from in_text(raw, at)
        return
    rest = 0
    for literal in _STRING.finditer(raw):
        yield from _number_leaves(raw, rest, literal.start(), at)
        rest = literal.end()
        if _KEY.match(raw, rest):
            continue
        yield from _leaf(literal, at)
    yield from _number_leaves(raw, rest, len(raw), at)


def _number_leaves(raw: str, start: int, stop: int, at: int) -> Iterator[Mention]:
    for number in _NUMBER_LEAF.finditer(raw, start, stop):
        if _says_much(number[0]):
            yield Mention("number", number[0], at + number.start(), at + number.end())


def _leaf(literal: re.Match[str], at: int) -> Iterator[Mention]:
    """Yield the whole of a string argument with its parts, or the parts alone; places are those of the raw JSON."""
    value = json.loads(literal[0])
    inside = literal[0][1:-1]
    first = at + literal.start() + 1
    places = list(range(len(inside) + 1)) if value == inside else _places(inside, value)
    parts = tuple(_moved(part, places, first) for part in in_text(value))
    kind = _whole_kind(value)
    if kind is None:
        yield from parts
    elif len(parts) == 1 and parts[0].value == value:
        yield parts[0]
    else:
        yield Mention(kind, value, first, first + len(inside), parts)


def _whole_kind(value: str) -> MentionKind | None:
    if not _LETTERS <= len(value) <= LONGEST_WHOLE or value != value.strip() or "\n" in value:
        return None
    if _CODE.fullmatch(value):
        return "identifier"
    if value.isalpha():
        return "name" if value[0].isupper() and not value.isupper() else None
    if len(value.split()) >= _QUOTED_WORDS and sum(map(str.isalpha, value)) >= 2 * _LETTERS:
        return "quoted"
    return None


def _moved(part: Mention, places: list[int], first: int) -> Mention:
    inner = tuple(_moved(each, places, first) for each in part.parts)
    return Mention(part.kind, part.value, first + places[part.start], first + places[part.end], inner)


def _places(raw: str, value: str) -> list[int]:
    """Return where each character of a decoded string, and its end, stands in the raw JSON string."""
    places: list[int] = []
    for piece in _PIECE.finditer(raw):
        # Two escapes make one character beyond the basic plane; the second adds none.
        if piece[0].startswith("\\u") and piece[0][2:4].lower() in ("dc", "dd", "de", "df"):
            continue
        places.append(piece.start())
    places.append(len(raw))
    return places if len(places) == len(value) + 1 else [0] * len(value) + [len(raw)]


def _is_path(value: str) -> bool:
    if not any(map(str.isalpha, value)):
        return False
    name = value.rstrip("/").rsplit("/", 1)[-1]
    return value.count("/") > 1 or value[0] in "/~." or "." in name.strip(".") or "\\" in value


def _says_much(number: str) -> bool:
    return sum(map(str.isdigit, number)) >= _DIGITS


def _is_identifier(word: str) -> bool:
    """Whether a word cannot be plain language: letters with digits, underscores, inner capitals, or dotted."""
    if len(word) < _LETTERS or _ORDINAL.fullmatch(word):
        return False
    has_letter, has_digit = any(map(str.isalpha, word)), any(map(str.isdigit, word))
    if has_digit:
        return (has_letter or bool(_DATE.match(word))) and sum(map(str.isalnum, word)) >= _LETTERS + (not has_letter)
    dotted = "." in word and all(len(part) > 1 for part in word.split("."))
    return "_" in word or bool(_CAMEL.search(word)) or dotted
