"""The leaderboard of compaction-conformance-kit, read from the JSON that the kit itself writes (R9)."""

from __future__ import annotations

import json
from pathlib import Path

from compaction_lab.analysis.studies.base import Line, Measured, Study, files, line
from compaction_lab.errors import ConfigurationError
from compaction_lab.statistics import estimators

SOURCE = "README and leaderboard of compaction-conformance-kit 0.8.0 (PyPI, MIT)."
METHOD = (
    "`compaction-kit benchmark --budgets 10%,20%,30% --format json`, run from the package. The kit prints no "
    "intervals: its survival is a median over four sessions, and only the counts of updates allow Wilson's."
)
FILE = "benchmark.json"
_SURVIVAL = {
    "semantic-checklist": (40.0, 85.0, 100.0),
    "update-aware-checklist": (40.0, 85.0, 100.0),
    "checklist-carrying": (35.0, 60.0, 100.0),
    "pinned-rules": (40.0, 40.0, 46.3),
    "naive-summary": (0.0, 10.0, 15.0),
    "progressive-summary": (0.0, 5.0, 10.0),
    "summary-plus-tail": (0.0, 5.0, 7.5),
    "lossy-truncation": (0.0, 0.0, 0.0),
}
_RESOLVED = {"semantic-checklist": (56.2, 100.0, 100.0), "update-aware-checklist": (0.0, 0.0, 0.0)}
_BUDGETS = (0.1, 0.2, 0.3)


def recompute(data: Path) -> Study:
    """Return the leaderboard from the kit's own output.

    Raises
    ------
    DataAbsent
        There is no output of the kit.
    ConfigurationError
        It is another version's, or lacks an entry.
    """
    (path,) = files(data, "conformance_kit", "conformance_kit", [FILE])
    output = json.loads(path.read_text(encoding="utf-8"))
    entries = {(entry["compactor"], entry["budget_fraction"]): entry for entry in output.get("entries", ())}
    wanted = {(name, budget) for name in _SURVIVAL for budget in _BUDGETS}
    if not wanted <= set(entries):
        name, budget = min(wanted - set(entries))
        msg = f"{path}: no entry of {name} at a budget of {budget:.0%}; run {METHOD.partition(',')[0]} of version 0.8.0"
        raise ConfigurationError(msg)
    version = str(output.get("kit_version"))
    lines: list[Line] = []
    for name, values in _SURVIVAL.items():
        for budget, published in zip(_BUDGETS, values, strict=True):
            survival = 100 * float(entries[name, budget]["randomized"]["overall_final_survival"])
            lines.append(
                line(
                    "R9", f"{name} at {budget:.0%}: canaries that survive", "%", published, survival, bar=0.06, digits=1
                )
            )
    for name, values in _RESOLVED.items():
        for budget, published in zip(_BUDGETS, values, strict=True):
            conflicts = entries[name, budget]["semantic"]["conflicts"]
            rate = estimators.wilson_interval(int(conflicts["resolved"]), int(conflicts["n"]))
            measured = Measured(100 * rate.estimate, None, int(conflicts["n"]))
            lines.append(
                line(
                    "R9",
                    f"{name} at {budget:.0%}: updates resolved",
                    "%",
                    published,
                    measured,
                    bar=0.06,
                    note=f"Wilson {100 * rate.low:.0f} to {100 * rate.high:.0f} %, were the updates independent.",
                    digits=1,
                )
            )
    return Study(
        "conformance_kit",
        f"compaction-conformance-kit {version}: its leaderboard",
        SOURCE,
        METHOD,
        lines,
        (
            (
                "The kit is deterministic: its leaderboard comes out again to the digit. It measures whether tokens "
                "are present in synthetic sessions of its own grammar, for which its best entries are written."
            ),
        ),
    )
