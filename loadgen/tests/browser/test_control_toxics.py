"""Toxics on the control page, in a real browser."""

from selenium.webdriver.common.keys import Keys

from support.control_page import Page, so


def test_a_slider_that_is_moved_right_after_it_was_put_in_force_counts(page: Page) -> None:
    # Another look, so that the agent's next one is a second away.
    page.until_text("in-force", "none")
    page.press_on("toxic-latency", Keys.ENTER)
    page.drag("toxic-latency-slider", 900)
    so(lambda: page.latency() == {"latency": 900, "jitter": 0})
    page.until_text("toxic-said", "latency is in force, LATENCY=900")
    page.until_text("in-force", "latency 900")
    assert page.value("toxic-latency") == "900"


def test_what_was_removed_does_not_come_back_with_a_move(page: Page) -> None:
    page.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("toxic-apply", "Change")
    page.browser.ask("document.querySelector('[aria-label=\"Remove latency\"]').click()")
    so(lambda: page.latency() is None)
    page.drag("toxic-latency-slider", 900)
    page.after_looks(2)
    assert page.latency() is None
    assert page.text("toxic-apply") == "Put in force"
    # It was for when it is put in force.
    page.press_on("toxic-latency", Keys.ENTER)
    so(lambda: page.latency() == {"latency": 900, "jitter": 0})


def test_a_moved_slider_changes_its_own_value_and_no_other(page: Page) -> None:
    page.lab.in_the_shell(TYPE="latency", LATENCY="300", TOXICITY="0.5", STREAM="upstream")
    page.until_text("in-force", "latency 300")
    page.lab.in_the_shell(NAME="latency", LATENCY="1000")
    page.drag("toxic-jitter-slider", 5)
    so(lambda: page.latency() == {"latency": 1000, "jitter": 5})
    toxic = page.lab.toxiproxy.toxics["latency"]
    assert (toxic["toxicity"], toxic["stream"]) == (0.5, "upstream")
    page.drag("toxic-toxicity-slider", 1)
    so(lambda: page.lab.toxiproxy.toxics["latency"]["toxicity"] == 1)
    assert page.latency() == {"latency": 1000, "jitter": 5}


def test_what_was_moved_for_another_name_is_not_sent_to_a_toxic_in_force(page: Page) -> None:
    page.lab.in_the_shell(TYPE="latency", LATENCY="300")
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
    page.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("toxic-apply", "Change")
    # Emptied, to type another number: it is not sent, and not filled in by somebody else.
    page.tab_to("toxic-jitter")
    page.press(Keys.CONTROL + "a", Keys.BACKSPACE)
    page.lab.in_the_shell(NAME="latency", LATENCY="3000", JITTER="70", TOXICITY="0.25")
    page.until("return document.getElementById('toxic-latency').value === '3000'")
    assert page.value("toxic-latency-slider") == "3000"
    assert page.value("toxic-toxicity") == "0.25"
    assert page.value("toxic-jitter") == ""
    page.press("7", Keys.ENTER)
    so(lambda: page.latency() == {"latency": 3000, "jitter": 7})
    # The field sends what is typed, and Enter the form: the second may find nothing left to change.
    said = "return /JITTER=7|as shown/.test(document.getElementById('toxic-said').textContent)"
    page.until(said)
    page.until_text("in-force", "jitter 7")
    before = list(page.lab.toxiproxy.changes)
    page.press(Keys.ENTER)
    page.until_text("toxic-said", "latency is in force as shown")
    assert page.lab.toxiproxy.changes == before
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
    page.lab.thinks_s = 1.5
    page.after_looks(1)
    page.press_on("toxic-latency", Keys.ENTER)
    page.until_text("in-force", "latency 300")
    page.after_looks(2)
    assert all("latency 300" in text for text in page.browser.ask("return window.seen"))


def test_a_list_that_is_drawn_again_keeps_the_focus(page: Page) -> None:
    page.lab.in_the_shell(TYPE="latency", LATENCY="300")
    page.until_text("in-force", "latency 300")
    page.browser.ask("document.querySelector('[aria-label=\"Remove latency\"]').focus()")
    page.lab.in_the_shell(NAME="latency", LATENCY="400")
    page.until_text("in-force", "latency 400")
    assert page.browser.ask("return document.activeElement.ariaLabel") == "Remove latency"


def test_every_type_of_toxic_has_its_fields(page: Page) -> None:
    page.tab_to("toxic-type")
    shown = """return document.getElementById('toxic-type').value + ':' +
      [...document.querySelectorAll('#toxic-attributes label')].map(l => l.textContent).join('|')"""
    seen = set()
    for _ in range(7):
        seen.add(page.browser.ask(shown))
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
    page.press_on("downstream-down", Keys.SPACE)
    page.until("return document.querySelector('#in-force li').textContent.includes('is DOWN')")
    assert not page.lab.toxiproxy.enabled
    page.press_on("downstream-up", Keys.SPACE)
    page.until("return document.querySelector('#in-force li').textContent === 'none'")


def test_a_slider_stands_where_its_number_is(page: Page) -> None:
    pairs = page.browser.ask(
        """return [...document.querySelectorAll('.slider, .knob')].map(one =>
          [one.querySelector('[type=range]').value, one.querySelector('[type=number]').value])"""
    )
    assert len(pairs) >= 5
    assert all(slider == number for slider, number in pairs), pairs
