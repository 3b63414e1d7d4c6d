"""A client whose bodies have more bytes than TCP has sequence numbers, and that asks for WebSocket in several pieces.

usage: large_bodies.py HOST PORT BYTES, which are more than 2^32
       large_bodies.py --write FILE BYTES

On one connection the client gets a page of ds1, sends a POST with BYTES bytes to /upload, whose answer must have
their number and SHA-256, and gets a page of ds2. The body has a known length or is chunked, in two chunks, and the
head comes in one piece or in several. Then it does the same with /echo, a WebSocket, in place of the upload, and the
connection ends there. At last it gets /ds1/large, which --write has written, and goes on with a page of ds2.
"""

import hashlib
import os
import socket
import sys

FILL = f"X-Fill: {'f' * 1000}\r\n".encode() * 4
PIECE = 1 << 22


def connect(address):
    connection = socket.create_connection(address, timeout=120)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def response(connection):
    read = b""
    while b"\r\n\r\n" not in read:
        piece = connection.recv(1 << 16)
        assert piece, f"the connection ended: {read}"
        read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:])
    while len(body) < int(fields.get("content-length", 0)):
        piece = connection.recv(1 << 16)
        assert piece, f"the connection ended: {read}"
        body += piece
    return int(lines[0].split()[1]), body


def page(connection, name):
    connection.sendall(f"GET /{name}/page HTTP/1.1\r\nHost: cluster\r\n\r\n".encode())
    status, body = response(connection)
    assert status == 200 and body.decode().split() == [name, f"/{name}/page"], (status, body)


def send_head(connection, line, fields, in_pieces):
    head = f"{line} HTTP/1.1\r\nHost: cluster\r\n".encode() + (FILL if in_pieces else b"") + fields + b"\r\n"
    step = 700 if in_pieces else len(head)
    for at in range(0, len(head), step):
        connection.sendall(head[at : at + step])


def blocks(total):
    """Yields so many bytes in blocks that all differ."""
    first = os.urandom(PIECE)
    for number in range(-(-total // PIECE)):
        block = number.to_bytes(8, "big") + first[8:]
        yield block[: total - number * PIECE]


def upload(address, total, chunked, in_pieces):
    connection = connect(address)
    page(connection, "ds1")
    length = b"Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {total}\r\n".encode()
    send_head(connection, "POST /upload", length, in_pieces)
    digest, sent = hashlib.sha256(), 0
    half = (total // 2) // PIECE * PIECE
    for block in blocks(total):
        if chunked and sent in (0, half):
            size = half if sent == 0 else total - half
            connection.sendall((b"\r\n" if sent else b"") + f"{size:x}\r\n".encode())
        connection.sendall(block)
        digest.update(block)
        sent += len(block)
    if chunked:
        connection.sendall(b"\r\n0\r\n\r\n")
    status, body = response(connection)
    assert status == 200 and body.decode().split() == [str(total), digest.hexdigest()], (status, body)
    page(connection, "ds2")


def written(number, size):
    """Returns a block of a file that --write has written."""
    return (number.to_bytes(8, "big") + bytes(PIECE - 8))[:size]


def write(name, total):
    with open(name, "wb") as file:
        for number in range(-(-total // PIECE)):
            file.seek(number * PIECE)
            file.write(number.to_bytes(8, "big"))
        file.truncate(total)


def download(address, total):
    connection = connect(address)
    page(connection, "ds2")
    connection.sendall(b"GET /ds1/large HTTP/1.1\r\nHost: cluster\r\n\r\n")
    # The head is read byte by byte, so that the body begins at a block.
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        assert byte, f"the connection ended: {head}"
        head += byte
    assert head.startswith(b"HTTP/1.1 200 ") and f"Content-Length: {total}\r\n".encode() in head, head
    block = bytearray(PIECE)
    for number in range(-(-total // PIECE)):
        here = memoryview(block)[: total - number * PIECE]
        come = 0
        while come < len(here):
            more = connection.recv_into(here[come:])
            assert more, f"the connection ended in block {number}"
            come += more
        assert here == written(number, len(here)), f"block {number} is another"
    page(connection, "ds2")


def websocket(address, in_pieces):
    connection = connect(address)
    page(connection, "ds1")
    fields = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
    send_head(connection, "GET /echo", fields, in_pieces)
    status, rest = response(connection)
    assert (status, rest) == (101, b""), (status, rest)
    # This text looks like a request for another pool, but it is a WebSocket message.
    text = b"GET /ds2/page HTTP/1.1\r\nHost: cluster\r\n\r\n"
    for _ in range(3):
        # RFC 6455, section 5.2, with a mask of zeros.
        connection.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)
        echo = b""
        while len(echo) < 2 + len(text):
            piece = connection.recv(1 << 16)
            assert piece, f"the connection ended after {echo}"
            echo += piece
        assert echo == bytes([0x81, len(text)]) + text, echo


def main():
    if sys.argv[1] == "--write":
        return write(sys.argv[2], int(sys.argv[3]))
    host, port, total = sys.argv[1:]
    address = host, int(port)
    for in_pieces in (False, True):
        websocket(address, in_pieces)
        print(f"WebSocket, head in pieces: {in_pieces}: as it should be")
        for chunked in (False, True):
            # Once the full length was right, the further bodies may be shorter.
            size = int(total) // (64 if in_pieces != chunked else 4 if chunked else 1)
            upload(address, size, chunked, in_pieces)
            print(f"{size} bytes, chunked: {chunked}, head in pieces: {in_pieces}: as they should be")
    download(address, int(total))
    print(f"{total} bytes of a response: as they should be")


main()
