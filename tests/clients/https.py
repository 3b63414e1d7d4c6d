"""HTTPS clients of labs/https.toml, whose agents speak TLS in place of nginx.

usage: https.py HOST PORT TIMES
"""

import hashlib
import socket
import ssl
import sys

from tls_client import Client

ADDRESS = sys.argv[1], int(sys.argv[2])
TIMES = int(sys.argv[3])
NAMES = {"ds1.example": {"ds1"}, "ds2.example": {"ds2"}, "a.ds3.example": {"ds3"}, "other.example": {"ds1", "ds2"}, None: {"ds1", "ds2"}}
PAGES = {"/4k": "609f24ecd546a75b", "/64k": "61232a41c8f3858a", "/1m": "bc9d1d01517351f3"}
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
BODY = bytes(range(256)) * 4000


def connect(name, **how):
    client = Client(ADDRESS, name, **how)
    client.shake_hands()
    return client


def say(client, text):
    """Says this text, in which `Host: a` stands for the client's own host."""
    client.say(text.replace(b"Host: a\r\n", b"Host: " + client.name.encode() + b"\r\n"))


def to_end(client):
    """All that the server says until it ends the session in order."""
    said = b""
    while True:
        try:
            piece = client.until(lambda: client.tls.read(1 << 16))
        except ssl.SSLZeroReturnError:
            return said
        if not piece:
            return said
        said += piece


def answers(said):
    """The statuses of the responses, and the last body."""
    statuses, body = [], b""
    while said:
        head, _, said = said.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        statuses.append(lines[0].split()[1])
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        length = int(fields.get("content-length", 0))
        body, said = said[:length], said[length:]
    return statuses, body


def pages():
    for name, servers in NAMES.items():
        for version in VERSIONS:
            client, server = connect(name, version=version), None
            for _ in range(TIMES):
                for path, digest in PAGES.items():
                    by, body = client.get(path)
                    assert by in servers and server in (None, by), (name, by, server)
                    assert hashlib.sha256(body).hexdigest().startswith(digest), (name, path)
                    server = by
            client.get("/4k", last=True)
            assert to_end(client) == b"", "the session ends in order after Connection: close"


def uploads():
    client = connect("ds1.example")
    head = b"PUT /upload HTTP/1.1\r\nHost: a\r\nConnection: %s\r\n"
    say(client, head % b"keep-alive" + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (BODY[:1], BODY[1:70000], BODY[70000:]))
    say(client, head % b"close" + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nA: b\r\n\r\n")
    statuses, body = answers(to_end(client))
    assert statuses == ["200", "200"] and int(body) == len(BODY), (statuses, body)


def pipeline():
    client = connect("ds2.example")
    get = b"GET /whoami HTTP/1.1\r\nHost: a\r\n\r\n"
    say(client, get * 20 + b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n" + get.replace(b"Host", b"Connection: close\r\nHost"))
    said = to_end(client)
    assert said.count(b"HTTP/1.1 200 OK") == 21 and said.count(b"HTTP/1.1 404") == 1, said


def pieces():
    """Records of one byte each, and a record in two segments."""
    client = connect("ds1.example")
    for byte in b"GET /whoami HTTP/1.1\r\nHost: ds1.example\r\nConnection: close\r\n\r\n":
        client.tls.write(bytes([byte]))
        record = client.outgoing.read()
        client.socket.sendall(record[:3])
        client.socket.sendall(record[3:])
    assert to_end(client).endswith(b"ds1\n")


def sessions():
    """A session goes on at the data server that began it."""
    for version in VERSIONS:
        first = connect("ds1.example", version=version)
        first.get("/4k")
        again = connect("ds1.example", version=version, session=(first.context, first.tls.session))
        assert again.tls.session_reused, version
        assert again.get("/4k")[0] == "ds1"


def refused():
    """Requests that servers could read in two ways are answered by the agent itself."""
    for text, status in (
        (b"nonsense\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\n folded: line\r\n\r\n", "400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\nCookie: " + b"a" * 70000, "431"),
    ):
        client = connect("ds1.example")
        say(client, text)
        assert answers(to_end(client))[0] == [status], text[:40]
    # An answer ends for HEAD where its head does.
    client = connect("ds1.example")
    say(client, b"HEAD /1m HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert to_end(client).endswith(b"\r\n\r\n")


def no_tls():
    for text in (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 70000, b"\x15\x03\x03\x00\x02\x01\x00"):
        plain = socket.create_connection(ADDRESS, timeout=20)
        try:
            plain.sendall(text)
            plain.shutdown(socket.SHUT_WR)
            said = b""
            while piece := plain.recv(1 << 16):
                said += piece
        except TimeoutError:
            raise
        except OSError:
            continue
        assert said == b"" or said[0] == 0x15, (text[:20], said)


def altered():
    """A record that somebody has altered ends the session with an alert, and no server sees it."""
    client = connect("ds1.example")
    client.get("/4k")
    client.tls.write(b"GET /whoami HTTP/1.1\r\nHost: a\r\n\r\n")
    record = bytearray(client.outgoing.read())
    record[-1] ^= 1
    client.socket.sendall(record)
    try:
        said = to_end(client)
    except (ssl.SSLError, ConnectionError):
        return
    raise AssertionError(said)


for part in (pages, uploads, pipeline, pieces, sessions, refused, no_tls, altered):
    part()
print("all as it should be")
