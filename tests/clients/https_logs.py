"""Checks in the servers' access logs that each request of a client went to its data server once.

usage: https_logs.py FOLDER CLIENT REQUESTS

FOLDER has a folder for each host. Requests are for /ds1/CLIENT-0, /ds2/CLIENT-1, /ds3/CLIENT-2, /ds1/CLIENT-3 and so on.
The servers write their logs once a second.
"""

import pathlib
import re
import sys
import time

FOLDER, CLIENT, REQUESTS = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
LINE = re.compile(rf'\S+ \d+ "GET /(ds\d)/{CLIENT}-(\d+) HTTP/1.1" 200 ')


def logged():
    """The requests that servers have answered: the server, and the server and number in the path."""
    for server in ("ds1", "ds2", "ds3"):
        for line in (FOLDER / server / "access.log").read_text().splitlines():
            if said := LINE.match(line):
                yield server, said[1], int(said[2])


patience = time.monotonic() + 30
while len(found := list(logged())) < REQUESTS and time.monotonic() < patience:
    time.sleep(0.2)
turns = sorted(turn for _, _, turn in found)
assert turns == list(range(REQUESTS)), f"{len(turns)} requests were logged, {len(set(turns))} of them different"
wrong = [one for one in found if one[0] != one[1] or one[0] != f"ds{one[2] % 3 + 1}"]
assert not wrong, wrong[:5]
