"""One HTTPS connection with requests for several data servers in turn.

usage: https_moves.py HOST PORT REQUESTS CONNECTIONS [LONGEST]

Every fifth request has a body, of less than LONGEST bytes (default 100,000).
"""

import sys
import threading

from tls_client import Client

ADDRESS = sys.argv[1], int(sys.argv[2])
REQUESTS, CONNECTIONS = int(sys.argv[3]), int(sys.argv[4])
LONGEST = int(sys.argv[5]) if len(sys.argv) > 5 else 100_000
failures = []


def ask(number):
    try:
        client = Client(ADDRESS, "other.example")
        client.socket.settimeout(60)
        client.shake_hands()
        for turn in range(REQUESTS):
            server = f"ds{(number + turn * (1 + number % 2)) % 3 + 1}"
            path = f"/{server}/{number}-{turn}"
            by, body = client.get(path) if turn % 5 else client.post(path, turn * 1000 % LONGEST)
            assert by == server and body.decode() == f"{server} {path}\n", (turn, server, by, body)
    except Exception as error:
        failures.append(f"{number}: {error!r}")


clients = [threading.Thread(target=ask, args=(number,)) for number in range(CONNECTIONS)]
for client in clients:
    client.start()
for client in clients:
    client.join()
print(f"{CONNECTIONS} connections, {REQUESTS} requests each, {len(failures)} failures", *failures[:20], sep="\n")
sys.exit(bool(failures))
