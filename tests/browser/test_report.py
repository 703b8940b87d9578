"""report.html in a real browser: complete without network, drawn without faults, readable on any width."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

SAMPLE_RUN = Path(__file__).resolve().parents[1] / "unit/analyze/conftest.py"
"""Where the sample run of the unit tests is put together."""

WIDTHS = (360, 1440)


def sample_run(folder: Path) -> Path:
    spec = importlib.util.spec_from_file_location("sample_run", SAMPLE_RUN)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run: Path = module.build_run(folder).path
    return run


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    command = Path(sys.executable).with_name("serving-bench")
    run = sample_run(folder / "run")
    subprocess.run([command, "analyze", run, "--out", folder / "report"], check=True, capture_output=True)
    return folder / "report/report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = os.environ.get("SERVING_BENCH_CHROMIUM") or shutil.which("chromium")
    assert chromium, "no Chromium: run the suite with scripts/test --with browser"
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start for root.
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] * (os.getuid() == 0))
        yield running
        running.close()


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest) -> int:
    value: int = request.param
    return value


@pytest.fixture
def faults() -> list[str]:
    return []


@pytest.fixture
def page(browser: Browser, report: Path, width: int, faults: list[str]) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    shown = context.new_page()
    shown.on("console", lambda message: faults.append(f"console: {message.text}"))
    shown.on("pageerror", lambda error: faults.append(f"script: {error}"))
    shown.on("request", lambda request: None if request.url == report.as_uri() else faults.append(request.url))
    shown.goto(report.as_uri())
    yield shown
    context.close()


def test_nothing_is_fetched_and_nothing_fails(page: Page, faults: list[str]) -> None:
    page.wait_for_load_state("networkidle")
    assert faults == []
    assert "demo-2rep-dyn-mocker-kv" in page.inner_text("body")


def test_the_chart_of_ttft_is_drawn_with_each_class_of_turns(page: Page) -> None:
    chart = page.locator("svg").first
    box = chart.bounding_box()
    assert box
    assert box["width"] > 250
    assert box["height"] > 100
    text = chart.text_content() or ""
    around = page.locator("figure").first.inner_text()
    for words in ("first", "later", "ms"):
        assert words in text + around


def test_the_page_does_not_scroll_sideways(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    colours = page.evaluate(
        """() => { const s = getComputedStyle(document.body);
                   return [s.color, s.backgroundColor === 'rgba(0, 0, 0, 0)'
                           ? getComputedStyle(document.documentElement).backgroundColor : s.backgroundColor]; }"""
    )
    text, ground = (luminance(colour) for colour in colours)
    assert (max(text, ground) + 0.05) / (min(text, ground) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2) of ``rgb(r, g, b)``; an unset ground is the browser's white."""
    parts = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")]
    if len(parts) == 4 and parts[3] == 0:
        return 1.0
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (p / 255 for p in parts[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
