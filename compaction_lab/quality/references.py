"""Reference recall: what an agent later used and had from an earlier message, and whether it could still read it then.

No probe and no model is needed. References of a transcript are found once; an arm is then judged by looking whether any
message that says the value is still shown, or a summary or stand-in that repeats it.

A *reference* is a value (:mod:`compaction_lab.quality.mentions`) in a tool argument or answer of the agent that

- stands verbatim in an earlier message, and stood first in a user message or a tool result, not in one of the agent's;
- stands in no system message and no tool definition;
- is in none of the newest ``recent_messages`` messages before the call, where every strategy would keep it;
- is rare: at most a tenth of the earlier messages say it (six are always few enough, more than 50 never).

A value counts once a call. Values are compared as text with word boundaries and in the agent's own spelling, numbers
with and without thousands separators, and as JSON would escape them.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from compaction_lab.conversation.context import Block, Context, Counter, Key
from compaction_lab.conversation.log import Log, is_system
from compaction_lab.conversation.messages import JSON, ToolDefinition
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError
from compaction_lab.quality.evidence import searchable
from compaction_lab.quality.mentions import Mention, MentionKind, mentions
from compaction_lab.records import Row

SEMANTICS = 1
"""Version of what counts as a reference, part of every key."""

_ATOM = re.compile(r"\w+")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_FEW, _MANY, _SHARE = 6, 50, 0.1


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    """What counts as a reference beyond the form of a value.

    Parameters
    ----------
    recent_messages
        A value found in this many newest messages before the call is not looked at: nothing would have dropped it.
    most_per_call
        References of one call that are judged, in their order; a file written at once would outweigh all else.
    """

    recent_messages: int = 4
    most_per_call: int = 20

    @classmethod
    def of(cls, node: Mapping[str, JSON]) -> ReferenceRules:
        """Return the rules of a ``references`` node of the configuration.

        Raises
        ------
        ConfigurationError
            A value is not a whole number of the right size.
        """
        values = {name: node.get(name, getattr(cls(), name)) for name in ("recent_messages", "most_per_call")}
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < (name == "most_per_call"):
                msg = f"references.{name}={value!r}; expected a whole number, for instance {getattr(cls(), name)}"
                raise ConfigurationError(msg)
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a message's :func:`~compaction_lab.quality.evidence.searchable` text, in characters."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reference:
    """A value the agent used and had from earlier.

    Parameters
    ----------
    kind, sha256
        What the value looks like, and the hash of its text (UTF-8).
    use, source
        Where the agent used it, and where it was first said.
    holders
        Indices of all earlier messages that say it, ascending; the last is the newest place to read it.
    spellings
        The texts that count as saying it.
    age_turns, age_tokens
        From the newest holder to the call: how far back the agent had to reach.
    """

    kind: MentionKind
    sha256: str
    use: Place
    source: Place
    holders: tuple[int, ...]
    spellings: tuple[str, ...]
    age_turns: int
    age_tokens: int


Found: TypeAlias = Mapping[int, tuple[Reference, ...]]
"""References by the index of the assistant message that opens the call which uses them."""


def found_references(transcript: Transcript, counter: Counter, rules: ReferenceRules) -> Found:
    """Return the references of a transcript, found once and kept with it for every arm."""
    key = ("references", counter, rules)
    found = transcript.memo.get(key)
    if found is None:
        found = transcript.memo[key] = references(transcript.log, transcript.tools, counter, rules)
    return cast("Found", found)


def references(
    log: Log, tools: Sequence[ToolDefinition], counter: Counter, rules: ReferenceRules | None = None
) -> Found:
    """Return the references of every recorded call.

    Parameters
    ----------
    log
        The whole conversation.
    tools
        Tools offered; what their definitions say is never a reference.
    counter
        Counts the age in tokens.
    rules
        What counts; the defaults when not given.

    Notes
    -----
    One pass over all text for the words that mentions consist of, then a look into the few messages that have them all.
    """
    rules = rules or ReferenceRules()
    uses = {call: list(_uses(log, call)) for call in log.calls}
    finder = _Finder(log, tools, {spelling for found in uses.values() for _, one in found for spelling in _all(one)})
    sums = [0]
    for message in log.messages:
        sums.append(sums[-1] + counter.message(message))
    result: dict[int, tuple[Reference, ...]] = {}
    for call, found in uses.items():
        taken: dict[str, Reference] = {}
        for index, mention in found:
            for reference in finder.resolve(index, mention, call, rules, sums):
                taken.setdefault(reference.sha256, reference)
        if taken:
            result[call] = tuple(list(taken.values())[: rules.most_per_call])
    return result


def _uses(log: Log, call: int) -> Iterator[tuple[int, Mention]]:
    """Yield the mentions of a call's answer: its assistant message and those of the same response."""
    opening = log.messages[call]
    for index in range(call, len(log.messages)):
        message = log.messages[index]
        same = index == call or (opening.response_id and message.response_id == opening.response_id)
        if message.role == "assistant" and same:
            for mention in mentions(message):
                yield index, mention
        elif message.role != "tool":
            return


def _all(mention: Mention) -> Iterator[str]:
    yield from spellings(mention.kind, mention.value)
    for part in mention.parts:
        yield from _all(part)


def spellings(kind: MentionKind, value: str) -> tuple[str, ...]:
    r"""Return the texts that say a value: itself, as JSON escapes it, numbers with and without thousands separators.

    Examples
    --------
    >>> spellings("number", "1,250.50"), spellings("name", "Zo\u00eb")
    (('1,250.50', '1250.50'), ('Zoë', 'Zo\\u00eb'))
    """
    found = [value]
    if kind == "number":
        if _GROUPED.fullmatch(value):
            found.append(value.replace(",", ""))
        elif value.replace(".", "", 1).isdigit():
            whole, dot, rest = value.partition(".")
            found.append(f"{int(whole or 0):,}{dot}{rest}")
    found += [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    return tuple(dict.fromkeys(found))


class _Finder:
    """Finds the messages of a log that say a value."""

    def __init__(self, log: Log, tools: Sequence[ToolDefinition], wanted: set[str]) -> None:
        self.log = log
        self._limit = min(_MANY, max(_FEW, int(_SHARE * len(log))))
        needed = {atom for spelling in wanted for atom in _ATOM.findall(spelling)}
        self._postings: dict[str, list[int]] = {atom: [] for atom in needed}
        self._texts: list[str] = []
        self._fixed: list[str] = [json.dumps([[tool.name, tool.description, tool.parameters] for tool in tools])]
        for index, message in enumerate(log.messages):
            text = searchable(message)
            if is_system(message):
                self._fixed.append(text)
                text = ""
            self._texts.append(text)
            for atom in needed.intersection(_ATOM.findall(text)):
                self._postings[atom].append(index)
        self._fixed_atoms = needed.intersection(atom for text in self._fixed for atom in _ATOM.findall(text))
        self._holders: dict[tuple[str, ...], tuple[int, ...] | None] = {}

    def resolve(
        self, index: int, mention: Mention, call: int, rules: ReferenceRules, sums: Sequence[int]
    ) -> Iterator[Reference]:
        """Yield the reference that a mention is, or those that its parts are when nothing earlier says the whole."""
        forms = spellings(mention.kind, mention.value)
        holders = self._holding(forms)
        earlier = () if holders is None else holders[: bisect_left(holders, call)]
        if holders is not None and not earlier:
            for part in mention.parts:
                yield from self.resolve(index, part, call, rules, sums)
            return
        few = min(_MANY, max(_FEW, int(_SHARE * call)))
        if not earlier or len(earlier) > few or earlier[-1] >= call - rules.recent_messages:
            return
        log = self.log
        if log.messages[earlier[0]].role not in ("user", "tool"):
            return
        start, end = self._first(forms, self._texts[earlier[0]])
        yield Reference(
            mention.kind,
            hashlib.sha256(mention.value.encode("utf-8", "surrogatepass")).hexdigest(),
            Place(index, mention.start, mention.end),
            Place(earlier[0], start, end),
            earlier,
            forms,
            log.turn_at(call) - log.turns[earlier[-1]],
            sums[call] - sums[earlier[-1] + 1],
        )

    def _holding(self, forms: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the messages that say one of the forms; ``None`` for what is said too often or fixed."""
        if forms in self._holders:
            return self._holders[forms]
        found: set[int] = set()
        common = False
        for form in forms:
            atoms = set(_ATOM.findall(form))
            if not atoms:
                continue
            if atoms <= self._fixed_atoms and any(says(text, (form,)) for text in self._fixed):
                common = True
                break
            rarest, *others = sorted((self._postings.get(atom, []) for atom in atoms), key=len)
            for index in rarest:
                if all(_in_sorted(index, posting) for posting in others) and says(self._texts[index], (form,)):
                    found.add(index)
                    if len(found) > self._limit:
                        break
            common = len(found) > self._limit
            if common:
                break
        holders = None if common else tuple(sorted(found))
        self._holders[forms] = holders
        return holders

    @staticmethod
    def _first(forms: tuple[str, ...], text: str) -> tuple[int, int]:
        found = [(place, place + len(form)) for form in forms if (place := find(text, form)) >= 0]
        return min(found)


def _in_sorted(value: int, values: Sequence[int]) -> bool:
    at = bisect_left(values, value)
    return at < len(values) and values[at] == value


def says(text: str, forms: Sequence[str]) -> bool:
    """Whether a text says a value in one of its spellings, as whole words and whole numbers."""
    return any(find(text, form) >= 0 for form in forms)


def find(text: str, form: str) -> int:
    """Return where a spelling stands in a text as whole words and whole numbers, or -1.

    Examples
    --------
    >>> find("the 1250 of 250", "250"), find("1,250", "250"), find("item_2", "item")
    (12, -1, -1)
    """
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if not (_runs_on(text, at - 1, -1, form[0]) or _runs_on(text, end, 1, form[-1])):
            return at
        at = text.find(form, at + 1)
    return -1


def _runs_on(text: str, at: int, step: int, edge: str) -> bool:
    """Whether the word or number at the edge of a match goes on at ``at``."""
    if not 0 <= at < len(text) or not (edge.isalnum() or edge == "_"):
        return False
    beside = text[at]
    if beside.isalnum() or beside == "_":
        # A letter after a backslash belongs to an escape (\n), not to the word.
        return not (step < 0 and at and text[at - 1] == "\\" and beside in "nrt")
    further = at + step
    return beside in ".," and edge.isdigit() and 0 <= further < len(text) and text[further].isdigit()


@dataclass(slots=True)
class ReferenceWatch:
    """Judges the references of one unit's calls against what was sent with them.

    Parameters
    ----------
    found
        From :func:`references`.
    log
        The conversation.
    counter
        Counts positions.
    """

    found: Found
    log: Log
    counter: Counter
    _written: dict[Block, dict[str, Key]] = field(init=False, default_factory=dict)
    _sent: Context | None = field(init=False, default=None)
    _texts: list[tuple[str, Key]] = field(init=False, default_factory=list)

    def rows(self, stop: int, turn: int, call: int, sent: Context) -> list[Row]:
        """Return a probe row for each reference of the call at ``stop``, judged by what is sent with it.

        Parameters
        ----------
        stop
            Index of the assistant message that opens the call.
        turn, call
            Numbers for the rows.
        sent
            The context of the call.
        """
        return [
            self._row(reference, number, turn, call, self._where(reference, sent), sent)
            for number, reference in enumerate(self.found.get(stop, ()))
        ]

    def _row(self, reference: Reference, number: int, turn: int, call: int, where: Key | None, sent: Context) -> Row:
        visible = float(where is not None)
        about: Row = {"kind": reference.kind, "call": call}
        if where is None:
            use, source = reference.use, reference.source
            about |= {
                "sha256": reference.sha256,
                "use": [use.message, use.start, use.end],
                "source": [source.message, source.start, source.end],
                "newest": reference.holders[-1],
            }
        return {
            "turn": turn,
            "probe": f"ref-{reference.use.message:05d}-{number:02d}",
            "kind": "reference",
            "position": None if where is None else self._position(where, sent),
            "age_turns": reference.age_turns,
            "age_tokens": reference.age_tokens,
            "evidence_visible": visible,
            "answer": None,
            "gold": None,
            "score": visible,
            "judge": "reference",
            "reader": "",
            "reference": about,
        }

    def _position(self, key: Key, sent: Context) -> float:
        total = sent.tokens(self.counter)
        message = sent.get(key)
        half = self.counter.message(message) / 2 if message is not None else 0
        return (sent.tokens_before(key, self.counter) + half) / total if total else 0.0

    def _where(self, reference: Reference, sent: Context) -> Key | None:
        """Return the last place in what is sent that says the value: a message of the log, or what stands for one."""
        originals = self.log.messages
        for index in reversed(reference.holders):
            if sent.get((index, 0)) is originals[index]:
                return index, 0
        return next((key for text, key in self._replacements(sent) if says(text, reference.spellings)), None)

    def _replacements(self, sent: Context) -> list[tuple[str, Key]]:
        """Return what is sent and is not the log's own (summaries, stand-ins, inserted text) with its place.

        Each text once, newest place first: a thousand equal placeholders are one text. Kept block by block.
        """
        if self._sent is not sent:
            known = self._written
            self._written = {block: known[block] if block in known else self._own_texts(block) for block in sent.blocks}
            merged: dict[str, Key] = {}
            for texts in self._written.values():
                merged.update(texts)
            self._sent, self._texts = sent, sorted(merged.items(), key=lambda placed: placed[1], reverse=True)
        return self._texts

    def _own_texts(self, block: Block) -> dict[str, Key]:
        originals = self.log.messages
        return {
            searchable(message): key
            for key, message in zip(block.keys, block.messages, strict=True)
            if key[1] or originals[key[0]] is not message
        }
