"""Clients of labs/https.toml that resume TLS sessions at whichever data server they come to.

usage: https_tickets.py HOST PORT DIRECTORY begin|resume

`begin` makes sessions at each of the two data servers of other.example, by TLS 1.3 and 1.2, keeps them in DIRECTORY, and
waits until the data servers know each other's keys. `resume` resumes each of these sessions at both data servers: every
connection with a session must resume it, unless it is for another name.
"""

import os
import subprocess
import sys
import time

ADDRESS = f"{sys.argv[1]}:{sys.argv[2]}"
DIRECTORY, TASK = sys.argv[3], sys.argv[4]
VERSIONS = ("tls1_3", "tls1_2")
SERVERS = {"ds1", "ds2"}
# So often a client comes to a data server before the chance that it never came to the other is 1 in 10^9.
OFTEN = 30


def connect(version, *options, name="other.example"):
    """Connects and sends a request. Returns whether a session was resumed, and the server's name."""
    command = ["openssl", "s_client", "-connect", ADDRESS, "-servername", name, f"-{version}", "-ign_eof", *options]
    request = f"GET /whoami HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"
    ran = subprocess.run(command, input=request.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    lines = ran.stdout.decode(errors="replace").splitlines()
    kinds = {line.split(",")[0] for line in lines if line.startswith(("New, TLS", "Reused, TLS"))}
    servers = [line for line in lines if line in SERVERS]
    assert len(kinds) == 1 and len(servers) == 1, "\n".join(lines)
    return kinds == {"Reused"}, servers[0]


def file(version, server):
    return os.path.join(DIRECTORY, f"session-{version}-{server}")


def begin(version):
    """Makes a session at each data server."""
    new = file(version, "new")
    missing = set(SERVERS)
    for _ in range(OFTEN):
        resumed, server = connect(version, "-sess_out", new)
        assert not resumed
        os.replace(new, file(version, server))
        missing.discard(server)
        if not missing:
            return
    raise AssertionError(f"no client came to {missing}")


def resume(version, begun_at):
    """Resumes a session at each data server. Returns whether that succeeded at all of them."""
    missing = set(SERVERS)
    for _ in range(OFTEN):
        resumed, server = connect(version, "-sess_in", file(version, begun_at))
        if not resumed:
            return False, server
        missing.discard(server)
        if not missing:
            return True, None
    raise AssertionError(f"no client came to {missing}")


for version in VERSIONS:
    if TASK == "begin":
        begin(version)
    for begun_at in SERVERS:
        deadline = time.monotonic() + 60
        while True:
            everywhere, where = resume(version, begun_at)
            if everywhere:
                break
            assert TASK == "begin" and time.monotonic() < deadline, f"{version}: a session of {begun_at} is new at {where}"
        for name in ("ds1.example", "ds2.example"):
            resumed, _ = connect(version, "-sess_in", file(version, begun_at), name=name)
            assert not resumed, f"{version}: a session was resumed for the name {name}"
print("all as it should be")
