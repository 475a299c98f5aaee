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
# # Your sessions
#
# You have recorded sessions and want to know what compaction would do to them. Put your file in the place of `file`
# and run all cells. Here it is ten help desk sessions in OpenAI's chat format; the importer tells the format from the
# content.

# %%
# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {"bbox_inches": None, "dpi": 130}
import os
from pathlib import Path

import pandas as pd
from IPython.display import Markdown

from compaction_lab import analysis
from compaction_lab.cli import main
from compaction_lab.conf_path import datasets_directory
from compaction_lab.report import Look, figures
from compaction_lab.sweep.loading import load_run

pd.options.display.float_format = "{:,.2f}".format
pd.options.display.max_colwidth = 60
if Path.cwd().name == "notebooks":
    os.chdir("..")
file = datasets_directory() / "help_desk" / "sessions.jsonl"

# %% [markdown]
# ## What is in it
#
# `import` prints what it found and what it could not read; `--redact` takes keys, mail addresses and home folders
# out.

# %%
assert main(["import", str(file), "--out", "experiments/imported", "--redact"]) == 0

# %% [markdown]
# ## The default grid
#
# Two dozen arms from light to severe, plain strategies and frameworks' own. Nothing is asked of a model: the question
# is what *would have been sent*.

# %%
assert main(["run", "experiment=my_sessions", f"dataset.path={file}", "--name", "my_sessions", "--quiet"]) == 0
run = load_run("experiments/my_sessions")
look = Look.of(run)

# %% [markdown]
# ## When would it act?
#
# Many arms wait for a length these sessions never reach. An arm that never fires is not wrong, but neither is it
# tested.

# %%
firing = analysis.firing_table(run).set_index("arm")
firing[["firings", "calls_fired_percent", "first_firing_call", "median_reclaim_tokens", "remark"]].sort_values(
    "firings"
)

# %%
acting = list(firing.index[firing["firings"] > 0])
shown = Look(tuple(analysis.arm_order([*acting, "none"])), note=look.note, simulated=look.simulated)


def of_acting(table: pd.DataFrame) -> pd.DataFrame:
    """Only arms that did something, and the baseline."""
    return table[table["arm"].isin([*acting, "none"])]


figures.firing_timeline(of_acting(analysis.firing_timeline(run)), shown)

# %% [markdown]
# ## What does it cost, with caching?
#
# The open mark is the bill without a prompt cache, the full one with it. Every edit makes the provider read the rest
# of the context afresh: what saves tokens can cost money.

# %%
figures.cost_with_and_without_cache(of_acting(analysis.cost_with_and_without_cache(run)), shown)

# %% [markdown]
# ## What would have been missed?
#
# Of the values the agent used later (an order, a parcel, an article number) and had from an earlier message: how many
# could it still read when it used them, by how far back they were said?

# %%
figures.recall_by_age(of_acting(analysis.recall_by_age(run.probes)), shown)

# %%
analysis.misses_worth_reading(run)[["transcript", "call", "value", "age_tokens", "arms_missed", "said"]].head(8)

# %% [markdown]
# ## So which one?
#
# The report's own conclusion, in words. It names the arms that are worth a look and how sure ten sessions make it.

# %%
Markdown(analysis.conclusion(run).replace("# ", "### "))

# %%
figures.frontier(of_acting(analysis.frontier(run, "none")), shown)

# %% [markdown]
# `compaction-lab report my_sessions` writes all of it as files and a page that shows each call's context block by
# block.
