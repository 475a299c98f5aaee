"""Accuracy by the place of what is asked for: with intervals, a test for a dip in the middle, and published curves."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence

import pandas as pd

from compaction_lab.accounting.amounts import usd
from compaction_lab.analysis.arms import arm_order, baseline_arm
from compaction_lab.analysis.run_tables import RunTables, known_sum, simulated_note
from compaction_lab.errors import StatisticsError
from compaction_lab.statistics.estimators import Interval, clustered_interval, sign_flip_p, wilson_interval

KEYS = ["arm", "reader", "dataset"]
_PLACED = re.compile(r"at-(\d+)-of-(\d+)$")
_PLANTED = re.compile(r"planted-(\d+)$")
RIGHT_FROM = 0.5
_EDGES_AND_MIDDLE = 3
_SMALL_P = 0.001

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


def placed_answers(run: RunTables) -> pd.DataFrame:
    """Return every probe whose place is known.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, seed, transcript, trial, reader, task`` (``key_value, multi_document, planted``)
        ``, items`` (pairs or documents) ``, example`` (what is resampled: a question with its text at all places, or a
        conversation with its facts) ``, shown`` (``full, oracle, none``) ``, place`` (0 first to 1 last: of the
        answering item, or of a fact in the untouched conversation; missing for closed-book and oracle questions)
        ``, right`` (missing where there is no score) ``, visible`` (share of the evidence in sight) ``, position``
        (0 to 1 in what was sent, missing for what is out of sight).
    """
    nodes = {key: _dataset(cell.config) for key, cell in run.cell_by_key.items()}
    rows = []
    for probe in run.probes.to_dict("records"):
        node = nodes[str(probe["cell"])]
        place = _place(str(probe["probe"]), node)
        if place is None:
            continue
        score, transcript = probe["score"], str(probe["transcript"])
        asked = node.get("kind") == "retrieval"
        rows.append(
            {key: probe[key] for key in _IDENTITY}
            | {
                "task": str(node.get("task")) if asked else "planted",
                "items": node.get("items") if asked else None,
                "example": transcript.partition("@")[0] if asked else transcript,
                "shown": str(node.get("shown") or "full"),
                "place": place,
                "right": None if pd.isna(score) else float(score >= RIGHT_FROM),
                "visible": probe["evidence_visible"],
                "position": probe["position"],
            }
        )
    columns = [*_IDENTITY, "task", "items", "example", "shown", "place", "right", "visible", "position"]
    numbers = dict.fromkeys(("items", "place", "right", "visible", "position"), float)
    return pd.DataFrame(rows, columns=columns).astype(numbers)


_IDENTITY = ("arm", "model", "dataset", "seed", "transcript", "trial", "reader")


def _dataset(config: Mapping[str, object]) -> Mapping[str, object]:
    node = config.get("dataset")
    return node if isinstance(node, Mapping) else {}


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
    """Return accuracy by place with 95 % intervals.

    Parameters
    ----------
    answers
        From :func:`placed_answers`.

    Returns
    -------
    DataFrame
        ``arm, reader, dataset, task, items, shown, place, accuracy, low, high, interval, right, answers, examples,
        missing, visible, position``. The interval is Wilson's where every example answered once; several answers of
        one conversation, or trials, are not independent, and there whole examples are resampled (``clustered``). Of a
        single conversation with several facts at a place Wilson's is all there is, and says nothing of other
        conversations (``wilson, one example``).
    """
    rows = []
    for key, group in answers.groupby([*KEYS, "task", "items", "shown", "place"], sort=True, dropna=False):
        judged = group.dropna(subset=["right"])
        interval, kind = _interval(judged)
        rows.append(
            dict(zip([*KEYS, "task", "items", "shown", "place"], key, strict=True))
            | {
                "accuracy": interval.estimate if interval else None,
                "low": interval.low if interval else None,
                "high": interval.high if interval else None,
                "interval": kind,
                "right": int(judged["right"].sum()),
                "answers": len(judged),
                "examples": judged["example"].nunique(),
                "missing": len(group) - len(judged),
                "visible": group["visible"].mean(),
                "position": group["position"].mean(),
            }
        )
    counts = ["interval", "right", "answers", "examples", "missing", "visible", "position"]
    columns = [*KEYS, "task", "items", "shown", "place", "accuracy", "low", "high", *counts]
    return pd.DataFrame(rows, columns=columns)


def _interval(judged: pd.DataFrame) -> tuple[Interval | None, str]:
    right, count, examples = int(judged["right"].sum()), len(judged), judged["example"].nunique()
    if not count:
        return None, ""
    if examples in (count, 1):
        return wilson_interval(right, count), "wilson" if count == examples else "wilson, one example"
    if right in (0, count):  # nothing varies: as many independent answers as there are examples
        return wilson_interval(examples if right else 0, examples), "wilson, by example"
    found = clustered_interval(judged["right"].to_numpy(), judged["example"].to_numpy())
    return Interval(found.estimate, max(0.0, found.low), min(1.0, found.high)), "clustered"


def dip(answers: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """Test whether the middle is read less well than the edges.

    Edges are the first and the last place, the middle is every place between them. An example (a question asked at all
    places, a conversation with its facts) counts once, with its mean at the edges less its mean in the middle; the
    interval resamples examples and p is that of the sign-flip test.

    Returns
    -------
    DataFrame
        ``arm, reader, dataset, edges, middle, dip`` (edges less middle) ``, low, high, p, examples``. Of a single
        conversation there is no p, and the interval (Newcombe 1998, method 10) is about its facts only.

    Raises
    ------
    StatisticsError
        When no arm has three places.
    """
    rows = [row for key, group in _with_places(answers) if (row := _dip(key, group, seed)) is not None]
    if not rows:
        raise StatisticsError("dip: no arm has answers at three places or more; ask at more places (dataset.places=5)")
    return pd.DataFrame(rows)


def _with_places(answers: pd.DataFrame) -> Iterator[tuple[tuple[Hashable, ...], pd.DataFrame]]:
    known = answers.dropna(subset=["place", "right"])
    for key, group in known.groupby(KEYS, sort=True):
        if group["place"].nunique() >= _EDGES_AND_MIDDLE:
            yield key, group


def _dip(key: tuple[Hashable, ...], group: pd.DataFrame, seed: int) -> dict[str, object] | None:
    at_edge = group["place"].isin([group["place"].min(), group["place"].max()])
    edges, middle = (part.groupby("example")["right"].mean() for part in (group[at_edge], group[~at_edge]))
    paired = edges.index.intersection(middle.index)
    if paired.empty:
        return None
    edges, middle = edges[paired], middle[paired]
    differences = (edges - middle).to_numpy()
    row: dict[str, object] = dict(zip(KEYS, key, strict=True))
    row |= {"edges": float(edges.mean()), "middle": float(middle.mean()), "dip": float(differences.mean())}
    if len(paired) > 1:
        interval, p = clustered_interval(differences, seed=seed), sign_flip_p(differences, seed=seed)
    else:
        interval, p = _difference(group.loc[at_edge, "right"], group.loc[~at_edge, "right"]), float("nan")
    return row | {"low": interval.low, "high": interval.high, "p": p, "examples": len(paired)}


def _difference(first: pd.Series[float], second: pd.Series[float]) -> Interval:
    """Return the interval of the difference of two independent rates (Newcombe 1998, method 10)."""
    one, two = (wilson_interval(int(part.sum()), len(part)) for part in (first, second))
    gap = one.estimate - two.estimate
    low = math.hypot(one.estimate - one.low, two.high - two.estimate)
    return Interval(gap, gap - low, gap + math.hypot(one.high - one.estimate, two.estimate - two.low))


def cost_per_correct(run: RunTables) -> pd.DataFrame:
    """Return what a right answer cost: ``arm, dataset, right, answers, cost_usd, usd_per_right``.

    The cost is that of the probes' calls without prompt cache; missing where a price or every right answer is.
    """
    asked = run.calls[run.calls["purpose"] == "probe"]
    costs = asked.groupby(["arm", "dataset"])["cost_uncached_usd"].agg(known_sum)
    answers = placed_answers(run).groupby(["arm", "dataset"])["right"].agg(["sum", "count"])
    frame = answers.join(costs).reset_index()
    frame = frame.rename(columns={"sum": "right", "count": "answers", "cost_uncached_usd": "cost_usd"})
    frame["usd_per_right"] = frame["cost_usd"] / frame["right"].where(frame["right"] > 0)
    return frame


def places_conclusion(run: RunTables) -> str:
    """Return in words what a run with placed questions says, as Markdown; empty when it has none.

    Parameters
    ----------
    run
        A run's tables.
    """
    answers = placed_answers(run)
    places = accuracy_by_place(answers)
    curves = places[(places["shown"] == "full") & places["accuracy"].notna()]
    if curves.empty:
        return ""
    tested = {tuple(row[key] for key in KEYS): row for row in _tested(answers)}
    costs = cost_per_correct(run).set_index(["arm", "dataset"])
    lines = ["# Right answers by place\n", "Edges are the first and the last place, the middle is what is between.\n"]
    order = {arm: at for at, arm in enumerate(arm_order(curves["arm"], baseline_arm(run.cells)))}
    ordered = curves.assign(order=curves["arm"].map(order)).sort_values(["order", "items", "place"], kind="stable")
    for key, curve in ordered.groupby(KEYS, sort=False):
        lines.append(f"- **{_curve_name(curve)}**: {_reading(curve, tested.get(key))}{_price(costs, key)}.")
    level = places[(places["shown"] != "full") & places["accuracy"].notna()]
    for row in level.to_dict("records"):
        words = "the answering item alone" if row["shown"] == "oracle" else "closed book, nothing shown"
        lines.append(f"- {words} ({row['reader']}): {_rate(row)}")
    if len(published_beside(curves)):
        lines.append(f"\nIn grey: {SOURCE}")
    # Beside summaries, simulated answers go without saying elsewhere; here they are what is said.
    notes = [simulated_note({purpose}) for purpose in sorted(run.simulated)]
    return "\n".join([*lines, *([f"\nIn this run: {'; '.join(notes)}."] if notes else [])]) + "\n"


def _tested(answers: pd.DataFrame) -> Sequence[Mapping[Hashable, object]]:
    try:
        return dip(answers).to_dict("records")
    except StatisticsError:
        return []


def _curve_name(curve: pd.DataFrame) -> str:
    first = curve.iloc[0]
    arm = str(first["arm"])
    if first["task"] == "planted":
        return arm
    length = f"{first['items']:.0f} {'pairs' if first['task'] == 'key_value' else 'documents'}"
    return length if arm == "none" else f"{arm}, {length}"


def _reading(curve: pd.DataFrame, tested: Mapping[Hashable, object] | None) -> str:
    right, answers = int(curve["right"].sum()), int(curve["answers"].sum())
    said = f"{right / answers:.0%} of {answers:,} answers right"
    if curve["task"].iloc[0] == "planted":
        said += _moved(curve)
    if tested is None:
        return said
    edges, middle, gap, low, high, p = (
        float(str(tested[name])) for name in ("edges", "middle", "dip", "low", "high", "p")
    )
    said += f"; {edges:.0%} at the edges, {middle:.0%} in the middle: "
    found = "a dip of" if low > 0 else "no dip that shows,"
    if high < 0:
        found, gap, low, high = "better in the middle by", -gap, -high, -low
    said += f"{found} {_points(gap)} points (95 % {_points(low)} to {_points(high)}"
    examples = int(str(tested["examples"]))
    if examples == 1:
        return f"{said}, of this conversation alone)"
    return f"{said}, p {f'= {p:.2g}' if p >= _SMALL_P else f'< {_SMALL_P}'}, {examples} examples)"


def _moved(curve: pd.DataFrame) -> str:
    """Say where compaction has left the facts of the middle."""
    middle = curve[~curve["place"].isin([curve["place"].min(), curve["place"].max()])]
    said = f", {curve['visible'].mean():.0%} of the facts still in sight"
    known = middle.dropna(subset=["position"])
    if known.empty:
        return f"{said}, none of the middle"
    planted, found = ((known[name] * known["visible"]).sum() / known["visible"].sum() for name in ("place", "position"))
    return f"{said}, those of the middle on average at {found:.2f} of what is sent (planted at {planted:.2f})"


def _points(share: float) -> str:
    return f"{round(100 * share):d}"


def _price(costs: pd.DataFrame, key: Sequence[Hashable]) -> str:
    arm, _, dataset = key
    cost = float(str(costs.loc[(str(arm), str(dataset)), "usd_per_right"]))
    return "" if math.isnan(cost) else f"; a right answer cost ${usd(cost)}"


def _rate(row: Mapping[Hashable, object]) -> str:
    low, high = (float(str(row[name])) for name in ("low", "high"))
    return f"{float(str(row['accuracy'])):.0%} of {row['answers']} right (95 % {low:.0%} to {high:.0%})"


def published_beside(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the published curves for the tasks and lengths of a frame of :func:`accuracy_by_place`."""
    curves = published_curves()
    asked = frame[["task", "items"]].drop_duplicates()
    return curves.merge(asked, on=["task", "items"]).reset_index(drop=True)
