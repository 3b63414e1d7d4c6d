"""TLS clients that keep their connections while their cluster changes.

usage: tls_kept.py HOST PORT CONNECTIONS STOP

Each of CONNECTIONS connections sends requests, one after the other with a pause between, until the file STOP exists. A
new connection begins from time to time. Every request must be answered by the server that its connection has begun at.
"""

import os
import sys
import threading
import time

from tls_client import Client

ADDRESS = sys.argv[1], int(sys.argv[2])
CONNECTIONS = int(sys.argv[3])
STOP = sys.argv[4]
NAMES = {"ds1.example": {"ds1"}, "ds2.example": {"ds2"}, "a.ds3.example": {"ds3"}, "other.example": {"ds1", "ds2"}}
# New connections begin for these: they always have a server.
RENEWED = {"a.ds3.example", "other.example"}
PAGES = {"/4k": 4096, "/64k": 65536, "/1m": 1 << 20}
begun = answered = 0
failures = []


def connect(name):
    global begun
    client = Client(ADDRESS, name)
    client.socket.settimeout(60)
    client.shake_hands()
    begun += 1
    return client


def keep(name, number):
    global answered
    try:
        client, server = connect(name), None
        turn = number
        while not os.path.exists(STOP):
            path = list(PAGES)[turn % len(PAGES)]
            by, body = client.get(path)
            assert len(body) == PAGES[path] and by in NAMES[name] and server in (None, by), (name, path, by, server)
            server = by
            answered += 1
            turn += 1
            if name in RENEWED and turn % 10 == 0:
                client.socket.close()
                client, server = connect(name), None
            time.sleep(0.1)
    except Exception as error:
        failures.append(f"{name} {number}: {error!r}")


clients = [
    threading.Thread(target=keep, args=(list(NAMES)[number % len(NAMES)], number))
    for number in range(CONNECTIONS)
]
for client in clients:
    client.start()
while begun < CONNECTIONS and not failures:
    time.sleep(0.05)
print("ready", flush=True)
for client in clients:
    client.join()
print(f"{begun} connections, {answered} requests, {len(failures)} failures", *failures, sep="\n")
sys.exit(bool(failures))
