"""HTTPS connections that are at rest while their data server drains.

usage: https_drain.py HOST PORT CONNECTIONS STOP

Each connection has one request, and another one once the file STOP is there. A third one follows. `ready` is said in
between, and at the end how many connections have changed their data server.
"""

import pathlib
import sys
import time

from tls_client import Client

ADDRESS, CONNECTIONS, STOP = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), pathlib.Path(sys.argv[4])
clients, first = [], []
for number in range(CONNECTIONS):
    client = Client(ADDRESS, "www.example")
    client.shake_hands()
    first.append(client.get("/whoami")[0])
    clients.append(client)
assert set(first) == {"ds1", "ds2"}, first
print("ready", flush=True)
while not STOP.exists():
    time.sleep(0.1)
then = [client.get("/whoami")[0] for client in clients]
assert set(then) == {"ds2"}, then
assert [client.get("/ds3/a")[0] for client in clients] == ["ds3"] * CONNECTIONS
print(f"{CONNECTIONS} connections, of which {first.count('ds1')} have moved to ds2")
