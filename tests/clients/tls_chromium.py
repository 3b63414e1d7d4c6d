"""Asks for the names of a TLS service with Chromium, over HTTP/2.

usage: tls_chromium.py ADDRESS "NAME=SERVER[,SERVER] ..." FOLDER PATH SCREENSHOT

Each name is visited several times and must be answered by one of its servers. Then a page is opened that consists of
pictures and scripts from the first two names. They are written to FOLDER, which the servers have under PATH. Each must
come from its own server, byte for byte, and a picture of the page is left in SCREENSHOT.
"""

import collections
import shutil
import sys
import urllib.parse

import tls_page
from devtools import Browser

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
    connections = collections.defaultdict(set)
    for url, by, connection in tls_page.opened(browser, files, "h2"):
        host = urllib.parse.urlsplit(url).hostname
        assert by in NAMES[host], (url, by)
        connections[host].add(connection)
    whole = browser.evaluate(tls_page.WHOLE)
    assert whole == [EACH, EACH], f"pictures and scripts that are whole: {whole}"
    # HTTP/2 has one connection for all requests to a host. Chromium may begin others before it knows that.
    assert all(len(connections[host]) < EACH for host in hosts), connections
    print(f"{len(files)} files, over connections: {[len(connections[host]) for host in hosts]}")
    tls_page.keep_picture(browser, SCREENSHOT)


try:
    with Browser("--ignore-certificate-errors", f"--host-resolver-rules=MAP *.example {ADDRESS}") as browser:
        for name, servers in NAMES.items():
            visit(browser, name, servers)
        open_page(browser)
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
