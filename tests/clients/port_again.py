"""A client that uses its source port again as soon as it can, as load testers and clients behind a NAT do.

usage: port_again.py HOST PORT TIMES

TIMES times the client sends a short request on a connection of its own, which the server closes, and then a request for
another pool from the same port, whose head of 3 KB comes in several segments. /POOL/... is answered by POOL alone. Each
answer must be 200, from that pool.
"""

import errno
import socket
import sys

POOLS = ["ds1", "ds2", "ds3"]
FIRST_PORT = 40000
COOKIES = b"Cookie: a=" + b"z" * 3000 + b"\r\n"


def connect(address, own):
    while True:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.settimeout(60)
        connection.bind(("", own))
        try:
            connection.connect(address)
            return connection
        except OSError as error:
            # The last acknowledgement of the previous connection has not arrived yet.
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            connection.close()


def ask(address, own, pool, more):
    with connect(address, own) as connection:
        head = f"GET /{pool}/a HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n".encode()
        connection.sendall(head + more + b"\r\n")
        read = b""
        while piece := connection.recv(1 << 16):
            read += piece
    lines = read.partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    assert lines[0].split()[1] == "200" and f"x-served-by: {pool}" in lines, (own, pool, lines)


def main():
    address = sys.argv[1], int(sys.argv[2])
    for turn in range(int(sys.argv[3])):
        own = FIRST_PORT + turn
        ask(address, own, POOLS[turn % 3], b"")
        ask(address, own, POOLS[(turn + 1) % 3], COOKIES)


if __name__ == "__main__":
    main()
