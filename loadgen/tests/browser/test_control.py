"""The control page in a real browser, with the keyboard alone: its tab order leads everywhere. The
lab behind it is fake but for the page, its API and the process of the bench."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvicorn
from selenium.webdriver.common.keys import Keys
from starlette.applications import Starlette

from browser.conftest import Browser
from control.conftest import Scene
from control.test_runs import NAME, run_in
from lab.control import Guard
from lab.control.guard import page_hosts

PHONE, SCREEN = 390, 1280
PATIENCE_S = 20.0


class RealClock:
    """Time as it is."""

    now = 0.0

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class Reacting(Scene):
    """A lab whose p95 follows the latency toxic while a bench runs."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.clock = RealClock()  # type: ignore[assignment]
        see = self.lab.now

        def now() -> object:
            toxics = self.lab.toxiproxy.toxics.values()
            added = sum(toxic["attributes"].get("latency", 0) for toxic in toxics)
            p95_s = f"{0.2 + added / 1000}"
            self.lab.numbers = {("fixed-pool", "in_flight"): "0"}
            self.lab.trial = None
            if self.bench.running:
                self.lab.numbers = {
                    ("fixed-pool", "rps"): "450",
                    ("fixed-pool", "client_p95_s"): p95_s,
                    ("fixed-pool", "server_p95_s"): p95_s,
                }
                self.lab.trial = {
                    "server": "fixed-pool",
                    "route": "/downstream",
                    "concurrency": 100,
                    "offered_rps": 450,
                    "phase": "measure",
                    "run": "r",
                    "trial": "01-fixed-pool",
                }
            return see()

        self.lab.now = now  # type: ignore[assignment, method-assign]


@dataclass
class Page:
    """The page of one scene, opened."""

    scene: Reacting
    url: str
    browser: Browser

    def press(self, *keys: str) -> None:
        """Keys go to what has the focus, one event each."""
        for key in keys:
            self.browser.driver.switch_to.active_element.send_keys(key)

    def tab_to(self, name: str) -> None:
        """Presses Tab until the element has the focus. Backwards it would be found too."""
        for _ in range(120):
            if self.browser.ask("return document.activeElement.id") == name:
                return
            self.press(Keys.TAB)
        pytest.fail(f"Tab never leads to {name}")

    def type_over(self, text: str) -> None:
        self.press(Keys.CONTROL + "a", text)

    def until(self, script: str, *arguments: object) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self.browser.ask(script, *arguments):
            if time.monotonic() > end:
                shown = self.browser.ask("return document.body.innerText")
                pytest.fail(f"never so: {script}\n{shown}")
            time.sleep(0.1)

    def cell(self, server: str, name: str) -> str:
        found = self.browser.ask(
            "return document.querySelector(`[data-server='${arguments[0]}'] "
            "[data-is='${arguments[1]}']`).textContent",
            server,
            name,
        )
        return str(found)

    def until_cell(self, server: str, name: str, text: str) -> None:
        self.until(
            "return document.querySelector(`[data-server='${arguments[0]}'] "
            "[data-is='${arguments[1]}']`)?.textContent === arguments[2]",
            server,
            name,
            text,
        )

    def open(self, width: int = SCREEN, *, dark: bool = False) -> None:
        self.browser.look(self.url, width, dark=dark)
        self.until("return document.querySelectorAll('#numbers tr').length === 2")
        self.until("return document.querySelector('#knob-pool_size') !== null")


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    scene = Reacting(tmp_path)
    run_in(scene.results)
    port, end = _serve(scene)
    found = Page(scene, f"http://127.0.0.1:{port}/", browser)
    try:
        found.open()
        yield found
    finally:
        browser.driver.get("about:blank")
        end()


def _serve(scene: Scene) -> tuple[int, Callable[[], None]]:
    """The page on a free port, in a thread with a loop of its own."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port: int = listening.getsockname()[1]
    control, _ = scene.app()

    @asynccontextmanager
    async def closing(_: Starlette) -> AsyncIterator[None]:
        yield
        await control.close()

    app = Starlette(routes=control.routes, lifespan=closing)
    server = uvicorn.Server(
        uvicorn.Config(Guard(app, page_hosts({port}), set()), log_level="warning", lifespan="on")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()

    def end() -> None:
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()

    return port, end


def test_a_bench_a_toxic_and_the_number_that_follows_by_keyboard_alone(page: Page) -> None:
    # A bench, of 60 s over 100 connections.
    page.tab_to("bench-conc")
    page.type_over("100")
    page.tab_to("bench-start")
    page.press(Keys.ENTER)
    page.until_cell("fixed-pool", "client_p95_s", "200")
    page.until("return document.getElementById('state').textContent.startsWith('measuring:')")
    page.until("return document.getElementById('bench-output').textContent.includes('CONC=100')")
    # A latency toxic of 300 ms: the number follows.
    page.tab_to("toxic-latency")
    page.type_over("300")
    page.press(Keys.ENTER)
    page.until_cell("fixed-pool", "client_p95_s", "500")
    page.until("return document.querySelector('#in-force li').textContent.includes('latency 300')")
    # In force, its slider changes it at once.
    page.browser.ask("document.getElementById('toxic-latency-slider').focus()")
    page.press(Keys.ARROW_RIGHT)
    page.until_cell("fixed-pool", "client_p95_s", "501")
    # Taken away; the focus is where it is of use.
    page.browser.ask("document.querySelector('[aria-label=\"Remove latency\"]').focus()")
    page.press(Keys.SPACE)
    page.until_cell("fixed-pool", "client_p95_s", "200")
    assert page.browser.ask("return document.activeElement.id") == "toxic-type"
    # And the bench is stopped.
    page.tab_to("bench-stop")
    page.press(Keys.SPACE)
    page.until("return document.getElementById('bench-said').textContent === 'stopped'")
    page.until_cell("fixed-pool", "client_p95_s", "–")
    assert page.scene.bench.state.status == 130


def test_every_type_of_toxic_has_its_fields(page: Page) -> None:
    page.tab_to("toxic-type")
    seen = set()
    for _ in range(7):
        seen.add(
            page.browser.ask(
                "return document.getElementById('toxic-type').value + ':' + [...document"
                ".querySelectorAll('#toxic-attributes label')].map(l => l.textContent).join('|')"
            )
        )
        page.press(Keys.ARROW_DOWN)
    assert seen == {
        "latency:latency, ms|jitter, ms",
        "bandwidth:rate, KB/s",
        "slow_close:delay, ms",
        "timeout:timeout, ms",
        "reset_peer:timeout, ms",
        "slicer:average size, bytes|size variation, bytes|delay, us",
        "limit_data:bytes, bytes",
    }


def test_the_downstream_goes_down_and_up(page: Page) -> None:
    page.tab_to("downstream-down")
    page.press(Keys.SPACE)
    page.until("return document.querySelector('#in-force li').textContent.includes('is DOWN')")
    assert not page.scene.lab.toxiproxy.enabled
    page.tab_to("downstream-up")
    page.press(Keys.SPACE)
    page.until("return document.querySelector('#in-force li').textContent === 'none'")


def test_a_knob_is_turned_on_every_server_that_has_it(page: Page) -> None:
    page.tab_to("knob-pool_size")
    page.type_over("50")
    page.press(Keys.ENTER)
    page.until(
        "return document.getElementById('knobs-said').textContent === 'pool_size is 50 on "
        "fixed-pool'"
    )
    assert page.scene.lab.settings["fixed-pool"]["pool_size"] == 50


def test_what_is_refused_is_said_where_it_was_asked(page: Page) -> None:
    page.tab_to("bench-conc")
    page.type_over("many")
    page.press(Keys.ENTER)
    page.until(
        "return document.querySelector('#bench-said.problem')?.textContent.includes("
        "'CONC=many is not a number of connections')"
    )


def test_runs_are_listed_and_open(page: Page) -> None:
    page.until("return document.querySelectorAll('#runs a').length === 4")
    link = page.browser.ask("return document.querySelector('#runs a').href")
    assert link == f"{page.url}results/{NAME}/report.html"
    page.browser.driver.get(link)
    assert page.browser.driver.title == "r"


@pytest.mark.parametrize("width", [320, PHONE, 768, SCREEN])
def test_the_page_never_scrolls_sideways(page: Page, width: int) -> None:
    page.open(width)
    assert page.browser.ask("return window.innerWidth") == width
    assert page.browser.ask("return document.documentElement.scrollWidth") <= width


def test_every_control_has_a_name_and_a_focus_that_is_seen(page: Page) -> None:
    unnamed = page.browser.ask(
        """return [...document.querySelectorAll('input, select, button, a')].filter(one =>
          !(one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())
        ).map(one => one.outerHTML)"""
    )
    assert unnamed == []
    for name in ("toxic-type", "toxic-latency", "bench-start", "knob-pool_size"):
        page.tab_to(name)
        style = page.browser.ask(
            "const s = getComputedStyle(document.activeElement);"
            "return [s.outlineStyle, parseFloat(s.outlineWidth)]"
        )
        assert style == ["solid", 3.0], name


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground_in_light_and_dark(page: Page, dark: bool) -> None:
    page.open(dark=dark)
    # WCAG 2.1, contrast ratio: at least 4.5 for text.
    worst = page.browser.ask(
        """const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const light = text => {
          const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
          return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        };
        const ground = one => {
          for (; one; one = one.parentElement) {
            const color = getComputedStyle(one).backgroundColor;
            if (!color.endsWith(', 0)')) return color;
          }
          return 'rgb(255, 255, 255)';
        };
        let worst = [99, ''];
        for (const one of document.querySelectorAll('body *:not(:disabled):not(option)')) {
          const own = [...one.childNodes].some(n => n.nodeType === 3 && n.data.trim());
          if (!own || one.closest('svg, noscript') || !one.checkVisibility()) continue;
          const [a, b] = [light(getComputedStyle(one).color), light(ground(one))];
          const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (ratio < worst[0]) worst = [ratio, one.outerHTML.slice(0, 100)];
        }
        return worst;"""
    )
    assert worst[0] >= 4.5, worst


def test_the_page_asks_nobody_else_and_says_no_error(page: Page) -> None:
    asked = page.browser.ask(
        "return performance.getEntriesByType('resource').map(one => new URL(one.name).origin)"
    )
    assert set(asked) == {page.url.rstrip("/")}
    log = page.browser.driver.get_log("browser")
    own = [entry["message"] for entry in log if entry["message"].startswith(page.url)]
    assert own == []


def test_a_slider_stands_where_its_number_is(page: Page) -> None:
    pairs = page.browser.ask(
        """return [...document.querySelectorAll('.slider, .knob')].map(one =>
          [one.querySelector('[type=range]').value, one.querySelector('[type=number]').value])"""
    )
    assert len(pairs) >= 5
    assert all(slider == number for slider, number in pairs), pairs


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_the_chart_can_be_read(page: Page, width: int) -> None:
    page.open(width)
    page.until("return document.querySelector('#chart text') !== null")
    page.until("return document.querySelector('#chart text').getBoundingClientRect().height >= 11")


def test_the_chart_keeps_the_line_of_a_toxic_that_is_gone(page: Page) -> None:
    came, went = (datetime.fromtimestamp(time.time() - ago, UTC).isoformat() for ago in (30, 10))
    one = {"proxy": "downstream", "toxic": "latency"}
    page.scene.lab.history = [{**one, "since": came}, {**one, "since": went}]
    page.until("return document.querySelectorAll('#chart line.toxic').length === 2")
