"""A client whose further requests are of kinds that servers refuse.

usage: refused_requests.py HOST PORT POOLS

Each of them is the second request of its connection, for another of POOLS than the first. It must be answered with an
error that says why, and then its connection must end without a reset, which could destroy the answer.
"""

import socket
import sys

REQUESTS = [
    (400, "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (400, "GET {} HTTP/1.1\r\nHost: a\r\n folded: line\r\n\r\n"),
    (400, "GET {} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    (400, "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"),
    (400, "no request at all, but a line\r\n\r\n"),
    (400, "POST {} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    (431, "GET {} HTTP/1.1\r\nHost: a\r\n" + "X-Fill: " + "f" * 61_000),
]


def read_until_end(connection):
    read = b""
    while piece := connection.recv(1 << 16):
        read += piece
    return read


def first(connection, pool):
    connection.sendall(f"GET /{pool}/first HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    read = b""
    while not read.endswith(f"{pool} /{pool}/first\n".encode()):
        piece = connection.recv(1 << 16)
        assert piece, read
        read += piece


def main():
    host, port, pools = sys.argv[1:]
    pools = pools.split()
    for number, (status, request) in enumerate(REQUESTS):
        one, other = pools[number % len(pools)], pools[(number + 1) % len(pools)]
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            first(connection, one)
            connection.sendall(request.replace("{}", f"/{other}/second").encode())
            answer = read_until_end(connection)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (request[:60], answer)
        print(f"{status}: {request[:60]!r}")


main()
