"""Chromium, driven over the Chrome DevTools Protocol with nothing but Python's standard library.

    with cdp.Browser(cdp.find()) as browser:       # cdp.find() is None where there is no Chromium: say "skipped" then
        page = browser.open(path_or_url, width=400, height=800, dark=True)
        page.press("/"); page.type("xid 79"); page.press("Enter")
        page.wait_for("document.title.includes('HW-05')")
        page.screenshot("shot.png"); page.pdf("page.pdf")
        assert not page.complaints and not page.foreign_requests

The protocol goes over a pair of pipes (descriptors 3 and 4 of the browser, messages that end in a zero byte), not over a port:
no WebSocket, and nothing on the machine can connect to it. The browser has no network: every name resolves to nothing.
"""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60  # until an answer or a state is given up on; a limit against hanging, nothing is measured against it
KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, ""), "ArrowDown": ("ArrowDown", 40, ""),
        "ArrowUp": ("ArrowUp", 38, ""), "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowRight": ("ArrowRight", 39, ""),
        "Home": ("Home", 36, ""), "End": ("End", 35, ""), "Backspace": ("Backspace", 8, "")}


class Error(Exception):
    """The browser is gone, refused a command, or did not reach a state."""


def find():
    """Path of a Chromium, or None. RINGSCOPE_CHROMIUM names another one."""
    named = os.environ.get("RINGSCOPE_CHROMIUM")
    return named if named else next((path for path in map(shutil.which, NAMES) if path), None)


def url_of(path_or_url):
    if "://" in path_or_url:
        return path_or_url
    path, hash_mark, fragment = path_or_url.partition("#")
    return "file://" + urllib.parse.quote(os.path.abspath(path)) + hash_mark + fragment


class Browser:
    def __init__(self, program, *flags):
        self._profile = tempfile.TemporaryDirectory(prefix="ringscope-chromium-", ignore_cleanup_errors=True)
        to_child, from_child = os.pipe(), os.pipe()
        # Above 9, so that putting them at 3 and 4 in the child overwrites neither.
        child_in = fcntl.fcntl(to_child[0], fcntl.F_DUPFD, 10)
        child_out = fcntl.fcntl(from_child[1], fcntl.F_DUPFD, 10)

        def descriptors():
            os.dup2(child_in, 3)
            os.dup2(child_out, 4)

        self._log = open(os.path.join(self._profile.name, "log"), "w+b")
        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
             "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self._profile.name}", "--font-render-hinting=none", *flags],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, preexec_fn=descriptors, pass_fds=(3, 4), start_new_session=True,
            env={**os.environ, "HOME": self._profile.name})
        for fd in (*to_child[:1], *from_child[1:], child_in, child_out):
            os.close(fd)
        self._write, self._read = to_child[1], from_child[0]
        self._buffer = b""
        self._next = 0
        self._pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.send("Browser.close")
        except (Error, OSError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._log.close()
        self._profile.cleanup()

    def send(self, method, session=None, **parameters):
        """One command; its result. Events that come before the answer go to their pages."""
        self._next += 1
        number = self._next
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        end = time.monotonic() + SECONDS
        while True:
            answer = self._message(end, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise Error(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def pump(self, seconds):
        """Takes in what the browser says for a while."""
        try:
            self._message(time.monotonic() + seconds, "")
        except TimeoutError:
            pass

    def open(self, path_or_url, width=1280, height=900, dark=False, scale=1, media="screen"):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(domain + ".enable")
        page.look(width, height, dark, scale, media)
        page.go(path_or_url)
        return page

    def _message(self, end, waiting_for):
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._read], [], [], max(0, left))
            if not ready:
                raise TimeoutError(f"no answer from the browser to {waiting_for}")
            part = os.read(self._read, 1 << 16)
            if not part:
                self._log.seek(0)
                raise Error("the browser ended: " + self._log.read()[-2000:].decode(errors="replace"))
            self._buffer += part
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(raw)
        page = self._pages.get(message.get("sessionId"))
        if page is not None and "method" in message:
            page.event(message["method"], message["params"])
        return message


class Page:
    """One tab. `complaints`: errors of scripts, the console and the content security policy. `foreign_requests`: whatever was asked
    for that is neither a file nor inside the page."""

    def __init__(self, browser, target, session):
        self._browser, self._target, self._session = browser, target, session
        self.complaints, self.foreign_requests = [], []

    def send(self, method, **parameters):
        return self._browser.send(method, self._session, **parameters)

    def event(self, method, p):
        if method == "Runtime.exceptionThrown":
            details = p["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details.get("text", "exception"))
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "assert", "warning"):
            self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.complaints.append(p["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = p["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.foreign_requests.append(url)

    def look(self, width=1280, height=900, dark=False, scale=1, media="screen"):
        """Size of the window in CSS pixels, colour scheme, and whether as on a screen or as printed."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, path_or_url):
        """Opens an address and waits until it has loaded."""
        before = self.evaluate("performance.timeOrigin")
        done = self.send("Page.navigate", url=url_of(path_or_url))
        if done.get("errorText"):
            raise Error(f"{path_or_url}: {done['errorText']}")
        # Without a loader it was a move inside the document.
        changed = f"performance.timeOrigin !== {before} && " if "loaderId" in done else ""
        self.wait_for(changed + "document.readyState === 'complete'")

    def evaluate(self, expression):
        """Value of a JavaScript expression (what JSON can hold); a promise is awaited. Works where the page's policy forbids eval."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise Error(f"{expression}: {details.get('exception', {}).get('description', details.get('text'))}")
        return done["result"].get("value")

    def wait_for(self, expression):
        """Until the expression is true; its value. Error when it never is."""
        end = time.monotonic() + SECONDS
        while True:
            try:
                value = self.evaluate(expression)
            except Error as error:  # a page that is just being replaced has no context to ask in
                if "context" not in str(error) and "navigated" not in str(error):
                    raise
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise Error(f"never became true: {expression}")
            self._browser.pump(0.02)

    def press(self, key, shift=False, ctrl=False, alt=False):
        """A key, by its name (Enter, ArrowDown) or the character that it types."""
        name, code, text = KEYS.get(key, (key, ord(key.upper()) if len(key) == 1 else 0, key))
        modifiers = (1 if alt else 0) | (2 if ctrl else 0) | (8 if shift else 0)
        if ctrl or alt:
            text = ""
        common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        """Text into what has the focus, as a paste."""
        self.send("Input.insertText", text=text)

    def click(self, selector):
        """A real click into the middle of the first element that fits, scrolled into view."""
        at = self.evaluate("(() => { const e = document.querySelector(" + json.dumps(selector) + "); if (!e) return null; e.scrollIntoView("
                           "{block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        if at is None:
            raise Error(f"nothing to click: {selector}")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    def text(self, selector="body"):
        return self.evaluate("document.querySelector(" + json.dumps(selector) + ")?.innerText ?? ''")

    def screenshot(self, path, full=False):
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path, **options):
        """Prints; A4 unless told. Returns the number of pages."""
        options = {"printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True, **options}
        data = base64.b64decode(self.send("Page.printToPDF", **options)["data"])
        with open(path, "wb") as file:
            file.write(data)
        return data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") + data.count(b"/Type /Page/") + data.count(b"/Type /Page>")

    def close(self):
        self._browser.send("Target.closeTarget", targetId=self._target)
