"""A model as the judge of answers: blind to the arm, repeated, in random order, its verdicts kept as it wrote them.

It sees the question, the accepted answers and the answer, nothing of the strategy or the context. A judgment that
fails (no verdict, a refusal, a score out of range) is missing, never 0.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from compaction_lab.conversation.messages import JSON, system, user
from compaction_lab.errors import ConfigurationError, ContextOverflow
from compaction_lab.models.base import Model, ModelReply, ModelRequest
from compaction_lab.quality.fencing import NOTICE, fenced
from compaction_lab.quality.verdicts import read_score

SEMANTICS = 1
"""Version of the instructions and of how verdicts are read and pooled, part of every key."""

Pool = Literal["median", "mean"]

_TASK = """\
You grade one answer to a question against reference answers. Give {top} when it states what a reference states, in \
any wording, and contradicts none; 0 when it does not, states something else, or says that it does not know\
{between}. More words earn nothing.
{notice}
Answer with one JSON object and nothing else: {{"reason": "one short sentence", "score": N}} with N from 0 to {top}."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a judge made of one answer.

    Parameters
    ----------
    score
        Between 0 and 1, pooled over the verdicts; ``None`` when fewer than half of them could be read.
    verdicts
        Each repeat's score on the judge's own scale (``None``: not readable) and its raw answer.
    asked
        The calls that were made.
    """

    score: float | None
    verdicts: tuple[tuple[float | None, str], ...]
    asked: tuple[tuple[ModelRequest, ModelReply], ...] = ()

    def rows(self) -> list[JSON]:
        """Return the verdicts as they are stored with a probe."""
        return [{"score": score, "raw": raw} for score, raw in self.verdicts]


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A model that scores answers.

    Parameters
    ----------
    model
        Who judges.
    top
        The best score; scores are whole numbers from 0.
    repeats
        How often each answer is judged, each time in a newly drawn order of the texts.
    pool
        How verdicts become one score.

    Raises
    ------
    ConfigurationError
        A number is out of range or the pool is unknown.
    """

    model: Model
    top: int = 1
    repeats: int = 1
    pool: Pool = "median"

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.top < 1 or self.repeats < 1:
            raise ConfigurationError(f"judge.top={self.top}, judge.repeats={self.repeats}; expected at least 1 of each")
        if self.pool not in get_args(Pool):
            raise ConfigurationError(f"judge.pool={self.pool!r}; expected one of {', '.join(get_args(Pool))}")

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"llm:{self.model.name}"

    def request(self, question: str, gold: tuple[str, ...], answer: str, *, repeat: int, seed: int) -> ModelRequest:
        """Return the request of one repeat: the same for every arm that gave this answer."""
        draw = random.Random(f"{seed} {repeat} {question}")  # noqa: S311 - a seeded order, nothing secret
        golds = list(gold)
        draw.shuffle(golds)
        parts = [("reference answers", "\n".join(f"- {each}" for each in golds)), ("answer to grade", answer)]
        draw.shuffle(parts)
        between = "" if self.top == 1 else "; whole numbers between for a part of it"
        task = _TASK.format(top=self.top, between=between, notice=NOTICE)
        shown = fenced({"question": question, **dict(parts)})
        return ModelRequest(
            (system(task), user(shown)),
            "judge",
            seed=seed + repeat,
            trial=repeat,
            response_format=verdict_format(self.top),
        )

    def __call__(self, question: str, gold: tuple[str, ...], answer: str, *, seed: int = 0) -> Judgment:
        """Judge one answer.

        Raises
        ------
        ModelError
            The model could not be asked.
        """
        asked = []
        for repeat in range(self.repeats):
            request = self.request(question, gold, answer, repeat=repeat, seed=seed)
            try:
                reply = self.model(request)
            except ContextOverflow as error:  # an answer too long to be judged
                reply = ModelReply(finish="error", error=str(error))
            asked.append((request, reply))
        verdicts = tuple(
            (None if reply.error or reply.finish == "refusal" else read_score(reply.text, self.top), reply.text)
            for _, reply in asked
        )
        scores = [score / self.top for score, _ in verdicts if score is not None]
        pooled = statistics.median(scores) if self.pool == "median" and scores else None
        if self.pool == "mean" and scores:
            pooled = statistics.fmean(scores)
        return Judgment(pooled if 2 * len(scores) >= self.repeats else None, verdicts, tuple(asked))


def verdict_format(top: int) -> dict[str, JSON]:
    """Return OpenAI's ``response_format`` for a verdict."""
    properties: Mapping[str, JSON] = {
        "reason": {"type": "string"},
        "score": {"type": "integer", "enum": list(range(top + 1))},
    }
    schema: dict[str, JSON] = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}}
