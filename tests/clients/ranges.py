"""Clients that ask for several ranges of a file at once, read slowly until a file appears, and then read the rest.

usage: ranges.py HOST PORT PATH COUNT GO RANGES

The last part of PATH is a file of the lab. Each of COUNT clients prints which server has answered it, with which
boundary, and how its response ended: "whole", or "reset", which may happen at any time. Everything before that must
be right, with one boundary from the beginning to the end. The clients read slowly until a file GO exists. If two
servers use the same boundary, the test would show nothing. That is an error, and so is a wrong byte.
"""

import os
import socket
import sys
import threading
import time

FILES = "/var/tmp/baton-lab/files/"
# A slow client takes SIPS times SIP bytes a second.
SIPS, SIP = 20, 4096


class Client(threading.Thread):
    def __init__(self, address, path, go, ranges, original):
        super().__init__()
        self.address, self.path, self.go, self.ranges, self.original = address, path, go, ranges, original
        self.boundary, self.end = None, None

    def run(self):
        try:
            self.exchange()
        except Exception as error:
            self.end = f"{type(error).__name__}: {error}"

    def exchange(self):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        connection.settimeout(60)
        connection.connect(self.address)
        asked = ",".join(f"{first}-{last}" for first, last in self.ranges)
        connection.sendall(f"GET {self.path} HTTP/1.1\r\nHost: cluster\r\nRange: bytes={asked}\r\n\r\n".encode())
        read = b""
        while b"\r\n\r\n" not in read:
            piece = connection.recv(SIP)
            assert piece, "an end in the head"
            read += piece
        head, body = read.split(b"\r\n\r\n", 1)
        first, *lines = head.decode().split("\r\n")
        assert first.startswith("HTTP/1.1 206 "), first
        fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        kind, boundary = fields["content-type"].split("boundary=")
        assert kind.startswith("multipart/byteranges"), kind
        self.boundary, length, body = boundary, int(fields["content-length"]), bytearray(body)
        # The line and its end are written at once, because the lines of several threads would mix otherwise.
        print(f"begun {fields['x-served-by']} {boundary}\n", end="", flush=True)
        self.end = "whole"
        try:
            while len(body) < length:
                is_slow = not os.path.exists(self.go)
                piece = connection.recv(min(SIP if is_slow else 1 << 16, length - len(body)))
                if not piece:
                    raise ConnectionResetError
                body += piece
                if is_slow:
                    time.sleep(1 / SIPS)
        except ConnectionResetError:
            self.end = "reset"
        self.check(bytes(body), length)

    def check(self, body, length):
        """Checks the body as far as it has arrived."""
        at = 0

        def expect(what):
            nonlocal at
            came = body[at : at + len(what)]
            assert came == what[: len(came)], f"wrong bytes behind the first {at}: {bytes(came[:80])}"
            at += len(came)

        delimiter = f"\r\n--{self.boundary}".encode()
        for first, last in self.ranges:
            expect(delimiter + b"\r\n")
            end = body.find(b"\r\n\r\n", at)
            if end < 0:
                assert self.end == "reset", "a part without an end of its head"
                return
            fields = bytes(body[at:end]).decode().lower().split("\r\n")
            assert f"content-range: bytes {first}-{last}/{len(self.original)}" in fields, fields
            at = end + 4
            expect(self.original[first : last + 1])
        expect(delimiter + b"--\r\n")
        assert self.end == "reset" or at == len(body) == length, f"{at} bytes instead of {length}"


def main():
    host, port, path, count, go, ranges = sys.argv[1:]
    with open(FILES + path.rsplit("/", 1)[-1], "rb") as file:
        original = file.read()
    ranges = [tuple(int(end) for end in one.split("-")) for one in ranges.split(",")]
    clients = [Client((host, int(port)), path, go, ranges, original) for _ in range(int(count))]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
        print("ended", client.end)
    boundaries = {client.boundary for client in clients}
    print("status", int(len(boundaries) < len(clients) or any(c.end not in ("whole", "reset") for c in clients)))


if __name__ == "__main__":
    main()
