"""A real browser, without a window: Debian's Chromium, driven by Selenium."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

# A slow machine takes longer to draw.
PATIENCE_S = 120
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--hide-scrollbars"),
)


@dataclass(frozen=True)
class Browser:
    """One window. Selenium's driver is `driver`; the rest is what Chromium tells itself."""

    driver: webdriver.Chrome

    def look(self, url: str, width: int = 1280, *, dark: bool = False, media: str = "") -> None:
        """Opens a page in a window so wide, in that colour scheme, for screen or for print."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.told("Emulation.setEmulatedMedia", media=media, features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.told("Emulation.setDeviceMetricsOverride", **size)
        self.driver.get(url)

    def ask(self, script: str, *arguments: object) -> Any:
        """What a function body in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def unfold(self) -> None:
        """Opens all that is folded."""
        self.ask("document.querySelectorAll('details').forEach(one => one.open = true)")

    def without_script(self, url: str) -> None:
        """Opens a page as a browser does whose reader allows no scripts."""
        self.told("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.driver.get(url)
        finally:
            self.told("Emulation.setScriptExecutionDisabled", value=False)

    def wait_for(self, script: str) -> None:
        """Asks until the page says yes. Raises TimeoutException."""
        WebDriverWait(self.driver, PATIENCE_S, 0.05).until(lambda _: self.ask(script))

    def point_at(self, of: str) -> None:
        """Moves the mouse to the middle of an element."""
        x, y = self.ask(
            """const one = document.querySelector(arguments[0]);
            one.scrollIntoView({block: 'center', behavior: 'instant'});
            const box = one.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]""",
            of,
        )
        for step in (3, 0):
            self.told("Input.dispatchMouseEvent", type="mouseMoved", x=x + step, y=y)

    def told(self, command: str, **values: Any) -> Any:
        """A command of Chromium's own protocol, and its answer."""
        return self.driver.execute_cdp_cmd(command, values)


@contextmanager
def chromium(profile: Path, *flags: str) -> Iterator[Browser]:
    """A browser with an empty profile folder, and these flags besides; it ends with the context."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, *flags):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    # What the page asked for from elsewhere would be in this log.
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    driver.set_script_timeout(PATIENCE_S)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
