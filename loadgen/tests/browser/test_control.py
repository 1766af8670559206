"""The control page in a real browser, with the keyboard alone: its tab order leads everywhere."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from live.control.test_runs import NAME
from support.control_page import Page


def test_a_bench_a_toxic_and_the_number_that_follows_by_keyboard_alone(page: Page) -> None:
    # A bench, of 60 s over 100 connections.
    page.fill("bench-conc", "100")
    page.press_on("bench-start", Keys.ENTER)
    page.until_cell("fixed-pool", "client_p95_s", "200")
    page.until_text("state", "measuring:")
    page.until_text("bench-output", "CONC=100")
    # A latency toxic of 300 ms: the number follows.
    page.fill("toxic-latency", "300")
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
    page.press_on("bench-stop", Keys.SPACE)
    page.until("return document.getElementById('bench-said').textContent === 'stopped'")
    page.until_cell("fixed-pool", "client_p95_s", "–")
    assert page.scene.bench.state.status == 130


def test_what_nobody_knows_is_said_to_be_unknown(page: Page) -> None:
    page.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.press_on("bench-start", Keys.ENTER)
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
    page.lab.down.add("prometheus")
    page.until_cell("fixed-pool", "client_p95_s", "unknown")
    page.until_cell("event-loop", "rps", "unknown")
    page.until_text("in-force", "latency 300")
    page.lab.down.clear()
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
    page.lab.settings["event-loop"]["pool_size"] = 200
    page.press_on("knobs-read", Keys.ENTER)
    page.until_text("knobs-said", "read again")
    page.lab.down.add("event-loop")
    page.drag("knob-pool_size", 50)
    page.browser.ask("document.querySelector('[aria-label=\"Set pool_size\"]').click()")
    page.until_text("knobs-said", "pool_size is 50 on fixed-pool; failed on event-loop: event-loop")
    page.until_text("knob-pool_size-now", "now 50 (fixed-pool), unknown (event-loop)")
    # It is not forgotten: once it is back it is set with the others.
    page.lab.down.clear()
    page.browser.ask("document.querySelector('[aria-label=\"Set pool_size\"]').click()")
    page.until_text("knobs-said", "pool_size is 50 on fixed-pool, event-loop")
    assert page.text("knob-pool_size-now") == "now 50"
    assert page.lab.settings["event-loop"]["pool_size"] == 50


def test_knobs_are_read_again_when_others_may_have_changed_them(page: Page) -> None:
    settings = page.lab.settings["fixed-pool"]
    assert page.text("knob-pool_size-now") == "now 200"
    # In another tab, meanwhile.
    settings["pool_size"] = 50
    page.comes_into_sight()
    page.until_text("knob-pool_size-now", "now 50")
    assert page.value("knob-pool_size") == "50"
    # By a bench. What is being typed stays, and so does the focus.
    settings["pool_size"] = 70
    page.fill("knob-queue_bound", "12")
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


def test_a_knob_is_turned_on_every_server_that_has_it(page: Page) -> None:
    page.fill("knob-pool_size", "50")
    page.press(Keys.ENTER)
    page.until(
        "return document.getElementById('knobs-said').textContent === 'pool_size is 50 on "
        "fixed-pool'"
    )
    assert page.lab.settings["fixed-pool"]["pool_size"] == 50


def test_what_is_refused_is_said_where_it_was_asked(page: Page) -> None:
    page.fill("bench-conc", "many")
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
