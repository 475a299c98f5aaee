"""Whole conversations: what each arm sent in all, summariser calls included, and what that saves."""

from __future__ import annotations

import numpy as np
import pandas as pd

from compaction_lab.analysis.run_tables import CONVERSATION, UNIT, known_sum, measured

_SUMS = ["input_tokens", "output_tokens", "reasoning_tokens", "summarizer_input_tokens", "summarizer_output_tokens"]


def total_tokens(turns: pd.DataFrame) -> pd.DataFrame:
    """Return the tokens of whole conversations by where they went, mean over seeds and trials.

    Parameters
    ----------
    turns
        The *turns* table.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcript, agent_input_tokens, agent_output_tokens`` (reasoning included)
        ``, summarizer_tokens`` (read and written) ``, total_tokens, units``.
    """
    # The last call of some recordings has no output; what was never written counts as nothing.
    known = measured(turns, _SUMS).fillna({"output_tokens": 0.0, "reasoning_tokens": 0.0})
    sums = known.groupby(["arm", *UNIT], sort=True, as_index=False)[_SUMS].agg(known_sum)
    sums["agent_input_tokens"] = sums["input_tokens"]
    sums["agent_output_tokens"] = sums["output_tokens"] + sums["reasoning_tokens"]
    sums["summarizer_tokens"] = sums["summarizer_input_tokens"] + sums["summarizer_output_tokens"]
    sums["total_tokens"] = sums["agent_input_tokens"] + sums["agent_output_tokens"] + sums["summarizer_tokens"]
    parts = ["agent_input_tokens", "agent_output_tokens", "summarizer_tokens", "total_tokens"]
    grouped = sums.groupby(["arm", *CONVERSATION], sort=True, as_index=False)
    means = grouped[parts].mean()
    means["units"] = grouped["total_tokens"].count()["total_tokens"]
    return means


def whole_run_saving(turns: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return what an arm saves over whole conversations when its summaries are paid for.

    The saving is ``1 - (agent input + summariser input + summariser output) / the same of the baseline``, summed over
    the turns both arms have in the same model, dataset, seed, transcript and trial. The article's percentages leave
    the summariser out; this one never does.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, pairs`` (units compared) ``, tokens, baseline_tokens, saving_percent``.
    """
    keys = [*UNIT, "turn"]
    parts = ["input_tokens", "summarizer_input_tokens", "summarizer_output_tokens"]
    counted = turns[["arm", *keys]].copy()
    counted["tokens"] = measured(turns, parts)[parts].sum(axis=1, skipna=False)
    reference = (
        counted.loc[counted["arm"] == baseline].drop(columns="arm").rename(columns={"tokens": "baseline_tokens"})
    )
    paired = counted.merge(reference, on=keys, how="inner", validate="many_to_one")
    paired["unit"] = paired.groupby(["seed", "transcript", "trial"], dropna=False).ngroup()
    saved = paired.groupby(["arm", "model", "dataset"], sort=True, as_index=False).agg(
        pairs=("unit", "nunique"), tokens=("tokens", known_sum), baseline_tokens=("baseline_tokens", known_sum)
    )
    saved["saving_percent"] = 100.0 * (1.0 - saved["tokens"] / saved["baseline_tokens"].replace(0, np.nan))
    return saved
