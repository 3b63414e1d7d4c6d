"""Clients that send another request on a connection while a long download goes on there.

usage: behind_download.py HOST PORT LONG SHORT COUNT RATE SECONDS...

For each of SECONDS there are COUNT connections. Each sends GET LONG, a path that ends in /64m, and reads the response
at RATE bytes a second. Once all downloads have begun, "begun" is printed. So many SECONDS later each sends GET SHORT,
which ends in /4k, on the same connection; the response must follow that of the download. A connection may be reset at
any time, but everything that came before must be right. The script prints what became of each connection. It fails if
a byte is wrong, or if nothing comes for 60 s.
"""

import socket
import sys
import threading
import time

LONG, SHORT = 64 << 20, 4 << 10


class Client(threading.Thread):
    def __init__(self, address, paths, original, rate, seconds, all_begun):
        super().__init__()
        self.all_begun = all_begun
        self.address, self.original, self.rate, self.seconds = address, original, rate, seconds
        self.long, self.short = paths
        self.end, self.rest, self.bytes = None, b"", 0

    def run(self):
        try:
            self.exchange()
            self.end = "whole"
        except ConnectionResetError:
            self.end = "reset"
        except Exception as error:
            self.end = f"{type(error).__name__}: {error} (behind {self.bytes} bytes)"

    def exchange(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        self.socket.settimeout(60)
        self.socket.connect(self.address)
        self.begun = time.time()
        self.send(self.long)
        self.rest = self.take(1 << 10)
        self.all_begun.wait()
        # The request is sent then, whether more of the download has come or not.
        threading.Timer(self.seconds, self.send_behind).start()
        self.expect(LONG)
        self.expect(SHORT)

    def send_behind(self):
        try:
            self.send(self.short)
        except OSError:
            pass  # the connection was reset, which the reader notices as well

    def send(self, target):
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: {self.address[0]}\r\n\r\n".encode())

    def expect(self, length):
        """Reads a response with so many bytes. All files are beginnings of the same stream of bytes."""
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.take(1 << 16)
        head, self.rest = head.split(b"\r\n\r\n", 1)
        if not head.startswith(b"HTTP/1.1 200 ") or f"content-length: {length}".encode() not in head.lower():
            raise ValueError(f"no response of {length} bytes: {head[:200]!r}")
        at = 0
        while at < length:
            piece = self.take(length - at)
            if piece != self.original[at : at + len(piece)]:
                raise ValueError(f"wrong bytes from {at} on: {piece[:80]!r}")
            at += len(piece)

    def take(self, most):
        if self.rest:
            piece, self.rest = self.rest[:most], self.rest[most:]
            return piece
        now = time.time() - self.begun
        ahead = self.bytes / self.rate - now
        if ahead > 0 and now < 20:
            time.sleep(min(ahead, 0.05))
        piece = self.socket.recv(min(most, 1 << 16))
        if not piece:
            raise ConnectionResetError("ended")
        self.bytes += len(piece)
        return piece


def main():
    host, port, long, short, count, rate, *seconds = sys.argv[1:]
    with open("/var/tmp/baton-lab/files/64m", "rb") as file:
        original = file.read()
    begin = threading.Barrier(int(count) * len(seconds), lambda: print("begun", flush=True))
    clients = [
        Client((host, int(port)), (long, short), original, int(rate), float(later), begin)
        for later in seconds
        for _ in range(int(count))
    ]
    for client in clients:
        client.start()
    failed = False
    for client in clients:
        client.join()
        print(client.seconds, client.end)
        failed |= client.end not in ("whole", "reset")
    sys.exit(failed)


if __name__ == "__main__":
    main()
