"""Questions with one document that answers and others that do not, at chosen places.

The distractors are those of other questions' documents that BM25 finds most like the question, none of them containing
an accepted answer. That is nearer to the paper's main setting than random ones, and easier than its retrieved passages.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Transcript
from compaction_lab.errors import ConfigurationError
from compaction_lab.quality.judges import subspan
from compaction_lab.scenarios.retrieval.placing import Example, Task, placed, public_rows

INSTRUCTION = (
    "Answer questions from the documents that you are shown, most of which do not matter. Reply with the answer alone; "
    "without documents, answer from what you know."
)
PUBLIC_QUESTIONS = 2_655
OWN_QUESTIONS = 240
_WORD = re.compile(r"\w+")
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Passage:
    """A document and the question it answers."""

    title: str
    text: str
    question: str
    gold: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The document as it stands among others."""
        return f"(title: {self.title}) {self.text}"


def multi_document(task: Task) -> list[Transcript]:
    """Return each question with its document at each place.

    Raises
    ------
    ConfigurationError
        There are fewer passages than asked for.
    """
    passages = _public() if task.source == "public" else own_passages(task.seed)
    if task.examples > len(passages) or task.items > len(passages) // 2:
        raise ConfigurationError(
            f"dataset.examples={task.examples}, dataset.items={task.items}: there are {len(passages)} passages"
        )
    ranking = Ranking([passage.shown for passage in passages])
    chosen = random.Random(f"multi_document {task.seed}").sample(range(len(passages)), task.examples)  # noqa: S311
    found: list[Transcript] = []
    for at in chosen:
        passage = passages[at]
        others = [passages[other].shown for other in _distractors(passages, ranking, at, task.items - 1)]
        example = Example(f"{task.source}{task.items}-{at:04d}", passage.question, passage.gold, passage.shown, others)
        found.extend(placed(task, example, INSTRUCTION, _layout))
    return found


def _layout(documents: Sequence[str]) -> str:
    return "\n\n".join(f"Document {number} {text}" for number, text in enumerate(documents, start=1))


def _distractors(passages: Sequence[Passage], ranking: Ranking, at: int, count: int) -> list[int]:
    gold = passages[at].gold
    found = []
    for other in ranking.best(passages[at].question):
        if other != at and passages[other].title != passages[at].title and not subspan(passages[other].shown, gold):
            found.append(other)
            if len(found) == count:
                break
    return found


class Ranking:
    """BM25 over a fixed list of texts (Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75)."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths = []
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, text in enumerate(texts):
            words = Counter(word.lower() for word in _WORD.findall(text))
            self._lengths.append(words.total())
            for word, times in words.items():
                self._postings[word].append((at, times))
        self._mean = sum(self._lengths) / max(1, len(self._lengths))

    def best(self, question: str) -> list[int]:
        """Return all texts, the most alike first."""
        scores = [0.0] * len(self._lengths)
        for word in {word.lower() for word in _WORD.findall(question)}:
            postings = self._postings.get(word, [])
            rarity = math.log(1 + (len(scores) - len(postings) + 0.5) / (len(postings) + 0.5))
            for at, times in postings:
                length = 1 - _B + _B * self._lengths[at] / self._mean
                scores[at] += rarity * times * (_K1 + 1) / (times + _K1 * length)
        return sorted(range(len(scores)), key=lambda at: (-scores[at], at))


def _public() -> list[Passage]:
    found = []
    for row in public_rows("nq-open-oracle.jsonl.gz", PUBLIC_QUESTIONS):
        (context, *_) = [each for each in cast("list[dict[str, JSON]]", row["ctxs"]) if each.get("isgold")]
        gold = tuple(map(str, cast("list[JSON]", row["answers"])))
        found.append(Passage(str(context["title"]), str(context["text"]), str(row["question"]), gold))
    return found


_SYLLABLES = (
    "bar",
    "del",
    "fin",
    "gor",
    "hal",
    "jas",
    "kel",
    "lor",
    "mir",
    "nel",
    "pod",
    "ras",
    "sol",
    "tam",
    "vor",
    "zel",
)
_KINDS = ("lighthouse", "library", "bridge", "observatory", "mill", "theatre", "harbour", "museum")
_STONES = ("granite", "limestone", "sandstone", "brick", "oak", "basalt", "slate", "marble")


def own_passages(seed: int) -> list[Passage]:
    """Return passages about buildings that do not exist, so that nobody can know the answers without reading them.

    Examples
    --------
    >>> passages = own_passages(0)
    >>> len(passages), len({passage.gold for passage in passages}) > 200
    (240, True)
    """
    draw = random.Random(f"own passages {seed}")  # noqa: S311 - a seeded draw, nothing secret
    return [passage for _ in range(OWN_QUESTIONS // 4) for passage in _building(draw)]


def _building(draw: random.Random) -> Iterator[Passage]:
    """Yield four passages on one building, which are therefore hard to tell apart."""

    def name() -> str:
        return "".join(draw.sample(_SYLLABLES, 3)).capitalize()

    town, kind, stone = name(), draw.choice(_KINDS), draw.choice(_STONES)
    subject = f"the {kind} of {town}"
    architect, keeper, donor = (f"{name()} {name()}" for _ in range(3))
    opened, cost, height = (
        draw.randint(1700, 1950),
        draw.randint(11, 99) * 1_000 + draw.randint(1, 999),
        draw.randint(21, 99),
    )
    plans = (
        f"Plans for {subject} were drawn by {architect}, who had won a competition among nine entrants. The walls "
        f"are of {stone}, and the drawings are kept in the archive."
    )
    opening = (
        f"When {subject} opened in {opened}, two bands played and the square was closed to carts for three days. A "
        "plaque beside the entrance recalls the occasion."
    )
    keeping = (
        f"The {kind} of {town} was looked after for thirty years by {keeper}, who lived in two rooms on the ground "
        f"floor and wrote down the weather every day. It is {height} metres high."
    )
    paying = (
        f"Building {subject} cost {cost} crowns, most of which {donor} left to the town in a will. The accounts were "
        "read aloud in the market hall."
    )
    asked = (
        (plans, f"Who drew the plans for {subject}?", architect),
        (opening, f"In which year did {subject} open?", str(opened)),
        (keeping, f"Who looked after {subject} for thirty years?", keeper),
        (paying, f"How many crowns did building {subject} cost?", str(cost)),
    )
    for number, (text, question, gold) in enumerate(asked):
        yield Passage(f"{kind.capitalize()} of {town}, part {number + 1}", text, question, (gold,))
