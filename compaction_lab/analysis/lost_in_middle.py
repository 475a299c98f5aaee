"""Accuracy by the place of what is asked for: with intervals, a test for a dip in the middle, and published curves."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from compaction_lab.errors import StatisticsError
from compaction_lab.statistics.estimators import bootstrap_interval, sign_flip_p, wilson_interval

if TYPE_CHECKING:
    from compaction_lab.sweep.loading import Run

KEYS = ["arm", "reader", "dataset"]
_PLACED = re.compile(r"at-(\d+)-of-(\d+)$")
_PLANTED = re.compile(r"planted-(\d+)$")
RIGHT_FROM = 0.5
_DRAWS = 10_000

SOURCE = (
    "Liu et al., Lost in the Middle, TACL 2024 (arXiv 2307.03172), figures 5 and 7 and appendix tables; repository "
    "nelson-liu/lost-in-the-middle (MIT). n = 2,655 questions or 500 records a point; the paper prints no error bars."
)


def published_curves() -> pd.DataFrame:
    """Return the paper's printed accuracies: ``task, items, reader, index, place, accuracy, questions``.

    Closed-book and oracle rates have no ``place``; their task is ``closed_book`` and ``oracle``.
    """
    rows: list[tuple[str, int, str, float | None, float | None, float, int]] = [
        ("multi_document", items, reader, index, index / (items - 1), value / 100, 2_655)
        for items, curves in _DOCUMENTS.items()
        for reader, values in curves.items()
        for index, value in zip(_INDICES[items], values, strict=True)
    ]
    rows += [
        ("key_value", 140, reader, index, index / 139, value / 100, 500)
        for reader, values in _PAIRS_140.items()
        for index, value in zip((0, 34, 69, 104, 139), values, strict=True)
    ]
    rows += [
        (task, items, reader, None, None, value / 100, 2_655)
        for reader, pair in _CLOSED_AND_ORACLE.items()
        for task, items, value in zip(("closed_book", "oracle"), (0, 1), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=["task", "items", "reader", "index", "place", "accuracy", "questions"])


_INDICES: Mapping[int, Sequence[int]] = {10: (0, 4, 9), 20: (0, 4, 9, 14, 19), 30: (0, 4, 9, 14, 19, 24, 29)}
_DOCUMENTS: Mapping[int, Mapping[str, Sequence[float]]] = {
    10: {
        "GPT-3.5-Turbo": (76.8, 61.2, 62.4),
        "GPT-3.5-Turbo-16K": (76.9, 61.0, 62.5),
        "Claude-1.3": (62.9, 58.3, 59.7),
        "MPT-30B-Instruct": (60.2, 56.2, 59.7),
        "LongChat-13B-16K": (72.1, 58.9, 58.5),
    },
    20: {
        "GPT-3.5-Turbo": (75.8, 57.2, 53.8, 55.4, 63.2),
        "GPT-3.5-Turbo-16K": (75.7, 57.3, 54.1, 55.4, 63.1),
        "Claude-1.3": (59.9, 55.9, 56.8, 57.2, 60.1),
        "Claude-1.3-100K": (59.8, 55.9, 57.0, 57.4, 60.0),
        "MPT-30B-Instruct": (53.7, 51.8, 52.2, 52.7, 56.3),
        "LongChat-13B-16K": (68.6, 57.4, 55.3, 52.5, 55.0),
        "Llama-2-70b-chat": (56.8, 53.3, 54.1, 59.7, 69.5),
    },
    30: {
        "GPT-3.5-Turbo-16K": (73.4, 55.1, 50.5, 50.9, 51.8, 54.9, 63.7),
        "Claude-1.3": (59.1, 55.1, 54.8, 55.7, 56.4, 56.2, 59.9),
        "Claude-1.3-100K": (59.1, 55.1, 54.9, 55.7, 56.6, 56.1, 60.0),
        "MPT-30B-Instruct": (51.6, 51.3, 51.2, 49.0, 49.6, 51.3, 54.1),
        "LongChat-13B-16K": (66.9, 54.8, 52.5, 52.9, 52.2, 51.3, 55.1),
    },
}
_PAIRS_140: Mapping[str, Sequence[float]] = {
    "MPT-30B-Instruct": (100, 93.6, 88.6, 80.4, 96.2),
    "LongChat-13B-16K": (37.0, 38.2, 35.4, 65.6, 88.6),
}
_CLOSED_AND_ORACLE: Mapping[str, tuple[float, float]] = {
    "GPT-3.5-Turbo": (56.1, 88.3),
    "GPT-3.5-Turbo-16K": (56.0, 88.6),
    "Claude-1.3": (48.3, 76.1),
    "Claude-1.3-100K": (48.2, 76.4),
    "MPT-30B-Instruct": (31.5, 81.9),
    "LongChat-13B-16K": (35.0, 83.4),
}


def placed_answers(run: Run) -> pd.DataFrame:
    """Return every probe whose place is known: identity, ``reader, example, shown, place, right, visible``.

    ``place`` runs from 0 (first) to 1 (last): of a retrieval task the answering item's, of planted facts the place in
    the untouched conversation. It is missing for closed-book and oracle questions, which ``shown`` (``full, oracle,
    none``) tells apart. ``right`` is missing where there is no score.
    """
    configs = {key: cell.config for key, cell in run.cell_by_key.items()}
    rows = []
    for probe in run.probes.to_dict("records"):
        dataset = configs[str(probe["cell"])].get("dataset")
        node: Mapping[str, object] = dataset if isinstance(dataset, Mapping) else {}
        found = _place(str(probe["probe"]), node)
        if found is None:
            continue
        score = probe["score"]
        missing = score is None or score != score  # noqa: PLR0124 - not a number
        rows.append(
            {key: probe[key] for key in ("arm", "model", "dataset", "seed", "transcript", "trial", "reader")}
            | {
                "example": _example(str(probe["transcript"]), str(probe["probe"]), node),
                "shown": str(node.get("shown") or "full"),
                "place": found,
                "right": None if missing else float(score >= RIGHT_FROM),
                "visible": probe["evidence_visible"],
            }
        )
    columns = ["arm", "model", "dataset", "seed", "transcript", "trial", "reader"]
    frame = pd.DataFrame(rows, columns=[*columns, "example", "shown", "place", "right", "visible"])
    return frame.astype({"place": float, "right": float, "visible": float})


def _example(transcript: str, probe: str, dataset: Mapping[str, object]) -> str:
    """Name what is asked at several places, or the one fact."""
    return transcript.partition("@")[0] if dataset.get("kind") == "retrieval" else f"{transcript} {probe}"


def _place(probe: str, dataset: Mapping[str, object]) -> float | None:
    if match := _PLACED.search(probe):
        index, total = int(match[1]), int(match[2])
        return index / (total - 1) if total > 1 and dataset.get("shown", "full") == "full" else float("nan")
    match, planted = _PLANTED.match(probe), dataset.get("planted")
    positions = planted.get("positions") if isinstance(planted, Mapping) else None
    if match and isinstance(positions, list) and positions:
        return float(positions[int(match[1]) % len(positions)])
    return None


def accuracy_by_place(answers: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy by place with 95 % Wilson intervals.

    Parameters
    ----------
    answers
        From :func:`placed_answers`.

    Returns
    -------
    DataFrame
        ``arm, reader, dataset, shown, place, accuracy, low, high, right, answers, missing, visible``. An interval takes
        answers for independent, which facts of one conversation are not quite.
    """
    rows = []
    for key, group in answers.groupby([*KEYS, "shown", "place"], sort=True, dropna=False):
        judged = group["right"].dropna()
        right, count = int(judged.sum()), len(judged)
        interval = wilson_interval(right, count) if count else None
        rows.append(
            dict(zip([*KEYS, "shown", "place"], key, strict=True))
            | {
                "accuracy": right / count if count else None,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
                "right": right,
                "answers": count,
                "missing": len(group) - count,
                "visible": group["visible"].mean(),
            }
        )
    columns = [*KEYS, "shown", "place", "accuracy", "low", "high", "right", "answers", "missing", "visible"]
    return pd.DataFrame(rows, columns=columns)


def dip(answers: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Test whether the middle is read less well than the edges.

    Edges are the first and the last place, the middle is every place between them; an example (or fact) counts once on
    each side, with its mean. Examples asked at all places are paired: the difference has a bootstrap interval over
    examples and a sign-flip p value. Facts each stand at one place only and are resampled within the sides.

    Returns
    -------
    DataFrame
        ``arm, reader, dataset, edges, middle, dip`` (edges less middle) ``, low, high, p`` (missing when unpaired)
        ``, examples``.

    Raises
    ------
    StatisticsError
        When no arm has three places.
    """
    rows = [row for key, group in _with_places(answers) for row in _dips(key, group, seed)]
    if not rows:
        raise StatisticsError("dip: no arm has answers at three places or more; ask at more places (dataset.places=5)")
    return pd.DataFrame(rows)


def _with_places(answers: pd.DataFrame) -> Iterator[tuple[tuple[Hashable, ...], pd.DataFrame]]:
    known = answers.dropna(subset=["place", "right"])
    for key, group in known.groupby(KEYS, sort=True):
        if group["place"].nunique() >= 3:  # noqa: PLR2004 - two edges and a middle
            yield key, group


def _dips(key: tuple[Hashable, ...], group: pd.DataFrame, seed: int) -> Iterator[dict[str, object]]:
    first, last = group["place"].min(), group["place"].max()
    at_edge = group["place"].isin([first, last])
    sides = [part.groupby("example")["right"].mean() for part in (group[at_edge], group[~at_edge])]
    edges, middle = sides
    paired = edges.index.intersection(middle.index)
    draw = np.random.default_rng(seed)
    p: float | None = None
    if len(paired):
        differences = (edges[paired] - middle[paired]).to_numpy()
        chosen = draw.integers(0, len(differences), (_DRAWS, len(differences)))
        means = differences[chosen].mean(axis=1)
        estimate, count = float(differences.mean()), len(differences)
        p = float(sign_flip_p(differences, seed=seed))
        edges, middle = edges[paired], middle[paired]
    else:
        one, two = edges.to_numpy(), middle.to_numpy()
        means = draw.choice(one, (_DRAWS, len(one))).mean(axis=1) - draw.choice(two, (_DRAWS, len(two))).mean(axis=1)
        estimate, count = float(one.mean() - two.mean()), len(one) + len(two)
    interval = bootstrap_interval(means, estimate, count)
    yield dict(zip(KEYS, key, strict=True)) | {
        "edges": float(edges.mean()),
        "middle": float(middle.mean()),
        "dip": estimate,
        "low": interval.low,
        "high": interval.high,
        "p": p,
        "examples": count,
    }


def cost_per_correct(run: Run) -> pd.DataFrame:
    """Return what a right answer cost: ``arm, dataset, right, answers, cost_usd, usd_per_right``.

    The cost is that of the probes' calls without prompt cache; missing where a price or every right answer is.
    """
    asked = run.calls[run.calls["purpose"] == "probe"]
    costs = asked.groupby(["arm", "dataset"])["cost_uncached_usd"].agg(lambda values: values.sum(skipna=False))
    answers = placed_answers(run).groupby(["arm", "dataset"])["right"].agg(["sum", "count"])
    frame = answers.join(costs).reset_index()
    frame = frame.rename(columns={"sum": "right", "count": "answers", "cost_uncached_usd": "cost_usd"})
    frame["usd_per_right"] = frame["cost_usd"] / frame["right"].where(frame["right"] > 0)
    return frame
