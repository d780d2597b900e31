"""A headless Chromium for tests of pages, driven by chromedriver over the WebDriver protocol."""

import base64
import contextlib
import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
BOOKLET = 12
"""Most sheets of a front page in print."""
SHEET = 703
"""Pixels of a sheet of A4 between the margins of a front page; what is wider is printed smaller."""
START = 30.0
"""Seconds that chromedriver may take to answer."""


class Browser:
    """One page in one browser."""

    def __init__(self, address: str, session: str) -> None:
        self.base = f"{address}/session/{session}"

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """One command of the protocol, with its answer."""
        return _ask(f"{self.base}{path}", method, body)

    def open(
        self, page: Path, width: int = 1280, height: int = 900, media: str = "", **wishes: str
    ) -> None:
        """Show a file from disk, at a size, for a medium and with wishes such as a dark scheme."""
        self.tool("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        # A window that the system gave no focus tells no element that it has it.
        self.tool("Emulation.setFocusEmulationEnabled", enabled=True)
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in wishes.items()]
        self.tool("Emulation.setEmulatedMedia", media=media, features=features)
        self.send("POST", "/url", {"url": page.resolve().as_uri()})
        self.settle()

    def tool(self, command: str, **parameters: Any) -> Any:
        """A command of the developer tools."""
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns, or the promise it returns comes to."""
        return self.send("POST", "/execute/sync", {"script": script, "args": arguments})

    def settle(self) -> None:
        """Wait until two frames were drawn, so that what was asked for is shown."""
        self.run("return new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")

    def text(self, name: str) -> str:
        """The text of an element, by its id."""
        return self.run("return document.getElementById(arguments[0]).textContent.trim()", name)

    def slide(self, name: str, value: float) -> None:
        """Put a slider somewhere and wait for the drawing."""
        self.run(
            "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            name, value,
        )  # fmt: skip
        self.settle()

    def drag(self, selector: str, right: int, down: int, touch: bool = False) -> None:
        """Drag an element by a number of pixels."""
        where = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]",
            selector,
        )
        x, y = (round(part) for part in where)
        moves = [(x, y), (x + right // 2, y + down // 2), (x + right, y + down)]
        moved = [{"type": "pointerMove", "duration": 20, "x": a, "y": b} for a, b in moves]
        press = [{"type": "pointerDown", "button": 0}]
        pointer = {
            "type": "pointer", "id": "finger" if touch else "mouse",
            "parameters": {"pointerType": "touch" if touch else "mouse"},
            "actions": [moved[0], *press, *moved[1:], {"type": "pointerUp", "button": 0}],
        }  # fmt: skip
        self.send("POST", "/actions", {"actions": [pointer]})
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, where the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.send("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})
        self.settle()

    def messages(self) -> list[str]:
        """What the console was told since the last call, errors of the policy included."""
        return [entry["message"] for entry in self.send("POST", "/se/log", {"type": "browser"})]

    def sheets(self) -> int:
        """The number of sheets of A4 that the page prints on."""
        printed = self.tool("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed)))

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        size = self.tool("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.tool("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with its profile; a test is skipped where none is installed."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("pages in a browser: chromium and chromedriver are not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command, quiet = [driver, f"--port={port}"], subprocess.DEVNULL
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        subprocess.Popen(command, stdout=quiet, stderr=quiet) as process,
    ):
        try:
            _await(address)
            found = _ask(f"{address}/session", "POST", _wishes(chromium, profile))
            page = Browser(address, found["sessionId"])
            yield page
            page.send("DELETE", "")
        finally:
            process.terminate()


def _wishes(chromium: str, profile: str) -> dict:
    options = {"binary": chromium, "args": [*ARGUMENTS, f"--user-data-dir={profile}"]}
    return {
        "capabilities": {
            "alwaysMatch": {
                "browserName": "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
            }
        }
    }


def _await(address: str) -> None:
    until = time.monotonic() + START
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if _ask(f"{address}/status", "GET")["ready"]:
                return
        time.sleep(0.05)
    raise TimeoutError(f"chromedriver did not answer within {START:.0f} s")


def _ask(address: str, method: str, body: Any = None) -> Any:
    data = None if method == "GET" else json.dumps({} if body is None else body).encode()
    request = urllib.request.Request(
        address, data, {"Content-Type": "application/json"}, method=method
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=120) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None
