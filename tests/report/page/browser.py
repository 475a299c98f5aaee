"""A real headless Chromium, offline, that remembers what a page asked for and complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM_VARIABLE = "COMPACTION_LAB_CHROMIUM"
DESK = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)


def program() -> str:
    """Return the Chromium to drive; the test is skipped where there is none."""
    named = os.environ.get(PROGRAM_VARIABLE)
    found = named or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not found:
        pytest.skip(f"no Chromium here: install one, or name it in {PROGRAM_VARIABLE}")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser; a superuser's needs its sandbox off."""
    executable = program()
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page opened from disk; ``requests`` lists what it asked for beside itself and its embedded pictures."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def block(self, side: str, words: str) -> None:
        """Click the first block of a side whose heading has these words."""
        self.page.locator(f"#stack-{side} .block", has_text=words).first.click()


def visit(browser: Browser, file: Path, *, size: ViewportSize = DESK, dark: bool = False) -> Visit:
    context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light", offline=True)
    page = context.new_page()
    made = Visit(page)
    page.on("console", lambda message: made.complaints.append(message.text))
    page.on("pageerror", lambda error: made.complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            request.url.startswith("data:") or request.url == file.as_uri() or made.requests.append(request.url)
        ),
    )
    page.goto(file.as_uri())
    page.wait_for_selector("body[data-ready=true]")
    return made
