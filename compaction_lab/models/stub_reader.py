"""A deterministic reader: answers a question with the visible lines that share most of its rarer words.

It reads only the messages it is given. It understands nothing; it is a floor that shows whether a fact can be found.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from compaction_lab.conversation.messages import Message
from compaction_lab.models.base import ModelReply, ModelRequest

_WORD = re.compile(r"\w+(?:[.\-/_]\w+)*")
_UNKNOWN = "I do not know; it is not in the conversation I can see."


@dataclass(frozen=True, slots=True)
class StubReader:
    """Answers from the best-matching lines of what is visible.

    Parameters
    ----------
    lines
        How many lines an answer quotes at most.
    least_overlap
        Share of the question's information (inverse document frequency) that a line must share to be quoted.
    """

    lines: int = 2
    least_overlap: float = 0.25
    name: str = "stub_reader"
    simulated: bool = True

    def __call__(self, request: ModelRequest) -> ModelReply:
        """Quote the lines that answer the last user message, or say that it is not known."""
        *visible, question = request.messages
        asked = set(_words(question.text))
        candidates = [(line, words) for message in visible for line, words in _lines(message) if words & asked]
        if not asked or not candidates:
            return ModelReply(_UNKNOWN)
        seen = Counter(word for _, words in candidates for word in words & asked)
        weight = {word: math.log(1 + len(candidates) / seen[word]) for word in seen}
        whole = sum(weight.values()) + (len(asked) - len(weight)) * math.log(1 + len(candidates))
        scored = [(sum(weight[word] for word in words & asked), at) for at, (_, words) in enumerate(candidates)]
        best = sorted(scored, key=lambda item: (-item[0], -item[1]))[: self.lines]
        quoted = [candidates[at][0] for score, at in best if score >= self.least_overlap * whole]
        return ModelReply("\n".join(dict.fromkeys(quoted)) or _UNKNOWN)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text) if len(word) > 2]  # noqa: PLR2004 - short words say nothing


def _lines(message: Message) -> list[tuple[str, set[str]]]:
    found = message.memo.get("stub_reader_lines")
    if found is None:
        text = "\n".join([message.text, *(call.arguments for call in message.calls)])
        found = [(line, set(_words(line))) for line in map(str.strip, text.split("\n")) if line]
        message.memo["stub_reader_lines"] = found
    return found  # type: ignore[return-value]
