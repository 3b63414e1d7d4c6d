"""A TLS client that wants servers of different names, and says so in many ways.

usage: tls_names.py HOST PORT TIMES STRICT SERVER

Servers of the lab labs/tls.toml: ds1.example is answered by ds1, ds2.example by ds2, names below ds3.example by ds3, and
all others by ds1 or ds2. At the address STRICT all others are refused. SERVER is the address of one of the servers
itself. What a server answers is compared with its certificate: both name the host.
"""

import random
import re
import socket
import ssl
import sys
import time

from tls_client import Client

ADDRESS = sys.argv[1], int(sys.argv[2])
TIMES = int(sys.argv[3])
STRICT = sys.argv[4], ADDRESS[1]
SERVER = sys.argv[5]


def in_records(hello, size):
    """The same handshake message in records of at most this many bytes."""
    kind, version, message = hello[:1], hello[1:3], hello[5:]
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(kind + version + len(piece).to_bytes(2, "big") + piece for piece in pieces)


def in_segments(client, data, size, pause):
    for at in range(0, len(data), size):
        client.socket.sendall(data[at : at + size])
        if pause:
            time.sleep(pause)


def at_once(client, hello):
    client.socket.sendall(hello)


# How a client may say its first words.
WAYS = {
    "at once": at_once,
    "two segments": lambda client, hello: in_segments(client, hello, len(hello) // 2 + 1, 0.02),
    "back to back": lambda client, hello: in_segments(client, hello, 100, 0),
    "byte by byte": lambda client, hello: in_segments(client, hello, 1, 0.001),
    "records of 50 bytes": lambda client, hello: at_once(client, in_records(hello, 50)),
    "records of 1 byte": lambda client, hello: at_once(client, in_records(hello, 1)),
}
NAMES = {
    "ds1.example": ["ds1"],
    "DS2.Example": ["ds2"],
    "a.ds3.example": ["ds3"],
    "b.a.ds3.example": ["ds3"],
    "ds3.example": ["ds1", "ds2"],
    "other.example": ["ds1", "ds2"],
    None: ["ds1", "ds2"],
}


def visit(name, servers, way, **how):
    """A connection with a few requests, a download among them. Returns what a later one needs to resume its session."""
    client = Client(ADDRESS, name, **how)
    way(client, client.hello())
    client.until(client.tls.do_handshake)
    answered = {client.get("/whoami")[0] for _ in range(3)}
    assert answered == {client.certificate()} and answered <= set(servers), (name, answered, servers)
    body = client.get("/64k")[1]
    assert len(body) == 65536, len(body)
    client.get("/whoami", last=True)
    client.socket.close()
    return client.context, client.tls.session, client.tls.session_reused


def many():
    for round in range(TIMES):
        for name, servers in NAMES.items():
            for way in WAYS.values():
                visit(name, servers, way)
    print(f"{TIMES * len(NAMES) * len(WAYS)} connections: each at a server of its name")


def long_hello():
    """ClientHellos of 4 and 15 KB, as with long lists of protocols and large keys."""
    for kilobytes in (4, 15):
        protocols = ["http/1.1"] + [f"{number:0200d}" for number in range(5 * kilobytes)]
        for way in ("at once", "back to back", "records of 50 bytes"):
            visit("ds2.example", ["ds2"], WAYS[way], protocols=protocols)


def sessions():
    """A session goes on over a new connection: it is at the server that has its key."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context, session, reused = visit("ds2.example", ["ds2"], at_once, version=version)
        assert not reused
        reused = visit("ds2.example", ["ds2"], at_once, version=version, session=(context, session))[2]
        assert reused, version


def by_protocol():
    """The route with `alpn` takes what offers that protocol, unless a route with a name takes it."""
    client = Client(ADDRESS, "other.example", protocols=("acme-tls/1", "http/1.1"))
    client.shake_hands()
    assert client.certificate() == "ds3", client.certificate()
    visit("ds1.example", ["ds1"], at_once, protocols=("acme-tls/1", "http/1.1"))


def answer_to(data, address):
    """All that comes until the connection ends, or within two seconds."""
    connection = socket.create_connection(address, timeout=2)
    connection.sendall(data)
    read = b""
    try:
        while piece := connection.recv(1 << 16):
            read += piece
    except TimeoutError:
        read += b" and no end"
    except ConnectionResetError:
        read += b" and a reset"
    # These lines differ from answer to answer, and from server to server.
    return re.sub(rb"(Date|X-Served-By): .*", b"", read)


def nonsense():
    """What begins no TLS connection is answered by the service's own servers, as they do without baton."""
    hello = Client(ADDRESS, "other.example").hello()
    for data in (
        b"GET / HTTP/1.1\r\nHost: ds1.example\r\n\r\n",
        b"\x16\x03\x01\x00\x00",
        hello[:5] + b"\x02" + hello[6:],
        hello[:9] + bytes(len(hello) - 9),
        hello[:100] + b"\xff" * 50,
        bytes(5000),
        random.Random(7).randbytes(5000),
    ):
        read, directly = answer_to(data, ADDRESS), answer_to(data, (SERVER, ADDRESS[1]))
        assert read == directly, (data[:20], read, directly)


def refused():
    """Where unknown names are refused, they and what begins no TLS connection get the alert unrecognized_name."""
    client = Client(STRICT, "ds1.example")
    at_once(client, client.hello())
    client.until(client.tls.do_handshake)
    assert client.certificate() == "ds1", client.certificate()
    for hello in (Client(STRICT, "other.example").hello(), Client(STRICT, None).hello(), b"GET / HTTP/1.1\r\n\r\n"):
        assert answer_to(hello, STRICT) == bytes([21, 3, 3, 0, 2, 2, 112])


many()
long_hello()
sessions()
by_protocol()
nonsense()
refused()
