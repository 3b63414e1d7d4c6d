"""Answers /NAME/KIND with this server's name and the path, in ways that RFC 9110 and 9112 allow but few servers use.

usage: unusual.py PORT NAME
"""

import socket
import socketserver
import sys
import time

PORT, NAME = int(sys.argv[1]), sys.argv[2]
STATUS = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"


def length(body, before=b" ", behind=b""):
    return b"Content-Length:" + before + str(len(body)).encode() + behind + b"\r\n"


def pieces(kind, body):
    """Returns what is written, each part in a packet of its own."""
    whole = STATUS + length(body) + b"\r\n" + body
    size = b"%x" % len(body)
    return {
        "plain": [whole],
        "lines": [STATUS, b"Server: lines\r\n", length(body), b"\r\n", body],
        "bytes": [bytes([byte]) for byte in whole],
        "blanks": [STATUS + length(body, b" \t  ", b"  ") + b"\r\n" + body],
        "zeros": [STATUS + CHUNKED + size.zfill(16) + b"\r\n" + body + b"\r\n" + b"0" * 16 + b"\r\n\r\n"],
        "extensions": [STATUS + CHUNKED + size + b' ; a="b"\r\n' + body + b"\r\n0;c\r\nX-Trailer: 1\r\n\r\n"],
        "cookies": [STATUS + b"Set-Cookie: c=%s\r\n" % (b"x" * 4000) * 15 + length(body) + b"\r\n" + body],
        "hints": [HINTS, whole],
        "hints-at-once": [HINTS + whole],
    }[kind]


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while request := self.rfile.readline():
            while self.rfile.readline().strip():
                pass
            path = request.split()[1].decode()
            for piece in pieces(path.split("/")[2], f"{NAME} {path}\n".encode()):
                self.connection.sendall(piece)
                time.sleep(0.001)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    address_family = socket.AF_INET


Server(("", PORT), Connection).serve_forever()
