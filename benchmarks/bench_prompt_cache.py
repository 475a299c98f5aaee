"""The simulated prompt cache beside a real one, call by call.

The contexts of the laptop conversation under five arms (a stub plays the assistant) are sent one after the other, each
with one output token, to a llama.cpp server with one slot, started anew for every arm. Its ``cached_tokens`` are
compared with what ``cache_policy=llama_cpp`` simulates for the same calls: once counted with o200k_base, as runs are,
once with the model's own tokenizer. Tokenizers differ, so shares of the prompt are compared. What the model answers
does not matter.

Run with ``python benchmarks/bench_prompt_cache.py`` (some ten minutes on one core); writes ``reports/real_model/``.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from local_model import SMALLEST, Endpoint, serving
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from compaction_lab.accounting.cache import CacheUse, PromptCache
from compaction_lab.accounting.cache_policy import cache_policy
from compaction_lab.analysis.arms import arm_order
from compaction_lab.cli import main as lab
from compaction_lab.configuration import configuration_files
from compaction_lab.conversation.context import Context
from compaction_lab.conversation.messages import ToolDefinition
from compaction_lab.conversation.tokens import TokenCounter, tokenizer
from compaction_lab.models.base import ModelRequest
from compaction_lab.models.openai_compatible import OpenAICompatible
from compaction_lab.report.figures.layout import titled
from compaction_lab.report.style import Look, figure_style
from compaction_lab.report.tables import to_csv, to_markdown
from compaction_lab.report.writing import image_bytes
from compaction_lab.scenarios.laptop_catalog import scenario
from compaction_lab.sweep.inspection import played_calls
from compaction_lab.sweep.loading import load_run

OUT = Path(__file__).resolve().parents[1] / "reports" / "real_model"
ARMS = (
    "strategy=sliding_window strategy.keep_last=3",
    "strategy=hysteresis strategy.high=24 strategy.low=8",
    "strategy=observation_masking strategy.keep_last=2",
    "strategy=summarization strategy.every=10",
)
NAMES = {"measured": "measured", "o200k": "as runs count", "template": "by its template"}
CONTEXT_TOKENS = 16_384
SERVER = ("--override-kv", f"llama.context_length=int:{CONTEXT_TOKENS}")
"""The model was trained for half of it."""


class ServerTokenizer:
    """The model's own tokenizer, asked over HTTP, each text once."""

    def __init__(self, server: Endpoint) -> None:
        self.name = server.model
        self._server = server
        self._counts: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        if text not in self._counts:
            self._counts[text] = len(self._server.post("/tokenize", {"content": text})["tokens"])
        return self._counts[text]


def contexts() -> dict[str, list[Context]]:
    """Return what each call of each arm is sent, a stub playing the assistant."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        arms = [word for arm in ARMS for word in ("--arm", arm)]
        words = ["run", "--quiet", "--name", "contexts", "dataset.languages=[en]", "reader=null", *arms]
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            if lab(words):
                raise SystemExit("the laptop conversation did not run")
        run = load_run(Path("experiments/contexts"))
        return {
            unit["arm"]: [
                played.sent for played in played_calls(run, (unit["cell"], unit["transcript"], int(unit["trial"])))
            ]
            for unit in run.units.set_index("arm", drop=False).loc[arm_order(run.units["arm"])].to_dict("records")
        }


def simulated(sent: list[Context], counter: TokenCounter, tools: tuple[ToolDefinition, ...]) -> Iterator[CacheUse]:
    """Yield how the calls of one arm meet the simulated cache."""
    cache = PromptCache(cache_policy(configuration_files().read("cache_policy", "llama_cpp")), counter)
    for context in sent:
        yield cache.send(context.blocks, tools=tools)


def measured(sent: list[Context], server: Endpoint, tools: tuple[ToolDefinition, ...]) -> Iterator[tuple[int, int]]:
    """Yield the prompt and cached tokens that the server reports for the calls of one arm."""
    model = OpenAICompatible(server.model, server.base_url, max_output_tokens=1, timeout_s=600)
    for context in sent:
        usage = model(ModelRequest(context.messages, tools=tools)).usage
        if usage is None:
            raise SystemExit("the server reported no usage")
        yield usage.input_tokens, usage.cache_read_tokens


def compared() -> pd.DataFrame:
    """Return one row a call: what was sent and read, measured and twice simulated."""
    tools = tuple(tool.definition for tool in scenario("en").tools)
    rows = []
    for arm, sent in contexts().items():
        with serving(SMALLEST, *SERVER, context_tokens=CONTEXT_TOKENS) as server:
            own = TokenCounter(ServerTokenizer(server))
            o200k = TokenCounter(tokenizer("o200k_base"))
            uses = zip(simulated(sent, o200k, tools), simulated(sent, own, tools), strict=True)
            for call, (use, own_use), real in zip(
                range(1, len(sent) + 1), uses, measured(sent, server, tools), strict=True
            ):
                row = {"arm": arm, "call": call}
                for name, (prompt, read) in {
                    "measured": real,
                    "o200k": (use.input_tokens, use.read or 0),
                    "own": (own_use.input_tokens, own_use.read or 0),
                }.items():
                    row |= {f"{name}_prompt": prompt, f"{name}_read": read, f"{name}_share": read / prompt}
                rows.append(row)
        print(f"{arm}: {len(sent)} calls", flush=True)
    return with_template(pd.DataFrame(rows))


def with_template(calls: pd.DataFrame) -> pd.DataFrame:
    """Add the simulation by the model's tokenizer with tool definitions as heavy as this server's template makes them.

    The lab counts definitions as OpenAI's models are known to; here they come with instructions for their use. How much
    more that is shows in each arm's first prompt, and is the same in every prompt after it.
    """
    heavier = (
        calls.groupby("arm")[["measured_prompt", "own_prompt"]].transform("first").diff(axis=1)["own_prompt"].abs()
    )
    prompt, read = calls["own_prompt"] + heavier, calls["own_read"] + heavier.where(calls["own_read"] > 0, 0)
    return calls.assign(template_prompt=prompt, template_read=read, template_share=read / prompt)


def agreement(calls: pd.DataFrame) -> pd.DataFrame:
    """Return a row an arm, and one for all: shares read, how far apart calls are, and how they correlate."""
    rows = []
    for arm, group in [*calls.groupby("arm", sort=False), ("all", calls)]:
        row = {"arm": arm, "calls": len(group)}
        for name, words in NAMES.items():
            row[f"{words}: read %"] = 100 * group[f"{name}_read"].sum() / group[f"{name}_prompt"].sum()
            if name != "measured":
                apart = 100 * (group[f"{name}_share"] - group["measured_share"]).abs()
                row[f"{words}: within 2 points"] = int((apart <= 2).sum())  # noqa: PLR2004 - as the column says
                row[f"{words}: most points apart"] = apart.max()
                row[f"{words}: r"] = group[f"{name}_share"].corr(group["measured_share"])
        rows.append(row)
    return pd.DataFrame(rows)


def drawn(calls: pd.DataFrame) -> Figure:
    """Draw the share of each prompt that was read, measured as dots and simulated as a line."""
    arms = list(calls["arm"].unique())
    look = Look.of_arms(arms)
    with figure_style():
        figure = Figure(figsize=(look.width_in, 0.75 * len(arms) + 0.5), layout="constrained")
        for axes, arm in zip(figure.subplots(len(arms), 1, sharex=True, sharey=True), arms, strict=True):
            rows = calls[calls["arm"] == arm]
            axes.plot(rows["call"], rows["o200k_share"], color="0.6", linewidth=1)
            axes.plot(rows["call"], rows["template_share"], color="0.2", linewidth=0.6, dashes=(3, 1.5))
            axes.plot(rows["call"], rows["measured_share"], "o", markersize=2, color=look.color(arm))
            axes.set_title(arm, loc="left", fontsize=6)
            axes.set_ylim(-0.05, 1.05)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel("model call of the laptop conversation (en)")
        key = [
            Line2D([], [], color="0.2", marker="o", markersize=2, linestyle="none", label="measured (llama.cpp)"),
            Line2D([], [], color="0.6", linewidth=1, label="simulated, as runs count"),
            Line2D([], [], color="0.2", linewidth=0.6, dashes=(3, 1.5), label="simulated, by its template"),
        ]
        titled(figure, "Share of each prompt read from the cache, simulated and measured", look, key)
    return figure


def main() -> None:
    """Compare, print and write."""
    calls = compared()
    OUT.mkdir(parents=True, exist_ok=True)
    write(calls)


def write(calls: pd.DataFrame) -> None:
    """Write calls, table and figure."""
    (OUT / "prompt_cache.csv").write_text(to_csv(calls), encoding="utf-8")
    table = to_markdown(agreement(calls))
    (OUT / "prompt_cache.md").write_text(table, encoding="utf-8")
    (OUT / "prompt_cache.png").write_bytes(image_bytes(drawn(calls), "png"))
    print(table)


if __name__ == "__main__":
    main()
