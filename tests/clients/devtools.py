"""Drives Chromium without a screen, by the messages of its DevTools protocol over two pipes."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# A message that has not come by then never comes.
PATIENCE = 60
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def pipe():
    """A pipe whose ends are none of the descriptors that Chromium expects its pipes at."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """Chromium with a profile of its own and one page, while this context is entered."""

    def __init__(self, *flags):
        self.flags, self.number, self.session = flags, 0, None
        self.events, self.unread = [], b""

    def __enter__(self):
        commands, self.commands = pipe()
        self.answers, answers = pipe()
        self.profile = tempfile.mkdtemp(prefix="chromium")

        def descriptors():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        words = ["chromium", *FLAGS, f"--user-data-dir={self.profile}", "--remote-debugging-pipe", *self.flags]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, close_fds=False, preexec_fn=descriptors, **quiet)
        os.close(commands)
        os.close(answers)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Network.enable")
        self.call("Page.enable")
        return self

    def __exit__(self, *_):
        # The browser ends when its pipes do.
        os.close(self.commands)
        os.close(self.answers)
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        """Has the browser do something, and returns its answer. Events that come meanwhile are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            said = self.read()
            if said.get("id") == self.number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self.events.append(said)

    def read(self):
        """The next message."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            piece = os.read(self.answers, 1 << 20)
            assert piece, "the browser has ended"
            self.unread += piece
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def named(self, method):
        """What the events of this name say that have come since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def open(self, url):
        """Opens a page, and returns when all that it consists of has come."""
        self.events = []
        said = self.call("Page.navigate", url=url)
        assert "errorText" not in said, (url, said)
        while not self.named("Page.loadEventFired"):
            self.events.append(self.read())

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page, once it is settled."""
        said = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, (expression, said)
        return said["result"].get("value")


def body(browser, event):
    """The body of the response that `Network.responseReceived` has told of."""
    said = browser.call("Network.getResponseBody", requestId=event["requestId"])
    return base64.b64decode(said["body"]) if said["base64Encoded"] else said["body"].encode()
