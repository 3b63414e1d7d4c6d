"""Clients of port 80 of labs/https-redirect.toml, where agents redirect each request to HTTPS.

usage: https_redirect.py HOST TIMES
       https_redirect.py HOST CONNECTIONS STOP

With STOP so many connections are kept, and send one request after the other until that file exists.
"""

import os
import socket
import sys
import threading
import time

from tls_client import Client

HOST, TIMES = sys.argv[1], int(sys.argv[2])
GET = b"GET /a/%d?b=c HTTP/1.1\r\nHost: www.example\r\n\r\n"
CLOSE = b"GET /last HTTP/1.1\r\nHost: www.example\r\nConnection: close\r\n\r\n"


def connect():
    return socket.create_connection((HOST, 80), timeout=20)


def to_end(client):
    """All that is said until the connection ends in order."""
    said = b""
    while piece := client.recv(1 << 16):
        said += piece
    return said


def response(client):
    """The status and the target of the next redirect."""
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        piece = client.recv(1)
        assert piece, said
        said += piece
    return read(said)


def read(head):
    lines = head.decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if line)
    assert "Strict-Transport-Security" not in fields, "browsers ignore it without TLS (RFC 6797, section 8.1)"
    return lines[0].split()[1], fields.get("Location")


def one_after_the_other():
    client = connect()
    for number in range(TIMES):
        client.sendall(GET % number)
        assert response(client) == ("301", f"https://www.example/a/{number}?b=c"), number
    client.sendall(CLOSE)
    assert response(client) == ("301", "https://www.example/last")
    assert client.recv(1) == b""


def pipeline():
    client = connect()
    client.sendall(b"".join(GET % number for number in range(TIMES)) + CLOSE)
    heads = to_end(client).split(b"\r\n\r\n")[:-1]
    targets = [f"https://www.example/a/{number}?b=c" for number in range(TIMES)] + ["https://www.example/last"]
    assert [read(head) for head in heads] == [("301", target) for target in targets], heads


def pieces():
    client = connect()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in CLOSE:
        client.sendall(bytes([byte]))
    assert read(to_end(client)) == ("301", "https://www.example/last")


def bodies():
    """A body is not wanted. Its client gets the answer all the same, and sends the body again by HTTPS."""
    for length in (5, 1 << 20):
        client = connect()
        client.sendall(b"POST /form HTTP/1.1\r\nHost: www.example\r\nContent-Length: %d\r\n\r\n" % length)
        try:
            client.sendall(bytes(length))
        except ConnectionError:
            pass
        assert read(to_end(client)) == ("308", "https://www.example/form"), length


def hosts():
    """What names no host is answered with 400, and never comes back in the answer."""
    for fields in (
        b"",
        b"Host:\r\n",
        b"Host: www.example\r\nHost: other.example\r\n",
        b"Host: www.example:80 evil\r\n",
        b"Host: evil\"<script>\r\n",
        b"Host: evil@www.example\r\n",
        b"Host: evil%0d%0aSet-Cookie:%20a=b\r\n",
        b"Host: evil\rSet-Cookie: a=b\r\n",
        b"Host: \xff\xfe.evil\r\n",
    ):
        client = connect()
        client.sendall(b"GET / HTTP/1.1\r\n" + fields + b"\r\n")
        said = to_end(client)
        assert said.startswith(b"HTTP/1.1 400 ") and b"evil" not in said and b"Cookie" not in said, (fields, said)


def slow():
    """A head that does not end within head_timeout."""
    client = connect()
    client.sendall(CLOSE[:-4])
    assert to_end(client).startswith(b"HTTP/1.1 408 ")


def told_by_agents():
    """Answers of the agent itself have Strict-Transport-Security as well."""
    client = Client((HOST, 443), "www.example")
    client.shake_hands()
    client.say(b"nonsense\r\n\r\n")
    said = client.until(lambda: client.tls.read(1 << 16))
    assert said.startswith(b"HTTP/1.1 400 Bad Request\r\nStrict-Transport-Security: max-age=31536000\r\n"), said


def keep(failures, counts):
    try:
        client, number = connect(), 0
        while not os.path.exists(sys.argv[3]):
            client.sendall(GET % number)
            assert response(client) == ("301", f"https://www.example/a/{number}?b=c"), number
            number += 1
            time.sleep(0.05)
        counts.append(number)
    except Exception as error:
        failures.append(repr(error))


if len(sys.argv) > 3:
    failures, counts = [], []
    clients = [threading.Thread(target=keep, args=(failures, counts)) for _ in range(TIMES)]
    for client in clients:
        client.start()
    print("ready", flush=True)
    for client in clients:
        client.join()
    print(sum(counts), "answered,", len(failures), "failures", *failures)
    sys.exit(bool(failures) or sum(counts) < TIMES)

for part in (one_after_the_other, pipeline, pieces, bodies, hosts, slow, told_by_agents):
    part()
print("all as it should be")
