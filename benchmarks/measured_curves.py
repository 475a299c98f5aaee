"""Right answers by the place of the answer, measured with a real model, beside the paper's curves.

``python benchmarks/measured_curves.py key_value`` asks the smallest model for values of keys among a few pairs,
``facts`` a stronger one for facts planted along a conversation, under six strategies; either asks the endpoint that the
environment names instead (see ``local_model.py``). Runs stay under ``experiments/`` and go on where they stopped;
figures, and the numbers in them, are written to ``reports/real_model/``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from local_model import SMALLEST, WEIGHTS, Endpoint, endpoint

from compaction_lab.analysis.lost_in_middle import accuracy_by_place, dip, placed_answers, published_curves
from compaction_lab.cli import main as lab
from compaction_lab.report.figures.lost_in_middle import accuracy_by_place as draw
from compaction_lab.report.style import Look
from compaction_lab.report.tables import to_csv, to_markdown
from compaction_lab.report.writing import image_bytes
from compaction_lab.sweep.loading import load_run

OUT = Path(__file__).resolve().parents[1] / "reports" / "real_model"
PORT = 8391
"""Always the same: another address would be another cell."""


@dataclass(frozen=True)
class Study:
    """A run to measure: which model of ours answers when the environment names none, and what is asked."""

    model: str
    overrides: tuple[str, ...]
    answer_tokens: int
    window_tokens: int
    published: str = ""
    """Task of the paper whose curves are drawn beside, if any is alike."""


STUDIES = {
    "key_value": Study(
        SMALLEST, ("dataset=key_value", "dataset.items=5", "dataset.examples=20"), 60, 8_192, "key_value"
    ),
    "facts": Study("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M", ("experiment=facts_in_conversation",), 40, 16_384),
}


def measured(name: str, study: Study, model: Endpoint) -> pd.DataFrame:
    """Run a study, or what is left of it, and return its answers."""
    reader = (
        "reader=openai_compatible",
        f"reader.model={model.model}",
        f"reader.base_url={model.base_url}",
        f"reader.max_output_tokens={study.answer_tokens}",
        "reader.timeout_s=1800",
    )
    run_name = f"measured_{name}"
    if lab(["run", "--name", run_name, *study.overrides, *reader]):
        raise SystemExit(f"{run_name}: units are owed; run this again")
    return placed_answers(load_run(Path("experiments") / run_name))


def write(name: str, study: Study, answers: pd.DataFrame, model: str) -> None:
    """Write a study's figure, its curve and its test for a dip."""
    OUT.mkdir(parents=True, exist_ok=True)
    curve = accuracy_by_place(answers)
    of_each = sorted({int(count) for count in curve["answers"]})
    note = f"n = {' to '.join(map(str, of_each))} a place and arm; bars: 95 % intervals"
    published = published_curves()
    published = published[published["task"] == study.published]
    if len(published):
        theirs = published.iloc[0]
        note += f"; {curve['items'].max():.0f} pairs, published: {theirs['items']} pairs, n = {theirs['questions']}"
    figure = draw(curve, replace(Look.of_arms(curve["arm"]), note=note), published=published)
    (OUT / f"{name}.png").write_bytes(image_bytes(figure, "png"))
    (OUT / f"{name}.csv").write_text(to_csv(curve), encoding="utf-8")
    shown = curve.assign(**{column: (100 * curve[column]).round(1) for column in ("accuracy", "low", "high")})
    columns = {"arm": "arm", "place": "place", "right": "right", "answers": "n"}
    columns |= {"accuracy": "right %", "low": "low %", "high": "high %", "visible": "evidence visible"}
    tests = dip(answers)[["arm", "edges", "middle", "dip", "low", "high", "p", "examples"]]
    origin = next((weights.origin for weights in WEIGHTS.values() if weights.name == model), "")
    text = f"Reader: {model}{f' ({origin})' if origin else ''}.\n\n"
    text += f"{to_markdown(shown[list(columns)].rename(columns=columns))}\nEdges less middle:\n\n{to_markdown(tests)}"
    (OUT / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Measure right answers by place with a real model.")
    parser.add_argument("study", choices=STUDIES)
    name = parser.parse_args().study
    study = STUDIES[name]
    with endpoint(study.model, context_tokens=study.window_tokens, port=PORT) as model:
        write(name, study, measured(name, study, model), model.model)


if __name__ == "__main__":
    main()
