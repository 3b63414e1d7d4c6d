"""Sends requests to three data servers in turn by one run of openssl s_client: one connection, one TLS session.

usage: https_openssl.py ADDRESS REQUESTS
"""

import subprocess
import sys

ADDRESS, REQUESTS = sys.argv[1], int(sys.argv[2])
COMMAND = ["openssl", "s_client", "-quiet", "-connect", f"{ADDRESS}:443", "-servername", "www.example"]


def answer(said):
    """The status and the body of the next response."""
    status, length = said.readline().split()[1], None
    for line in iter(said.readline, b"\r\n"):
        name, _, value = line.partition(b": ")
        length = int(value) if name.lower() == b"content-length" else length
    return status.decode(), said.read(length).decode()


with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
    for turn in range(REQUESTS):
        server = f"ds{turn % 3 + 1}"
        path = f"/{server}/openssl-{turn}"
        client.stdin.write(f"GET {path} HTTP/1.1\r\nHost: www.example\r\n\r\n".encode())
        client.stdin.flush()
        said = answer(client.stdout)
        assert said == ("200", f"{server} {path}\n"), (path, said)
    # It has one connection, and ends when that does.
    assert client.poll() is None, "s_client has ended"
    client.terminate()
