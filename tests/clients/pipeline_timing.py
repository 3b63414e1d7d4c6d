"""A client that sends several requests in one write, and measures how long the last response takes.

usage: pipeline_timing.py HOST PORT POOLS DIRECT TIMES FOLDER

On a kept connection, after five requests one after the other, DEPTH requests for POOLS in turn leave in one write.
The time is measured from there to the last byte of the last response. That is done TIMES times through HOST, and as
often directly to one server at the address DIRECT, which answers all of them. Each response must be the right one, in
order. Then apt, which pipelines ten requests by default, fetches pages of all pools both ways.

All times are printed and not judged, because on a busy machine they may be anything. tcpdump writes the packets to a
file in FOLDER, which shows what each part of the time was spent on.
"""

import collections
import re
import shutil
import statistics
import subprocess
import sys
import time

from capture import Capture
from kept_connection import Connection, get, moved, say, tcp_counters

# The numbers of requests in a write: 16, and as many as apt has under way (Acquire::http::Pipeline-Depth in
# apt.conf(5)).
DEPTHS = (16, 10)
EARLIER = 5
APT = "/usr/lib/apt/apt-helper"
APT_PAGES = 31
PACKET = re.compile(r"(\d+\.\d+) IP [\d.]+\.(\d+) > [\d.]+\.(\d+): Flags \[(\S+)\], (?:seq (\d+)(?::(\d+))?, )?")

CLIENT_ACKS = "until the client acknowledges a response"
CLIENT_SENDS = "until the client sends a request again"
SERVER_HAS = "until a data server acknowledges the next request"
SERVER_SENDS = "until the server's next response"


def paths_of(pools, depth):
    return [f"/{pools[number % len(pools)]}/{number}" for number in range(depth)]


def check(response, path, server):
    """Checks a response. Without `server` the server must be the one that the path names."""
    server = server or path.split("/")[1]
    assert response.status == 200 and response.body == f"{server} {path}\n".encode(), (path, response)


def once(address, paths, server=None):
    """Returns the milliseconds from the write to the last response, and the client's port."""
    connection = Connection(address)
    for path in (paths * EARLIER)[:EARLIER]:
        connection.send(get(path))
        check(connection.response(), path, server)
    began = time.monotonic()
    connection.send(b"".join(get(path) for path in paths))
    for path in paths:
        check(connection.response(), path, server)
    took = (time.monotonic() - began) * 1000
    port = connection.socket.getsockname()[1]
    connection.close()
    return took, port


class Trace(Capture):
    def connections(self):
        """Returns each client port's packets: time, whether the client sent it, where its data begins and ends."""
        words = ["tcpdump", "-n", "-tt", "-r", self.path]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        found = collections.defaultdict(list)
        for at, source, target, flags, begin, end in PACKET.findall(text):
            by_client = int(target) == self.address[1]
            if "S" not in flags:
                packet = (float(at), by_client, int(begin or 0), int(end or 0))
                found[int(source if by_client else target)].append(packet)
        return found


def explain(packets, earlier):
    """Returns the milliseconds from the write to the last response, by what they were spent on.

    The write comes behind so many bytes of earlier requests.
    """
    spent, last = collections.Counter(), None
    responses = [at for at, by_client, _, end in packets if not by_client and end]
    for at, by_client, begin, end in packets:
        if last is None:
            if by_client and end and begin > earlier:
                last = at
            continue
        if at > max(responses):
            break
        if by_client:
            kind = CLIENT_SENDS if end else CLIENT_ACKS
        else:
            kind = SERVER_SENDS if end else SERVER_HAS
        spent[kind] += (at - last) * 1000
        last = at
    return spent


def gaps(packets, depth):
    """Returns the milliseconds between one response of the write and the next."""
    responses = [at for at, by_client, _, end in packets if not by_client and end][-depth:]
    return [(other - one) * 1000 for one, other in zip(responses, responses[1:])]


def describe(times):
    return f"median {statistics.median(times):.1f} ms (from {min(times):.1f} to {max(times):.1f})"


def compare(cluster, direct, server, pools, depth, times, folder):
    paths = paths_of(pools, depth)
    earlier = sum(len(get(path)) for path in (paths * EARLIER)[: EARLIER - 1])
    before = tcp_counters()
    with Trace(cluster, f"{folder}/trace.pcap") as trace:
        measured = [once(cluster, paths) for _ in range(times)]
    counted, through = moved(before), [took for took, _ in measured]
    straight = [once(direct, paths, server)[0] for _ in range(times)]
    moves = sum(one.split("/")[1] != other.split("/")[1] for one, other in zip(paths, paths[1:]))
    extra = statistics.median(through) - statistics.median(straight)
    say(f"{depth} requests in one write for {len(pools)} pool(s), so that the connection moves {moves} times within it:")
    say(f"  through the cluster: {describe(through)}")
    say(f"  directly to {server}:     {describe(straight)}")
    say(f"  longer by {extra:.1f} ms, or {extra / (depth - 1):.2f} ms for each request behind the first")
    connections = trace.connections()
    explained = [explain(connections[port], earlier) for _, port in measured if connections[port]]
    for kind in (CLIENT_ACKS, CLIENT_SENDS, SERVER_HAS, SERVER_SENDS):
        say(f"    {kind}: {describe([one[kind] for one in explained])}")
    between = zip(*(gaps(connections[port], depth) for _, port in measured))
    say("    median from each response to the next: " + ", ".join(f"{statistics.median(one):.1f}" for one in between))
    names = ("RetransSegs", "DelayedACKs", "TCPTimeouts", "TCPLossProbes", "TCPDSACKRecv", "TCPDSACKOldSent")
    say("    counted by the client's TCP: " + ", ".join(f"{name} {counted.get(name, 0)}" for name in names))


def fetch(host, pools, depth, folder):
    """Returns the time that apt takes for some pages."""
    words = [APT, "-o", f"Acquire::http::Pipeline-Depth={depth}", "-o", "APT::Sandbox::User=root"]
    words += ["-o", "Acquire::http::Proxy=false", "-o", "Acquire::Retries=0", "download-file"]
    pages = [(f"/{pools[number % len(pools)]}/apt{number}", f"{folder}/page{number}") for number in range(APT_PAGES)]
    for path, file in pages:
        words += [f"http://{host}{path}", file]
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    for path, file in pages:
        with open(file) as text:
            assert text.read().endswith(f" {path}\n"), path
    return took * 1000


def compare_apt(cluster, direct, server, pools, folder):
    for depth in (10, 0):
        through = [fetch(cluster[0], pools, depth, folder) for _ in range(5)]
        straight = [fetch(direct[0], pools, depth, folder) for _ in range(5)]
        say(f"apt, {APT_PAGES} pages of {len(pools)} pools, at most {depth} requests under way:")
        say(f"  through the cluster: {describe(through)}; directly to {server}: {describe(straight)}")


def main():
    host, port, pools, direct, times, folder = sys.argv[1:]
    cluster, direct, pools, times = (host, int(port)), (direct, int(port)), pools.split(), int(times)
    connection = Connection(direct)
    connection.send(get("/whoami"))
    server = connection.response().body.decode().strip()
    for depth in DEPTHS:
        compare(cluster, direct, server, pools, depth, times, folder)
    compare(cluster, direct, server, pools[:1], DEPTHS[0], times, folder)
    if shutil.which(APT):
        compare_apt(cluster, direct, server, pools, folder)


main()
