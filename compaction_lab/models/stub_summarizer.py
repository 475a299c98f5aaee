"""An extractive summarizer: a deterministic stand-in that copies a transcript's most telling lines under a budget."""

from __future__ import annotations

import heapq
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from compaction_lab.models.base import ModelReply, ModelRequest

DEFAULT_MAX_TOKENS = 500
HEADING = "Key points so far:"

_BLOCK = re.compile(
    r"^\s*\**\[?(?P<role>system|developer|user|assistant|tool)\b(?P<label>[^:\n]{0,120}?)\]?\**:[ \t]*(?=\S|$)"
    r"|^\s*assistant\s*->.*$",
    re.IGNORECASE | re.MULTILINE,
)
_CALL = re.compile(r"^\s*assistant\s*->", re.IGNORECASE)
_LINE_END = re.compile(r"\r?\n|\\n")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\sa-z])")
_WORD = re.compile(r"[^\W_][\w.,'-]*[^\W_]|[^\W_]")
_TITLE_LETTERS = 60
_FEWEST_WORDS = 2
_BULLETS = ("- ", "* ", "• ")
_BREAK = "---"
_ROLE_WEIGHT = {"tool": 1.0, "assistant": 0.9, "user": 0.8, "system": 0.2, "developer": 0.2}
_BLOCKS_KEPT = 1024
"""Blocks whose sentences are kept: a conversation is summarised again and again, by one arm after the other."""
_FIELD = re.compile(r'^\s*"(?:[^"\\]|\\.){1,40}"\s*:\s*"')


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One line or sentence of a block with the title it stands under."""

    title: str
    text: str
    words: frozenset[str]
    telling: int


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence at its place in the transcript."""

    order: int
    block: int
    role: str
    sentence: _Sentence


@dataclass(frozen=True, slots=True)
class ExtractiveSummarizer:
    """Summarise by copying lines and sentences verbatim, in their order, under a token budget.

    The transcript (the fenced user message, else the request's own messages) is cut into blocks by role, blocks into
    lines, long lines into sentences. Lines stand under the nearest title: a heading, a short line ending in a colon,
    the first string of a JSON record, or the sentence that leads into a list; a rule (``---``) ends what stands under
    one.

    Each is scored ``role * (0.5 recency + 0.5 frequency + density)``. *Recency* is the block's relative position;
    *frequency* the mean log document frequency of its words, relative to the transcript's highest; *density* the share
    of its words that hold a digit or start with a capital inside the sentence. Greedy choice multiplies that by
    ``0.2 + 0.8 * share of its words not yet chosen under the same title`` and never repeats a text.

    It knows nothing of any scenario, so what it keeps is what stands out, not what will be asked.

    Parameters
    ----------
    max_tokens
        Budget when the request names none.
    count
        Counts tokens; ``None`` is the o200k_base encoding.

    Notes
    -----
    The reply never exceeds the budget and, from 8 tokens upwards, is never empty for a transcript that has a word.
    """

    max_tokens: int = DEFAULT_MAX_TOKENS
    count: Callable[[str], int] | None = None
    name: str = "stub_summarizer"
    simulated: bool = True

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Summarise the transcript that the request holds, or its messages when they are the conversation itself."""
        transcript = next((m.text for m in request.messages if "<transcript>" in m.text and m.role == "user"), None)
        if transcript is None:
            *conversation, asked = request.messages
            said = [message for message in conversation if message.role not in ("system", "developer")]
            transcript = "\n".join(f"{message.role}: {message.text}" for message in said) or asked.text
        budget = self.max_tokens if request.max_output_tokens is None else request.max_output_tokens
        return ModelReply(text=summarize(transcript, budget, self.count or _o200k()))


def summarize(transcript: str, budget: int, count: Callable[[str], int]) -> str:
    """Return an extract of at most ``budget`` tokens."""
    units = list(_units(transcript))
    if not units:
        return _fitting(transcript.strip(), budget, count)
    chosen = _choose(units, budget - count(HEADING), count)
    while chosen:
        text = _laid_out([unit for unit, _ in chosen])
        if count(text) <= budget:
            return text
        chosen.remove(min(chosen, key=lambda pair: pair[1]))
    return _fitting(max(units, key=lambda unit: (unit.sentence.telling, unit.order)).sentence.text, budget, count)


def _units(transcript: str) -> Iterator[_Unit]:
    order = 0
    for block, (role, body) in enumerate(_blocks(transcript)):
        for sentence in _sentences(body):
            yield _Unit(order, block, role, sentence)
            order += 1


@lru_cache(_BLOCKS_KEPT)
def _sentences(body: str) -> tuple[_Sentence, ...]:
    """Return the sentences of a block."""
    found = []
    title, record, lead = "", False, ""
    for line, named in _lines(body):
        if named or _is_title(line):
            if line.endswith(HEADING) or (record and not named):
                continue
            title, record, lead = line.removeprefix("## "), named, ""
            continue
        bullet = line.startswith(_BULLETS)
        if not bullet and not record:
            lead = _SENTENCE_END.split(line)[0].strip()
        under = title or (lead if bullet and len(lead) <= _TITLE_LETTERS else "")
        for sentence in _SENTENCE_END.split(line):
            text = sentence.strip()
            words = _WORD.findall(text)
            if len(words) < _FEWEST_WORDS:
                continue
            telling = sum(any(c.isdigit() for c in w) or (i > 0 and w[0].isupper()) for i, w in enumerate(words))
            found.append(_Sentence(under, text, frozenset(sys.intern(w.casefold()) for w in words), telling))
    return tuple(found)


def _blocks(transcript: str) -> Iterator[tuple[str, str]]:
    """Yield role and body of each message; calls are left out, as their results say more."""
    starts = list(_BLOCK.finditer(transcript))
    if not starts:
        yield "user", transcript
        return
    if transcript[: starts[0].start()].strip():
        yield "user", transcript[: starts[0].start()]
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        if _CALL.match(match[0]):
            continue
        end = following.start() if following else len(transcript)
        yield (match["role"] or "assistant").lower(), transcript[match.end() : end]


def _lines(body: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a body; a JSON field's first short string is yielded as a title (``True``)."""
    record = _first_strings(body)
    for raw in _LINE_END.split(body):
        line = raw
        field = _FIELD.match(line)
        if field:
            line = line[field.end() :]
        line = re.sub(r'"\s*,?\s*$', "", line) if field or raw.rstrip().endswith(('",', '"')) else line
        line = line.strip().strip("{}[],").strip()
        if not line:
            continue
        if line in record:
            yield line, True
        else:
            yield line, False


def _first_strings(body: str) -> frozenset[str]:
    stripped = body.strip()
    if stripped[:1] not in {"{", "["}:
        return frozenset()
    try:
        document = json.loads(stripped)
    except (ValueError, RecursionError):
        return frozenset()
    records = document if isinstance(document, list) else [document]
    firsts = (next((v for v in r.values() if isinstance(v, str)), "") for r in records if isinstance(r, dict))
    return frozenset(first for first in firsts if first and len(first) <= _TITLE_LETTERS)


def _is_title(line: str) -> bool:
    if len(line) > _TITLE_LETTERS:
        return False
    return line.startswith("#") or line.endswith((":", ":**")) or (line.startswith("**") and line.endswith("**"))


def _choose(units: list[_Unit], budget: int, count: Callable[[str], int]) -> list[tuple[_Unit, float]]:
    """Pick greedily by score and novelty; returned in the transcript's order with the score each was picked at.

    What is covered only grows, so a score only falls: one that is still the highest when computed anew is the best.
    """
    base = _scores(units)
    waiting = [(-score, i) for i, score in enumerate(base)]
    heapq.heapify(waiting)
    covered: dict[str, set[str]] = {}
    titled: set[tuple[int, str]] = set()
    dear: dict[tuple[int, str], list[tuple[float, int]]] = {}
    texts: set[str] = set()
    chosen: list[tuple[_Unit, float]] = []
    while waiting:
        bound, i = heapq.heappop(waiting)
        unit, sentence = units[i], units[i].sentence
        if sentence.text in texts:
            continue
        seen = covered.get(sentence.title)
        new = len(sentence.words - seen) / len(sentence.words) if seen else 1.0
        score = base[i] * (0.2 + 0.8 * new)
        if score < -bound:
            heapq.heappush(waiting, (-score, i))
            continue
        place = (unit.block, sentence.title)
        price = count(f"- {sentence.text}\n") + (0 if sentence.title else 2)
        if sentence.title and place not in titled:
            price += count(f"## {sentence.title}\n")
        if price > budget:
            if sentence.title and place not in titled:
                dear.setdefault(place, []).append((bound, i))  # cheaper once its title is paid for
            continue
        texts.add(sentence.text)
        if place not in titled:
            titled.add(place)
            for again in dear.pop(place, ()):
                heapq.heappush(waiting, again)
        covered.setdefault(sentence.title, set()).update(sentence.words)
        chosen.append((unit, score))
        budget -= price
    return sorted(chosen, key=lambda pair: pair[0].order)


def _scores(units: list[_Unit]) -> list[float]:
    frequency = Counter(word for unit in units for word in unit.sentence.words)
    weight = {word: math.log1p(times) for word, times in frequency.items()}
    highest = max(weight.values())
    last = max(unit.block for unit in units) or 1
    scores = []
    for unit in units:
        words = unit.sentence.words
        # A set's order differs from process to process, and with it the last digit of a plain sum.
        common = math.fsum(map(weight.__getitem__, words)) / len(words) / highest
        density = unit.sentence.telling / max(4, len(words))
        scores.append(_ROLE_WEIGHT[unit.role] * (0.5 * unit.block / last + 0.5 * common + density))
    return scores


def _laid_out(units: list[_Unit]) -> str:
    lines = [HEADING]
    under: tuple[int, str] | None = None
    for unit in units:
        title, text = unit.sentence.title, unit.sentence.text
        if (unit.block, title) != under:
            if title:
                lines.append(title if title.startswith(("#", "**")) else f"## {title}")
            elif under is not None and under[1]:
                lines.append(_BREAK)
        under = (unit.block, title)
        lines.append(text if text.startswith(_BULLETS) else f"- {text}")
    return "\n".join(lines)


def _fitting(text: str, budget: int, count: Callable[[str], int]) -> str:
    """Return the longest run of leading words (or characters of the first word) that fits."""
    words = text.split(" ")
    while len(words) > 1 and count(" ".join(words)) > budget:
        words = words[: max(1, len(words) // 2)]
    kept = " ".join(words)
    while kept and count(kept) > budget:
        kept = kept[: len(kept) // 2]
    return kept


def _o200k() -> Callable[[str], int]:
    from compaction_lab.conversation.tokens import tokenizer

    return tokenizer("o200k_base").count
