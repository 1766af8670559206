"""How the control page looks in a real browser: its widths, colours, names and chart."""

from copy import replace
from datetime import UTC, datetime, timedelta

import pytest

from support.control_page import PHONE, SCREEN, Page


def test_the_chart_draws_no_line_where_nobody_looked(page: Page) -> None:
    lines = page.with_part(
        "chart",
        """const place = document.createElement('div');
        const draw = part.chart(place);
        for (const at of [100, 101, 102, 130, 131]) draw(at, 'a', {client_p95_s: 0.2});
        const line = () => place.querySelector('path.client').getAttribute('d');
        const before = line();
        draw(140, 'a');
        return [before.match(/M/g).length, before.match(/L/g).length, line() !== before];""",
    )
    assert lines == [2, 3, True]


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
    style = (
        "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
    )
    for name in ("toxic-type", "toxic-latency", "toxic-apply", "knob-pool_size"):
        page.tab_to(name)
        assert page.browser.ask(style) == "solid3px", name


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
    origins = "return performance.getEntriesByType('resource').map(one => new URL(one.name).origin)"
    assert set(page.browser.ask(origins)) == {page.url.rstrip("/")}
    log = page.browser.driver.get_log("browser")
    own = [entry["message"] for entry in log if entry["message"].startswith(page.url)]
    assert own == []


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_the_chart_can_be_read(page: Page, width: int) -> None:
    page.open(width)
    page.until("return document.querySelector('#chart text') !== null")
    page.until("return document.querySelector('#chart text').getBoundingClientRect().height >= 11")


def test_the_chart_keeps_the_line_of_a_toxic_that_is_gone(page: Page) -> None:
    page.until_text("in-force", "none")
    history = ((datetime.now(UTC) - timedelta(seconds=ago), "downstream", "x") for ago in (30, 10))
    page.scene.watch.seen = replace(page.scene.watch.seen, history=tuple(history))
    page.until("return document.querySelectorAll('#chart line.toxic').length === 2")
