"""What a parameter does: the arms of one strategy that differ in a number, as paired differences to the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from compaction_lab.statistics.comparison import compare
from compaction_lab.sweep.loading import Run

SWEPT = ("strategy.", "after_strategy.", "summarizer.")
"""Where in a cell's configuration an arm's parameters are."""

_NAMES = ("strategy.kind", "strategy.preset")
_SEVERAL = 2


def paired_differences(run: Run, metrics: Sequence[str]) -> pd.DataFrame:
    """Return what :func:`compaction_lab.compare` says of several metrics in one table, less those that no arm has.

    Raises
    ------
    StatisticsError
        As ``compare`` does: without a baseline arm, or with nothing beside it.
    """
    tables = [compare(run, metric=metric) for metric in metrics]
    known = [table for table in tables if table["difference"].notna().any()]
    return pd.concat(known or tables[:1], ignore_index=True)


def parameter_sweep(run: Run, metrics: Sequence[str]) -> pd.DataFrame:
    """Return, for each strategy swept over a number, its paired differences to the baseline along that number.

    Arms lie on one line when nothing but the number differs between them. Strategies swept over two numbers are left to
    :func:`parameter_map`.

    Parameters
    ----------
    run
        A run.
    metrics
        As :func:`compaction_lab.compare` takes them.

    Returns
    -------
    DataFrame
        ``strategy, parameter, value, line`` (the other swept parameters, in words), then the columns of ``compare``;
        empty when no strategy was swept over a number.
    """
    lines = swept(run)
    lines = lines[~lines["arm"].isin(swept_twice(run)["arm"])]
    if lines.empty:
        return lines
    differences = paired_differences(run, metrics)
    order = ["metric", "strategy", "parameter", "line", "value"]
    ranked = lines.merge(differences, on="arm").sort_values(order, key=_place_in(differences["metric"]))
    return ranked.reset_index(drop=True)


def parameter_map(run: Run, metric: str) -> pd.DataFrame:
    """Return, for each strategy swept over two numbers, its paired difference to the baseline in each combination.

    Returns
    -------
    DataFrame
        The columns of :func:`swept_twice`, then those of ``compare``; empty when no strategy was swept so.
    """
    found = swept_twice(run)
    return found.merge(paired_differences(run, [metric]), on="arm") if len(found) else found


def swept(run: Run) -> pd.DataFrame:
    """Return the arms that differ from others of their strategy in one number alone.

    Returns
    -------
    DataFrame
        ``arm, strategy, parameter, value, line``: arms of one line share all other parameters, which it names.
    """
    rows: list[dict[str, object]] = []
    for strategy, arms in _parameters(run).items():
        varying = _varying(arms)
        for parameter in varying:
            others = [name for name in varying if name != parameter]
            rest = [str(tuple(row)) for row in arms[others].to_numpy(object)]
            for _, group in arms.groupby(rest, sort=True):
                if len(group) < _SEVERAL or not _is_numeric(group[parameter]):
                    continue
                first = group.iloc[0]
                line = ", ".join(f"{_short(name)}={first[name]}" for name in others if pd.notna(first[name]))
                fixed = {"strategy": strategy, "parameter": _short(parameter), "line": line}
                rows += [
                    fixed | {"arm": arm, "value": float(value)}
                    for arm, value in zip(group["arm"], group[parameter], strict=True)
                ]
    return pd.DataFrame(rows, columns=["arm", "strategy", "parameter", "value", "line"])


def swept_twice(run: Run) -> pd.DataFrame:
    """Return the arms of strategies that were swept over exactly two numbers.

    Returns
    -------
    DataFrame
        ``arm, strategy, row_parameter, row_value, column_parameter, column_value``.
    """
    rows: list[dict[str, object]] = []
    for strategy, arms in _parameters(run).items():
        varying = _varying(arms)
        if len(varying) != _SEVERAL or not all(_is_numeric(arms[name]) for name in varying):
            continue
        down, across = varying
        names = {"strategy": strategy, "row_parameter": _short(down), "column_parameter": _short(across)}
        rows += [
            names | {"arm": arm, "row_value": float(low), "column_value": float(high)}
            for arm, low, high in zip(arms["arm"], arms[down], arms[across], strict=True)
        ]
    columns = ["arm", "strategy", "row_parameter", "row_value", "column_parameter", "column_value"]
    return pd.DataFrame(rows, columns=columns)


def _place_in(metrics: pd.Series) -> Callable[[pd.Series], pd.Series]:
    """Return a sort key that keeps metrics in their given order and every other column in its own."""
    places = {metric: place for place, metric in enumerate(dict.fromkeys(metrics))}
    return lambda column: column.map(places) if column.name == "metric" else column


def _parameters(run: Run) -> dict[str, pd.DataFrame]:
    """Return each strategy's arms with all parameters as columns."""
    cells = run.cells.drop_duplicates("arm")
    if "strategy.kind" not in cells:
        return {}
    names = [name for name in map(str, cells.columns) if name.startswith(SWEPT) and name not in _NAMES]
    preset = cells["strategy.kind"]
    if "strategy.preset" in cells:
        preset = cells["strategy.preset"].fillna(preset)
    return {str(strategy): group[["arm", *names]] for strategy, group in cells.groupby(preset, sort=True)}


def _varying(arms: pd.DataFrame) -> list[str]:
    return [str(name) for name in arms if name != "arm" and len(set(map(str, arms[name]))) > 1]


def _is_numeric(values: pd.Series) -> bool:
    return bool(pd.to_numeric(values, errors="coerce").notna().all())


def _short(name: str) -> str:
    return name.removeprefix("strategy.").removeprefix("placement.")
