"""Chromium without a window, driven by the DevTools protocol over a pipe."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
    "--remote-debugging-pipe",
)
_STARTED = "document.documentElement?.dataset.chip === 'ready'"


class Browser:
    """A page that is open, what its console said, and which addresses it asked for."""

    def __init__(self, send: Any, receive: Any) -> None:
        self._send, self._receive = send, receive
        self._last, self._session, self._rest = 0, "", b""
        self.console: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        self._send.write(json.dumps(message).encode() + b"\0")
        self._send.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._receive.fileno(), 1 << 20)
            assert data, "the browser ended"
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        method, more = message.get("method"), message.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(more))
        if method == "Network.requestWillBeSent":
            self.requests.append(more["request"]["url"])
        return message

    def open(
        self, page: Path | str, width: int = 1000, height: int = 1400, ready: str = _STARTED
    ) -> None:
        """Open a page in a new tab of a size, and wait until its model has started."""
        self._session = ""
        self.console.clear()
        self.requests.clear()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Runtime", "Log", "Network", "Page", "DOM"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        address = page.as_uri() if isinstance(page, Path) else page
        self.call("Page.navigate", url=address)
        self.wait(ready)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true, at most for 20 seconds."""
        end = time.monotonic() + 20
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"it did not happen: {condition}"
            time.sleep(0.05)

    def run(self, expression: str) -> Any:
        """Return the value of an expression, or of the promise that it is."""
        result = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def choose_file(self, selector: str, file: Path) -> None:
        """Choose a file in an input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def drag(self, points: list[tuple[float, float]]) -> None:
        """Press the mouse at the first point, move it over all others, and release it."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, file: Path) -> None:
        """Write a screenshot."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser(program: str, profile: Path, *options: str) -> Iterator[Browser]:
    """Start Chromium with a new profile; it ends with the block."""
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()
    # Chromium reads commands from the file descriptor 3, and writes to 4.
    start = "import os, sys, fcntl; a, b = (fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in "
    start += "sys.argv[1:3]); os.dup2(a, 3); os.dup2(b, 4); os.execv(sys.argv[3], sys.argv[3:])"
    pipes = [str(read_commands), str(write_answers)]
    command = [sys.executable, "-c", start, *pipes, program, *_OPTIONS]
    command += [f"--user-data-dir={profile}", *options]
    process = subprocess.Popen(
        command,
        pass_fds=(read_commands, write_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    with os.fdopen(commands, "wb") as send, os.fdopen(answers, "rb") as receive:
        try:
            yield Browser(send, receive)
        finally:
            process.kill()
            process.wait()
