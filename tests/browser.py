"""A real browser for tests: headless Chromium, spoken to over its DevTools protocol.

A browser and a websocket are all it takes: no driver of the same version, no second toolbox.
"""

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser():
    return next((path for path in map(shutil.which, _NAMES) if path), None)


class Browser:
    """One page. `errors` are what its console complained about."""

    def __init__(self, profile: Path):
        program = find_browser()
        if program is None:
            pytest.skip("no Chromium is installed")
        websocket = pytest.importorskip("websocket")
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--remote-debugging-port=0", f"--user-data-dir={profile}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.count, self.session, self.errors = 0, None, []
        try:
            port = self._port(profile / "DevToolsActivePort")
            address = "ws://127.0.0.1:{}{}".format(*port)
            self.socket = websocket.create_connection(address, suppress_origin=True, timeout=60)
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
            self.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _port(self, file: Path):
        for _ in range(600):
            if file.exists() and len(lines := file.read_text().split()) == 2:
                return lines
            if self.process.poll() is not None:
                pytest.skip(f"Chromium does not start here (status {self.process.returncode})")
            time.sleep(0.05)
        pytest.skip("Chromium did not start within 30 s")

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self._hear(answer)

    def _hear(self, event):
        kind, said = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.errors.append(said["exceptionDetails"])
        elif kind == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(said["entry"])
        elif kind == "Runtime.consoleAPICalled" and said["type"] in ("error", "assert"):
            self.errors.append(said["args"])
        elif kind == "Network.requestWillBeSent":
            url = said["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:")):
                self.errors.append(f"the page asked for {url}")

    def run(self, script):
        """The value of a JavaScript expression, awaited."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, script, seconds=30):
        """Wait until the expression is true; its value."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"still not true: {script}"
            time.sleep(0.05)
        return value

    def open(self, file: Path, *, width=1200, height=900, dark=False):
        self.errors.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=False,
        )  # fmt: skip
        self.scheme(dark)
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.until(f"document.readyState === 'complete' && location.href.endsWith('{file.name}')")

    def scheme(self, dark):
        value = "dark" if dark else "light"
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": value}],
        )

    def click(self, selector):
        """A real click in the middle of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )  # fmt: skip

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        code = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35}.get(key, 0)
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, target: Path, whole=True):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        if getattr(self, "socket", None):
            self.socket.close()
        self.process.terminate()
        self.process.wait(20)
