"""Asks data servers with Chromium.

usage: https_chromium.py ADDRESS REQUESTS FOLDER PATH SCREENSHOT PROTOCOL, which is http/1.1 or h2

One page sends REQUESTS requests to three data servers in turn. Then a page is opened that consists of 60 pictures and
scripts, from four data servers. They are written to FOLDER, which the servers have under PATH; those in its folder ds1
are for ds1, and so on. Each must come from its own server, byte for byte, and a picture of the page is left in
SCREENSHOT.
"""

import collections
import pathlib
import shutil
import sys

import tls_page
from devtools import Browser

ADDRESS, REQUESTS = sys.argv[1], int(sys.argv[2])
FOLDER, PATH, SCREENSHOT, PROTOCOL = sys.argv[3:]
NAME = "www.example"
SERVERS = "ds1", "ds2", "ds3", "ds4"
EACH = 15  # pictures and scripts together, from each server
# One request after the other. What was wrong comes back.
TURNS = """(async () => {
    const wrong = [];
    for (let turn = 0; turn < %d; turn++) {
        const server = `ds${turn %% 3 + 1}`, path = `/${server}/chromium-${turn}`;
        const answer = await fetch(path), said = await answer.text();
        if (answer.status !== 200 || said !== `${server} ${path}\\n`) wrong.push([path, answer.status, said]);
    }
    return wrong;
})()"""


def take_turns(browser):
    browser.open(f"https://{NAME}{PATH}/empty.html")
    wrong = browser.evaluate(TURNS % REQUESTS)
    assert not wrong, wrong[:5]
    answers = [event["response"] for event in browser.named("Network.responseReceived")]
    connections = {answer["connectionId"] for answer in answers if "/chromium-" in answer["url"]}
    assert len(connections) == 1, f"{len(connections)} connections"


def open_page(browser, files):
    connections = collections.defaultdict(set)
    for url, by, connection in tls_page.opened(browser, files, PROTOCOL):
        # The page itself has no route.
        assert by == url.split("/")[-2] or url.endswith("index.html") and by in ("ds1", "ds2"), (url, by)
        connections[connection].add(by)
    whole = browser.evaluate(tls_page.WHOLE)
    assert sum(whole) == EACH * len(SERVERS), f"pictures and scripts that are whole: {whole}"
    print(f"{len(files)} files, over connections with so many servers each: {[len(by) for by in connections.values()]}")
    tls_page.keep_picture(browser, SCREENSHOT)


try:
    files = tls_page.write(FOLDER, PATH, [(NAME, f"{server}/") for server in SERVERS], EACH)
    # The page asks for nothing by itself, not even for its icon.
    (pathlib.Path(FOLDER) / "empty.html").write_text('<!doctype html><link rel="icon" href="data:,">')
    with Browser("--ignore-certificate-errors", f"--host-resolver-rules=MAP *.example {ADDRESS}") as browser:
        take_turns(browser)
        open_page(browser, files)
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
