"""One browser for all tests, and the control page opened in it."""

from collections.abc import Iterator

import pytest

from support.browser import Browser, chromium
from support.control_page import Page, Reacting, scene_of, serve

# The control page looks five times a second instead of once: tests mostly wait for its next look.
OFTEN = """const after = window.setTimeout;
window.setTimeout = (todo, ms, ...more) => after(todo, ms === 1000 ? 200 : ms, ...more);"""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as window:
        window.told("Page.addScriptToEvaluateOnNewDocument", source=OFTEN)
        yield window


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    lab = Reacting()
    scene = scene_of(lab)
    port, end = serve(scene)
    found = Page(lab, scene, f"http://127.0.0.1:{port}/", browser)
    try:
        found.open()
        yield found
    finally:
        browser.driver.get("about:blank")
        end()
