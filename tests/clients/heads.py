"""A client whose request heads are too long, or take too long.

usage: heads.py HOST PORT POOLS

/POOL/... is answered by POOL alone, for each of POOLS, and its servers accept heads of 128 KB. Heads of 60 KB must be
answered, in a few pieces and in many. For longer heads, baton and not a server must answer 431. For heads of which a
bit comes from time to time and never the end, it must answer 408 after the service's head_timeout, which is at most
ten seconds, or the connection must end. All this is tried as the first request of a connection and as the third.
"""

import select
import socket
import sys
import threading
import time

LINE = f"X-Fill: {'f' * 1000}\r\n".encode()


def connect(address):
    connection = socket.create_connection(address, timeout=90)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def begin(path):
    return f"GET {path} HTTP/1.1\r\nHost: cluster\r\n".encode()


def response(connection):
    """Reads until the response is complete or the connection ends. Returns status, server name and body."""
    read = b""
    try:
        while True:
            head, end, body = read.partition(b"\r\n\r\n")
            if end:
                lines = head.decode().split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in lines[1:])
                if len(body) >= int(fields.get("content-length", 0)):
                    return int(lines[0].split()[1]), fields.get("x-served-by"), body.decode()
            piece = connection.recv(1 << 16)
            if not piece:
                break
            read += piece
    except ConnectionError:
        pass
    assert not read, read
    return None, None, ""


class Case(threading.Thread):
    def __init__(self, address, pools, is_further, name):
        super().__init__()
        self.address, self.pools, self.is_further, self.name = address, pools, is_further, name
        self.failure = "not done"

    def run(self):
        try:
            connection = connect(self.address)
            if self.is_further:
                for pool in self.pools:
                    connection.sendall(begin(f"/{pool}/known") + b"\r\n")
                    assert response(connection)[:2] == (200, pool)
            getattr(self, self.name)(connection, self.pools[0])
            self.failure = None
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"

    def whole(self, connection, pool):
        head = begin(f"/{pool}/known") + 59 * LINE + b"\r\n"
        for step in (len(head), 700):
            for at in range(0, len(head), step):
                connection.sendall(head[at : at + step])
            status, by, body = response(connection)
            assert (status, by, body) == (200, pool, f"{pool} /{pool}/known\n"), (status, by, body)

    def long(self, connection, pool):
        self.refused(connection, begin(f"/{pool}/refused") + 80 * LINE + b"\r\n", ())

    def long_in_pieces(self, connection, pool):
        lines = 80 * [LINE] + [b"\r\n"]
        self.refused(connection, begin(f"/{pool}/refused"), lines)

    def slow(self, connection, pool):
        self.refused(connection, begin(f"/{pool}/refused"), 30 * [LINE[:7] + b"\r\n"], pause=0.5)

    def slow_in_the_first_line(self, connection, pool):
        self.refused(connection, b"GET ", [f"/{pool}/refused".encode(), *30 * [b"x"]], pause=0.5)

    def refused(self, connection, first, pieces, pause=0.0):
        try:
            connection.sendall(first)
            for piece in pieces:
                if select.select([connection], [], [], pause)[0]:
                    break
                connection.sendall(piece)
        except ConnectionError:
            pass
        status, by, body = response(connection)
        assert status in (None, 431 if not pause else 408) and by is None, (status, by, body)
        # The line and its end are written at once, because the lines of several threads would mix otherwise.
        print(f"{self.name} {'further' if self.is_further else 'first'} {status}\n", end="", flush=True)
        # After such a response the connection answers nothing more.
        try:
            connection.sendall(b"\r\n" + begin(f"/{self.pools[0]}/refused") + b"\r\n")
        except ConnectionError:
            pass
        assert response(connection)[0] is None


def main():
    host, port, pools = sys.argv[1:]
    names = ["whole", "long", "long_in_pieces", "slow", "slow_in_the_first_line"]
    cases = [
        Case((host, int(port)), pools.split(), is_further, name) for name in names for is_further in (False, True)
    ]
    for case in cases:
        case.start()
    failed = False
    for case in cases:
        case.join()
        if case.failure:
            print(case.name, "further" if case.is_further else "first", case.failure)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
