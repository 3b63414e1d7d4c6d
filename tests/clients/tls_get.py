"""Asks for the names of a TLS service with Python's own HTTP client, over connections that are kept.

usage: tls_get.py ADDRESS "NAME=SERVER[,SERVER] ..."

Each request must be answered by one of the servers of its name, and all of a connection by the same one.
"""

import http.client
import socket
import ssl
import sys

ADDRESS = sys.argv[1]
NAMES = dict(pair.split("=") for pair in sys.argv[2].split())
REQUESTS = [("/whoami", 4), ("/64k", 65536), ("/whoami", 4), ("/1m", 1 << 20), ("/whoami", 4)]


class Connection(http.client.HTTPSConnection):
    """A connection to ADDRESS whatever the name is."""

    def connect(self):
        plain = socket.create_connection((ADDRESS, self.port), timeout=60)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
for name, servers in NAMES.items():
    connection, by = Connection(name, context=context), set()
    connection.connect()
    kept = connection.sock
    for path, length in REQUESTS:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        by.add(response.getheader("X-Served-By"))
        assert (response.status, len(body)) == (200, length), (name, path, response.status, len(body))
        assert connection.sock is kept, f"{name}: the connection was not kept"
    assert len(by) == 1 and by <= set(servers.split(",")), (name, by)
    connection.close()
