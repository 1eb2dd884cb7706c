"""A headless Chromium, driven over a pipe by the few commands of its DevTools protocol that the checks need."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

BINARIES = ["chromium", "chromium-browser", "google-chrome", "chrome"]


def find():
    return next((found for name in BINARIES if (found := shutil.which(name))), None)


class Browser:
    def __init__(self):
        there, self.commands = os.pipe()
        self.answers, back = os.pipe()

        def give_pipe():  # the browser reads from 3 and writes to 4
            ends = os.dup(there), os.dup(back)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its processes may still write
        self.process = subprocess.Popen(
            [find(), "--headless", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars",
             "--no-first-run", "--user-data-dir=" + self.folder.name]
            + (["--no-sandbox"] if os.geteuid() == 0 else []) + ["about:blank"],
            preexec_fn=give_pipe, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        self.number, self.unread, self.events, self.session = 0, b"", [], None
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        page = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def _message(self):
        while b"\0" not in self.unread:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.unread += piece
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while (message := self._message()).get("id") != self.number:
            self.events.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())
        self.settle()

    def settle(self):
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, code):
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{code}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def problems(self):
        """Exceptions, logged errors, and requests for anything but the page itself."""
        self.run("0")
        found = []
        for event in self.events:
            method, told = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"].get("exception", told)))
            elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
                found.append(told["entry"]["text"])
            elif method == "Network.requestWillBeSent" and told["type"] != "Document":
                found.append("requested " + told["request"]["url"])
        return found

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, clip=None):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         **({"clip": {**clip, "scale": 1}} if clip else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def box(self, selector, index=0):
        """An element, scrolled into view: its left, top, width and height in the window."""
        return self.run(f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{index}];"
                        "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                        "return [b.x, b.y, b.width, b.height]; })()")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        self.mouse("mouseMoved", x, y)
        for n in range(1, count + 1):
            self.mouse("mousePressed", x, y, button="left", clickCount=n)
            self.mouse("mouseReleased", x, y, button="left", clickCount=n)
        self.settle()

    def drag(self, x, y, to_x):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for part in range(1, 6):
            self.mouse("mouseMoved", x + (to_x - x) * part / 5, y, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, y, button="left", clickCount=1)
        self.settle()

    def press(self, *keys, shift=False):
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Escape": 27, "Tab": 9, "Home": 36}
        for key in keys:
            code = codes.get(key, ord(key[0].upper()))
            for kind in ["keyDown", "keyUp"]:
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                          modifiers=8 if shift else 0, **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))
        self.settle()

    def text(self, selector, index=0):
        return self.run(f"document.querySelectorAll({json.dumps(selector)})[{index}].textContent")
