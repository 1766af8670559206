"""A flame graph from the disk, as a reader uses it."""

from pathlib import Path

from browser.conftest import Browser
from lab.judge.hot_difference import Side
from lab.model import CPU, Recording
from lab.report.page.flamegraph import difference, page
from lab.report.recorded import Recorded
from support.fakes import plan
from support.planned import row

STACKS = {
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:31": 300,
    "java.lang.Thread.run:9;lab.Loop.poll:3": 100,
}
DIFFERENT = {"java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:32": 400}
FRAMES = """return [...document.querySelectorAll('#graph button')].map(one => {
  const box = one.getBoundingClientRect(), whole = one.parentElement.getBoundingClientRect();
  return [one.textContent, Math.round(100 * box.width / whole.width)];
})"""


def test_frames_are_as_wide_as_their_share_and_can_be_seen_alone(
    browser: Browser, tmp_path: Path
) -> None:
    of = Recording(CPU, ("jdk.CPUTimeSample",), 400, whole=True, stacks=STACKS)
    (tmp_path / "flame.html").write_text(page(Recorded(row(plan()), None, of)))
    browser.look((tmp_path / "flame.html").as_uri())
    assert browser.ask(FRAMES) == [
        ["all", 100],
        ["java.lang.Thread.run:9", 100],
        ["lab.Loop.poll:3", 25],
        ["lab.Routes.<init>:5", 75],
        ["lab.Primes.isPrime:31", 75],
    ]
    browser.ask("document.querySelectorAll('#graph button')[3].click()")
    alone = [["all", 100], ["java.lang.Thread.run:9", 100], ["lab.Routes.<init>:5", 100]]
    assert browser.ask(FRAMES) == [*alone, ["lab.Primes.isPrime:31", 100]]
    browser.ask("document.querySelectorAll('#graph button')[0].click()")
    assert len(browser.ask(FRAMES)) == 5
    browser.ask(
        "const one = document.querySelector('#mark'); one.value = 'PRIMES';"
        "one.dispatchEvent(new Event('input'))"
    )
    assert browser.ask("return document.querySelectorAll('.marked').length") == 1
    assert browser.ask("return document.querySelector('#said').textContent") == "75.0 % of all"


def test_a_difference_is_told_by_a_sign_a_colour_and_both_costs(
    browser: Browser, tmp_path: Path
) -> None:
    sides = (
        Side(row(plan()), Recording(CPU, ("jdk.CPUTimeSample",), 400, True, stacks), each)
        for stacks, each in ((STACKS, 100.0), (DIFFERENT, 200.0))
    )
    (tmp_path / "difference.html").write_text(difference(*sides, "a load"))
    browser.look((tmp_path / "difference.html").as_uri())
    assert browser.ask(FRAMES) == [
        ["▲ all", 100],
        ["▲ java.lang.Thread.run", 100],
        ["▼ lab.Loop.poll", 8],
        ["▲ lab.Routes.<init>", 92],
        ["▲ lab.Primes.isPrime", 92],
    ]
    titles = browser.ask(
        "return [...document.querySelectorAll('#graph button')].map(one => one.title)"
    )
    assert titles[2] == "lab.Loop.poll\nA 25, B 0 µs of CPU for each answer (−25)"
    colours = (
        "return [...document.querySelectorAll('#graph button')].map(one => one.style.background)"
    )
    less, more = browser.ask(colours)[2:4]
    assert less != more
