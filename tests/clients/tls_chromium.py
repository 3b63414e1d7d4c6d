"""Asks for the names of a TLS service with Chromium, over HTTP/2.

usage: tls_chromium.py ADDRESS "NAME=SERVER[,SERVER] ..." FOLDER PATH SCREENSHOT

Each name is visited several times and must be answered by one of its servers. Then a page is opened that consists of
pictures and scripts from the first two names. They are written to FOLDER, which the servers have under PATH. Each must
come from its own server, byte for byte, and a picture of the page is left in SCREENSHOT.
"""

import base64
import collections
import pathlib
import shutil
import sys
import urllib.parse

import tls_page
from devtools import Browser, body

ADDRESS = sys.argv[1]
NAMES = {name: servers.split(",") for name, servers in (pair.split("=") for pair in sys.argv[2].split())}
FOLDER, PATH, SCREENSHOT = sys.argv[3:6]
# The page fetches from its own host: how many bytes come, and from whom.
FETCH = """fetch("%s").then(answer => answer.arrayBuffer().then(
    body => [answer.status, body.byteLength, answer.headers.get("X-Served-By")]))"""
EACH = 12  # pictures and scripts together, from each host


def visit(browser, name, servers):
    browser.open(f"https://{name}/whoami")
    said = browser.evaluate("document.body.innerText.trim()")
    assert said in servers, (name, said)
    for path, length in (("/64k", 65536), ("/whoami", 4), ("/1m", 1 << 20), ("/whoami", 4)):
        answer = browser.evaluate(FETCH % path)
        assert answer == [200, length, said], (name, path, answer)


def open_page(browser):
    hosts = list(NAMES)[:2]
    files = tls_page.write(FOLDER, PATH, [(host, "") for host in hosts], EACH)
    browser.open(f"https://{hosts[0]}{PATH}/index.html")
    assert not browser.named("Network.loadingFailed"), browser.named("Network.loadingFailed")
    whole = browser.evaluate(tls_page.WHOLE)
    assert whole == [EACH, EACH], f"pictures and scripts that are whole: {whole}"
    came, connections = set(), collections.defaultdict(set)
    for event in browser.named("Network.responseReceived"):
        answer = event["response"]
        url = answer["url"]
        if url not in files:
            continue
        host = urllib.parse.urlsplit(url).hostname
        by = next(value for name, value in answer["headers"].items() if name.lower() == "x-served-by")
        assert (answer["status"], answer["protocol"]) == (200, "h2") and by in NAMES[host], (url, by, answer)
        assert body(browser, event) == files[url], f"{url} is not as it was sent"
        came.add(url)
        connections[host].add(answer["connectionId"])
    assert came == set(files), set(files) - came
    # HTTP/2 has one connection for all requests to a host. Chromium may begin others before it knows that.
    assert all(len(connections[host]) < EACH for host in hosts), connections
    print(f"{len(came)} files, over connections: {[len(connections[host]) for host in hosts]}")
    pathlib.Path(SCREENSHOT).write_bytes(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))


try:
    with Browser("--ignore-certificate-errors", f"--host-resolver-rules=MAP *.example {ADDRESS}") as browser:
        for name, servers in NAMES.items():
            visit(browser, name, servers)
        open_page(browser)
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
