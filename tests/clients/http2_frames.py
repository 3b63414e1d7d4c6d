"""A client that speaks HTTP/2 frame by frame (RFC 9113)."""

import ssl
import struct

from tls_client import Client

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS = 1, 4
ACK = 1


class Frames(Client):
    """HTTP/2 by hand."""

    def __init__(self, address):
        super().__init__(address, "ds1.example", protocols=("h2",))
        self.shake_hands()
        assert self.tls.selected_alpn_protocol() == "h2"
        self.heard = b""
        self.say(PREFACE + frame(SETTINGS, 0, 0, b""))

    def frames(self):
        """The frames that come until the session ends."""
        while True:
            while len(self.heard) < 9 or len(self.heard) < 9 + int.from_bytes(self.heard[:3]):
                try:
                    piece = self.until(lambda: self.tls.read(1 << 16))
                except (ssl.SSLZeroReturnError, ConnectionError):
                    return
                if not piece:
                    return
                self.heard += piece
            length = int.from_bytes(self.heard[:3])
            kind, _, stream = struct.unpack(">BBI", self.heard[3:9])
            yield kind, stream, self.heard[9 : 9 + length]
            self.heard = self.heard[9 + length :]


def frame(kind, flags, stream, content):
    return len(content).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + content


def literal(name, value):
    """A field that HPACK does not compress (RFC 7541, section 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def request(stream, *fields, method="GET", flags=END_STREAM | END_HEADERS):
    pseudo = ((":method", method), (":scheme", "https"), (":path", "/whoami"), (":authority", "ds1.example"))
    return frame(HEADERS, flags, stream, b"".join(literal(*field) for field in (*pseudo, *fields)))
