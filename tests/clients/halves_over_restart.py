"""Clients whose requests come in halves while the daemon of their data server is restarted.

usage: halves_over_restart.py HOST PORT COUNT POOL SECONDS FILE

COUNT connections ask for /POOL/whoami once. When FILE exists, each begins another request, one connection after the
other within SECONDS, and ends it two seconds after the last one has begun. Each must be answered.
"""

import os
import resource
import sys
import time

from kept_connection import Connection, get

PATIENCE = 30


def main():
    host, port, count, pool, seconds, file = sys.argv[1:]
    head = get(f"/{pool}/whoami")
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(count) + 100, int(count) + 100))
    connections = []
    for _ in range(int(count)):
        connection = Connection((host, int(port)), PATIENCE)
        connection.send(head)
        connection.answered_by(pool)
        connections.append(connection)
    print("ready", flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)
    for connection in connections:
        connection.send(head[:20])
        time.sleep(float(seconds) / len(connections))
    time.sleep(2)
    failed = 0
    for connection in connections:
        try:
            connection.send(head[20:])
            connection.answered_by(pool)
        except (AssertionError, OSError) as error:
            failed += 1
            print(f"port {connection.socket.getsockname()[1]}: {error!r}")
    print(f"{len(connections) - failed} of {len(connections)} requests in halves were answered")
    sys.exit(failed > 0)


main()
