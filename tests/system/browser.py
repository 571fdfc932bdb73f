"""A real browser, headless, looked into by the DevTools protocol over a pair of pipes: nothing listens
on a port. One for a class of tests; each page is opened anew."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next((found for name in ("chromium", "chromium-browser", "google-chrome")
                if (found := shutil.which(name))), None)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync",
           "--disable-dev-shm-usage", "--remote-debugging-pipe"]
SECONDS = 60  # the longest wait for one answer


class Browser:
    def __init__(self, *options):
        self.home = tempfile.mkdtemp(prefix="sunproxy-browser.")
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()

        def setup():
            # The browser reads commands from 3 and writes answers to 4.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [PROGRAM, *OPTIONS, *options, f"--user-data-dir={self.home}/profile", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=setup, close_fds=False, env={**os.environ, "HOME": self.home})
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.session, self.said = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.of)
        shutil.rmtree(self.home, ignore_errors=True)

    def _message(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            if not select.select([self.of], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"the browser did not answer within {SECONDS} s")
            piece = os.read(self.of, 1 << 20)
            if not piece:
                raise AssertionError("the browser is gone")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **params):
        """The answer to a command; events before it are kept in `said`."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        text = json.dumps(command).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        while True:
            message = self._message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.said.append(message)

    def run(self, script):
        """What a script in the page comes to; it may promise."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, page, width=1200, dark=False, media=""):
        """Shows a page, a file or a URL; returns when its scripts and a frame after them have run."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                 mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.said = []
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while not any(m.get("method") == "Page.loadEventFired" for m in self.said):
            self.said.append(self._message())
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def complaints(self):
        """What the page, or the browser about it, wrote to the console since it was opened."""
        return [m["params"] for m in self.said if m.get("method") in (
            "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]

    def picture(self, path, selector=None):
        """A screenshot of an element, or of the whole page."""
        box = self.run(f"""(() => {{
            const box = document.querySelector({json.dumps(selector or "html")}).getBoundingClientRect();
            return {{ x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height }};
        }})()""")
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                        clip={**box, "scale": 1})
        path.write_bytes(base64.b64decode(shot["data"]))
