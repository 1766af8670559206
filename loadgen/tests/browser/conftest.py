"""A real browser, without a window: Debian's Chromium, driven by Selenium."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@dataclass(frozen=True)
class Browser:
    """One window. Selenium's driver is `driver`; the rest is what Chromium tells itself."""

    driver: webdriver.Chrome

    def look(self, url: str, width: int = 1280, *, dark: bool = False, media: str = "") -> None:
        """Opens a page in a window so wide, in that colour scheme, for screen or for print."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.told("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.told(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.driver.get(url)

    def ask(self, script: str, *arguments: object) -> Any:
        """What a function body in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def told(self, command: str, **values: Any) -> Any:
        """A command of Chromium's own protocol, and its answer."""
        return self.driver.execute_cdp_cmd(command, values)

    def picture(self, *, whole: bool = False) -> bytes:
        """What is seen, as PNG; `whole`: the page in all its length."""
        data = self.told("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        return base64.b64decode(data)


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile folder; it ends with the context."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    # What the page asked for from elsewhere would be in this log.
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as window:
        yield window
