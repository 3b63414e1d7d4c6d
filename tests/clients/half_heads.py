"""A client that begins requests and never ends them, beside another client whose requests come in parts.

usage: half_heads.py HOST PORT SOURCE open|again COUNT POOLS

With "open", COUNT connections from the address SOURCE are open all the time, each of which has sent half a head. A
connection that ends is made anew. With "again", there are COUNT connections, and the frames with their halves are sent
again and again, as fast as one processor can. Meanwhile the other client asks for /POOL/whoami of each of POOLS, over
connections of its own, in parts that are too long for one segment. That pool must answer every time.
"""

import multiprocessing
import resource
import selectors
import socket
import sys
import time

from kept_connection import Connection

ROUNDS = 10
PATIENCE = 30
HALF = b"GET /ds1/whoami HTTP/1.1\r\nHost: cluster\r\nX-Half: "
# The receive buffer for frames that wait to be copied, in bytes.
ROOM = 1 << 26
# socket(7); asm-generic/socket.h
SO_RCVBUFFORCE = 33
FILL = f"X-Fill: {'f' * 1400}\r\n"


class Opener:
    """COUNT connections, each with half a head."""

    def __init__(self, address, source, count):
        self.address, self.source, self.count = address, source, count
        self.selector = selectors.DefaultSelector()
        self.open = 0

    def begin(self):
        connection = socket.socket()
        connection.setblocking(False)
        connection.bind((self.source, 0))
        connection.connect_ex(self.address)
        self.selector.register(connection, selectors.EVENT_WRITE)

    def end(self, connection):
        self.selector.unregister(connection)
        connection.close()
        self.begin()

    def run(self, ready, ends):
        for _ in range(self.count):
            self.begin()
        while not ends.is_set():
            for key, event in self.selector.select(1):
                connection = key.fileobj
                try:
                    if event == selectors.EVENT_WRITE:
                        connection.send(HALF)
                        self.selector.modify(connection, selectors.EVENT_READ)
                        self.open += 1
                    else:
                        # The connection was refused, with a response, a FIN or a RST.
                        connection.recv(1 << 16)
                        self.open -= 1
                        self.end(connection)
                except OSError:
                    self.end(connection)
            if self.open >= self.count * 9 // 10:
                ready.set()


class Repeater:
    """COUNT connections, whose half heads are sent again and again."""

    def __init__(self, address, source, count):
        self.address, self.source, self.count = address, source, count
        self.connections = []

    def frames(self):
        """Returns the frames as they leave: a packet socket gets a copy of each (packet(7), ETH_P_ALL)."""
        found = []
        while len(found) < self.count:
            connection = socket.create_connection(self.address, 10, (self.source, 0))
            self.connections.append(connection)
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as copies:
                copies.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
                copies.bind(("eth0", 3))
                connection.sendall(HALF)
                # Other traffic may leave no room in the buffer for this frame. The next connection's frame will come
                # then.
                found += self.copy(copies, connection.getsockname()[1])
        return found

    def copy(self, copies, port):
        copies.settimeout(1)
        until = time.monotonic() + 2
        while time.monotonic() < until:
            try:
                frame = copies.recv(1 << 16)
            except TimeoutError:
                break
            if HALF in frame and frame[34:36] == port.to_bytes(2, "big"):
                return [frame]
        return []

    def run(self, ready, ends):
        found, sent = self.frames(), 0
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.bind(("eth0", 0))
        ready.set()
        began = time.monotonic()
        while not ends.is_set():
            for _ in range(1000):
                sender.send(found[sent % self.count])
                sent += 1
        print(f"{sent / (time.monotonic() - began):.0f} frames a second")


def attack(kind, address, source, count, ready, ends):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    kind(address, source, count).run(ready, ends)


def ask(connection, pool):
    for part in (f"GET /{pool}/whoami HTTP/1.1\r\n", FILL, FILL, "Host: cluster\r\n\r\n"):
        connection.send(part.encode())
        time.sleep(0.02)
    connection.answered_by(pool)


def main():
    host, port, source, kind, count, pools = sys.argv[1:]
    address = (host, int(port))
    ready, ends = multiprocessing.Event(), multiprocessing.Event()
    kind = {"open": Opener, "again": Repeater}[kind]
    arguments = (kind, address, source, int(count), ready, ends)
    attacker = multiprocessing.Process(target=attack, args=arguments, daemon=True)
    attacker.start()
    assert ready.wait(60), "the connections are not open"
    asked = 0
    for _ in range(ROUNDS):
        connection = Connection(address, PATIENCE)
        for pool in pools.split():
            ask(connection, pool)
            asked += 1
        connection.close()
    ends.set()
    attacker.join(5)
    print(f"{asked} requests in parts were answered beside {count} that never end")


main()
