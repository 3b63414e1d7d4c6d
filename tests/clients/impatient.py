"""A client that sends another request in the middle of a response.

usage: impatient.py pause HOST PORT    the responses of servers/pausing.py must be complete and in order
       impatient.py cut HOST PORT FIRST SECOND SECONDS
                                       the bytes of FIRST must come, or an error in the middle; never other bytes

"cut" asks for SECOND when some of FIRST has come, and goes on reading for SECONDS at most. It prints how that ended.
"""

import http.client
import socket
import sys
import time


def ask(connection, path):
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: cluster\r\n\r\n" % path.encode())


def head(stream):
    lines = []
    while line := stream.readline().strip():
        lines.append(line)
    assert lines and lines[0].startswith(b"HTTP/1.1 200"), lines
    return lines


def chunked(stream):
    head(stream)
    text = b""
    while size := int(stream.readline(), 16):
        text += stream.read(size)
        assert stream.readline() == b"\r\n"
    assert stream.readline() == b"\r\n"
    return text.decode()


def pause(address):
    for turn in range(20):
        connection = socket.create_connection(address)
        connection.settimeout(20)
        stream = connection.makefile("rb")
        ask(connection, "/ds1/0")
        assert chunked(stream) == "ds1 begins ds1 ends /ds1/0"
        ask(connection, "/ds1/0.3")
        # By then everything that has arrived is acknowledged.
        time.sleep(0.15)
        ask(connection, "/ds2/0")
        assert chunked(stream) == "ds1 begins ds1 ends /ds1/0.3", turn
        second = chunked(stream)
        assert second.endswith(" ends /ds2/0"), second
        # The last request is sent only after the response before it is complete.
        ask(connection, "/ds2/0.01")
        third = chunked(stream)
        assert third.endswith(" ends /ds2/0.01"), third
        connection.close()


def cut(address, first, second, seconds):
    reference = http.client.HTTPConnection(*address, timeout=60)
    reference.request("GET", first)
    right = reference.getresponse().read()
    reference.close()
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.connect(address)
    connection.settimeout(seconds)
    stream = connection.makefile("rb", buffering=16384)
    ask(connection, first)
    head(stream)
    at = 0
    print("begun", flush=True)
    until = time.monotonic() + seconds
    try:
        while at < len(right) and time.monotonic() < until:
            part = stream.read1(min(16384, len(right) - at))
            assert part, f"ended after {at}"
            assert part == right[at : at + len(part)], f"wrong bytes after {at}"
            if at < 1 << 20 <= at + len(part):
                ask(connection, second)
            at += len(part)
            time.sleep(0.005)
        print("whole" if at == len(right) else "late")
    except (ConnectionResetError, TimeoutError) as error:
        print(type(error).__name__)


if sys.argv[1] == "pause":
    pause((sys.argv[2], int(sys.argv[3])))
else:
    cut((sys.argv[2], int(sys.argv[3])), sys.argv[4], sys.argv[5], float(sys.argv[6]))
