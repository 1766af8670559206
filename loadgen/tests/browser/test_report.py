"""report.html as a reader sees it: on a wide screen, on a phone, in the dark, on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser.conftest import Browser
from driver.drawn import Drawing, answered
from driver.runs import plans, write_manifest, write_raw
from lab.derive import derive

PHONE, SCREEN = 390, 1280


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run with long names, invalid trials and panels."""
    run_dir = write_manifest(tmp_path_factory.mktemp("results"))
    write_raw(run_dir, plans())
    for raw in sorted((run_dir / "raw").iterdir())[:4]:
        answered(raw)
    told: Path = run_dir / "raw" / "01-a-closed" / "trial.json"
    trial = json.loads(told.read_text())
    told.write_text(json.dumps(trial | {"toxic_changes": ["downstream at 12:00:01"]}))
    derive(run_dir, [Drawing()])
    return (run_dir / "report.html").as_uri()


@pytest.mark.parametrize("width", [320, PHONE, 768, SCREEN])
def test_the_page_never_scrolls_sideways(browser: Browser, url: str, width: int) -> None:
    browser.look(url, width)
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.ask("return window.innerWidth") == width
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    outside = browser.ask(
        """return [...document.querySelectorAll('body *')].filter(one => {
          const box = one.getBoundingClientRect();
          return box.right > innerWidth + 1 && !one.closest('.scroll, pre, svg');
        }).map(one => one.outerHTML.slice(0, 80))"""
    )
    assert outside == []


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_every_figure_is_seen_at_a_size_that_can_be_read(
    browser: Browser, url: str, width: int
) -> None:
    browser.look(url, width)
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    sizes = browser.ask(
        """return [...document.querySelectorAll('svg.fig')].map(one => {
          const text = one.querySelector('text').getBoundingClientRect();
          const box = one.getBoundingClientRect();
          return [box.width, box.height, text.height];
        })"""
    )
    assert len(sizes) == 6 + 4 * 2
    assert all(w > 250 and h > 80 and text >= 10 for w, h, text in sizes)
    # No text of a figure lies outside of it.
    outside = browser.ask(
        """return [...document.querySelectorAll('svg.fig text')].filter(one => {
          const text = one.getBoundingClientRect();
          const box = one.closest('svg').getBoundingClientRect();
          return text.left < box.left - 3 || text.right > box.right + 3;
        }).map(one => one.textContent)"""
    )
    assert outside == []


def test_light_and_dark_follow_the_reader(browser: Browser, url: str) -> None:
    seen = {}
    for dark in (False, True):
        browser.look(url, dark=dark)
        seen[dark] = browser.ask(
            """const of = (one, name) => getComputedStyle(document.querySelector(one))[name];
            return [of('body', 'backgroundColor'), of('body', 'color'),
                    of('svg.fig .l', 'stroke'), of('svg.fig text', 'fill')]"""
        )
    assert seen[False][0] == "rgb(255, 255, 255)"
    assert seen[True][0] == "rgb(20, 22, 26)"
    assert all(light != dark for light, dark in zip(seen[False], seen[True], strict=True))


def test_on_paper_it_is_light_and_its_tables_are_whole(browser: Browser, url: str) -> None:
    browser.look(url, dark=True, media="print")
    assert browser.ask("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert browser.ask("return getComputedStyle(document.querySelector('nav')).display") == "none"
    paper = browser.told("Page.printToPDF", preferCSSPageSize=True)["data"]
    assert paper.startswith("JVBERi0")


def test_nothing_is_asked_from_elsewhere_and_nothing_goes_wrong(browser: Browser, url: str) -> None:
    browser.driver.get_log("performance")
    browser.driver.get_log("browser")
    browser.look(url)
    asked = [json.loads(one["message"])["message"] for one in browser.driver.get_log("performance")]
    urls = {
        one["params"]["request"]["url"]
        for one in asked
        if one["method"] == "Network.requestWillBeSent"
    }
    assert urls <= {url, "data:,"}
    assert browser.driver.get_log("browser") == []


def test_the_keyboard_reaches_links_details_and_wide_tables(browser: Browser, url: str) -> None:
    browser.look(url, PHONE)
    focusable = browser.ask(
        """return [...document.querySelectorAll('a, summary, .scroll')]
          .filter(one => one.tabIndex >= 0).length"""
    )
    assert focusable == browser.ask(
        "return document.querySelectorAll('a, summary, .scroll').length"
    )


def test_a_picture_of_it_is_not_blank(browser: Browser, url: str) -> None:
    browser.look(url, PHONE)
    assert len(browser.picture()) > 20_000
