"""Clients of descriptors.py.

usage: asker.py HOST PORT TEXT WANTED [TIMES]   sends the line TEXT; WANTED must come back
       asker.py HOST PORT back BYTES            sends so many bytes, which must come back
       asker.py HOST PORT fill                  sends bytes until no more are taken, prints "full", and waits for the
                                                end, which must be a reset
       asker.py HOST PORT wait                  prints "waits", and waits for the end, which must be a reset
"""
import hashlib
import socket
import sys
import threading

host, port, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def connect():
    connection = socket.create_connection((host, port), 60)
    connection.settimeout(60)
    return connection


def wait_for_reset(connection):
    connection.settimeout(120)
    try:
        end = connection.recv(1)
    except ConnectionResetError:
        print("reset", flush=True)
    else:
        sys.exit(f"not a reset, but {end}")


if what == "back":
    sent = hashlib.shake_128(b"there and back").digest(int(sys.argv[4]))
    with connect() as connection:
        writer = threading.Thread(target=lambda: (connection.sendall(sent), connection.shutdown(socket.SHUT_WR)))
        writer.start()
        found = connection.makefile("rb").read()
        writer.join()
    if found != sent:
        sys.exit(f"{len(found)} bytes came back of {len(sent)}, or others")
elif what == "fill":
    connection = connect()
    connection.settimeout(2)
    sent = 0
    try:
        while sent < 1 << 30:
            sent += connection.send(bytes(1 << 16))
        sys.exit("a gigabyte is taken, and nobody reads")
    except TimeoutError:
        print(f"full after {sent}", flush=True)
    wait_for_reset(connection)
elif what == "wait":
    connection = connect()
    print("waits", flush=True)
    wait_for_reset(connection)
else:
    for turn in range(int((sys.argv[5:] or [1])[0])):
        with connect() as connection:
            connection.sendall(what.encode() + b"\n")
            found = connection.makefile("rb").read().decode()
        if found != sys.argv[4] + "\n":
            sys.exit(f"in turn {turn}: {found!r}")
