"""The logistic curve of recall on the Lost in Compaction data: its fit, held-out facts, and clustered errors."""

from __future__ import annotations

import hashlib
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compaction_lab.quality import calibrated
from compaction_lab.quality.calibrated import Coefficients

Floats = NDArray[np.float64]
FOLDS = 5
USED = ("calibration", "compaction")
_CATEGORIES = ("knowledge-update", "single-session-assistant", "single-session-preference")


def read(path: Path) -> pd.DataFrame:
    """Return all rows of ``recall_model_data.csv``."""
    return pd.read_csv(path, dtype={"fact_id": str})


def fitted(rows: pd.DataFrame) -> Coefficients:
    """Return the curve fitted on rows, by the same code that made the calibrated reader."""
    texts = rows.astype(str)
    names = [str(name) for name in texts]
    return calibrated.fit(dict(zip(names, row, strict=True)) for row in texts.itertuples(index=False, name=None))


def features(rows: pd.DataFrame) -> Floats:
    """Return the design matrix in the order of the coefficients."""
    place, depth = (rows[name].to_numpy(dtype=np.float64) for name in ("position_pct", "compaction_pct"))
    questions, density = (rows[name].to_numpy(dtype=np.float64) for name in ("batch_size", "density"))
    kinds = [(rows["category"] == name).to_numpy(dtype=np.float64) for name in _CATEGORIES]
    columns = [np.ones(len(rows)), questions, np.log(density), place, place**2, depth, depth * place, *kinds]
    return np.column_stack(columns)


def predicted(rows: pd.DataFrame, coefficients: Coefficients) -> Floats:
    """Return the expected recall of each row."""
    odds = features(rows) @ np.array(astuple(coefficients))
    expected: Floats = 1 / (1 + np.exp(-odds))
    return expected


def held_out(rows: pd.DataFrame, folds: int = FOLDS) -> Floats:
    """Return each row's recall as expected by a curve that never saw its fact.

    Facts are dealt to folds in the order of the sha256 of their ids.
    """
    facts = sorted(rows["fact_id"].unique(), key=lambda fact: hashlib.sha256(fact.encode()).hexdigest())
    fold = rows["fact_id"].map({fact: place % folds for place, fact in enumerate(facts)}).to_numpy()
    expected = np.empty(len(rows))
    for number in range(folds):
        expected[fold == number] = predicted(rows[fold == number], fitted(rows[fold != number]))
    return expected


def clustered_errors(rows: pd.DataFrame, coefficients: Coefficients) -> Floats:
    """Return the coefficients' standard errors, rows clustered by fact (sandwich, small-sample factor G / (G - 1))."""
    design, expected = features(rows), predicted(rows, coefficients)
    bread = np.linalg.inv((design * (expected * (1 - expected))[:, None]).T @ design)
    scores = design * (rows["recalled"].to_numpy(dtype=np.float64) - expected)[:, None]
    codes = rows["fact_id"].astype("category").cat.codes.to_numpy()
    sums = np.zeros((codes.max() + 1, design.shape[1]))
    np.add.at(sums, codes, scores)
    groups = len(sums)
    return np.asarray(np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * groups / (groups - 1)), dtype=np.float64)
