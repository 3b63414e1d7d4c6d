"""A TLS client for tests, with each byte that goes out at hand. Servers are those of labs/tls.toml."""

import socket
import ssl


class Client:
    """A TLS connection of which each byte that goes out is at hand."""

    def __init__(self, address, name, protocols=("http/1.1",), session=None, version=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if protocols:
            context.set_alpn_protocols(list(protocols))
        if version:
            context.maximum_version = version
        self.name = name or "x"
        self.context = session[0] if session else context
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        old = session[1] if session else None
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_hostname=name, session=old)
        self.socket = socket.create_connection(address, timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def hello(self):
        """What the client says first."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return self.outgoing.read()
        raise AssertionError("the handshake is over before it has begun")

    def until(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.socket.sendall(self.outgoing.read())
                piece = self.socket.recv(1 << 16)
                if not piece:
                    raise ConnectionError("the connection has ended")
                self.incoming.write(piece)

    def shake_hands(self):
        self.socket.sendall(self.hello())
        self.until(self.tls.do_handshake)

    def say(self, text):
        self.tls.write(text)
        self.socket.sendall(self.outgoing.read())

    def get(self, path, last=False):
        """Sends a request, and returns the server's name and the body."""
        close = "Connection: close\r\n" if last else ""
        self.say(f"GET {path} HTTP/1.1\r\nHost: {self.name}\r\n{close}\r\n".encode())
        return self.response()

    def post(self, path, length):
        """Sends a request whose body leaves a moment after its head. Returns what `get` returns."""
        self.say(f"POST {path} HTTP/1.1\r\nHost: {self.name}\r\nContent-Length: {length}\r\n\r\n".encode())
        if length:
            self.say(bytes(length))
        return self.response()

    def response(self):
        read = b""
        while True:
            head, end, body = read.partition(b"\r\n\r\n")
            if end:
                lines = head.decode().split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in lines[1:])
                if len(body) >= int(fields["content-length"]):
                    assert lines[0].split()[1] == "200", lines
                    return fields["x-served-by"], body
            read += self.until(lambda: self.tls.read(1 << 16))

    def certificate(self):
        """The host that the server's certificate names."""
        der = self.tls.getpeercert(binary_form=True)
        return next(name for name in ("ds1", "ds2", "ds3") if name.encode() in der)
