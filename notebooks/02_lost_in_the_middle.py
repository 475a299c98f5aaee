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
# # Lost in the middle, and what compaction does to the middle
#
# Liu et al. (TACL 2024) asked models for one fact in a long input and moved the fact. Many models read the beginning
# and the end better than what lies between. Two questions follow for whoever shortens a context: does our reader show
# such a dip, and where does compaction put the facts that it keeps?
#
# The reader here is a stub told to skim the middle, so its curve is *simulated*: it tests the measuring, not a model.
# `reader=openai_compatible reader.model=NAME` asks a real one with the same commands.

# %%
# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {"bbox_inches": None, "dpi": 130}
import os
from pathlib import Path

import pandas as pd

from compaction_lab import analysis
from compaction_lab.analysis import lost_in_middle
from compaction_lab.cli import main
from compaction_lab.report import Look, figures
from compaction_lab.statistics.estimators import wilson_interval
from compaction_lab.sweep.loading import load_run

pd.options.display.float_format = "{:,.3f}".format
if Path.cwd().name == "notebooks":
    os.chdir("..")

# %% [markdown]
# ## What was published
#
# Accuracies as printed in the paper, over the place of the answering document among 20, with the interval that 2,655
# questions allow. The paper prints none.

# %%
published = lost_in_middle.published_curves()
chosen = published[
    (published["items"] == 20) & published["reader"].isin(["GPT-3.5-Turbo", "Claude-1.3", "Llama-2-70b-chat"])
]
ends = [wilson_interval(round(a * n), n) for a, n in zip(chosen["accuracy"], chosen["questions"], strict=True)]
curves = chosen.rename(columns={"reader": "arm", "questions": "answers"}).assign(
    dataset="20 documents", shown="full", low=[end.low for end in ends], high=[end.high for end in ends]
)
figures.accuracy_by_place(curves, Look.of_arms(curves["arm"]), published=published.head(0))

# %% [markdown]
# ## Our task
#
# One of 75, 140 or 300 random keys is asked for, at five places. The dotted line answers without the object, the
# dashed one with the answering pair alone: between them lies what reading can show. Grey are the paper's curves for
# 140 pairs.

# %%
assert main(["run", "experiment=key_value", "--quiet"]) == 0
run = load_run("experiments/key_value")
answers = lost_in_middle.placed_answers(run)
pairs = published[(published["task"] == "key_value") & (published["items"] == 140)]
figures.accuracy_by_place(lost_in_middle.accuracy_by_place(answers), Look.of(run), published=pairs)

# %% [markdown]
# Whether the middle is read less well is a paired question, for each key was asked for at every place: its answers at
# the edges less those in between, resampled by key.

# %%
lost_in_middle.dip(answers)

# %% [markdown]
# ## What compaction does to position
#
# Ninety facts are planted along a coding session and asked for at its end. What an arm keeps moves towards the edges
# of what is sent, which helps a reader that skims the middle; what it drops is not sent at all, which helps nobody.
# The upper table asks by age, where all arms have the same facts; the lower one by the place each arm left them in.

# %%
assert main(["run", "experiment=facts_in_conversation", "--quiet"]) == 0
planted = load_run("experiments/facts_in_conversation")
figures.retention(analysis.retention_by_age_and_position(planted.probes), Look.of(planted))

# %% [markdown]
# So a compacted arm answers rightly more often *where it still sends a fact*, and less often over all facts. Both
# halves of that sentence are in this table: the accuracy on facts in sight, and how many those are.

# %%
facts = planted.probes[~planted.probes["kind"].isin(["reference", "rubric"])].assign(
    in_sight=lambda rows: rows["evidence_visible"] == 1
)
right = facts.groupby("arm")["score"].mean()
in_sight = facts[facts["in_sight"]].groupby("arm")["score"].agg(["mean", "size"])
in_sight.columns = ["right, of facts in sight", "facts in sight"]
in_sight.join(right.rename("right, of all facts")).sort_values("right, of all facts", ascending=False)

# %% [markdown]
# The curve over the place in the *untouched* conversation shows the same from the other side: a window answers what
# is recent, a strategy that keeps head and tail answers both ends.

# %%
figures.accuracy_by_place(lost_in_middle.accuracy_by_place(lost_in_middle.placed_answers(planted)), Look.of(planted))
