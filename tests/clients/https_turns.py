"""Sends requests to three data servers in turn with Python's own HTTP client, over one connection with one TLS session.

usage: https_turns.py ADDRESS REQUESTS
"""

import http.client
import socket
import ssl
import sys

ADDRESS, REQUESTS = sys.argv[1], int(sys.argv[2])

context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
connection = http.client.HTTPSConnection("www.example", context=context)
kept = context.wrap_socket(socket.create_connection((ADDRESS, 443), timeout=60), server_hostname="www.example")
connection.sock = kept
for turn in range(REQUESTS):
    server = f"ds{turn % 3 + 1}"
    path = f"/{server}/python-{turn}"
    connection.request("GET", path)
    response = connection.getresponse()
    said = response.status, response.read().decode()
    assert said == (200, f"{server} {path}\n"), (path, said)
    assert connection.sock is kept, f"{path}: the connection was not kept"
connection.close()
