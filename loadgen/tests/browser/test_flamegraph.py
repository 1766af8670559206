"""A flame graph from the disk: its frame may draw, and do nothing else."""

from pathlib import Path

from browser.conftest import Browser
from lab.model import CPU, Recording
from lab.report.page.flamegraph import page

OF = Recording(CPU, ("jdk.CPUTimeSample",), 400, whole=True, stacks={"a.B.run:1": 400})
# What a recorded JVM might send in the place of a graph.
HOSTILE = """<!DOCTYPE html><canvas id="canvas" style="width:100%"></canvas><script>
const canvas = document.getElementById('canvas'), told = {blocked: []};
told.width = canvas.offsetWidth;
document.addEventListener('securitypolicyviolation', e => told.blocked.push(e.violatedDirective));
for (const [name, act] of Object.entries({
  parent: () => parent.document.title,
  top: () => { top.location = 'about:blank'; },
  store: () => localStorage.length,
})) try { act(); told[name] = 'done'; } catch { told[name] = 'refused'; }
told.opened = window.open('about:blank') === null ? 'refused' : 'done';
new Image().src = 'http://127.0.0.1:9/picture';
fetch('http://127.0.0.1:9/text').catch(() => { told.fetched = 'refused'; });
</script>"""


def test_its_frame_draws_and_reaches_nothing(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "flame.html").write_text(page("01-a", OF, HOSTILE))
    browser.look((tmp_path / "flame.html").as_uri())
    frame = browser.ask("return document.querySelector('iframe').getBoundingClientRect().height")
    assert frame > 700
    browser.driver.switch_to.frame(0)
    try:
        browser.wait_for("return told.fetched && told.blocked.length >= 2")
        told = browser.ask("return told")
    finally:
        browser.driver.switch_to.default_content()
    assert told.pop("width") > 1000
    assert {*told.pop("blocked")} == {"img-src", "connect-src"}
    assert set(told.values()) == {"refused"}
    assert browser.ask("return document.title") == "01-a: flame graph"
