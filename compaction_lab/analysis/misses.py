"""What an agent used and could no longer have read: reference recall by arm and age, and the misses by place."""

from __future__ import annotations

import math
from itertools import pairwise

import pandas as pd

from compaction_lab.analysis.quality import probe_recall
from compaction_lab.analysis.run_tables import RunTables
from compaction_lab.conversation.printable import printable
from compaction_lab.importers.lab import message_from_lab
from compaction_lab.quality.evidence import searchable

AGE_EDGES = (0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
"""Bounds of the age classes in tokens; the last class is open."""

PLACE = ["cell", "arm", "model", "dataset", "seed", "transcript", "trial"]


def reference_recall(probes: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return the share of references each arm could still read, as :func:`~compaction_lab.analysis.probe_recall` does.

    Parameters
    ----------
    probes
        The *probes* table; only rows of ``kind=reference`` are read.
    confidence
        Of the interval.
    """
    return probe_recall(probes, confidence, references=True)


def age_class(tokens: float) -> str:
    """Return the age class of a number of tokens.

    Examples
    --------
    >>> age_class(300), age_class(5_000), age_class(200_000)
    ('< 1k', '4k-8k', '128k +')
    """
    if math.isnan(tokens):
        return "unknown"
    for low, high in pairwise(AGE_EDGES):
        if tokens < high:
            return f"< {high // 1000}k" if low == 0 else f"{low // 1000}k-{high // 1000}k"
    return f"{AGE_EDGES[-1] // 1000}k +"


def age_classes() -> list[str]:
    """Return the age classes, youngest first."""
    return [age_class(low) for low in AGE_EDGES]


def recall_by_age(probes: pd.DataFrame, *, references: bool = True) -> pd.DataFrame:
    """Return reference recall by arm and age: how many tokens back the newest message lies that says the value.

    Parameters
    ----------
    probes
        The *probes* table.
    references
        References; with ``False`` all other probes instead, by the age of their fact.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, age`` (class) ``, recall, references`` (how many) ``, transcripts, mean_age_tokens``,
        classes in order of age.
    """
    kinds = probes["kind"] == "reference" if references else ~probes["kind"].isin(["reference", "rubric"])
    rows = probes[kinds].astype({"score": float, "age_tokens": "float64"}).dropna(subset=["score", "age_tokens"])
    rows = rows.assign(age=pd.Categorical(rows["age_tokens"].map(age_class), age_classes(), ordered=True))
    grouped = rows.groupby(["arm", "model", "dataset", "age"], observed=True, sort=True, as_index=False)
    return grouped.agg(
        recall=("score", "mean"),
        references=("score", "size"),
        transcripts=("transcript", "nunique"),
        mean_age_tokens=("age_tokens", "mean"),
    )


def misses(run: RunTables) -> pd.DataFrame:
    """Return every reference that an arm could no longer read, with both places and no text.

    Returns
    -------
    DataFrame
        Identity, ``turn, call, value_kind, age_turns, age_tokens, sha256``, where it was used (``use_message,
        use_start, use_end``), where it was first said (``source_*``) and last said (``newest_message``): message index
        and characters in the message's searchable text.
    """
    table = run.probe_details
    missed = table[(table["kind"] == "reference") & (table["evidence_visible"] == 0)]
    places = [f"{at}_{part}" for at in ("use", "source") for part in ("message", "start", "end")]
    columns = [*PLACE, "turn", "call", "value_kind", "age_turns", "age_tokens", "sha256", *places, "newest_message"]
    return missed[columns].reset_index(drop=True)


def misses_worth_reading(run: RunTables, most: int = 20, each: int = 3) -> pd.DataFrame:
    """Return the values that most arms would have lost, their text looked up in the run's own messages.

    Parameters
    ----------
    run
        A run's tables.
    most, each
        How many to return, in all and of one transcript; a value counts once, at its use that most arms missed.

    Returns
    -------
    DataFrame
        ``transcript, turn, call, value, kind, age_tokens, source_message, arms_missed, arms, said`` (the text around
        the place it came from).
    """
    missed = misses(run)
    columns = ["transcript", "turn", "call", "value", "kind", "age_tokens", "source_message", "arms_missed", "arms"]
    if missed.empty:
        return pd.DataFrame(columns=[*columns, "said"])
    use = ["model", "dataset", "transcript", "sha256", "use_message", "use_start"]
    by_use = missed.groupby(use, as_index=False).agg(
        arms_missed=("arm", "nunique"),
        arms=("arm", lambda names: "; ".join(sorted(set(names)))),
        **{name: (name, "first") for name in ("cell", "trial", "turn", "call", "value_kind", "age_tokens")},
        **{name: (name, "first") for name in ("use_end", "source_message", "source_start", "source_end")},
    )
    by_use = by_use.sort_values(["arms_missed", "age_tokens", *use], ascending=[False, False, *[True] * len(use)])
    by_use = by_use.drop_duplicates(["model", "dataset", "transcript", "sha256"])
    by_use = by_use.groupby(["model", "dataset", "transcript"], sort=False).head(each).head(most)
    lookup = _Lookup(run)
    rows = []
    for miss in by_use.to_dict("records"):
        log = lookup.log(str(miss["cell"]), str(miss["transcript"]), int(miss["trial"]))
        text = log(int(miss["use_message"]))
        source = log(int(miss["source_message"]))
        rows.append(
            {
                "transcript": miss["transcript"],
                "turn": miss["turn"],
                "call": miss["call"],
                "value": printable(text[int(miss["use_start"]) : int(miss["use_end"])]),
                "kind": miss["value_kind"],
                "age_tokens": miss["age_tokens"],
                "source_message": miss["source_message"],
                "arms_missed": miss["arms_missed"],
                "arms": miss["arms"],
                "said": _around(source, int(miss["source_start"]), int(miss["source_end"])),
            }
        )
    return pd.DataFrame(rows, columns=[*columns, "said"])


def _around(text: str, start: int, end: int, reach: int = 40) -> str:
    """Return a place in a text with what stands beside it, on one line."""
    left, right = max(0, start - reach), min(len(text), end + reach)
    shown = ("\u2026" if left else "") + text[left:right] + ("\u2026" if right < len(text) else "")
    return " ".join("".join(sign if sign.isprintable() else " " for sign in shown).split())


class _Lookup:
    """Reads the messages of a run's units by index."""

    def __init__(self, run: RunTables) -> None:
        self._run = run
        self._texts: dict[str, str] = {}

    def log(self, cell: str, transcript: str, trial: int) -> _Texts:
        return _Texts(self, self._run.log((cell, transcript, trial)))

    def text(self, digest: str) -> str:
        if digest not in self._texts:
            self._texts[digest] = searchable(message_from_lab(self._run.messages[digest]))
        return self._texts[digest]


class _Texts:
    def __init__(self, lookup: _Lookup, digests: list[str]) -> None:
        self._lookup, self._digests = lookup, digests

    def __call__(self, index: int) -> str:
        return self._lookup.text(self._digests[index])


def value_kinds(run: RunTables) -> pd.DataFrame:
    """Return reference recall by arm and kind of value.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, value_kind, recall, references``.
    """
    table = run.probe_details
    rows = table[table["kind"] == "reference"]
    grouped = rows.groupby(["arm", "model", "dataset", "value_kind"], sort=True, as_index=False)
    return grouped.agg(recall=("score", "mean"), references=("score", "size"))
