"""Asks two data servers (tests/servers/unusual.py) in turn for each kind of response, over one connection for each kind.

usage: unusual.py HOST PORT

The exit status is 1 if an answer is wrong, or a connection ends.
"""

import http.client
import socket
import sys

KINDS = ["plain", "lines", "bytes", "blanks", "zeros", "extensions", "cookies", "hints", "hints-at-once"]


def read(stream):
    while int(stream.readline().split()[1]) < 200:
        http.client.parse_headers(stream)
    headers = http.client.parse_headers(stream)
    if headers["Content-Length"]:
        return stream.read(int(headers["Content-Length"]))
    body = b""
    while size := int(stream.readline().split(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return body


def ask(kind):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as client:
        stream = client.makefile("rb")
        for number in range(8):
            server = f"ds{number % 2 + 1}"
            path = f"/{server}/{kind}/{number}"
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: c\r\n\r\n".encode())
            body = read(stream)
            if body != f"{server} {path}\n".encode():
                raise ValueError(f"{path} is answered with {body[:80]}")


failed = 0
for kind in KINDS:
    try:
        ask(kind)
        print(f"{kind}: 8 answers over one connection")
    except (OSError, ValueError, IndexError) as error:
        failed += 1
        print(f"{kind}: {error!r}")
sys.exit(failed != 0)
