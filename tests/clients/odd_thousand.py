"""A client that sends many requests of kinds that few clients send, and compares every answer with nginx's own.

usage: odd_thousand.py HOST PORT SERVERS COUNT MEGABYTES [SEED [KIND...]]

SERVERS is a list such as "ds1=10.77.0.11 ds2=...": /ds1/... is answered by ds1 alone, and the address is that of its
nginx. Each of KINDS is sent COUNT times through HOST, for a random pool, on kept connections. Before each of them
comes a plain request for a random pool, so the connection moves from one data server to another in between, or stays.
Now and then a new connection begins with an odd request. Status, headers and body must be those that the pool's nginx
gives directly (except for the Date), and no connection may end that nginx would not have ended. At last a chunked
body of so many MEGABYTES with trailers is sent once. With the names of some classes of this file, only those kinds
are sent.

/POOL/upload answers with the length and the SHA-256 of a body, /POOL/echo is a WebSocket, and /POOL/forbidden is
answered with 403 before its body has come.
"""

import concurrent.futures
import hashlib
import os
import random
import sys
import time

from kept_connection import Connection, get, say

PATIENCE = 60
# The most requests on a connection.
MOST = 60
# The numbers of connections at a time of each kind, and of all kinds. Most of the time is spent in waiting.
CONNECTIONS = 4
WORKERS = 16
# The number of different texts of a kind. nginx is asked once for each.
VARIANTS = 8
FILL = b"".join(b"X-Fill-%02d: %s\r\n" % (number, b"f" * 986) for number in range(59))
TRAILERS = b"X-Sum: 1234\r\nX-Request: GET /ds9/none HTTP/1.1\r\n"
KEY = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"


def post(path, lines):
    return b"POST %s HTTP/1.1\r\nHost: cluster\r\n%s\r\n" % (path.encode(), lines)


def content(variant):
    """Returns a body that looks like the head of a request for another pool."""
    return b"GET /ds9/none HTTP/1.1\r\nHost: cluster\r\n\r\n" * (1 + variant * 7)


def chunks(body, variant):
    """Returns the body in chunks of several sizes, the first ones of one byte, and then trailers."""
    at, text = 0, b""
    while at < len(body):
        size = 1 if at < variant else 50 * variant + 11
        piece = body[at : at + size]
        text += b"%x%s\r\n%s\r\n" % (len(piece), b";name=value" if variant % 2 else b"", piece)
        at += size
    return text + b"0\r\n" + TRAILERS + b"\r\n"


class Kind:
    """A kind of request.

    `text` returns one of the VARIANTS of a request for a pool, or its parts. `send` sends such texts and returns their
    responses.
    """

    name, nagle = None, False
    # The number of requests that are sent at a time.
    requests = 1

    def text(self, pool, variant):
        raise NotImplementedError

    def send(self, connection, texts):
        for text in texts:
            connection.send(text)
        return [connection.response() for _ in texts]


class ByteByByte(Kind):
    name = "byte by byte"

    def text(self, pool, variant):
        return get(f"/{pool}/bytes/{variant}")

    def send(self, connection, texts):
        (text,) = texts
        for at in range(len(text)):
            connection.send(text[at : at + 1])
        return [connection.response()]


class ByteByByteNagle(ByteByByte):
    name, nagle = "byte by byte, with Nagle's algorithm", True


class LongHead(Kind):
    name = "a head of 59 KB"

    def text(self, pool, variant):
        return get(f"/{pool}/long/{variant}", FILL)


class HeadThenBody(Kind):
    name = "head and body in segments of their own"

    def text(self, pool, variant):
        body = content(variant)
        return post(f"/{pool}/upload", b"Content-Length: %d\r\n" % len(body)), body

    def send(self, connection, texts):
        for part in texts[0]:
            connection.send(part)
        return [connection.response()]


class TwoInOne(Kind):
    name, requests = "two requests in a segment", 2

    def text(self, pool, variant):
        return get(f"/{pool}/two/{variant}")

    def send(self, connection, texts):
        connection.send(b"".join(texts))
        return [connection.response() for _ in texts]


class Chunked(Kind):
    name = "chunks and trailers"

    def text(self, pool, variant):
        return post(f"/{pool}/upload", b"Transfer-Encoding: chunked\r\n") + chunks(content(variant), variant)


class ChunkedApart(Kind):
    name = "chunks and trailers, each line in a segment of its own"

    def text(self, pool, variant):
        return post(f"/{pool}/upload", b"Transfer-Encoding: chunked\r\n"), chunks(content(variant % 2), variant)

    def send(self, connection, texts):
        head, body = texts[0]
        connection.send(head)
        for line in body.splitlines(keepends=True):
            connection.send(line)
        return [connection.response()]


class Expect(HeadThenBody):
    name = "Expect: 100-continue"

    def text(self, pool, variant):
        body = content(variant)
        return post(f"/{pool}/upload", b"Content-Length: %d\r\nExpect: 100-continue\r\n" % len(body)), body

    def send(self, connection, texts):
        head, body = texts[0]
        connection.send(head)
        status, _ = connection.head()
        assert status == 100, f"{status} before the body was sent"
        connection.send(body)
        return [connection.response()]


class ExpectAtOnce(Expect):
    name = "Expect: 100-continue, and the body at once"

    def send(self, connection, texts):
        return HeadThenBody.send(self, connection, texts)


class ExpectEarly(Expect):
    name = "Expect: 100-continue, answered with 403 before the body"

    def text(self, pool, variant):
        head, body = super().text(pool, variant)
        return head.replace(b"/upload ", b"/forbidden "), body

    def send(self, connection, texts):
        head, body = texts[0]
        connection.send(head)
        response = connection.response()
        assert not response.informational, "100 Continue before 403"
        connection.send(body)
        return [response]


class WebSocket(Kind):
    """The connection is a tunnel afterwards."""

    name = "WebSocket"

    def text(self, pool, variant):
        return get(f"/{pool}/echo", UPGRADE + KEY)

    def send(self, connection, texts):
        connection.send(texts[0])
        response = connection.response()
        for _ in range(2):
            # RFC 6455, section 5.2: a text of less than 126 bytes, with a mask of zeros.
            said = get("/ds1/none")
            connection.send(bytes([0x81, 0x80 | len(said)]) + bytes(4) + said)
            echo = connection.take(2 + len(said))
            assert echo == bytes([0x81, len(said)]) + said, echo
        connection.close()
        return [response]


class WebSocketIgnored(Kind):
    name = "WebSocket where the server stays with HTTP/1"

    def text(self, pool, variant):
        return get(f"/{pool}/page/{variant}", UPGRADE + KEY)


class WebSocketRefused(Kind):
    name = "WebSocket refused with 426"

    def text(self, pool, variant):
        return get(f"/{pool}/echo", UPGRADE)


class Absolute(Kind):
    name = "absolute target"

    def text(self, pool, variant):
        return get(f"http://cluster/{pool}/absolute/{variant}")


class LineFeeds(Kind):
    name = "lines that end with LF alone"

    def text(self, pool, variant):
        return get(f"/{pool}/lines/{variant}").replace(b"\r\n", b"\n")


KINDS = [
    ByteByByte,
    ByteByByteNagle,
    LongHead,
    HeadThenBody,
    TwoInOne,
    Chunked,
    ChunkedApart,
    Expect,
    ExpectAtOnce,
    ExpectEarly,
    WebSocket,
    WebSocketIgnored,
    WebSocketRefused,
    Absolute,
    LineFeeds,
]


def comparable(response):
    fields = {name: value for name, value in response.fields.items() if name != "date"}
    return response.status, fields, response.body


class Run:
    """Sends a kind of request COUNT times, one after the other."""

    def __init__(self, address, servers, kind, count, seed):
        self.address, self.servers, self.kind, self.count = address, servers, kind(), count
        self.chance = random.Random(seed)
        self.pools, self.known = list(servers), {}
        self.connection, self.left, self.at_server = None, 0, None
        self.failures, self.moves, self.slowest = [], 0, 0.0

    def directly(self, pool, variant):
        """Returns the answer of the pool's own nginx."""
        if (pool, variant) not in self.known:
            connection = Connection((self.servers[pool], self.address[1]), PATIENCE, nagle=self.kind.nagle)
            text = self.kind.text(pool, variant)
            (self.known[pool, variant],) = map(comparable, self.kind.send(connection, [text]))
            assert self.known[pool, variant][1]["x-served-by"] == pool, self.known[pool, variant]
            connection.close()
        return self.known[pool, variant]

    def go_to(self, pool):
        if self.at_server not in (None, pool):
            self.moves += 1
        self.at_server = pool

    def plain(self):
        pool = self.chance.choice(self.pools)
        self.connection.send(get(f"/{pool}/plain"))
        response = self.connection.response()
        if response.status != 200 or response.body != f"{pool} /{pool}/plain\n".encode():
            raise ValueError(f"a plain request for {pool}: {response}")
        self.go_to(pool)

    def once(self):
        if not self.connection:
            self.connection = Connection(self.address, PATIENCE, nagle=self.kind.nagle)
            self.left, self.at_server = self.chance.randrange(1, MOST), None
        # A new connection may begin with the odd request.
        if self.at_server or self.chance.random() < 0.8:
            self.plain()
        chosen = [(self.chance.choice(self.pools), self.chance.randrange(VARIANTS)) for _ in range(self.kind.requests)]
        expected = [self.directly(pool, variant) for pool, variant in chosen]
        began = time.monotonic()
        responses = self.kind.send(self.connection, [self.kind.text(pool, variant) for pool, variant in chosen])
        self.slowest = max(self.slowest, time.monotonic() - began)
        for (pool, variant), response, right in zip(chosen, responses, expected):
            self.go_to(pool)
            if comparable(response) != right:
                raise ValueError(f"{pool}, text {variant}: {comparable(response)}\n    directly: {right}")
        self.left -= 1
        if self.left <= 0 or isinstance(self.kind, WebSocket):
            self.connection.close()
            self.connection = None

    def run(self):
        for number in range(self.count):
            try:
                self.once()
            except Exception as error:
                port = self.connection.socket.getsockname()[1] if self.connection else None
                self.failures.append(f"number {number}, port {port}, at {self.at_server}: {error!r}")
                self.connection = None


def report(kind, runs):
    """Prints the results of a kind. Returns how many of its requests failed."""
    failures = [failure for run in runs for failure in run.failures]
    count, moves, slowest = (sum(run.count for run in runs), sum(run.moves for run in runs), max(run.slowest for run in runs))
    say(f"{count} times {kind.name}: {len(failures)} failures, {moves} moves, slowest {slowest * 1000:.0f} ms")
    for failure in failures[:3]:
        say("  ", failure)
    return len(failures)


def large(address, pools, megabytes):
    """Sends a chunked body with trailers, for another pool than the one where the connection is."""
    connection, digest = Connection(address, PATIENCE), hashlib.sha256()
    connection.send(get(f"/{pools[0]}/plain"))
    connection.response()
    began = time.monotonic()
    connection.send(post(f"/{pools[1]}/upload", b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n"))
    block = os.urandom(1 << 20)
    for number in range(megabytes):
        piece = number.to_bytes(8, "big") + block[8:]
        digest.update(piece)
        connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
    connection.send(b"0\r\n" + TRAILERS + b"\r\n")
    response = connection.response()
    right = f"{megabytes << 20} {digest.hexdigest()}\n".encode()
    assert (response.status, response.server, response.body) == (200, pools[1], right), (response, right)
    connection.send(get(f"/{pools[2]}/plain"))
    assert connection.response().server == pools[2]
    say(f"{megabytes} MB in chunks with trailers: right, {time.monotonic() - began:.1f} s")


def main():
    host, port, servers, count, megabytes, *rest = sys.argv[1:]
    address, servers = (host, int(port)), dict(one.split("=") for one in servers.split())
    seed = rest[0] if rest else random.randrange(1 << 30)
    say(f"seed {seed}")
    kinds = [kind for kind in KINDS if kind.__name__ in rest[1:] or not rest[1:]]
    each = -(-int(count) // CONNECTIONS)
    runs = {kind: [Run(address, servers, kind, each, f"{seed} {kind.name} {n}") for n in range(CONNECTIONS)] for kind in kinds}
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
        list(workers.map(Run.run, [run for n in range(CONNECTIONS) for run in (runs[kind][n] for kind in kinds)]))
    failed = sum(report(kind, runs[kind]) for kind in kinds)
    say(f"{len(kinds) * each * CONNECTIONS} odd requests in {time.monotonic() - began:.1f} s, {failed} failures")
    large(address, list(servers), int(megabytes))
    sys.exit(failed > 0)


main()
