"""The control page in a real browser, with the keyboard alone: its tab order leads everywhere."""

from selenium.webdriver.common.keys import Keys

from support.control_page import Page


def test_a_toxic_and_the_number_that_follows_by_keyboard_alone(page: Page) -> None:
    page.lab.loaded = True
    page.until_cell("fixed-pool", "client_p95_s", "200")
    page.until_text("state", "measuring:")
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
    # And the trial ends.
    page.lab.loaded = False
    page.until_cell("fixed-pool", "client_p95_s", "–")
    page.until_text("state", "no trial is running")


def test_what_nobody_knows_is_said_to_be_unknown(page: Page) -> None:
    page.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.lab.loaded = True
    page.until_cell("fixed-pool", "client_p95_s", "500")
    page.until_text("in-force", "latency 300")
    with page.without_the_lab():
        page.until_cell("fixed-pool", "client_p95_s", "unknown")
        assert page.text("in-force") == "unknown: the lab does not answer"
        assert page.text("state") == "the lab does not answer: is it up?"
        pressed = "return document.querySelectorAll('[aria-pressed=true], tr.loaded').length"
        assert page.browser.ask(pressed) == 0
        # Nothing is sent on a guess, and that is said.
        page.drag("toxic-latency-slider", 900)
        page.until_text("toxic-said", "not sent: it is unknown what is in force")
    page.until_cell("fixed-pool", "client_p95_s", "500")
    page.until_text("in-force", "latency 300")
    assert page.value("toxic-latency") == "300"
    # Without Prometheus alone, the numbers alone are unknown.
    page.lab.down.add("prometheus")
    page.until_cell("fixed-pool", "client_p95_s", "unknown")
    page.until_cell("event-loop", "rps", "unknown")
    page.until_text("in-force", "latency 300")
    page.lab.down.clear()
    page.until_cell("fixed-pool", "client_p95_s", "500")


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
    # By a trial. What is being typed stays, and so does the focus.
    page.lab.loaded = True
    page.until_text("state", "measuring:")
    settings["pool_size"] = 70
    page.fill("knob-queue_bound", "12")
    page.lab.loaded = False
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
    page.until_text("knobs-said", "pool_size is 50 on fixed-pool")
    assert page.text("knobs-said").endswith("fixed-pool")
    assert page.lab.settings["fixed-pool"]["pool_size"] == 50


def test_what_is_refused_is_said_where_it_was_asked(page: Page) -> None:
    page.fill("toxic-toxicity", "2")
    page.press(Keys.ENTER)
    page.until_text("toxic-said", "TOXICITY=2 is not allowed")
    assert "problem" in page.value("toxic-said", "className")
