"""Input tokens turn by turn, and how much smaller each arm's turns are than the baseline's in the same conversation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from compaction_lab.analysis.run_tables import CONVERSATION, UNIT, measured


def input_tokens_per_turn(turns: pd.DataFrame) -> pd.DataFrame:
    """Return the input tokens of each turn, summed over its model calls, mean over seeds and trials.

    Parameters
    ----------
    turns
        The *turns* table.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcript, turn, input_tokens, units``; ``units`` is how many were averaged.
    """
    keys = ["arm", *CONVERSATION, "turn"]
    grouped = measured(turns, ["input_tokens"]).groupby(keys, sort=True, as_index=False)
    return grouped.agg(input_tokens=("input_tokens", "mean"), units=("input_tokens", "count"))


def input_tokens_per_call(calls: pd.DataFrame) -> pd.DataFrame:
    """Return the input tokens of each agent call, mean over seeds and trials.

    Only meaningful for a replay, where every arm makes the recorded calls; live arms make different numbers of calls
    and are paired by turn.
    """
    agent = measured(calls[calls["purpose"] == "agent"], ["input_tokens"])
    grouped = agent.groupby(["arm", *CONVERSATION, "call"], sort=True, as_index=False)
    return grouped.agg(input_tokens=("input_tokens", "mean"), units=("input_tokens", "count"))


def reduction_vs_baseline(turns: pd.DataFrame, baseline: str, along: str = "turn") -> pd.DataFrame:
    """Compare each turn's input tokens with the baseline arm's in the same model, dataset, seed, transcript and trial.

    Parameters
    ----------
    turns
        The *turns* table; or the agent's rows of *calls*, see ``along``.
    baseline
        Label of the baseline arm.
    along
        ``turn``, or ``call`` for a replay of a session with a single user turn, where all arms make the recorded calls.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, seed, transcript, trial, turn, input_tokens, baseline_input_tokens,
        percent_of_baseline, reduction_percent``; the last three are missing where the baseline lacks the turn.
        The baseline itself is among the arms, at 100 % and 0 %.
    """
    keys = [*UNIT, along]
    own = measured(turns[["arm", *keys, "input_tokens"]], ["input_tokens"])
    reference = own.loc[own["arm"] == baseline, [*keys, "input_tokens"]]
    reference = reference.rename(columns={"input_tokens": "baseline_input_tokens"})
    paired = own.merge(reference, on=keys, how="left", validate="many_to_one")
    denominator = paired["baseline_input_tokens"].replace(0.0, np.nan)
    paired["percent_of_baseline"] = 100.0 * paired["input_tokens"] / denominator
    paired["reduction_percent"] = 100.0 - paired["percent_of_baseline"]
    return paired.sort_values(["arm", *keys], ignore_index=True)


def reduction_per_turn(turns: pd.DataFrame, baseline: str, along: str = "turn") -> pd.DataFrame:
    """Return :func:`reduction_vs_baseline` averaged over seeds and trials, a row an arm, conversation and turn."""
    paired = reduction_vs_baseline(turns, baseline, along)
    grouped = paired.groupby(["arm", *CONVERSATION, along], sort=True, as_index=False)
    return grouped.agg(
        percent_of_baseline=("percent_of_baseline", "mean"),
        reduction_percent=("reduction_percent", "mean"),
        units=("reduction_percent", "count"),
    )


def reduction_summary(turns: pd.DataFrame, baseline: str, first_turn: int = 2) -> pd.DataFrame:
    """Return the mean and the peak reduction from ``first_turn`` on: per conversation, then averaged over them.

    The first turn is left out by default because nothing can have been compacted before it, as in the article.

    Returns
    -------
    DataFrame
        ``arm, model, dataset, transcripts, mean_reduction_percent, peak_reduction_percent, peak_turns``;
        ``peak_turns`` lists the turn of each conversation's peak, without repeats (``"20"`` or ``"11, 20"``).
        Arms without a turn to compare (single-turn sessions) have no row.
    """
    averaged = reduction_per_turn(turns, baseline)
    later = averaged[averaged["turn"] >= first_turn].dropna(subset=["reduction_percent"])
    if later.empty:
        columns = ["arm", "model", "dataset", "transcripts", "mean_reduction_percent", "peak_reduction_percent"]
        return pd.DataFrame(columns=[*columns, "peak_turns"])
    per_conversation = later.groupby(["arm", *CONVERSATION], sort=True, as_index=False).agg(
        mean=("reduction_percent", "mean"), peak=("reduction_percent", "max"), peak_row=("reduction_percent", "idxmax")
    )
    per_conversation["peak_turn"] = later.loc[per_conversation["peak_row"], "turn"].to_numpy()
    grouped = per_conversation.groupby(["arm", "model", "dataset"], sort=True, as_index=False)
    return grouped.agg(
        transcripts=("transcript", "nunique"),
        mean_reduction_percent=("mean", "mean"),
        peak_reduction_percent=("peak", "mean"),
        peak_turns=("peak_turn", lambda turns: ", ".join(str(turn) for turn in sorted(set(turns)))),
    )
