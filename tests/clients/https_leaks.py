"""Checks that nothing is left of connections that have moved between the data servers of a lab and ended.

usage: https_leaks.py BATON FOLDER begin|end

FOLDER has a folder for each host. `begin` notes in it what the agents' processes hold, after some load; `end` compares
with that: each connection that has left an agent must have come to one, no agent may have more descriptors, and none
much more memory, which a heap may keep for later.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

BATON, FOLDER, WHAT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
SERVERS = "ds1", "ds2", "ds3"
NOTE = FOLDER / "held.json"
# Kilobytes of memory, and descriptors.
MORE = 16 << 10, 4


def counters(server):
    said = subprocess.run(
        [BATON, "status", "--json", "--config", FOLDER / server / "baton.toml"], capture_output=True, check=True
    )
    return json.loads(said.stdout)["counters"]


def agent(server):
    """The process that speaks TLS there."""
    words = f"^/proc/self/exe tls-agent {FOLDER / server}/"
    return int(subprocess.run(["pgrep", "-f", words], capture_output=True, check=True).stdout)


def held():
    """What each agent's process holds: itself, kilobytes of memory, descriptors."""
    found = {}
    for server in SERVERS:
        process = agent(server)
        status = pathlib.Path(f"/proc/{process}/status").read_text()
        memory = int(status.split("VmRSS:")[1].split()[0])
        found[server] = process, memory, len(os.listdir(f"/proc/{process}/fd"))
    return found


def wrong(before):
    """What is not as it should be."""
    counts = [counters(server) for server in SERVERS]
    moved, came = (sum(count[name] for count in counts) for name in ("tls_moved", "tls_came"))
    print(f"moved {moved}, came {came}; process, kilobytes and descriptors: {before} then, {(now := held())} now")
    if moved != came:
        yield f"{moved} connections have moved, {came} have come"
    for server, (process, memory, descriptors) in now.items():
        old, less, fewer = before[server]
        if process != old or memory > less + MORE[0] or descriptors > fewer + MORE[1]:
            yield server


if WHAT == "begin":
    # Connections that have just ended linger for some seconds.
    time.sleep(8)
    NOTE.write_text(json.dumps(held()))
else:
    before = json.loads(NOTE.read_text())
    patience = time.monotonic() + 30
    while (found := list(wrong(before))) and time.monotonic() < patience:
        time.sleep(2)
    assert not found, found
