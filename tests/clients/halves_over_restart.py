"""Clients whose requests come in halves while the daemon of their data server is restarted.

usage: halves_over_restart.py HOST PORT COUNT POOL SECONDS FILE

COUNT connections ask for /POOL/whoami once. When FILE exists, each begins another request, one connection after the
other within SECONDS, and ends it two seconds after the last one has begun. Each must be answered.
"""

import os
import resource
import socket
import sys
import time

PATIENCE = 30


def answer(connection, pool):
    read = b""
    while b"\r\n\r\n" not in read or not read.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        assert piece, f"the connection ended: {read}"
        read += piece
    head = read.decode().lower()
    assert head.startswith("http/1.1 200 ") and f"x-served-by: {pool}\r\n" in head, head


def main():
    host, port, count, pool, seconds, file = sys.argv[1:]
    head = f"GET /{pool}/whoami HTTP/1.1\r\nHost: cluster\r\n\r\n".encode()
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(count) + 100, int(count) + 100))
    connections = []
    for _ in range(int(count)):
        connection = socket.create_connection((host, int(port)), PATIENCE)
        connection.sendall(head)
        answer(connection, pool)
        connections.append(connection)
    print("ready", flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)
    for connection in connections:
        connection.sendall(head[:20])
        time.sleep(float(seconds) / len(connections))
    time.sleep(2)
    failed = 0
    for connection in connections:
        try:
            connection.sendall(head[20:])
            answer(connection, pool)
        except (AssertionError, OSError) as error:
            failed += 1
            print(f"port {connection.getsockname()[1]}: {error!r}")
    print(f"{len(connections) - failed} of {len(connections)} requests in halves were answered")
    sys.exit(failed > 0)


main()
