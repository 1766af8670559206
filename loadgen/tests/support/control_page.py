"""The control page in a real browser. The lab behind it is fake except the page and its API."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from msgspec.structs import replace
from selenium.webdriver.common.keys import Keys
from starlette.types import Receive, Send

from lab.live.clock import Clock
from lab.live.control.guard import Guard, page_hosts
from live.conftest import TRIAL, FakeLab, Scene
from support.browser import Browser

PHONE, SCREEN = 390, 1280
PATIENCE_S = 60.0


class Reacting(FakeLab):
    """A lab whose p95 follows the latency toxic while a trial runs (`loaded`)."""

    loaded = False

    @property
    def numbers(self) -> dict[tuple[str, str], str]:
        added = sum(t["attributes"].get("latency", 0) for t in self.toxiproxy.toxics.values())
        p95_s = f"{0.2 + added / 1000}"
        loaded = {"rps": "450", "client_p95_s": p95_s, "server_p95_s": p95_s}
        numbers = loaded if self.loaded else {"in_flight": "0"}
        return {("fixed-pool", name): text for name, text in numbers.items()}

    @numbers.setter
    def numbers(self, _: object) -> None:
        """They follow."""


@dataclass
class Page:
    """The page of one lab, opened."""

    lab: Reacting
    scene: Scene
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

    def press_on(self, name: str, key: str) -> None:
        """Goes to an element with Tab, and presses a key there."""
        self.tab_to(name)
        self.press(key)

    def fill(self, name: str, text: str) -> None:
        """Types over what is there."""
        self.tab_to(name)
        self.press(Keys.CONTROL + "a", text)

    def drag(self, name: str, value: int) -> None:
        """Moves a slider, as a finger or the mouse would."""
        self.browser.ask(
            "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
            "for (const what of ['input', 'change']) s.dispatchEvent(new Event(what))",
            name,
            value,
        )

    def value(self, name: str, what: str = "value") -> str:
        script = "return document.getElementById(arguments[0])[arguments[1]]"
        return str(self.browser.ask(script, name, what))

    def text(self, name: str) -> str:
        return self.value(name, "textContent")

    def until_text(self, name: str, text: str) -> None:
        found = "document.getElementById(arguments[0])?.textContent"
        self.until(f"return {found}.includes(arguments[1])", name, text)

    def latency(self) -> dict[str, int] | None:
        """Of the latency toxic that is in force, whoever knows it."""
        toxic = self.lab.toxiproxy.toxics.get("latency")
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
        looks = "performance.getEntriesByType('resource').map(one => one.name)"
        looks = f"return {looks}.filter(name => name.endsWith('/api/live')).length"
        self.until(f"{looks} >= arguments[0]", self.browser.ask(looks) + count)

    def comes_into_sight(self) -> None:
        self.browser.ask("document.dispatchEvent(new Event('visibilitychange'))")

    def until(self, script: str, *arguments: object) -> None:
        def shown() -> str:
            return f"{script}\n{self.browser.ask('return document.body.innerText')}"

        so(lambda: self.browser.ask(script, *arguments), shown)

    def until_cell(self, server: str, name: str, text: str) -> None:
        cell = "[data-server='${arguments[0]}'] [data-is='${arguments[1]}']"
        found = f"document.querySelector(`{cell}`)?.textContent"
        self.until(f"return {found} === arguments[2]", server, name, text)

    def open(self, width: int = SCREEN, *, dark: bool = False) -> None:
        self.browser.look(self.url, width, dark=dark)
        self.until("return document.querySelectorAll('#numbers tr').length === 2")
        self.until("return document.querySelector('#knob-pool_size') !== null")


def scene_of(lab: Reacting) -> Scene:
    """An agent in front of it; its trial runs while the lab is loaded."""
    scene, trial = Scene(lab, Clock()), replace(TRIAL, phase="measure")
    scene.trial = lambda: trial if lab.loaded else None
    return scene


def serve(scene: Scene) -> tuple[int, Callable[[], None]]:
    """The page on a free port, in a thread with a loop of its own."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    # From here on nobody is refused, however late the thread begins.
    listening.listen()
    port: int = listening.getsockname()[1]
    guard = Guard(scene.app, page_hosts({port}), set(), page_token="page", agent_token="")

    async def front(scope: Any, receive: Receive, send: Send) -> None:
        """Adds the page's token, as the front does (go/downstream/service/front.go)."""
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"lab-token", b"page")]}
        await guard(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(front, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()

    def end() -> None:
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()

    return port, end


def so(condition: Callable[[], object], what: Callable[[], str] = str) -> None:
    """Returns when it is true; fails with `what`."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"never so: {what()}"
        time.sleep(0.05)
