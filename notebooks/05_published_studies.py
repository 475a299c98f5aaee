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
# # Published studies, recomputed
#
# Other people have measured compaction and published their data. `compaction-lab study NAME --data DIR` recomputes
# their numbers with the lab's own statistics, so that the lab is checked against results it had no part in. This
# notebook reads the tables that came of it (`reports/studies/`), so it needs none of the public data.

# %%
# %matplotlib inline
# %config InlineBackend.print_figure_kwargs = {"bbox_inches": None, "dpi": 130}
from pathlib import Path

import pandas as pd

from compaction_lab.report import figures

pd.options.display.float_format = "{:,.3f}".format
pd.options.display.max_colwidth = 110
folder = next((at for at in (Path("reports/studies"), Path("../reports/studies")) if at.is_dir()), None)
if folder is None:
    raise SystemExit("no folder reports/studies here: run this in a checkout of the lab")
tables = {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}
results = pd.concat(tables, names=["study"]).reset_index("study")

# %% [markdown]
# ## How many numbers came out as published?
#
# `PASS` lies within a bar set beforehand; `explained` lies outside, and the note says why; `DIFFERS` lies outside,
# and nobody knows why; `new` has nothing published beside it; `no bar` cannot be expected to agree.

# %%
pd.crosstab(results["study"], results["verdict"])

# %% [markdown]
# ## Published against ours
#
# Every line with both numbers. On the diagonal is the same number; the interval is what the data allow.

# %%
figures.published_against_ours(results)

# %% [markdown]
# ## What does not agree, and why

# %%
results[results["verdict"].isin(["explained", "DIFFERS", "no bar"])][["study", "quantity", "published", "ours", "note"]]

# %% [markdown]
# ## May one trust a run without a model?
#
# The last study asks whether what the lab scores offline (is the evidence still there?) predicts what models
# answered.

# %%
offline = tables["offline_evidence"]
offline[["quantity", "unit", "ours", "ci_low", "ci_high", "n"]].dropna(subset=["ours"])
