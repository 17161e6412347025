"""A headless Chromium, driven by the DevTools protocol over a pair of pipes: JSON messages that end with a NUL."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ANSWER_SECONDS_MAX: Final = 60.0
# Of CI machines: containers have no namespaces for its sandbox and a small /dev/shm, and nothing needs a GPU.
_OPTIONS: Final = (
    *("--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"),
)
_KEYS: Final = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9, "Enter": 13}


class BrowserError(Exception):
    """The browser refused a command, ended, or a script of the page raised."""


class Page:
    """One tab. What it asks the network for, and what its scripts report, is kept."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.requests: list[str] = []
        self.errors: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session)

    def heard(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])

    def open(self, url: str) -> None:
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """Returns the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Returns once the expression is true, which the page looks at in each of its frames."""
        wait = f"(async () => {{ while (!({script})) await new Promise(r => setTimeout(r, 10)); return true; }})()"
        self.evaluate(wait)

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key]
            )

    def look(self, width: int, height: int, scheme: str) -> None:
        """Gives the window a size, and says whether the person prefers light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def accessible(self) -> list[dict[str, Any]]:
        """Returns the page as a screen reader gets it: role, name and value of each node that it does not skip."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            {key: node.get(key, {}).get("value") for key in ("role", "name", "value")}
            | {
                "properties": {
                    each["name"]: each["value"].get("value") for each in node.get("properties", ())
                }
            }
            for node in nodes
            if not node.get("ignored")
        ]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))


class Browser:
    def __init__(self, program: Path, home: Path) -> None:
        from_browser, browser_writes = os.pipe()
        browser_reads, to_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        script = 'reads=$1 writes=$2; shift 2; exec "$@" 3<&"$reads" 4>&"$writes"'
        command = ["bash", "-c", script, "-", str(browser_reads), str(browser_writes)]
        self._process = subprocess.Popen(
            [*command, str(program), *_OPTIONS, f"--user-data-dir={home}"],
            pass_fds=(browser_reads, browser_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_reads)
        os.close(browser_writes)
        self._to_browser = open(to_browser, "wb", buffering=0)  # noqa: SIM115 (lives as long as the browser)
        self._from_browser = open(from_browser, "rb")  # noqa: SIM115
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._pages: dict[str, Page] = {}
        self._number = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        rest = b""
        while data := self._from_browser.read1(65536):
            *messages, rest = (rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers.put(message)
                elif message.get("sessionId") in self._pages:
                    self._pages[message["sessionId"]].heard(message["method"], message["params"])
        self._answers.put({"error": {"message": "the browser has ended"}})

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        self._to_browser.write(json.dumps(command).encode() + b"\0")
        try:
            answer = self._answers.get(timeout=ANSWER_SECONDS_MAX)
        except queue.Empty:
            raise BrowserError(f"no answer to {method} within {ANSWER_SECONDS_MAX:g} s") from None
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def new_page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, session)
        return page

    def close(self) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close", {})
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._to_browser.close()
        self._listener.join(10)
        self._from_browser.close()


@contextlib.contextmanager
def browser(program: Path) -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(prefix="strandline-browser-", ignore_cleanup_errors=True) as home:
        started = Browser(program, Path(home))
        try:
            yield started
        finally:
            started.close()
