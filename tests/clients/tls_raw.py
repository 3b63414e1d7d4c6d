"""ClientHellos made by hand, and what servers answer in the clear (RFC 8446, section 4.1.2, and RFC 5246, section 7.4.1)."""

import os
import socket

HANDSHAKE, ALERT, DATA = 22, 21, 23
CLOSE_NOTIFY, UNEXPECTED_MESSAGE, BAD_RECORD_MAC, RECORD_OVERFLOW, HANDSHAKE_FAILURE = 0, 10, 20, 22, 40
ILLEGAL_PARAMETER, DECODE_ERROR, PROTOCOL_VERSION, NO_RENEGOTIATION, NO_APPLICATION_PROTOCOL = 47, 50, 70, 100, 120
TLS12_SUITES = [0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9]
TLS13_SUITES = [0x1301, 0x1302, 0x1303]
# Extensions.
NAME, PROTOCOLS, MASTER_SECRET, VERSIONS, RENEGOTIATION = 0, 16, 23, 43, 0xFF01


def number(value, length=2):
    return value.to_bytes(length, "big")


def counted(content, length=2):
    """The content behind its length, which has so many bytes."""
    return number(len(content), length) + content


def wanted(name):
    """The extension that names a server."""
    return counted(b"\0" + counted(name))


def extensions(tls13):
    """The extensions without which no handshake is made. TLS 1.3 has a key, which is a number that anybody may take."""
    most = {
        NAME: wanted(b"www.example"),
        10: counted(number(29) + number(23)),
        11: counted(b"\0", 1),
        13: counted(b"".join(map(number, (0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501)))),
    }
    if tls13:
        most[VERSIONS] = counted(number(0x0304), 1)
        most[51] = counted(number(29) + counted(os.urandom(32)))
    return most


def hello(suites, version=0x0303, tls13=False, more=None, compression=b"\0", session=b""):
    """A ClientHello in its record. The extensions of `more` are put in place of others; `None` leaves one out."""
    named = {**extensions(tls13), **(more or {})}
    listed = b"".join(number(kind) + counted(content) for kind, content in named.items() if content is not None)
    content = (
        number(version) + os.urandom(32) + counted(session, 1) + counted(b"".join(map(number, suites)))
        + counted(compression, 1) + counted(listed)
    )
    return in_records(b"\1" + counted(content, 3))


def in_records(message):
    pieces = [message[at : at + 16384] for at in range(0, len(message), 16384)]
    return b"".join(bytes([HANDSHAKE, 3, 1]) + counted(piece) for piece in pieces)


def records(said):
    """The records of what a server has said, each as its type and its content."""
    found = []
    while len(said) >= 5:
        length = int.from_bytes(said[3:5], "big")
        found.append((said[0], said[5 : 5 + length]))
        said = said[5 + length :]
    return found


def exchange(address, *pieces, shut=False, patience=30, until_hello=True):
    """Sends the pieces, and returns what the server says until it ends the connection, or has said its ServerHello."""
    said = b""
    with socket.create_connection(address, timeout=patience) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                connection.sendall(piece)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                said += piece
                if until_hello and server_hello(said):
                    break
        except ConnectionError:
            pass
    return said


class ServerHello:
    """What a server has chosen."""

    def __init__(self, body):
        self.version, self.random = int.from_bytes(body[:2], "big"), body[2:34]
        rest = body[35 + body[34] :]
        self.suite, self.compression, rest = int.from_bytes(rest[:2], "big"), rest[2], rest[5:]
        self.extensions = {}
        while rest:
            length = int.from_bytes(rest[2:4], "big")
            self.extensions[int.from_bytes(rest[:2], "big")] = rest[4 : 4 + length]
            rest = rest[4 + length :]
        if VERSIONS in self.extensions:
            self.version = int.from_bytes(self.extensions[VERSIONS], "big")


def server_hello(said):
    """The ServerHello, if all of it is there."""
    found = records(said)
    if found and found[0][0] == HANDSHAKE:
        content = found[0][1]
        length = int.from_bytes(content[1:4], "big")
        if content[:1] == b"\2" and len(content) >= 4 + length:
            return ServerHello(content[4 : 4 + length])
    return None


def alert(said):
    """The description of the fatal alert that is the last thing a server has said; `None` if it was another thing."""
    found = records(said)
    if found and found[-1][0] == ALERT and len(found[-1][1]) == 2 and found[-1][1][0] == 2:
        return found[-1][1][1]
    return None
