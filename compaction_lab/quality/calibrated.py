"""A reader without a model: the recall to expect of a fact, by a curve fitted on one public data set.

The curve is a logistic regression over 3,852 recall outcomes of the Lost in Compaction data (``recall_model_data.csv``,
its calibration and single-pass experiments: LongMemEval facts in conversations of 190,000 tokens, one model, summaries
of the oldest part). It knows where a fact stood, how much of the conversation had been compacted, how many facts and
questions there were, and the kind of question; it knows nothing of your sessions, your model or your strategy. Its
numbers are expectations, never measurements, and it is used only when asked for by ``reader=calibrated``.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from compaction_lab.conversation.context import Context, Counter
from compaction_lab.conversation.messages import JSON
from compaction_lab.conversation.transcript import Probe
from compaction_lab.errors import ConfigurationError
from compaction_lab.quality.evidence import locate
from compaction_lab.records import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEMANTICS = 1
"""Version of what an expected recall means, part of every key."""

NAME = "calibrated"

CATEGORIES: Mapping[str, str] = {
    "knowledge-update": "knowledge_update",
    "update": "knowledge_update",
    "single-session-assistant": "assistant",
    "single-session-preference": "preference",
    "preference": "preference",
}
"""The fitted category by the kind of a probe; every other kind counts as the base, what a user said once."""

_EXPERIMENTS = ("calibration", "compaction")
_CATEGORY_OF_DATA = {
    "knowledge-update": "knowledge_update",
    "single-session-assistant": "assistant",
    "single-session-preference": "preference",
}


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Of the log odds of recall; percentages run from 0 to 100."""

    intercept: float
    questions: float
    log_facts: float
    position: float
    position_squared: float
    compacted: float
    compacted_by_position: float
    knowledge_update: float
    assistant: float
    preference: float


FITTED = Coefficients(-2.48928, 0.08612, 0.12567, -0.05078, 0.00088, -0.05389, 0.00019, 2.30755, 1.80915, 0.33851)
"""Fitted on the public data with :func:`fit`; ``python -m compaction_lab.quality.calibrated CSV`` fits it again."""


@dataclass(frozen=True, slots=True)
class CalibratedReader:
    """Gives each probe the recall that the fitted curve expects where the fact stands; reads nothing.

    A probe none of whose evidence is in sight is expected at 0: there is nothing to read. Positions and depth are those
    of the untouched history, as in the data.

    Parameters
    ----------
    questions
        Questions asked in one prompt.
    facts
        Facts in the conversation, scaled to 190,000 tokens.
    coefficients
        The curve.
    """

    questions: float = 1.0
    facts: float = 40.0
    coefficients: Coefficients = FITTED

    @classmethod
    def of(cls, node: Mapping[str, JSON]) -> CalibratedReader:
        """Return the reader of a ``reader`` node.

        Raises
        ------
        ConfigurationError
            A parameter is not a positive number.
        """
        values: dict[str, float] = {}
        for name, usual in (("questions", 1.0), ("facts", 40.0)):
            value = node.get(name, usual)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                msg = f"reader.{name}={value!r}; expected a positive number, for instance {usual:g}"
                raise ConfigurationError(msg)
            values[name] = float(value)
        return cls(values["questions"], values["facts"])

    def expected(self, position: float, compacted: float, category: str = "") -> float:
        """Return the expected recall (0 to 1).

        Parameters
        ----------
        position
            Relative place of the fact in the untouched history, 0 (oldest) to 1.
        compacted
            Share of the untouched history's tokens that are no longer shown as they were.
        category
            Kind of the probe; see :data:`CATEGORIES`.

        Examples
        --------
        >>> reader = CalibratedReader(questions=5, facts=80)
        >>> round(reader.expected(0.1, 0.0), 2), round(reader.expected(0.1, 0.98), 2)
        (0.13, 0.0)
        """
        c = self.coefficients
        place, depth = 100 * position, 100 * compacted
        odds = (
            c.intercept
            + c.questions * self.questions
            + c.log_facts * math.log(self.facts)
            + c.position * place
            + c.position_squared * place**2
            + c.compacted * depth
            + c.compacted_by_position * depth * place
        )
        named = CATEGORIES.get(category)
        if named is not None:
            odds += float(getattr(c, named))
        return 1 / (1 + math.exp(-odds))

    def judged(self, probe: Probe, context: Context, counter: Counter) -> Row:
        """Return the columns of a probe's row from ``position`` on; ``score`` is the expected recall.

        Parameters
        ----------
        probe
            The question; its last message in ``context``.
        context
            What would be sent, the question included, on a log that ends with the question.
        counter
            Counts positions and depth.
        """
        log, stop = context.log, context.stop - 1
        row = locate(probe, context.messages[:-1], log, stop, counter)
        age = row["age_tokens"]
        total = sum(map(counter.message, log.messages[:stop]))
        score: float | None = None
        if row["evidence_visible"] == 0:
            score = 0.0
        elif isinstance(age, int) and total:
            kept = sum(
                counter.message(placed.message)
                for placed in context.entries(stop=(stop, 0))
                if log.messages[placed.key[0]] is placed.message
            )
            score = self.expected(max(0.0, 1 - age / total), 1 - kept / total, probe.kind)
        return {
            **row,
            "answer": None,
            "gold": list(probe.gold),
            "score": score,
            "judge": "expected_recall",
            "reader": NAME,
        }


def fit(rows: Iterable[Mapping[str, str]]) -> Coefficients:
    """Fit the curve by maximum likelihood (Newton's method).

    Parameters
    ----------
    rows
        Of ``recall_model_data.csv``; rows of other experiments than ``calibration`` and ``compaction`` are left out.

    Raises
    ------
    ConfigurationError
        There are too few rows, or the fit does not settle.
    """
    import numpy as np

    used = [row for row in rows if row["experiment"] in _EXPERIMENTS]
    if len(used) < 10 * len(fields(Coefficients)):
        msg = f"{len(used)} rows of {' and '.join(_EXPERIMENTS)}; expected recall_model_data.csv with some thousands"
        raise ConfigurationError(msg)
    features = np.array([_features(row) for row in used])
    recalled = np.array([float(row["recalled"]) for row in used])
    scale = np.abs(features).max(axis=0)
    weights = _newton(features / scale, recalled)
    return Coefficients(*(float(value) for value in weights / scale))


def _features(row: Mapping[str, str]) -> list[float]:
    place, depth = float(row["position_pct"]), float(row["compaction_pct"])
    category = _CATEGORY_OF_DATA.get(row["category"], "")
    return [
        1.0,
        float(row["batch_size"]),
        math.log(float(row["density"])),
        place,
        place**2,
        depth,
        depth * place,
        *(float(category == name) for name in ("knowledge_update", "assistant", "preference")),
    ]


def _newton(features: NDArray[np.float64], recalled: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    weights = np.zeros(features.shape[1])
    for _ in range(100):
        expected = 1 / (1 + np.exp(-features @ weights))
        curvature = (features * (expected * (1 - expected))[:, None]).T @ features
        step = np.linalg.solve(curvature, features.T @ (recalled - expected))
        weights = weights + step
        if float(np.abs(step).max()) < 1e-9:  # noqa: PLR2004 - far below the digits shown
            return weights
    msg = "the fit did not settle in 100 steps; check the data for a category that is always or never recalled"
    raise ConfigurationError(msg)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of ``recall_model_data.csv``."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    for field, value in zip(fields(Coefficients), astuple(fit(read_rows(Path(sys.argv[1])))), strict=True):
        sys.stdout.write(f"{field.name:22} {value: .5f}\n")
