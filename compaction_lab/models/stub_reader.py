"""A deterministic reader: answers a question by quoting the visible passages that match it best.

It reads only the messages it is given and understands nothing: its score says whether a fact can still be found by its
wording. It is a floor, labelled simulated; evidence survival is the stronger statement without a model.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass

from compaction_lab.conversation.messages import Message, Text
from compaction_lab.errors import ConfigurationError
from compaction_lab.models.base import ModelReply, ModelRequest

_WORD = re.compile(r"\w+(?:[.\-/_]\w+)*")
_BREAK = re.compile(r"\n|\\n|(?<=[.!?;])\s")
"""Ends a sentence: a line's end, also as JSON writes it in tool arguments, or a mark followed by space."""
_UNKNOWN = "I do not know; it is not in the conversation I can see."
SKIMMED_FROM = 20
"""Sentences from which on a skimming reader overlooks any."""

_SATURATION, _LENGTH = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class StubReader:
    """Quotes the best passages by BM25 (Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75) over what is visible.

    Parameters
    ----------
    passages
        How many passages an answer quotes at most.
    sentences
        Length of a passage; neighbours share one sentence.
    dip
        Chance to overlook a sentence in the very middle of what is visible; at a relative place x it is
        ``4 * dip * x * (1 - x)``, so nothing is overlooked at the edges, nor in a short text. Drawn from
        the request's seed, the question and the sentence. 0 reads everything.
    """

    passages: int = 3
    sentences: int = 3
    dip: float = 0.0
    name: str = "stub_reader"
    simulated: bool = True

    def __post_init__(self) -> None:
        """Check the curve."""
        if not 0 <= self.dip <= 1:
            raise ConfigurationError(f"reader.dip={self.dip!r}; expected a share between 0 and 1")

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Quote what answers the last user message, or say that it is not known."""
        *visible, question = request.messages
        asked = set(_words(question.text))
        if self.dip:
            visible = self._skimmed(visible, f"{request.seed} {question.text}")
        found = [passage for message in visible for passage in _passages(message, self.sentences)]
        holding = Counter(word for _, words in found for word in asked & words.keys())
        if not holding:
            return ModelReply(_UNKNOWN)
        mean = sum(words.total() for _, words in found) / len(found)
        rarity = {word: math.log(1 + (len(found) - count + 0.5) / (count + 0.5)) for word, count in holding.items()}

        def score(words: Counter[str]) -> float:
            length = 1 - _LENGTH + _LENGTH * words.total() / mean
            return sum(
                rarity[word] * words[word] * (_SATURATION + 1) / (words[word] + _SATURATION * length)
                for word in rarity
                if word in words
            )

        ranked = sorted(range(len(found)), key=lambda at: (-score(found[at][1]), -at))
        return ModelReply("\n".join(found[at][0] for at in ranked[: self.passages]))

    def _skimmed(self, messages: list[Message], salt: str) -> list[Message]:
        """Return what is left of the messages when the middle is read less well."""
        said = [_said(message) for message in messages]
        last = sum(map(len, said)) - 1
        if last < SKIMMED_FROM:
            return messages
        kept, at = [], 0
        for message, sentences in zip(messages, said, strict=True):
            noticed = []
            for sentence in sentences:
                place = at / last
                draw = hashlib.sha256(f"{salt} {sentence}".encode("utf-8", "replace")).digest()
                if int.from_bytes(draw[:4]) / 2**32 >= 4 * self.dip * place * (1 - place):
                    noticed.append(sentence)
                at += 1
            kept.append(Message(message.role, (Text("\n".join(noticed)),)))
        return kept


def _said(message: Message) -> list[str]:
    text = "\n".join([message.text, *(call.arguments for call in message.calls)])
    return [sentence for sentence in map(str.strip, _BREAK.split(text)) if sentence]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text) if len(word) > 2]  # noqa: PLR2004 - short words say nothing


def _passages(message: Message, sentences: int) -> list[tuple[str, Counter[str]]]:
    found = message.memo.get(("passages", sentences))
    if found is None:
        said = _said(message)
        pieces = ["\n".join(said[at : at + sentences]) for at in range(0, len(said), max(1, sentences - 1))]
        found = [(piece, Counter(_words(piece))) for piece in pieces if piece]
        message.memo["passages", sentences] = found
    return found  # type: ignore[return-value]
