"""A client's kept connection, the responses that come over it, and the counters of its host's TCP meanwhile.

Scripts of this folder import it. The driver shows what a script prints only if it fails; with BATON_TEST_PRINTS=FILE
in the environment, `say` also adds it to that file.
"""

import collections
import json
import os
import socket
import subprocess
import time

# Responses without a body, whatever their headers say (RFC 9112, section 6.3).
WITHOUT_BODY = (204, 304)


class Response:
    """A final response, and how many informational ones (100 Continue, for example) came before it."""

    def __init__(self, status, fields, body, informational):
        self.status, self.fields, self.body, self.informational = status, fields, body, informational

    @property
    def server(self):
        """The name of the data server that the response gives."""
        return self.fields.get("x-served-by")

    def __repr__(self):
        return f"{self.status} of {self.server}, {self.body[:80]!r}"


class Connection:
    """A kept connection. Data is sent at once, unless `nagle` says that TCP may wait for an acknowledgement first."""

    def __init__(self, address, timeout=60, source=None, nagle=False):
        self.socket = socket.create_connection(address, timeout, source_address=source and (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not nagle)
        self.read = b""

    def send(self, data):
        self.socket.sendall(data)

    def close(self):
        self.socket.close()

    def more(self):
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError(f"the connection has ended after {self.read[:80]!r}")
        self.read += piece

    def line(self):
        while b"\r\n" not in self.read:
            self.more()
        line, _, self.read = self.read.partition(b"\r\n")
        return line

    def take(self, count):
        while len(self.read) < count:
            self.more()
        taken, self.read = self.read[:count], self.read[count:]
        return taken

    def head(self):
        """Returns status and headers of the next response, also of an informational one. Names are in lower case."""
        first, fields = self.line(), {}
        if not first.startswith(b"HTTP/1.1 "):
            raise ValueError(f"no response begins with {first[:80]!r}")
        while line := self.line():
            name, _, value = line.decode().partition(":")
            fields[name.lower()] = value.strip()
        return int(first[9:12]), fields

    def response(self):
        """Returns the next final response to a request other than HEAD. After 101 nothing is taken for a body."""
        informational = 0
        while True:
            status, fields = self.head()
            if status >= 200 or status == 101:
                break
            informational += 1
        return Response(status, fields, self.body(status, fields), informational)

    def answered_by(self, server):
        """Takes the next final response, and asserts that this data server has sent it, with status 200."""
        response = self.response()
        assert response.status == 200 and response.server == server, response

    def body(self, status, fields):
        if status in WITHOUT_BODY or status == 101:
            return b""
        if fields.get("transfer-encoding") != "chunked":
            return self.take(int(fields["content-length"]))
        body = b""
        while size := int(self.line().partition(b";")[0], 16):
            body += self.take(size)
            self.take(2)
        while self.line():
            pass
        return body


def get(path, lines=b""):
    return b"GET %s HTTP/1.1\r\nHost: cluster\r\n%s\r\n" % (path.encode(), lines)


def tcp_counters():
    """Returns the TCP counters of this network namespace, under the names of nstat(8) without the protocol."""
    counted = {}
    for path in ("/proc/net/snmp", "/proc/net/netstat"):
        with open(path) as file:
            lines = file.read().splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            if names.split()[0] in ("Tcp:", "TcpExt:"):
                counted |= {name: int(value) for name, value in zip(names.split()[1:], values.split()[1:])}
    return counted


def moved(before):
    """Returns what was counted since `before` was read."""
    return {name: value - before[name] for name, value in tcp_counters().items()}


def node_counters(baton, lab, hosts):
    """Returns the sum of the counters of these hosts' nodes. `lab` is the lab's folder, and `baton` the program."""
    counted = collections.Counter()
    for host in hosts:
        words = [baton, "status", "--json", "--config", f"{lab}/{host}/baton.toml"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        counted.update({name: value for name, value in json.loads(said)["counters"].items() if isinstance(value, int)})
    return counted


def say(*words):
    print(*words, flush=True)
    if path := os.environ.get("BATON_TEST_PRINTS"):
        with open(path, "a") as file:
            print(time.strftime("%T"), *words, file=file)
