"""The control page in a real browser, with the keyboard alone: its tab order leads everywhere. The
lab behind it is fake but for the page, its API and the process of the bench."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from selenium.webdriver.common.keys import Keys
from starlette.applications import Starlette

from browser.conftest import Browser
from lab.live.control import Guard
from lab.live.control.guard import page_hosts
from live.control.conftest import Scene
from live.control.test_runs import NAME, run_in

PHONE, SCREEN = 390, 1280
PATIENCE_S = 60.0


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

    def drag(self, name: str, value: int) -> None:
        """Moves a slider, as a finger or the mouse would."""
        self.browser.ask(
            "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            name,
            value,
        )

    def value(self, name: str) -> str:
        return str(self.browser.ask("return document.getElementById(arguments[0]).value", name))

    def text(self, name: str) -> str:
        found = self.browser.ask("return document.getElementById(arguments[0]).textContent", name)
        return str(found)

    def until_text(self, name: str, text: str) -> None:
        self.until(
            "return document.getElementById(arguments[0])?.textContent.includes(arguments[1])",
            name,
            text,
        )

    def latency(self) -> dict[str, int] | None:
        """Of the latency toxic that is in force, whoever knows it."""
        toxic = self.scene.lab.toxiproxy.toxics.get("latency")
        return None if toxic is None else toxic["attributes"]

    @contextmanager
    def without_the_lab(self) -> Iterator[None]:
        """The lab does not answer, then it does again."""
        self.browser.told("Network.enable")
        speed = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.browser.told("Network.emulateNetworkConditions", offline=True, **speed)
        try:
            yield
        finally:
            self.browser.told("Network.emulateNetworkConditions", offline=False, **speed)

    def with_part(self, name: str, body: str) -> Any:
        """What an async function body returns that is given a part of the page, loaded anew."""
        return self.browser.driver.execute_async_script(
            "const [name, done] = arguments;"
            f"import(`/static/${{name}}.js`).then(async (part) => {{ {body} }})"
            ".then(done, (failure) => done(String(failure)))",
            name,
        )

    def after_looks(self, count: int) -> None:
        """Returns when the page has had so many more answers about what is now."""
        looks = (
            "return performance.getEntriesByType('resource')"
            ".filter(one => one.name.endsWith('/api/live')).length"
        )
        self.until(f"{looks} >= arguments[0]", self.browser.ask(looks) + count)

    def comes_into_sight(self) -> None:
        self.browser.ask("document.dispatchEvent(new Event('visibilitychange'))")

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
    page.until_text("state", "measuring:")
    page.until_text("bench-output", "CONC=100")
    # A latency toxic of 300 ms: the number follows.
    page.tab_to("toxic-latency")
    page.type_over("300")
    page.press(Keys.ENTER)
    page.until_cell("fixed-pool", "client_p95_s", "500")
    page.until_text("in-force", "latency 300")
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


def so(condition: Callable[[], bool]) -> None:
    """Returns when it holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "never so"
        time.sleep(0.02)


def test_a_slider_that_is_moved_right_after_it_was_put_in_force_counts(page: Page) -> None:
    # Another look, so that the agent's next one is a second away.
    page.until_text("in-force", "none")
    page.tab_to("toxic-latency")
    page.press(Keys.ENTER)
    page.drag("toxic-latency-slider", 900)
    so(lambda: page.latency() == {"latency": 900, "jitter": 0})
    page.until_text("toxic-said", "latency is in force, LATENCY=900")
    page.until_text("in-force", "latency 900")
    assert page.value("toxic-latency") == "900"


def test_what_was_removed_does_not_come_back_with_a_move(page: Page) -> None:
    page.scene.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("toxic-apply", "Change")
    page.browser.ask("document.querySelector('[aria-label=\"Remove latency\"]').click()")
    so(lambda: page.latency() is None)
    page.drag("toxic-latency-slider", 900)
    page.after_looks(2)
    assert page.latency() is None
    assert page.text("toxic-apply") == "Put in force"
    # It was for when it is put in force.
    page.tab_to("toxic-latency")
    page.press(Keys.ENTER)
    so(lambda: page.latency() == {"latency": 900, "jitter": 0})


def test_a_moved_slider_changes_its_own_value_and_no_other(page: Page) -> None:
    page.scene.lab.in_the_shell(TYPE="latency", LATENCY="300", TOXICITY="0.5", STREAM="upstream")
    page.until_text("in-force", "latency 300")
    page.scene.lab.in_the_shell(NAME="latency", LATENCY="1000")
    page.drag("toxic-jitter-slider", 5)
    so(lambda: page.latency() == {"latency": 1000, "jitter": 5})
    toxic = page.scene.lab.toxiproxy.toxics["latency"]
    assert (toxic["toxicity"], toxic["stream"]) == (0.5, "upstream")
    page.drag("toxic-toxicity-slider", 1)
    so(lambda: page.scene.lab.toxiproxy.toxics["latency"]["toxicity"] == 1)
    assert page.latency() == {"latency": 1000, "jitter": 5}


def test_what_was_moved_for_another_name_is_not_sent_to_a_toxic_in_force(page: Page) -> None:
    page.scene.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("toxic-apply", "Change")
    page.tab_to("toxic-name")
    page.press("b")
    page.drag("toxic-latency-slider", 800)
    assert page.text("toxic-apply") == "Put in force"
    page.press(Keys.BACKSPACE)
    assert page.text("toxic-apply") == "Change"
    assert page.value("toxic-latency") == "300"
    page.drag("toxic-jitter-slider", 5)
    so(lambda: page.latency() == {"latency": 300, "jitter": 5})
    page.until_text("toxic-said", "latency is in force, JITTER=5")


def test_the_form_follows_what_is_in_force_but_for_what_is_being_edited(page: Page) -> None:
    page.scene.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("toxic-apply", "Change")
    # Emptied, to type another number: it is not sent, and not filled in by somebody else.
    page.tab_to("toxic-jitter")
    page.press(Keys.CONTROL + "a", Keys.BACKSPACE)
    page.scene.lab.in_the_shell(NAME="latency", LATENCY="3000", JITTER="70", TOXICITY="0.25")
    page.until("return document.getElementById('toxic-latency').value === '3000'")
    assert page.value("toxic-latency-slider") == "3000"
    assert page.value("toxic-toxicity") == "0.25"
    assert page.value("toxic-jitter") == ""
    page.press("7", Keys.ENTER)
    so(lambda: page.latency() == {"latency": 3000, "jitter": 7})
    # Nothing is left to change, so nothing is changed.
    page.until_text("toxic-said", "JITTER=7")
    page.until_text("in-force", "jitter 7")
    before = list(page.scene.lab.toxiproxy.changes)
    page.press(Keys.ENTER)
    page.until_text("toxic-said", "latency is in force as shown")
    assert page.scene.lab.toxiproxy.changes == before
    # Another type begins with its own values.
    page.browser.ask(
        "const t = document.getElementById('toxic-type'); t.value = 'bandwidth';"
        "t.dispatchEvent(new Event('change'))"
    )
    assert page.text("toxic-apply") == "Put in force"
    assert page.value("toxic-toxicity") == "1"


def test_an_older_look_does_not_overwrite_a_change(page: Page) -> None:
    page.until_text("in-force", "none")
    page.browser.ask(
        """window.seen = [];
        new MutationObserver(() => window.seen.push(document.getElementById('in-force').innerText))
          .observe(document.getElementById('in-force'), {childList: true});"""
    )
    # Looks take long, so that one is on its way when the toxic is put in force.
    page.scene.lab.thinks_s = 1.5
    page.after_looks(1)
    page.tab_to("toxic-latency")
    page.press(Keys.ENTER)
    page.until_text("in-force", "latency 300")
    page.after_looks(2)
    assert all("latency 300" in text for text in page.browser.ask("return window.seen"))


def test_a_list_that_is_drawn_again_keeps_the_focus(page: Page) -> None:
    page.scene.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("in-force", "latency 300")
    page.browser.ask("document.querySelector('[aria-label=\"Remove latency\"]').focus()")
    page.scene.lab.in_the_shell(NAME="latency", LATENCY="400")
    page.until_text("in-force", "latency 400")
    assert page.browser.ask("return document.activeElement.ariaLabel") == "Remove latency"


def test_what_nobody_knows_is_said_to_be_unknown(page: Page) -> None:
    page.scene.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.tab_to("bench-start")
    page.press(Keys.ENTER)
    page.until_cell("fixed-pool", "client_p95_s", "500")
    page.until_text("in-force", "latency 300")
    page.until_text("bench-state", "running since")
    with page.without_the_lab():
        page.until_cell("fixed-pool", "client_p95_s", "unknown")
        assert page.text("in-force") == "unknown: the lab does not answer"
        assert page.text("bench-state") == "unknown: the lab does not answer"
        assert page.text("state") == "the lab does not answer: is it up?"
        pressed = "return document.querySelectorAll('[aria-pressed=true], tr.loaded').length"
        assert page.browser.ask(pressed) == 0
        # Nothing is sent on a guess, and that is said.
        page.drag("toxic-latency-slider", 900)
        page.until_text("toxic-said", "not sent: it is unknown what is in force")
    page.until_cell("fixed-pool", "client_p95_s", "500")
    page.until_text("in-force", "latency 300")
    page.until_text("bench-state", "running since")
    assert page.value("toxic-latency") == "300"
    # Without Prometheus alone, the numbers alone are unknown.
    page.scene.lab.down.add("prometheus")
    page.until_cell("fixed-pool", "client_p95_s", "unknown")
    page.until_cell("event-loop", "rps", "unknown")
    page.until_text("in-force", "latency 300")
    page.scene.lab.down.clear()
    page.until_cell("fixed-pool", "client_p95_s", "500")


BENCH = """const look = part.bench({routes: ['/downstream'], servers: ['a']}, () => {}, () => {});
    const state = {running: true, stopping: false, words: ['CONC=5'], started_at: 1, ended_at: null,
      status: null, output: ['one']};
    look({bench: state});"""


def test_how_a_bench_ended_is_unknown_where_the_agent_began_anew(page: Page) -> None:
    said = page.with_part(
        "bench",
        BENCH
        + """look({bench: {...state, running: false, words: [], started_at: null, output: []}});
        return document.getElementById('bench-said').textContent;""",
    )
    assert said == "how it ended is unknown: the agent was restarted"


def test_of_a_benchs_output_only_what_is_new_is_read_out(page: Page) -> None:
    texts = page.with_part(
        "bench",
        BENCH
        + """look({bench: {...state, output: ['one', 'two']}});
        return [...document.getElementById('bench-output').childNodes].map((n) => n.data);""",
    )
    assert texts == ["lab bench CONC=5\none", "\ntwo"]


def test_the_chart_draws_no_line_where_nobody_looked(page: Page) -> None:
    lines = page.with_part(
        "chart",
        """const place = document.createElement('div');
        const chart = new part.Chart(place);
        for (const at of [100, 101, 102, 130, 131]) chart.add(at, 'a', {client_p95_s: 0.2}, []);
        const line = () => place.querySelector('path.client').getAttribute('d');
        const before = line();
        chart.pass(140);
        return [before.match(/M/g).length, before.match(/L/g).length, line() !== before];""",
    )
    assert lines == [2, 3, True]


def test_a_page_that_was_opened_before_the_lab_was_up_begins_by_itself(page: Page) -> None:
    page.browser.told("Network.enable")
    page.browser.told("Network.setBlockedURLs", urls=["*/api/info"])
    try:
        page.browser.look(page.url)
        page.until_text("state", "the lab does not answer: is it up?")
    finally:
        page.browser.told("Network.setBlockedURLs", urls=[])
    page.until("return document.querySelectorAll('#numbers tr').length === 2")


def test_a_knob_that_not_every_server_took_is_told_for_each(page: Page) -> None:
    page.scene.lab.settings["event-loop"]["pool_size"] = 200
    page.tab_to("knobs-read")
    page.press(Keys.ENTER)
    page.until_text("knobs-said", "read again")
    page.scene.lab.down.add("event-loop")
    page.drag("knob-pool_size", 50)
    page.browser.ask("document.querySelector('[aria-label=\"Set pool_size\"]').click()")
    page.until_text("knobs-said", "pool_size is 50 on fixed-pool; failed on event-loop: event-loop")
    page.until_text("knob-pool_size-now", "now 50 (fixed-pool), unknown (event-loop)")
    # It is not forgotten: once it is back it is set with the others.
    page.scene.lab.down.clear()
    page.browser.ask("document.querySelector('[aria-label=\"Set pool_size\"]').click()")
    page.until_text("knobs-said", "pool_size is 50 on fixed-pool, event-loop")
    assert page.text("knob-pool_size-now") == "now 50"
    assert page.scene.lab.settings["event-loop"]["pool_size"] == 50


def test_knobs_are_read_again_when_others_may_have_changed_them(page: Page) -> None:
    settings = page.scene.lab.settings["fixed-pool"]
    assert page.text("knob-pool_size-now") == "now 200"
    # In another tab, meanwhile.
    settings["pool_size"] = 50
    page.comes_into_sight()
    page.until_text("knob-pool_size-now", "now 50")
    assert page.value("knob-pool_size") == "50"
    # By a bench. What is being typed stays, and so does the focus.
    settings["pool_size"] = 70
    page.tab_to("knob-queue_bound")
    page.type_over("12")
    page.browser.ask(
        "document.getElementById('bench-duration').value = '1s';"
        "document.getElementById('bench').requestSubmit()"
    )
    page.until_text("bench-said", "finished")
    page.until_text("knob-pool_size-now", "now 70")
    assert page.value("knob-queue_bound") == "12"
    assert page.text("knob-queue_bound-now") == "now 0"
    assert page.browser.ask("return document.activeElement.id") == "knob-queue_bound"
    # While the lab was away, JVMs may have begun anew.
    with page.without_the_lab():
        page.until_cell("fixed-pool", "rps", "unknown")
        page.comes_into_sight()
        page.until_text("knob-pool_size-now", "now unknown")
        settings["pool_size"] = 90
    page.until_text("knob-pool_size-now", "now 90")


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
