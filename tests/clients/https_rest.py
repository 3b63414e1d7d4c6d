"""HTTPS connections at rest while servers are replaced.

usage: https_rest.py HOST PORT STOP

Each of three connections has a request of its own data server. Once the file STOP is there, it has two more.
"""

import pathlib
import sys
import time

from tls_client import Client

ADDRESS, STOP = (sys.argv[1], int(sys.argv[2])), pathlib.Path(sys.argv[3])
clients = {}


def ask(server, what):
    by, body = clients[server].get(f"/{server}/{what}")
    assert (by, body.decode()) == (server, f"{server} /{server}/{what}\n"), (server, by, body)


for server in ("ds1", "ds2", "ds3"):
    clients[server] = client = Client(ADDRESS, "other.example")
    client.shake_hands()
    ask(server, "before")
print("ready", flush=True)
while not STOP.exists():
    time.sleep(0.1)
for server in clients:
    ask(server, "behind")
    ask(server, "then")
print("three connections went on")
