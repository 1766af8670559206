"""report.html as a reader sees it: on a wide screen, on a phone, in the dark, on paper."""

import json

import pytest

from browser.conftest import Browser
from lab.app.derive import derive
from lab.kinds import planted
from lab.kinds.cases import Case
from lab.kinds.planted import Planted
from lab.model import Condition
from lab.report.page.palette import DARK, LIGHT
from support.drawn import Drawing, answered
from support.planned import all_of, experiment, planner
from support.runs import plans, tell, write_manifest, write_raw

# A sheet of A4 without its margins of 1 cm, at 96 pixels an inch.
PHONE, SCREEN, PAPER = 390, 1280, 718
# How many figures of loads each run has; two figures over time of each of four
# trials more.
PRINTED = {"loads": 6, "planted": 0, "invalid": 6}
OVER_TIME = 8
CASES = [
    ("small-pool", "a", 100), ("connection-cap", "a", 100), ("short-deadline", "a", 100),
    ("narrow-proxy", "a", 200), ("slow-downstream", "b", 100), ("nothing", "b", 200),
    *((f"healthy-{number}-virtual-threads", "b", 100) for number in range(8)),
]  # fmt: skip
CONDITIONS = Planted(
    tuple(
        Case(f"{name}-of-the-{server}", server, "/downstream", load, ("worker pool",),
             condition=Condition(knobs={"pool_size": 20 + at}), peak_extra=400 if at == 0 else 0)
        for at, (name, server, load) in enumerate(CASES)
    )
)  # fmt: skip
# Two rounds of conditions with long names.
PLANTED = experiment(
    kind="planted", modes=("closed",), concurrencies=(100, 200), launches=2, own=CONDITIONS
)


@pytest.fixture(scope="module", params=list(PRINTED))
def kind(request: pytest.FixtureRequest) -> str:
    """A run with an invalid trial and series; one of conditions with long names and a spike; one
    whose trials are all invalid."""
    return str(request.param)


@pytest.fixture(scope="module")
def url(kind: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = {"experiment": PLANTED} if kind == "planted" else {}
    run_dir = write_manifest(tmp_path_factory.mktemp("results"), f"20260131T120000Z-{kind}", **made)
    if kind == "planted":
        write_raw(run_dir, all_of(planted.design(planner(PLANTED))))
    else:
        write_raw(run_dir, plans(1 if kind == "invalid" else 6))
    folders = sorted((run_dir / "raw").iterdir())
    for raw in folders[:4]:
        answered(raw)
    if kind == "planted":
        tell(folders[0], peaks=[{"started_s": 13.5, "ended_s": 15.5}])
    else:
        for raw in folders if kind == "invalid" else folders[:1]:
            tell(raw, toxic_changes=["downstream at 12:00:01"])
    derive(run_dir, [Drawing()])
    return (run_dir / "report.html").as_uri()


@pytest.mark.parametrize("width", [320, PHONE, 768, SCREEN])
def test_the_page_never_scrolls_sideways(browser: Browser, url: str, width: int) -> None:
    browser.look(url, width)
    browser.unfold()
    assert browser.ask("return window.innerWidth") == width
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    outside = browser.ask(
        """return [...document.querySelectorAll('body *')].filter(one => {
          const box = one.getBoundingClientRect();
          return box.right > innerWidth + 1 && !one.closest('.scroll, pre, svg');
        }).map(one => one.outerHTML.slice(0, 80))"""
    )
    assert outside == []


def all_drawn(browser: Browser) -> None:
    """Goes down the page, as a reader does, until its script has drawn every figure."""
    browser.unfold()
    for at in range(browser.ask("return document.querySelectorAll('figure').length")):
        browser.wait_for(
            f"""const one = document.querySelectorAll('figure')[{at}];
            one.scrollIntoView({{block: 'center', behavior: 'instant'}});
            return one.classList.contains('drawn')"""
        )


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("drawing", ["svg.fig", ".live svg"])
def test_every_figure_can_be_read(
    browser: Browser, url: str, kind: str, width: int, drawing: str
) -> None:
    browser.look(url, width)
    expected = PRINTED[kind]
    if drawing == "svg.fig":
        browser.without_script(url)
    else:
        expected += OVER_TIME
        all_drawn(browser)
    sizes = browser.ask(
        """return [...document.querySelectorAll(arguments[0])].map(one => {
          const text = one.querySelector('text').getBoundingClientRect();
          const box = one.getBoundingClientRect();
          return [box.width, box.height, text.height];
        })""",
        drawing,
    )
    assert len(sizes) == expected
    if drawing == ".live svg":
        lengths = "return [...document.querySelectorAll('.live')].map(one => one.ariaLabel.length)"
        assert min(browser.ask(lengths)) > 50
    assert all(w > 250 and h > 80 and text >= 10 for w, h, text in sizes)
    # No text of a figure lies outside of it.
    outside = browser.ask(
        """return [...document.querySelectorAll(arguments[0] + ' text')].filter(one => {
          const text = one.getBoundingClientRect();
          const box = one.closest('svg').getBoundingClientRect();
          return text.left < box.left - 3 || text.right > box.right + 3;
        }).map(one => one.textContent)""",
        drawing,
    )
    assert outside == []


def test_light_and_dark_follow_the_reader(browser: Browser, url: str, kind: str) -> None:
    seen = {}
    for dark in (False, True):
        browser.look(url, dark=dark)
        seen[dark] = browser.ask(
            """const of = (one, name) => [...document.querySelectorAll(one)].slice(0, 1)
              .map(one => getComputedStyle(one)[name]);
            return [...of('body', 'backgroundColor'), ...of('body', 'color'),
                    ...of('svg.fig [stroke^="var(--"]', 'stroke'), ...of('svg.fig text', 'fill')]"""
        )
    assert seen[False][0] == "rgb(255, 255, 255)"
    assert seen[True][0] == "rgb(20, 22, 26)"
    assert all(light != dark for light, dark in zip(seen[False], seen[True], strict=True))
    # Planted cases have no figures by load.
    assert len(seen[False]) == (2 if kind == "planted" else 4)


def test_on_paper_it_is_light_and_its_tables_are_whole(browser: Browser, url: str) -> None:
    folded = """return [...document.querySelectorAll('details.open-in-print:not([open])')]
      .filter(one => one.checkVisibility() && !one.parentElement.closest('details'))
      .map(one => [one.querySelector('div').checkVisibility(),
        one.getBoundingClientRect().bottom
          - one.querySelector('summary').getBoundingClientRect().bottom])"""
    browser.look(url)
    seen = browser.ask(folded)
    assert seen
    assert all(not shown and below < 3 for shown, below in seen)
    browser.look(url, PAPER, dark=True, media="print")
    # What is folded on a screen is open.
    printed = browser.ask(folded)
    assert len(printed) == len(seen)
    assert all(shown and below > 20 for shown, below in printed)
    ground = browser.ask("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert browser.ask("return getComputedStyle(document.querySelector('nav')).display") == "none"
    tables = browser.ask(
        """return [...document.querySelectorAll('.scroll')].filter(one => one.checkVisibility())
          .map(one => [one.getAttribute('aria-label'), one.scrollWidth - one.clientWidth,
                       one.querySelector('table').getBoundingClientRect().right - innerWidth])"""
    )
    assert len(tables) >= 3
    assert [one for one in tables if one[1] > 0 or one[2] > 0] == []
    paper = browser.told("Page.printToPDF", preferCSSPageSize=True)["data"]
    assert paper.startswith("JVBERi0")


def test_nothing_is_asked_from_elsewhere_and_nothing_goes_wrong(browser: Browser, url: str) -> None:
    browser.driver.get_log("performance")
    browser.driver.get_log("browser")
    browser.look(url)
    browser.ask(
        """window.violations = [];
        addEventListener('securitypolicyviolation', one => violations.push(one.blockedURI))"""
    )
    all_drawn(browser)
    log = [json.loads(one["message"])["message"] for one in browser.driver.get_log("performance")]
    asked = [one["params"] for one in log if one["method"] == "Network.requestWillBeSent"]
    urls = {one["request"]["url"] for one in asked}
    assert urls <= {url, "data:,"}
    ids = browser.ask("return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    # A breach of the page's policy would be in either.
    assert browser.ask("return violations") == []
    assert browser.driver.get_log("browser") == []


def test_its_policy_stops_any_other_script(browser: Browser, url: str) -> None:
    browser.look(url)
    browser.ask(
        """window.violations = [];
        addEventListener('securitypolicyviolation', one => violations.push(one.violatedDirective));
        const other = document.createElement('script');
        other.textContent = 'window.ran = true';
        document.body.append(other)"""
    )
    browser.wait_for("return violations.length > 0")
    assert browser.ask("return [violations, window.ran]") == [["script-src-elem"], None]


def test_without_a_script_printed_figures_are_there(browser: Browser, url: str, kind: str) -> None:
    browser.without_script(url)
    assert browser.ask("return document.querySelectorAll('.live').length") == 0
    seen = browser.ask(
        """return [...document.querySelectorAll('svg.fig')]
          .filter(one => !one.closest('details'))
          .map(one => one.checkVisibility() && one.getBoundingClientRect().height > 80)"""
    )
    assert len(seen) == PRINTED[kind]
    assert all(seen)
    # What a trial showed needs the script.
    browser.unfold()
    assert browser.ask("return document.querySelectorAll('main noscript').length") >= OVER_TIME / 2


def test_a_pointer_is_told_the_values_it_is_at(browser: Browser, url: str, kind: str) -> None:
    browser.look(url)
    all_drawn(browser)
    # Planted cases have no figures by load.
    if kind != "planted":
        marks = ("trials_marks", "invalid_marks")
        browser.point_at(", ".join(f"#figures ~ * .live .{one} path" for one in marks))
        tip = "document.querySelector('#vg-tooltip-element')"
        browser.wait_for(f"return {tip}?.matches('.visible')")
        lines = browser.ask(f"return {tip}.innerText").split("\n")
        assert "closed 100" in lines[0]
        assert "req/s, trial " in lines[1]
    browser.point_at("#trials ~ * .small .live .layer_0_layer_1_marks path")
    browser.wait_for(
        "return document.querySelector('#vg-tooltip-element').innerText.includes('for a worker')"
    )


def test_the_legend_shows_a_series_alone_and_all_again(browser: Browser, url: str) -> None:
    browser.look(url)
    all_drawn(browser)
    press = """const [entry, key] = arguments;
      const live = document.querySelector('#trials ~ * .small .live');
      const button = live.querySelectorAll('[role=button]')[entry];
      button.focus();
      if (key) button.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
      else button.querySelector('text').dispatchEvent(new MouseEvent('click', {bubbles: true}))"""
    shown = """const live = document.querySelector('#trials ~ * .small .live');
      const all = (of, name) => [...live.querySelectorAll(of)].map(one => one.getAttribute(name));
      return all('.lines_marks path', 'stroke-opacity').join() + ' '
        + all('[role=button]', 'aria-pressed').join()"""
    assert browser.ask(shown) == "1,1 true,true"
    for key in ("Enter", ""):
        for expected in ("1,0.06 true,false", "1,1 true,true"):
            browser.ask(press, 0, key)
            browser.wait_for(f"return (() => {{{shown}}})() === '{expected}'")


def test_the_keyboard_reaches_links_details_and_wide_tables(browser: Browser, url: str) -> None:
    browser.look(url, PHONE)
    all_drawn(browser)
    counts = browser.ask(
        """const all = [...document.querySelectorAll(arguments[0])];
        return [all.filter(one => one.tabIndex >= 0).length, all.length]""",
        "a, summary, .scroll, .live .series_legend_entries > g",
    )
    assert counts[0] == counts[1] > 0
    entry = """const one = document.querySelector('.live .series_legend_entries > g'); one.focus();
      return [document.activeElement === one, one.getAttribute('aria-label'), one.role]"""
    focused, label, role = browser.ask(entry)
    assert focused
    assert label
    assert role == "button"


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_not_blank(browser: Browser, url: str, kind: str, dark: bool, width: int) -> None:
    browser.look(url, width, dark=dark)
    whole = browser.pixels()
    # Planted cases have no figures by load.
    figure = whole if kind == "planted" else browser.pixels("#figures ~ .specs")
    for seen in (whole, figure):
        colour, share = seen.ground
        assert "#{:02x}{:02x}{:02x}".format(*colour) == (DARK if dark else LIGHT)["page"]
        assert 0.5 < share < 0.98
        # The grey steps of letters and lines alone are some dozens.
        assert len(seen.counts) > 30
    assert figure.coloured > 20 or figure is whole
