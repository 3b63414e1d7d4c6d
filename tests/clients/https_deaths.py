"""HTTPS connections that move with each request while agents and data servers die.

usage: https_deaths.py HOST PORT CONNECTIONS STOP

Each connection asks three data servers in turn, until the file STOP is there. One that ends, or that a client gives up
because no answer comes within 5 s, is made again. What counts is that no answer is another request's, or a part of one.
"""

import collections
import pathlib
import ssl
import sys
import threading
import time

from tls_client import Client

ADDRESS, CONNECTIONS, STOP = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), pathlib.Path(sys.argv[4])
counts, wrong, last = collections.Counter(), [], [0.0] * CONNECTIONS


def connect():
    client = Client(ADDRESS, "other.example")
    client.socket.settimeout(5)
    client.shake_hands()
    return client


def turns(number):
    client, turn = connect(), 0
    while not STOP.exists():
        turn += 1
        server = f"ds{(number + turn) % 3 + 1}"
        path = f"/{server}/{number}-{turn}"
        by, body = client.get(path) if turn % 3 else client.post(path, 3000)
        if (by, body.decode()) != (server, f"{server} {path}\n"):
            wrong.append((server, path, by, body))
        counts["right"] += 1
        last[number] = time.monotonic()


def ask(number):
    while not STOP.exists():
        try:
            turns(number)
        except (ConnectionError, TimeoutError, ssl.SSLError) as error:
            counts[type(error).__name__] += 1
        except AssertionError as error:
            # A response that is none of 200 is the agent's own: nobody can answer at the moment.
            line = error.args[0][0] if error.args and isinstance(error.args[0], list) else ""
            if " 503 " not in line:
                wrong.append(error)
            counts["503"] += 1
        time.sleep(0.05)


threads = [threading.Thread(target=ask, args=(number,)) for number in range(CONNECTIONS)]
for thread in threads:
    thread.start()
while counts["right"] < 10 * CONNECTIONS:
    time.sleep(0.1)
print("ready", flush=True)
for thread in threads:
    thread.join()
print(dict(counts), *wrong[:10], sep="\n")
assert not wrong, f"{len(wrong)} wrong answers"
silent = [number for number in range(CONNECTIONS) if time.monotonic() - last[number] > 20]
assert not silent, f"these have no answers any more: {silent}"
