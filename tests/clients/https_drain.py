"""HTTPS connections that are at rest while their data server drains.

usage: https_drain.py HOST PORT CONNECTIONS STOP

Each connection has one request, and another one once the file STOP is there. A third one follows. `ready` is said in
between, and at the end how many connections have changed their data server. A connection of HTTP/2 to ds1 has a request
as well, and is sent away before the second ones.
"""

import pathlib
import sys
import time

from http2_frames import ACK, DATA, GOAWAY, PING, Frames, frame, request
from tls_client import Client

ADDRESS, CONNECTIONS, STOP = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), pathlib.Path(sys.argv[4])
clients, first = [], []
for number in range(CONNECTIONS):
    client = Client(ADDRESS, "www.example")
    client.shake_hands()
    first.append(client.get("/whoami")[0])
    clients.append(client)
assert set(first) == {"ds1", "ds2"}, first
other = Frames(ADDRESS)
other.say(request(1))
frames = other.frames()
assert any(kind == DATA and content == b"ds1\n" for kind, _, content in frames)
print("ready", flush=True)
goaways = 0
for kind, _, content in frames:
    goaways += kind == GOAWAY
    # The server waits for this, so that it misses no stream that the client has just begun.
    if kind == PING and content:
        other.say(frame(PING, ACK, 0, content))
assert goaways == 2, goaways
while not STOP.exists():
    time.sleep(0.1)
then = [client.get("/whoami")[0] for client in clients]
assert set(then) == {"ds2"}, then
assert [client.get("/ds3/a")[0] for client in clients] == ["ds3"] * CONNECTIONS
print(f"{CONNECTIONS} connections, of which {first.count('ds1')} have moved to ds2")
