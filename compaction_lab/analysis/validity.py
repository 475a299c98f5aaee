"""Which arms would have sent what a provider refuses: calls that break a validity rule, by rule, arm and provider."""

from __future__ import annotations

import pandas as pd

from compaction_lab.analysis.run_tables import RunTables
from compaction_lab.conversation.profiles import PROFILES
from compaction_lab.conversation.validity import RULES as MEANINGS
from compaction_lab.quality.findings import RULES

KEYS = ["arm", "model", "dataset"]
PROVIDERS = ("openai", "anthropic", "gemini")


def validity_table(run: RunTables) -> pd.DataFrame:
    """Return every rule that an arm breaks at some call.

    The uncompacted arm shows what the recordings break by themselves.

    Parameters
    ----------
    run
        A run's tables.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, rule, meaning, calls_checked, calls_broken, percent_of_calls, messages`` (the most in one
        call) ``, refused_by`` (providers that answer it with an error; empty for a remark).
    """
    table = run.validity
    rows = []
    for keys, group in table.groupby(KEYS, sort=True):
        for rule in RULES:
            counts = group[rule].dropna().astype(int)
            broken = int((counts > 0).sum())
            if not broken:
                continue
            refusing = [name for name in PROVIDERS if rule in PROFILES[name].errors]
            rows.append(
                {
                    **dict(zip(KEYS, keys, strict=True)),
                    "rule": rule,
                    "meaning": MEANINGS[rule].meaning,
                    "calls_checked": len(counts),
                    "calls_broken": broken,
                    "percent_of_calls": 100.0 * broken / len(counts),
                    "messages": int(counts.max()),
                    "refused_by": ", ".join(refusing),
                }
            )
    columns = [*KEYS, "rule", "meaning", "calls_checked", "calls_broken", "percent_of_calls", "messages", "refused_by"]
    return pd.DataFrame(rows, columns=columns)


def refusals(run: RunTables) -> pd.DataFrame:
    """Return, by arm and provider, the share of checked calls that the provider would refuse.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, calls_checked, calls_unchecked``, and for each provider the percentage of calls that
        break a rule it refuses (``openai, anthropic, gemini``).
    """
    table = run.validity
    rows = []
    for keys, group in table.groupby(KEYS, sort=True):
        checked = group.dropna(subset=list(RULES))
        row: dict[str, object] = dict(zip(KEYS, keys, strict=True))
        row |= {"calls_checked": len(checked), "calls_unchecked": len(group) - len(checked)}
        for provider in PROVIDERS:
            errors = [rule for rule in RULES if rule in PROFILES[provider].errors]
            row[provider] = (
                100.0 * float((checked[errors].astype(int) > 0).any(axis=1).mean()) if len(checked) else None
            )
        rows.append(row)
    return pd.DataFrame(rows, columns=[*KEYS, "calls_checked", "calls_unchecked", *PROVIDERS])
