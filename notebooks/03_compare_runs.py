# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Compare two runs
#
# On one day someone ran two ways to mask, on another a window and a limit, over the same ten help desk sessions.
# Which differences are real, and which arm would one ship? Runs are folders: whoever has both can ask.
#
# The sessions were made from templates and come with the lab (`datasets/help_desk`). They are replayed: recorded
# answers are kept, and no model is asked.

# %%
# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {"bbox_inches": None, "dpi": 130}
import os
from pathlib import Path

import pandas as pd

import compaction_lab as lab
from compaction_lab import analysis
from compaction_lab.cli import main
from compaction_lab.conf_path import datasets_directory
from compaction_lab.errors import StatisticsError
from compaction_lab.report import Look, figures

pd.options.display.float_format = "{:,.3f}".format
if Path.cwd().name == "notebooks":
    os.chdir("..")
sessions = f"dataset.path={datasets_directory() / 'help_desk' / 'sessions.jsonl'}"
masking = ["--arm", "strategy=observation_masking strategy.keep_last=2,4,8,16"]
others = [
    "--arm",
    "strategy=sliding_window strategy.unit=step strategy.keep_last=4,8",
    "--arm",
    "strategy=truncation strategy.max_tokens=2000",
]
assert main(["run", sessions, *masking, "--name", "monday", "--quiet"]) == 0
assert main(["run", sessions, *others, "--name", "friday", "--quiet"]) == 0

# %% [markdown]
# ## Paired differences
#
# A transcript is a pair with itself: every arm is compared with the uncompacted arm on the *same* session, and
# sessions are resampled. The note says in words what each row shows and what ten sessions could have shown.

# %%
runs = [lab.load_run("experiments/monday"), lab.load_run("experiments/friday")]
costs = lab.compare(runs, metric="cost_usd")
costs[["arm", "n_transcripts", "mean_arm", "mean_baseline", "percent", "ci_low", "ci_high", "p_holm", "note"]]

# %%
forest = pd.concat(lab.compare(runs, metric=metric) for metric in ("whole_run_tokens", "cost_usd", "score"))
figures.paired_differences(forest)

# %% [markdown]
# Fewer tokens, more money: an edit breaks the cached prefix, and what follows it is paid in full. `score` is the
# share of values the agent used again that it could still read.
#
# ## The frontier
#
# An arm is worth shipping when no other one is cheaper and keeps more. Filled marks are beaten by none.

# %%
frontier = analysis.joined_frontiers([analysis.frontier(run, "none") for run in runs])
figures.frontier(frontier)

# %%
columns = ["arm", "cost_percent", "cost_low", "cost_high", "recall", "recall_low", "recall_high", "beaten_by"]
frontier[columns].sort_values("cost_percent")

# %% [markdown]
# ## Along the parameter
#
# One number swept: how fast does recall come back, and what happens to the bill on the way?

# %%
figures.parameter_sweep(analysis.parameter_sweep(runs[0], ["whole_run_tokens", "cost_usd", "score"]), Look.of(runs[0]))

# %% [markdown]
# ## What may not be compared
#
# Arms that ran on different sessions are refused rather than compared: the difference between the sessions would pass
# for one between the strategies.

# %%
other = lab.replay(
    lab.load_transcripts(datasets_directory() / "coding_session" / "session.jsonl")[0],
    lab.strategy("truncation", max_tokens=4000),
)
try:
    lab.compare([runs[0], other], metric="cost_usd", baseline="observation_masking keep_last=2")
except StatisticsError as refusal:
    print(refusal)
