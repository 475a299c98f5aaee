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
# # How much does each strategy save against Basic?
#
# A customer asks a laptop shop's assistant 21 questions. Without compaction ("Basic") every turn sends the whole
# conversation again. An article on this conversation reports that **masking** old tool results saves 35-40 % of the
# input tokens of every turn after the first, that a **summary** every ten turns saves about 93 % at its best, and that
# a **hybrid** does both. Here the same arms run in two languages, with three questions the article leaves open: what
# do the summaries themselves cost, what is forgotten, and does it matter whether a hybrid masks or summarises first?
#
# The model is a stub: it reads only what it is sent, calls tools when a fact it needs is out of sight, and makes
# mistakes when compaction took what it needed. Its numbers are *simulated*, and say so.

# %%
# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {"bbox_inches": None, "dpi": 130}
import os
from pathlib import Path

import pandas as pd

from compaction_lab import analysis
from compaction_lab.cli import main
from compaction_lab.report import Look, figures
from compaction_lab.sweep.loading import load_run

pd.options.display.float_format = "{:,.2f}".format
if Path.cwd().name == "notebooks":
    os.chdir("..")
assert main(["run", "experiment=laptop_catalog", "--quiet"]) == 0
run = load_run("experiments/laptop_catalog")
look = Look.of(run)

# %% [markdown]
# ## One turn after another
#
# A turn's input is the sum over its model calls, so a turn that calls tools counts its context more than once: those
# are the peaks of Basic's line. Masking bends the line, a summary cuts it. Peaks of a compacted arm where Basic has
# none are the price of forgetting: the assistant calls a tool again for what it had already read.

# %%
figures.input_tokens_per_turn(analysis.input_tokens_per_turn(run.turns), look)

# %% [markdown]
# ## The article's number, in four lines
#
# Each turn is compared with Basic's *same turn of the same conversation*, never call by call: arms make different
# numbers of calls.

# %%
tokens = run.turns.pivot_table(index=["transcript", "turn"], columns="arm", values="input_tokens", observed=True)
reduction = (100 * (1 - tokens.div(tokens["none"], axis=0))).drop(columns="none").astype(float)
later = reduction[reduction.index.get_level_values("turn") >= 2]
pd.concat({"mean": later.groupby("transcript").mean().T, "peak": later.groupby("transcript").max().T}, axis=1)

# %%
figures.reduction_vs_baseline(analysis.reduction_per_turn(run.turns, "none"), look)

# %% [markdown]
# The package does the same and puts it beside what was published. The article's 93 % is a peak: the best turn after a
# summary. How high it gets depends on how long the conversation was before and how long the summary is; nothing here
# is tuned to meet it.

# %%
summary = analysis.summary_table(run)
analysis.beside_article(summary)

# %% [markdown]
# ## The honest total
#
# Over a whole conversation a summary has to be paid for: the summariser reads everything it replaces. The bars count
# every token read or written, its own included.

# %%
figures.total_tokens(analysis.total_tokens(run.turns), look)

# %%
honest = summary.set_index("arm")[["peak reduction %", "mean reduction %", "whole-run saving incl. summaries %"]]
honest.dropna()

# %% [markdown]
# Tokens are not money. With prompt caching an unchanged prefix costs a fraction, and every edit of the context breaks
# the prefix from there on. This is what the conversation costs so far, summaries included:

# %%
figures.cumulative_cost(analysis.cumulative_cost(run.calls), look)

# %% [markdown]
# ## What was forgotten
#
# Each answer is scored against the facts the question requires. While the tools are there, a lost fact costs a second
# call rather than a wrong answer, so the scores can stay close. Where an arm dips, it took a summary or an earlier
# answer for the whole truth.

# %%
figures.rubric_per_turn(analysis.rubric_per_turn(run.probes), look)

# %% [markdown]
# With the tools taken away the arms come apart. The diamond shows how much of the catalog's own wording is still in
# sight; an arm answers beyond it when the assistant's earlier answers repeat the fact. The interval takes the probes as
# independent, which two translations of one conversation are not: read it as too narrow.

# %%
figures.probe_recall(analysis.probe_recall(run.probes), look)

# %% [markdown]
# ## Mask first, or summarise first?
#
# Masking first is what the article's code does, and it means that the summariser never sees a tool result. Summarising
# first gives it everything, at the price of reading everything.

# %%
pd.concat(analysis.order_effect(run, *pair) for pair in analysis.hybrid_orders(run.cells))

# %% [markdown]
# `compaction-lab report laptop_catalog` writes all of these figures, the data behind them and the tables as files.
