"""Uploads by HTTPS to data servers that are not the connection's own.

usage: https_uploads.py HOST PORT ROUNDS

On one connection the client keeps files at ds1, ds2 and ds3 in turn, and gets each back from the same server, which must
have all of it. A body comes as fast as it can, in pieces with pauses between them, in chunks, or after a 100.
"""

import os
import sys
import time

from tls_client import Client

ADDRESS, ROUNDS = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
SIZES = [0, 1, 70_000, 300_000, 3_000_000]


def begin(client, path, fields):
    client.say(f"PUT {path} HTTP/1.1\r\nHost: {client.name}\r\n{fields}\r\n\r\n".encode())


def keep(client, path, body, way):
    length = f"Content-Length: {len(body)}"
    if way == "asked":
        begin(client, path, f"{length}\r\nExpect: 100-continue")
        interim = client.until(lambda: client.tls.read(1 << 16))
        assert interim.startswith(b"HTTP/1.1 100 "), interim
        client.say(body)
    elif way == "chunked":
        begin(client, path, "Transfer-Encoding: chunked")
        for at in range(0, len(body), 50_000):
            piece = body[at : at + 50_000]
            client.say(b"%x\r\n%s\r\n" % (len(piece), piece))
        client.say(b"0\r\n\r\n")
    else:
        begin(client, path, length)
        for at in range(0, len(body), 20_000):
            client.say(body[at : at + 20_000])
            if way == "slow":
                time.sleep(0.005)
    head = client.until(lambda: client.tls.read(1 << 16)).decode()
    assert head.split()[1] in ("201", "204"), head
    return dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)["x-served-by"]


def answered_early(client, turn):
    """The rest of a body, which its server has not waited for, does not begin a request to another server."""
    begin(client, "/ds1/early", "Content-Length: 100")
    client.say(bytes(50))
    assert client.response()[0] == "ds1"
    rest, body = b"GET /ds2/hidden HTTP/1.1\r\nHost: a\r\n\r\n".ljust(50, b"\n"), os.urandom(200_000)
    head = f"PUT /ds2/kept/{turn}-early HTTP/1.1\r\nHost: {client.name}\r\nContent-Length: {len(body)}\r\n\r\n"
    client.say(rest + head.encode() + body[:8000])
    time.sleep(0.2)
    client.say(body[8000:])
    said = client.until(lambda: client.tls.read(1 << 16))
    assert said.startswith((b"HTTP/1.1 201 ", b"HTTP/1.1 204 ")), said
    assert client.get(f"/ds2/kept/{turn}-early") == ("ds2", body)


client = Client(ADDRESS, "other.example")
client.socket.settimeout(60)
client.shake_hands()
for turn in range(ROUNDS):
    for way in ("fast", "slow", "chunked", "asked"):
        for number, size in enumerate(SIZES):
            if way == "asked" and not size:
                continue
            server = f"ds{(turn + number) % 3 + 1}"
            path, body = f"/{server}/kept/{turn}-{way}-{size}", os.urandom(size)
            by = keep(client, path, body, way)
            assert by == server, (turn, way, size, by)
            by, back = client.get(path)
            assert (by, back) == (server, body), (turn, way, size, by, len(back))
    answered_early(client, turn)
print(f"{ROUNDS} rounds, each file whole at its server")
