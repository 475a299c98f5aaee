"""Figures are drawn from frames alone, look alike across a run, and say so when there is nothing to draw."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from compaction_lab.analysis import arm_order
from compaction_lab.errors import CompactionLabError, ConfigurationError
from compaction_lab.report import Look, figure_style, figures
from compaction_lab.report.figures.layout import spread
from compaction_lab.report.style import STYLE_VARIABLE, style_files
from compaction_lab.report.writing import FIGURES, FigureSpec
from compaction_lab.sweep.loading import Run
from tests.report.frames import FRAMES
from tests.synthetic_runs import ARMS, BASIC, HYBRID, MASKING, SUMMARY, synthetic_run

RUN = synthetic_run()
MANY = (*ARMS, *(f"sliding_window keep_last={n}" for n in (2, 4, 8, 16)), "openhands/llm_summarizing max_size=120")
PAGE_IN = 9.5
"""Height of a printed page."""
SMALLEST_PT = 5.5
MANY_RUN = synthetic_run(arms=MANY)


def frame_of(spec: FigureSpec, run: Run = RUN) -> pd.DataFrame:
    """The figure's frame of a run, or one made by formula where such a run has nothing to show."""
    made = FRAMES.get(spec.name)
    return spec.frame(run) if made is None else made(arm_order(run.cells["arm"]))


@pytest.fixture(params=FIGURES, ids=lambda spec: spec.name)
def spec(request: pytest.FixtureRequest) -> FigureSpec:
    found: FigureSpec = request.param
    return found


@cache
def drawn(name: str) -> Figure:
    """The figure of the five-arm run, laid out; tests only read it."""
    spec = next(spec for spec in FIGURES if spec.name == name)
    with figure_style():
        figure = spec.draw(frame_of(spec), Look.of(RUN))
        figure.draw_without_rendering()
    return figure


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text() and text.get_visible()]


def test_every_figure_of_a_run_is_in_its_report() -> None:
    assert {spec.draw.__name__ for spec in FIGURES} == set(figures.__all__) - {"published_against_ours"}


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_published_numbers_give_a_message(rows: int) -> None:
    frame = pd.DataFrame({"study": ["a"], "published": [1.0], "ours": [1.0], "verdict": ["PASS"]}).iloc[:rows]
    with pytest.raises(CompactionLabError, match="published_against_ours"):
        figures.published_against_ours(frame)


def test_an_empty_frame_gives_a_message(spec: FigureSpec) -> None:
    with pytest.raises(CompactionLabError, match=spec.name) as caught:
        spec.draw(frame_of(spec).iloc[:0], Look.of(RUN))
    assert isinstance(caught.value, ValueError)


def test_a_single_row_gives_a_message(spec: FigureSpec) -> None:
    with pytest.raises(CompactionLabError, match=spec.name):
        spec.draw(frame_of(spec).iloc[:1], Look.of(RUN))


def test_a_foreign_frame_gives_a_message_with_the_missing_columns(spec: FigureSpec) -> None:
    with pytest.raises(CompactionLabError, match="no column"):
        spec.draw(pd.DataFrame({"arm": [BASIC, MASKING]}), Look.of(RUN))


@pytest.mark.parametrize("arms", [ARMS, MANY], ids=["five arms", "ten arms"])
def test_all_words_lie_inside_a_printed_column(spec: FigureSpec, arms: tuple[str, ...]) -> None:
    figure = drawn(spec.name)
    if arms != ARMS:
        with figure_style():
            figure = spec.draw(frame_of(spec, MANY_RUN), Look.of(MANY_RUN))
            figure.draw_without_rendering()
    assert figure.get_size_inches()[0] == pytest.approx(3.5)
    drawn_in = figure.get_tightbbox()
    assert drawn_in.x0 >= -0.01
    assert drawn_in.y0 >= -0.01
    assert drawn_in.x1 <= figure.get_size_inches()[0] + 0.01
    assert drawn_in.y1 <= figure.get_size_inches()[1] + 0.01
    assert figure.get_size_inches()[1] < PAGE_IN
    assert min(text.get_fontsize() for text in texts(figure)) >= SMALLEST_PT


def test_names_beside_the_lines_do_not_overlap(spec: FigureSpec) -> None:
    for axes in drawn(spec.name).axes:
        names = [child for child in axes.get_children() if isinstance(child, Annotation) and child.arrow_patch]
        boxes = [Text.get_window_extent(name) for name in names]
        for one, other in combinations(boxes, 2):
            assert min(one.y1, other.y1) - max(one.y0, other.y0) < 1


def test_simulated_numbers_are_labelled(spec: FigureSpec) -> None:
    assert any("simulated" in text.get_text() for text in texts(drawn(spec.name)))


def test_figures_need_no_look_and_leave_matplotlib_alone(spec: FigureSpec) -> None:
    before = dict(mpl.rcParams)
    assert isinstance(spec.draw(frame_of(spec), *()), Figure)  # type: ignore[call-arg]
    assert dict(mpl.rcParams) == before


def line_colors(axes: Axes) -> set[object]:
    return {line.get_color() for line in axes.lines}


def test_an_arm_keeps_its_colour_in_every_figure_and_run() -> None:
    whole, part = Look.of(RUN), Look.of(synthetic_run(arms=(BASIC, HYBRID, SUMMARY)))
    with figure_style():
        assert [whole.color(arm) for arm in (BASIC, HYBRID, SUMMARY)] == [
            part.color(arm) for arm in (BASIC, HYBRID, SUMMARY)
        ]
        by_turn = next(spec for spec in FIGURES if spec.name == "input_tokens_per_turn")
        figure = by_turn.draw(by_turn.frame(synthetic_run(arms=(BASIC, HYBRID))), whole)
        assert line_colors(figure.axes[0]) == {whole.color(BASIC), whole.color(HYBRID)}


def test_no_two_arms_look_the_same_even_in_grey() -> None:
    look = Look.of_arms([BASIC, *(f"truncation max_tokens={n}" for n in range(30))])
    with figure_style():
        styles = [look.line(arm) for arm in look.arms]
    assert len({(style["marker"], style["dashes"]) for style in styles}) == len(styles)


def test_many_conversations_become_their_mean() -> None:
    run = synthetic_run(arms=(BASIC, MASKING), transcripts=[f"t{n}" for n in range(7)])
    by_turn = next(spec for spec in FIGURES if spec.name == "input_tokens_per_turn")
    figure = by_turn.draw(by_turn.frame(run), Look.of(run))
    assert len(figure.axes) == 1
    assert "mean of 7 transcripts" in [axes.get_title(loc="left") for axes in figure.axes]


def test_the_users_style_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("compaction-lab.mplstyle").write_text("axes.prop_cycle: cycler('color', ['123456'])\n")
    with figure_style():
        assert Look.of(RUN).color(MASKING).endswith("123456")
        assert mpl.rcParams["svg.hashsalt"] == "compaction-lab"
    monkeypatch.setenv(STYLE_VARIABLE, "absent.mplstyle")
    with pytest.raises(ConfigurationError, match=r"absent\.mplstyle"):
        style_files()


labels = st.lists(st.tuples(st.floats(-5, 15), st.floats(0.1, 2)), min_size=1, max_size=8)


@given(labels)
def test_spread_labels_keep_their_order_their_bounds_and_their_distance(wanted: list[tuple[float, float]]) -> None:
    positions, heights = [place for place, _ in wanted], [height for _, height in wanted]
    squeeze = min(1.0, 10 / sum(heights))
    centres = spread(positions, heights, 0, 10)
    edges = sorted((c - squeeze * h / 2, c + squeeze * h / 2) for c, h in zip(centres, heights, strict=True))
    assert edges[0][0] >= -1e-9
    assert edges[-1][1] <= 10 + 1e-9
    assert all(above[0] >= below[1] - 1e-9 for below, above in pairwise(edges))
    for (one, at_one), (other, at_other) in combinations(zip(positions, centres, strict=True), 2):
        assert one == other or (one < other) == (at_one < at_other)
