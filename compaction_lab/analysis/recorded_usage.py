"""What a recording says its calls used, beside what the lab counts and simulates for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from compaction_lab.accounting.recorded import stated
from compaction_lab.analysis.arms import baseline_arm
from compaction_lab.analysis.run_tables import RunTables, known_sum, measured
from compaction_lab.conversation.messages import JSON, Message, Usage
from compaction_lab.importers.lab import message_from_lab

KEYS = ["arm", "model", "dataset"]
BUCKETS = ("input_tokens", "fresh_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def recorded_usage(run: RunTables) -> pd.DataFrame:
    """Return recorded tokens and money of the uncompacted arm beside those counted, cached by the simulation.

    Only sessions count whose every model call has recorded usage. The lab's tokens differ from the provider's where
    its tokenizer does, or where the recording leaves out what was sent (instructions, tool definitions).

    Parameters
    ----------
    run
        A run's tables.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, sessions`` (with usage of all calls) ``, of`` (sessions) ``, calls``, for each of
        :data:`BUCKETS` its sum ``recorded_*`` and ``simulated_*``, and ``billed_usd, cached_usd``. Empty without
        recorded usage.
    """
    baseline = baseline_arm(run.cells)
    calls = run.calls[(run.calls["purpose"] == "agent") & (run.calls["arm"] == baseline)]
    calls = measured(calls, list(BUCKETS))
    read: dict[str, Message] = {}
    rows = []
    for (cell, transcript, trial), rows_of_unit in calls.groupby(["cell", "transcript", "trial"], sort=True):
        log = run.log((str(cell), str(transcript), int(str(trial))))
        answers = _usages(log, run.messages, read)
        used = [usage for usage in answers if usage is not None]
        row: dict[str, object] = {name: rows_of_unit[name].iloc[0] for name in KEYS}
        row |= {"sessions": int(0 < len(used) == len(answers)), "calls": len(used)}
        group = rows_of_unit.sort_values("call").head(len(answers))  # a log that ends unanswered has one call more
        for bucket in BUCKETS:
            row[f"recorded_{bucket}"] = sum(int(getattr(usage, bucket)) for usage in used)
            row[f"simulated_{bucket}"] = known_sum(group[bucket])
        rows.append(row | {f"{kind}_usd": known_sum(group[f"cost_{kind}_usd"]) for kind in ("billed", "cached")})
    if not any(row["sessions"] for row in rows):
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    numbers = [name for name in table.columns if name not in KEYS]
    grouped = table[table["sessions"] == 1].groupby(KEYS, as_index=False, sort=True)
    whole = grouped[numbers].agg(known_sum).astype({"sessions": int, "calls": int})
    whole.insert(4, "of", [len(table.loc[(table[KEYS] == row[KEYS]).all(axis=1)]) for _, row in whole.iterrows()])
    return whole


def _usages(log: Iterable[str], messages: Mapping[str, object], read: dict[str, Message]) -> list[Usage | None]:
    """Return the recorded usage of each model call of a log, ``None`` where there is none."""
    by_call: dict[str, list[Message]] = {}
    for number, digest in enumerate(log):
        message = read.get(digest)
        if message is None:
            value: JSON = messages[digest]  # type: ignore[assignment]
            message = read[digest] = message_from_lab(value)
        if message.role == "assistant" and message.source != "summary":
            by_call.setdefault(message.response_id or f"#{number}", []).append(message)
    said = [stated(answer) for answer in by_call.values()]
    return [None if message is None else message.usage for message in said]
