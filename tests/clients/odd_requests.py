"""A client whose requests are valid, but of kinds that one packet does not decide.

usage: odd_requests.py HOST PORT POOLS CONNECTIONS TIMES [SEED]

/POOL/... is answered by POOL alone, for each of POOLS. On each of CONNECTIONS kept connections, TIMES requests follow
each other. The kind and the pool of each are random, and some requests are plain. Every one must be answered with 200
by its pool, and no connection may end.
"""

import random
import socket
import sys
import threading
import time

COOKIES = b"".join(b"X-Fill-%d: %s\r\n" % (n, b"f" * 980) for n in range(24))


def head(method, target, lines=b"", end=b"\r\n"):
    text = b"%s %s HTTP/1.1\r\nHost: cluster\r\n%s\r\n" % (method, target.encode(), lines)
    return text.replace(b"\r\n", end)


def pieces_of(text, sizes):
    at = 0
    while at < len(text):
        size = next(sizes)
        yield text[at : at + size]
        at += size


def plain(pool, chance):
    return [head(b"GET", f"/{pool}/plain")]


def in_two(pool, chance):
    text = head(b"GET", f"/{pool}/in-two")
    at = chance.randrange(1, len(text))
    return [text[:at], text[at:]]


def in_two_later(pool, chance):
    first, rest = in_two(pool, chance)
    return [first, 0.02, rest]


def byte_by_byte(pool, chance):
    text = head(b"GET", f"/{pool}/byte-by-byte")
    return [part for byte in pieces_of(text, iter(lambda: 1, 0)) for part in (byte, 0.002)]


def with_cookies(pool, chance):
    """A head of 2.5 KB comes in two segments, or is merged into one."""
    return [head(b"GET", f"/{pool}/cookies", COOKIES[:2500].rpartition(b"\r\n")[0] + b"\r\n")]


def long_head(pool, chance):
    """A head of 20 KB comes in pieces of any size."""
    text = head(b"GET", f"/{pool}/long", COOKIES[: 996 * 20].rpartition(b"\r\n")[0] + b"\r\n")
    return list(pieces_of(text, iter(lambda: chance.randrange(1, 3000), 0)))


def head_then_body(pool, chance):
    body = b"GET /elsewhere HTTP/1.1\r\n" * chance.randrange(1, 40)
    return [head(b"POST", f"/{pool}/body", b"Content-Length: %d\r\n" % len(body)), body]


def split_head_then_body(pool, chance):
    body = b"%d" % chance.randrange(10) * chance.randrange(1, 200_000)
    text = head(b"PUT", f"/{pool}/upload", b"Content-Length: %d\r\n" % len(body))
    at = chance.randrange(1, len(text))
    return [text[:at], 0.005, text[at:], body]


def chunks_of(body, chance):
    at = 0
    while at < len(body):
        size = chance.choice([1, 3, 100, 5000, 70_000])
        piece = body[at : at + size]
        at += size
        yield b"%x%s\r\n%s\r\n" % (len(piece), chance.choice([b"", b";a=b"]), piece)
    yield b"0\r\n" + chance.choice([b"", b"X-Trailer: yes\r\n"]) + b"\r\n"


def chunked(pool, chance):
    """The head comes alone or with what follows right behind it, in pieces of any size."""
    body = b"GET /elsewhere HTTP/1.1\r\n\r\n" * chance.choice([1, 40, 5000])
    text = head(b"POST", f"/{pool}/chunked", b"Transfer-Encoding: chunked\r\n") + b"".join(chunks_of(body, chance))
    return list(pieces_of(text, iter(lambda: chance.choice([120, 1000, 1448, 30_000]), 0)))


def chunked_split_head(pool, chance):
    first, *rest = chunked(pool, chance)
    return [first[:40], 0.005, first[40:], *rest]


def escaped(pool, chance):
    return [head(b"GET", f"/{pool}/%61%20b/../c")]


def escaped_pool(pool, chance):
    return [head(b"GET", f"/%{ord(pool[0]):x}{pool[1:]}/a")]


def absolute(pool, chance):
    return [head(b"GET", f"http://cluster/{pool}/absolute")]


def line_feeds(pool, chance):
    return [head(b"GET", f"/{pool}/line-feeds", end=b"\n")]


def with_upgrade(pool, chance):
    """Servers may stay with HTTP/1."""
    return [head(b"GET", f"/{pool}/upgrade", b"Connection: Upgrade\r\nUpgrade: h2c, other\r\n")]


def after_empty_lines(pool, chance):
    return [b"\r\n" + head(b"GET", f"/{pool}/empty-lines")]


KINDS = [
    plain,
    in_two,
    in_two_later,
    byte_by_byte,
    with_cookies,
    long_head,
    head_then_body,
    split_head_then_body,
    chunked,
    chunked_split_head,
    escaped,
    escaped_pool,
    absolute,
    line_feeds,
    after_empty_lines,
    with_upgrade,
]


def response(connection):
    read = b""
    while True:
        text, end, body = read.partition(b"\r\n\r\n")
        if end:
            lines = text.decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:])
            if len(body) >= int(fields["content-length"]):
                return int(lines[0].split()[1]), body.decode()
        piece = connection.recv(1 << 16)
        if not piece:
            raise ConnectionError("the connection has ended")
        read += piece


class Case(threading.Thread):
    def __init__(self, address, pools, times, seed):
        super().__init__()
        self.address, self.pools, self.times = address, pools, times
        self.chance, self.failure, self.slowest = random.Random(seed), "not done", (0, "")

    def run(self):
        at = "begins"
        try:
            connection = socket.create_connection(self.address, timeout=30)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number in range(self.times):
                kind, pool = self.chance.choice(KINDS), self.chance.choice(self.pools)
                at = f"request {number}, {kind.__name__}, {pool}"
                for part in kind(pool, self.chance):
                    if isinstance(part, bytes):
                        connection.sendall(part)
                    else:
                        time.sleep(part)
                sent = time.monotonic()
                status, body = response(connection)
                self.slowest = max(self.slowest, (time.monotonic() - sent, at))
                if status != 200 or body.split()[0] != pool:
                    self.failure = f"{at}: {status}, {body!r}"
                    return
            connection.close()
            self.failure = None
        except Exception as error:
            self.failure = f"{at}: {error!r}"


def main():
    host, port, pools, connections, times = sys.argv[1:6]
    seed = int(sys.argv[6]) if len(sys.argv) > 6 else random.randrange(1 << 30)
    print(f"seed {seed}")
    cases = [Case((host, int(port)), pools.split(), int(times), f"{seed} {n}") for n in range(int(connections))]
    for case in cases:
        case.start()
    for case in cases:
        case.join()
    failures = [case.failure for case in cases if case.failure]
    for failure in failures:
        print(failure)
    for seconds, at in sorted((case.slowest for case in cases), reverse=True)[:3]:
        print(f"slowest: {seconds * 1000:.0f} ms, {at}")
    sys.exit(bool(failures))


main()
