"""A site of runs as a reader sees it, opened from the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browser.conftest import Browser
from support.sited import NEW, OLD, OTHER, data, index, make_site, three_runs

PHONE, SCREEN = 390, 1280
# The heading of each place that is shown, and how many figures are below it.
SHOWN = """return [...document.querySelectorAll(`#${arguments[0]} h4`)]
  .map(one => [one.textContent, one.nextElementSibling.children.length])"""
ROWS = """return [...document.querySelectorAll('#cells tbody tr')]
  .map(one => [one.children[0].textContent, one.children[1].textContent])"""
SAID = "return document.querySelector('#said').textContent"
BOXES = """return [...document.querySelectorAll('#filters input')]
  .filter(one => one.checked).map(one => `${one.name}=${one.value}`)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = three_runs(tmp_path_factory.mktemp("results"))
    make_site(results)
    return results


@pytest.fixture
def url(site: Path) -> str:
    return (site / "site" / "index.html").as_uri()


def opened(browser: Browser, url: str, asks: str = "", width: int = SCREEN) -> None:
    browser.driver.get("about:blank")
    browser.look(f"{url}{asks}", width)
    browser.wait_for("return document.querySelector('#said').textContent !== ''")


def tick(browser: Browser, name: str, value: str) -> None:
    browser.ask(
        """const [name, value] = arguments;
        [...document.querySelectorAll('#filters input')]
          .find(one => one.name === name && one.value === value).click()""",
        name,
        value,
    )


def drawn(browser: Browser, section: str) -> None:
    """Goes down the section, as a reader does, until every figure is drawn."""
    for at in range(browser.ask(f"return document.querySelectorAll('#{section} figure').length")):
        browser.wait_for(
            f"""const one = document.querySelectorAll('#{section} figure')[{at}];
            one.scrollIntoView({{block: 'center', behavior: 'instant'}});
            return one.classList.contains('drawn')"""
        )


def test_without_filters_everything_is_shown(browser: Browser, url: str) -> None:
    opened(browser, url)
    assert browser.ask(SAID) == "12 of 12 cells, 3 of 3 runs."
    assert len(browser.ask(ROWS)) == 12
    assert [count for _, count in browser.ask(SHOWN, "curves")] == [4] * 4
    assert [count for _, count in browser.ask(SHOWN, "trend")] == [2, 2]
    assert "toxics changed" in browser.ask(
        "return document.querySelector('#invalid tbody').textContent"
    )


def test_figures_are_drawn_with_their_lines_crosses_and_intervals(
    browser: Browser, url: str
) -> None:
    opened(browser, url)
    drawn(browser, "curves")
    drawn(browser, "trend")
    marks = """return ['launches', 'intervals', 'invalid'].map(name =>
      document.querySelectorAll(`.live .${name}_marks path, .live .${name}_marks line`).length)"""
    launches, intervals, crosses = browser.ask(marks)
    assert launches > 20
    assert intervals > 10
    assert crosses >= 4


def test_a_filter_is_in_the_address_and_back_undoes_it(browser: Browser, url: str) -> None:
    opened(browser, url)
    tick(browser, "server", "b")
    browser.wait_for("return document.querySelectorAll('#cells tbody tr').length === 6")
    assert browser.ask("return location.hash") == "#server=b"
    tick(browser, "mode", "open")
    browser.wait_for("return document.querySelectorAll('#cells tbody tr').length === 3")
    assert browser.ask("return location.hash") == "#server=b&mode=open"
    assert {server for _, server in browser.ask(ROWS)} == {"b"}
    browser.ask("history.back()")
    browser.wait_for("return document.querySelectorAll('#cells tbody tr').length === 6")
    assert browser.ask(BOXES) == ["server=b"]
    browser.ask("history.back()")
    browser.wait_for("return document.querySelectorAll('#cells tbody tr').length === 12")
    assert browser.ask(BOXES) == []


def test_an_address_that_was_passed_on_shows_the_same(browser: Browser, url: str) -> None:
    opened(browser, url, f"#run={OLD}&run={NEW}&server=a&mode=closed&load=100")
    assert browser.ask(ROWS) == [[NEW, "a"], [OLD, "a"]]
    assert browser.ask(SAID) == "2 of 12 cells, 2 of 3 runs."
    assert len(browser.ask(SHOWN, "curves")) == len(browser.ask(SHOWN, "trend")) == 1
    assert browser.ask(BOXES) == [
        "server=a", "mode=closed", "load=100", f"run={NEW}", f"run={OLD}",
    ]  # fmt: skip
    drawn(browser, "curves")
    entries = browser.ask(
        """return [...document.querySelector('#curves .live')
          .querySelectorAll('[role=button]')].map(one => one.getAttribute('aria-label'))"""
    )
    assert entries == [f"a · {NEW}", f"a · {OLD}"]
    hidden = "return [...document.querySelectorAll('#runs > details')].map(one => one.hidden)"
    assert browser.ask(hidden) == [True, False, False]


def test_one_run_is_no_trend_and_a_machine_shows_its_own_runs(
    browser: Browser, url: str, site: Path
) -> None:
    machines = {run["run"]: run["machine"] for run in data(index(site))["runs"]}
    opened(browser, url, f"#machine={machines[OTHER]}")
    assert {run for run, _ in browser.ask(ROWS)} == {OTHER}
    assert browser.ask(SHOWN, "trend") == []
    assert "No load of these was measured by two runs" in browser.ask(
        "return document.querySelector('#trend').textContent"
    )
    assert len(browser.ask(SHOWN, "curves")) == 2


def test_what_no_run_has_is_said(browser: Browser, url: str) -> None:
    opened(browser, url, "#server=%3Cb%3Ex%3C/b%3E&commit=74a71a6")
    assert browser.ask(SAID) == (
        "The address asks for what no run here has: server=<b>x</b>, commit=74a71a6."
    )
    assert browser.ask(ROWS) == []


def test_nothing_is_asked_from_elsewhere_and_nothing_goes_wrong(browser: Browser, url: str) -> None:
    browser.driver.get_log("performance")
    browser.driver.get_log("browser")
    opened(browser, url)
    drawn(browser, "curves")
    tick(browser, "server", "a")
    browser.wait_for("return document.querySelectorAll('#cells tbody tr').length === 6")
    drawn(browser, "trend")
    asked = [json.loads(one["message"])["message"] for one in browser.driver.get_log("performance")]
    urls = {
        one["params"]["request"]["url"].partition("#")[0]
        for one in asked
        if one["method"] == "Network.requestWillBeSent"
    }
    assert urls <= {url, "data:,", "about:blank"}
    assert browser.driver.get_log("browser") == []


@pytest.mark.parametrize("width", [320, PHONE, SCREEN])
def test_the_page_never_scrolls_sideways(browser: Browser, url: str, width: int) -> None:
    opened(browser, url, width=width)
    drawn(browser, "curves")
    browser.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.ask("return document.documentElement.scrollWidth") <= width


def test_without_a_script_the_runs_and_their_reports_are_there(browser: Browser, url: str) -> None:
    browser.without_script(url)
    assert len(browser.ask("return [...document.querySelectorAll('#runs > details')]")) == 3
