"""The page as a reader uses it, in a real browser: opened from disk, without a network, by mouse and by keyboard."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction_lab.report.page import picture_files, write_page
from compaction_lab.report.writing import write_figures
from compaction_lab.sweep.loading import Run
from tests.report.hostile import TEXTS
from tests.report.page.large import large_run

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
browser = importlib.import_module("tests.report.page.browser")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # the driver's own pipes
MASKING = "observation_masking keep_last=2"
SUMMARY = "summarization every=5 unit=step"
TRUNCATION = "truncation max_tokens=2000"


@pytest.fixture(scope="module")
def file(sessions: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page")
    figures, left_out = write_figures(sessions, out / "figures", ["svg"])
    return write_page(sessions, out, picture_files(figures), left_out)


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    with browser.chromium() as running:
        yield running


@pytest.fixture
def visit(chromium: object, file: Path) -> Iterator[object]:
    made = browser.visit(chromium, file)
    made.page.select_option("#session", index=1)
    assert "tidepool" in made.page.locator("#session").input_value()
    yield made
    assert made.complaints == []
    assert made.requests == []
    assert "owned" not in made.page.title()
    made.page.context.close()


def call(visit: object) -> int:
    return int(visit.page.locator("#call").input_value())


def test_it_opens_where_the_right_arm_first_acted(visit: object) -> None:
    assert visit.page.locator("#arm-left").input_value() == "none"
    assert visit.page.locator("#arm-right").input_value() == MASKING
    assert visit.count("#stack-right .masked") >= 1
    assert visit.count("#stack-left .masked") == 0
    assert "in sight" in visit.text("#facts-right")


def test_arrow_keys_step_and_both_sides_follow(visit: object) -> None:
    before = call(visit)
    visit.page.keyboard.press("ArrowRight")
    assert call(visit) == before + 1
    assert visit.text("#facts-left").startswith(f"call {before + 1} of")
    assert visit.text("#facts-right").startswith(f"call {before + 1} of")
    visit.page.keyboard.press("ArrowLeft")
    visit.page.keyboard.press("ArrowLeft")
    assert call(visit) == before - 1
    for _ in range(before + 3):
        visit.page.keyboard.press("ArrowLeft")
    assert call(visit) == 1


def test_the_slider_and_the_buttons_do_the_same(visit: object) -> None:
    visit.page.locator("#call").fill("9")
    assert visit.text("#facts-left").startswith("call 9 of")
    visit.page.click("#next")
    assert visit.text("#facts-right").startswith("call 10 of")


def test_a_masked_block_shows_its_text_before_and_after(visit: object) -> None:
    visit.page.locator("#stack-right .masked").first.click()
    assert "masked" in visit.text("#text-title")
    assert visit.text("#text-after").endswith("[tool result removed]")
    assert "CHANGELOG.md" in visit.text("#text-before")
    assert visit.count('.block[aria-selected="true"]') == 1


def test_a_summary_shows_what_it_stands_for(visit: object) -> None:
    visit.page.select_option("#arm-right", SUMMARY)
    visit.page.locator("#call").fill(visit.page.locator("#call").get_attribute("max"))
    visit.page.locator("#stack-right .summarised:not(.gone)").first.click()
    assert "Summary of the conversation" in visit.text("#text-after")
    assert visit.text("#text-before") != "(not in the conversation)"


def test_what_is_hidden_can_be_shown(visit: object) -> None:
    visit.page.select_option("#arm-right", TRUNCATION)
    visit.page.locator("#call").fill(visit.page.locator("#call").get_attribute("max"))
    shown = visit.count("#stack-right .gone")
    visit.page.locator("#stack-right").focus()
    visit.page.keyboard.press("h")
    assert visit.count("#stack-right .gone") > shown
    visit.page.locator("#stack-right .gone").first.click()
    assert "hidden" in visit.text("#text-after")
    assert visit.text("#text-before")


def test_up_and_down_go_through_the_blocks(visit: object) -> None:
    visit.page.locator("#stack-left").focus()
    visit.page.keyboard.press("Home")
    assert "message 0, system" in visit.text("#text-title")
    visit.page.keyboard.press("ArrowDown")
    assert "message 1, user" in visit.text("#text-title")
    active = visit.page.locator("#stack-left").get_attribute("aria-activedescendant")
    assert visit.page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    visit.page.keyboard.press("Escape")
    assert visit.page.locator("#text").is_hidden()


def test_m_goes_from_miss_to_miss_and_shows_what_was_lost(visit: object) -> None:
    visit.page.select_option("#arm-left", TRUNCATION)
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("m")
    first = visit.text("#said")
    assert first.startswith("Miss 1 of ")
    assert visit.page.locator("#text").is_visible()
    visit.page.keyboard.press("m")
    assert visit.text("#said").startswith("Miss 2 of ")
    visit.page.locator("#missed button").first.click()
    assert visit.text("#said") == first


def test_same_tokens_have_the_same_height_on_both_sides(visit: object) -> None:
    heights = [
        visit.page.locator(f"#stack-{side} .block", has_text="user · 192").first.bounding_box()["height"]
        for side in ("left", "right")
    ]
    assert heights[0] == pytest.approx(heights[1])


def test_a_table_is_sorted_by_a_click_and_by_the_keyboard(visit: object) -> None:
    head = visit.page.locator("#summary th").nth(1)
    head.click()
    assert head.get_attribute("aria-sort") == "descending"
    head.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    values = visit.page.eval_on_selector_all(
        "#summary tbody tr td:nth-child(2)",
        "cells => cells.map(cell => cell.dataset.value).filter(Boolean).map(Number)",
    )
    assert values == sorted(values)
    assert len(values) >= 2


def test_a_hostile_session_shows_as_text(visit: object) -> None:
    visit.page.select_option("#session", index=0)
    assert "<img src=x" in visit.page.locator("#session").input_value()
    visit.page.locator("#call").fill(visit.page.locator("#call").get_attribute("max"))
    seen = set()
    visit.page.locator("#stack-left").focus()
    visit.page.keyboard.press("Home")
    for _ in range(4 * len(TEXTS) + 4):
        seen.add(visit.text("#text-after"))
        visit.page.keyboard.press("ArrowDown")
    everything = "\n".join(seen)
    for text in TEXTS[:3]:
        assert text in everything
    assert "\\x1b[31mred\\x1b[0m \\x1b]0;owned\\x07" in everything
    assert "left \\u202e drawkcab" in everything
    assert "broken \\ud83d surrogate \\udc00" in everything
    assert "\U0001f680 \U0001f469\u200d\U0001f469\u200d\U0001f467 zażółć" in everything
    assert "characters more" in everything
    assert max(map(len, seen)) < 21_000
    assert visit.count("img:not([src^='data:image'])") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_a_phone(chromium: object, file: Path, *, dark: bool) -> None:
    made = browser.visit(chromium, file, size=browser.PHONE, dark=dark)
    made.page.locator("#stack-left .block").first.click()
    for details in made.page.locator("details").all():
        details.evaluate("element => element.open = true")
    assert made.page.evaluate("document.documentElement.scrollWidth") == 390
    assert (made.complaints, made.requests) == ([], [])
    made.page.context.close()


def test_dark_mode_is_dark_and_readable(chromium: object, file: Path) -> None:
    made = browser.visit(chromium, file, dark=True)
    luminance = """selector => {
        const style = getComputedStyle(document.querySelector(selector));
        const of = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number).reduce((all, part) => all + part) / 765;
        return [of(style.backgroundColor), of(style.color)];
    }"""
    for selector in ("body", ".block:not(.gone)"):
        paper, ink = made.page.evaluate(luminance, selector)
        assert paper < 0.35
        assert ink > 0.8
    made.page.context.close()


def test_what_happened_can_be_told_without_colour(visit: object) -> None:
    patterns = visit.page.eval_on_selector_all(
        "#legend .what i", "samples => samples.map(sample => getComputedStyle(sample).backgroundImage)"
    )
    drawn = [pattern for pattern in patterns if pattern != "none"]
    assert len(drawn) >= 5
    assert len(set(drawn)) == len(drawn)


def test_only_what_is_in_sight_is_drawn(chromium: object, tmp_path: Path) -> None:
    page = write_page(large_run(messages=2000), tmp_path)
    made = browser.visit(chromium, page)
    made.page.locator("#call").fill(made.page.locator("#call").get_attribute("max"))
    assert int(made.page.locator(".block").first.get_attribute("aria-setsize")) > 1900
    assert made.count(".block") < 1000
    made.page.locator("#stack-left").focus()
    made.page.keyboard.press("End")
    assert "message 1999" in made.text("#text-title")
    made.page.keyboard.press("Home")
    assert "message 0, system" in made.text("#text-title")
    assert page.stat().st_size < 3_000_000
    assert made.complaints == []
    made.page.context.close()
