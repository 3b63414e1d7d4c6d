"""An HTTPS connection whose server is told its client's address in another way after a reload.

usage: https_unix.py HOST PORT STOP

The client forges X-Forwarded-For. At first the server does not believe in this field, and gets it as it is. Once the file
STOP is there, it does, and is told the truth, on the same connection.
"""

import pathlib
import sys
import time

from tls_client import Client

ADDRESS, STOP = (sys.argv[1], int(sys.argv[2])), pathlib.Path(sys.argv[3])

client = Client(ADDRESS, "www.example")
client.shake_hands()


def ask(expected):
    client.say(b"GET /ds1/client HTTP/1.1\r\nHost: www.example\r\nX-Forwarded-For: 192.0.2.66\r\n\r\n")
    by, body = client.response()
    assert (by, body.decode()) == ("ds1", f"ds1 10.77.0.1 {expected} https\n"), (by, body)


ask("192.0.2.66")
ask("192.0.2.66")
print("ready", flush=True)
while not STOP.exists():
    time.sleep(0.1)
ask("10.77.0.1")
print("the connection went on")
