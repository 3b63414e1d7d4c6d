"""A client that sends all kinds of HTTP/1.1 requests on kept connections, and knows who must answer each.

usage: any_requests.py HOST PORT POOLS SECONDS SEED [--faults] [--site] [KIND...]

POOLS says which servers answer /ds1/..., /ds2/... and so on: "ds1 ds2+ds3" means that /ds1/... is answered by ds1
alone, and /ds2/... by ds2 or ds3. They answer with their name and the target, or with a file of the lab. A response
of another server, bytes of another response, or no response within 30 s is an error. A connection may be reset before
the first byte of a response. Then the request is sent again on a new connection, and counted. With --faults a
connection may end anywhere, and a pool may be unavailable. With --site /ds1/2m is a page that is deployed again and
again, whose lines are all the same, and ds3 answers /upload and says what it was sent.

KINDS lists the kinds of requests. Without any KIND all of them are sent.
"""

import collections
import fcntl
import hashlib
import random
import socket
import struct
import sys
import termios
import threading
import time

FILES = {"1b": 1, "4k": 4 << 10, "64k": 64 << 10, "1m": 1 << 20}
# A deployed page has lines of one version, whichever that is. The page has DEPLOYED bytes, in lines of LINE bytes.
DEPLOYED, LINE = 2 << 20, 8
# A slow reader takes this many bytes at a time.
SIP = 16 << 10


class Wrong(Exception):
    pass


class Unavailable(Exception):
    """The response says that no server of the pool is there."""


class Connection:
    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.read = b""

    def send(self, data, cuts=(), pause=0.0):
        at = 0
        for cut in [*sorted(cuts), len(data)]:
            if cut > at:
                self.socket.sendall(data[at:cut])
                at = cut
                if pause:
                    time.sleep(pause)

    def wait_until_acknowledged(self):
        """Waits until everything that was sent is acknowledged."""
        until = time.time() + self.socket.gettimeout()
        while struct.unpack("I", fcntl.ioctl(self.socket, termios.TIOCOUTQ, b"    "))[0]:
            if self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise ConnectionResetError("closed")
            if time.time() > until:
                raise TimeoutError
            time.sleep(0.01)

    def more(self, most=1 << 16):
        data = self.socket.recv(most)
        if not data:
            raise ConnectionResetError("closed")
        self.read += data

    def line(self):
        while b"\r\n" not in self.read:
            self.more()
        line, self.read = self.read.split(b"\r\n", 1)
        return line

    def take(self, count, slowly=False):
        while len(self.read) < count:
            self.more(SIP if slowly else 1 << 16)
            if slowly:
                time.sleep(0.005)
        taken, self.read = self.read[:count], self.read[count:]
        return taken

    def response(self, is_head, slowly=False):
        """Status, headers and body of the next final response."""
        while True:
            first = self.line()
            if not first.startswith(b"HTTP/1.1 "):
                raise Wrong(f"no response: {first[:80]!r}")
            status, headers = int(first[9:12]), {}
            while line := self.line():
                name, value = line.split(b":", 1)
                headers[name.lower()] = value.strip()
            if status >= 200:
                break
        if is_head or status in (204, 304):
            return status, headers, b""
        if headers.get(b"transfer-encoding") == b"chunked":
            body = b""
            while size := int(self.line(), 16):
                body += self.take(size)
                self.take(2)
            self.line()
            return status, headers, body
        return status, headers, self.take(int(headers[b"content-length"]), slowly)


# These bytes look like a request, but inside a body they are not one.
FALSE = b"GET /ds9/false HTTP/1.1\r\nHost: x\r\n\r\n"


class Request:
    """A request to send, and the response that must come back."""

    def __init__(self, rng, pools, kind):
        self.kind = kind
        number = rng.randint(1, len(pools))
        self.servers, self.prefix = pools[number - 1], f"/ds{number}"
        self.file = rng.choice(list(FILES)) if rng.random() < 0.2 else None
        token = self.file or f"x{rng.getrandbits(48):x}"
        self.target = f"{self.prefix}/{token}"
        self.method, self.body, self.waits, self.says = "GET", b"", False, None
        headers = ["Host: 10.77.0.100"]
        if kind == "head":
            self.method = "HEAD"
        elif kind == "long":
            # The cookie comes before or behind the header that routes look at.
            cookie = f"Cookie: c={'x' * rng.randint(1000, 6000)}"
            headers.insert(rng.choice((0, 1)), cookie)
        elif kind == "absolute":
            self.sent_target = f"http://10.77.0.100{self.target}"
        elif kind == "escaped":
            self.sent_target = self.target.replace("/ds", "/%64s", 1)
        elif kind in ("post", "expect", "chunked", "empty"):
            self.method, self.file = rng.choice(("POST", "PUT", "PATCH")), None
            self.target = f"{self.prefix}/x{rng.getrandbits(48):x}"
            size = 0 if kind == "empty" else rng.choice((1, 5, 1000, 5000, 60000))
            self.body = rng.randbytes(size)
            if kind == "chunked":
                headers.append("Transfer-Encoding: chunked")
                self.body = self.chunks(rng, self.body + FALSE * rng.randint(0, 3))
            else:
                headers.append(f"Content-Length: {size}")
            if kind == "expect":
                headers.append("Expect: 100-continue")
                self.waits = rng.random() < 0.5
        elif kind in ("deployed", "download"):
            self.servers, self.prefix, self.file = pools[0], "/ds1", "2m"
            self.target = "/ds1/2m"
        elif kind == "upload":
            self.servers, self.file, self.target = pools[2], None, "/upload"
            self.method, self.body = "POST", rng.randbytes(rng.choice((0, 1, 1000, 5000, 60000)))
            self.says = f"{len(self.body)} {hashlib.sha256(self.body).hexdigest()}\n"
            if rng.random() < 0.5:
                headers.append("Transfer-Encoding: chunked")
                self.body = self.chunks(rng, self.body)
            else:
                headers.append(f"Content-Length: {len(self.body)}")
        elif kind == "delete":
            self.method, self.file = "DELETE", None
            self.target = f"{self.prefix}/x{rng.getrandbits(48):x}"
        target = getattr(self, "sent_target", self.target)
        lines = [f"{self.method} {target} HTTP/1.1", *headers, "", ""]
        self.head = "\r\n".join(lines).encode()
        self.shown = target

    def chunks(self, rng, body):
        out = b""
        while body:
            size = rng.randint(1, len(body))
            out += b"%x\r\n%s\r\n" % (size, body[:size])
            body = body[size:]
        return out + b"0\r\n\r\n"

    def check(self, response, digests):
        status, headers, body = response
        by = headers.get(b"x-served-by", b"?").decode()
        if by == "?" and status == 503:
            raise Unavailable
        if by not in self.servers:
            raise Wrong(f"{self.kind} {self.target}: answered by {by}, status {status}, {body[:60]!r}")
        # Apache's pages accept no other methods.
        is_refused = status == 405 and headers.get(b"server", b"").startswith(b"Apache")
        if self.method == "HEAD" or is_refused and self.method not in ("GET", "POST"):
            return
        if self.file == "2m":
            if status != 200 or len(body) != DEPLOYED or body != body[:LINE] * (DEPLOYED // LINE):
                versions = sorted({body[at : at + LINE] for at in range(0, len(body), LINE)})
                raise Wrong(f"{self.kind} {self.target}: {status}, {len(body)} bytes, of {versions[:4]}")
        elif self.says:
            if status != 200 or body.decode() != self.says:
                raise Wrong(f"{self.kind}: {status} {body[:80]!r} instead of {self.says!r}")
        elif self.file:
            if status != 200 or hashlib.sha256(body).digest() != digests[self.file]:
                raise Wrong(f"{self.kind} {self.target}: other bytes, status {status}")
        elif status != 200 or body.decode() not in (
            f"{by} {self.target}\n",
            f"{by} {self.shown}\n",
        ):
            raise Wrong(f"{self.kind} {self.target}: {status} {body[:80]!r}")


# Kinds that wait half a second each are rare.
SLOW, SLOW_KINDS = 20, ("slow", "download")
KINDS = ("plain", "head", "long", "absolute", "escaped", "post", "expect", "chunked", "empty", "delete", "cut",
         "pipelined", "together", "abort", "slow")
# These kinds need a page that is deployed (--site).
OF_A_SITE = ("upload", "deployed", "download")


class Client(threading.Thread):
    def __init__(self, address, pools, until, seed, faults, kinds, digests):
        super().__init__()
        self.address, self.pools, self.until, self.kinds, self.digests = address, pools, until, kinds, digests
        self.faults = faults
        self.rng, self.counts, self.error = random.Random(seed), collections.Counter(), None

    def run(self):
        try:
            while time.time() < self.until:
                self.one_connection()
        except Exception as error:
            self.error = error
            print(f"{time.strftime('%T')} {type(error).__name__}: {error}", flush=True)

    def one_connection(self):
        try:
            connection = Connection(self.address)
        except ConnectionError:
            if not self.faults:
                raise
            self.counts["not connected"] += 1
            return
        self.said = []
        try:
            for _ in range(self.rng.randint(1, 12)):
                kind = self.rng.choice(self.kinds)
                if kind in SLOW_KINDS and self.rng.randrange(SLOW):
                    continue
                if kind == "abort":
                    self.abort(connection)
                    return
                if kind in ("pipelined", "together"):
                    requests = [self.request("plain") for _ in range(self.rng.randint(2, 4))]
                else:
                    requests = [self.request("plain" if kind in ("cut", "slow") else kind)]
                try:
                    self.exchange(connection, requests, kind)
                except Unavailable:
                    if not self.faults:
                        raise Wrong(f"{kind}: unavailable")
                    self.counts["unavailable"] += 1
                    return
                except (ConnectionError, BrokenPipeError):
                    if connection.read and not self.faults:
                        raise Wrong(f"{kind}: an end in the middle of {connection.read[:80]!r}")
                    self.counts[f"closed {kind}"] += 1
                    return
                except TimeoutError:
                    asked = time.strftime("%T", time.gmtime(time.time() - 30))
                    port = connection.socket.getsockname()[1]
                    raise Wrong(
                        f"{kind} {[r.target for r in requests]}: no answer since {asked} on port {port}; "
                        f"{connection.read[:80]!r}, before: {self.said}"
                    )
        finally:
            connection.socket.close()

    def request(self, kind):
        return Request(self.rng, self.pools, kind)

    def exchange(self, connection, requests, kind):
        rng = self.rng
        if kind == "together":
            connection.send(b"".join(r.head for r in requests))
        elif kind == "pipelined":
            for request in requests:
                connection.send(request.head)
        else:
            (request,) = requests
            if request.waits:
                connection.send(request.head)
                time.sleep(0.02)
                connection.send(request.body)
            elif kind == "slow":
                cut = rng.randrange(len(request.head))
                connection.send(request.head[:cut])
                connection.wait_until_acknowledged()
                connection.send(request.head[cut:])
            elif kind == "cut":
                cuts = [rng.randrange(len(request.head)) for _ in range(rng.randint(1, 4))]
                connection.send(request.head, cuts, rng.choice((0, 0.001, 0.05)))
            else:
                data = request.head + request.body
                cuts = [len(request.head)] if rng.random() < 0.5 else []
                connection.send(data, cuts)
        for request in requests:
            response = connection.response(request.method == "HEAD", kind == "download")
            try:
                request.check(response, self.digests)
            except Wrong as wrong:
                raise Wrong(f"{wrong}, in {kind} {[r.target for r in requests]}, before: {self.said}") from None
            self.said.append(f"{request.method} {request.target}")
            self.counts[kind] += 1

    def abort(self, connection):
        request = self.request(self.rng.choice(("plain", "long", "post")))
        data = request.head + request.body
        try:
            connection.send(data[: self.rng.randrange(len(data))])
        except ConnectionError:
            pass
        self.counts["abort"] += 1


def digests(address):
    found = {}
    for file in FILES:
        connection = Connection(address)
        connection.send(f"GET /ds1/{file} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        status, _, body = connection.response(False)
        assert status == 200 and len(body) == FILES[file], (file, status, len(body))
        found[file] = hashlib.sha256(body).digest()
        connection.socket.close()
    return found


def main():
    host, port, pools, seconds, seed, *kinds = sys.argv[1:]
    faults = "--faults" in kinds
    has_site = "--site" in kinds
    kinds = [kind for kind in kinds if not kind.startswith("--")]
    kinds = kinds or [*KINDS, *(OF_A_SITE if has_site else ())]
    pools = [pool.split("+") for pool in pools.split()]
    address, until = (host, int(port)), time.time() + float(seconds)
    print("seed", seed, flush=True)
    known = digests(address)
    clients = [
        Client(address, pools, until, f"{seed}.{index}", faults, kinds, known) for index in range(8)
    ]
    for client in clients:
        client.start()
    counts = collections.Counter()
    for client in clients:
        client.join()
        counts += client.counts
    print(dict(sorted(counts.items())))
    sys.exit(any(client.error for client in clients))


if __name__ == "__main__":
    main()
