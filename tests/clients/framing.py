"""Sends the same streams of bytes to a server directly and by baton, and compares the results.

usage: framing.py LAB CLUSTER SERVER SEED STREAMS [NAME [FIRST]]

LAB is the directory of the lab, with access logs of ds1 and ds2; CLUSTER is the cluster address and SERVER the
address of ds1. STREAMS streams are made from SEED (framing_streams.py) for each of nginx, Apache and a Go program, or
for NAME alone. The first one has the number FIRST, so that a stream that was found can be sent again. Each is cut
into segments, and goes to SERVER and then to CLUSTER.

The bytes of the answers must be the same, except for dates and names of data servers. Or baton may answer some of the
requests and then send an error of its own, and end the connection in order. A request that a server has carried out by
baton, the server that was asked directly must have carried out as often. The reverse must hold as well if baton has
refused nothing. Only dsN may carry out /dsN/...

Some answers depend on how a stream is cut: Apache ends a connection whose body comes in one segment with its Expect, and
refuses an empty line that does not come in one segment with the chunked body before it. So a stream whose answers differ
is sent to SERVER again, cut at other places, and its answers by baton may be any of these.
"""

import collections
import multiprocessing
import re
import select
import socket
import sys
import threading
import time

from framing_streams import Maker

PORTS = {"nginx": 80, "apache": 8080, "goserver": 8081}
# These source addresses show in the servers' logs by which way a request came.
DIRECTLY, BY_BATON = "10.77.0.7", "10.77.0.8"
# From these addresses, streams are sent directly again, cut at other places (recut).
AGAIN = ("10.77.0.9", "10.77.0.10")
# ip(7), linux/in.h. The relay to an MPTCP listener connects in the client's name, from a port of the data server's own
# range. A client's connection from the same port would be taken for the relay's, and this script does not test that.
IP_LOCAL_PORT_RANGE, PORTS_FROM, PORTS_TO = 51, 1024, 32767
PROCESSES, THREADS = 4, 24
# ROUND streams to each server are judged together, when the servers have written their logs. The servers need
# LOGS_AFTER to LOGS_WITHIN seconds for that.
ROUND, LOGS_AFTER, LOGS_WITHIN = 1000, 2, 60
# At most SHOWN streams that differ are printed. Of the others only the number is printed, by which they can be sent
# again.
SHOWN = 20
# A server that was asked directly and has sent nothing for so many seconds is waiting for more.
SILENCE = 5
# By baton the same answer may take so many seconds.
PATIENCE = 45
# A client that waits for an answer before it goes on gives up after so many seconds, because many of these streams get
# none.
WAITS = 1

STATUS = re.compile(rb"HTTP/1\.[01] [2-5]\d\d ")
# An answer begins with one of these. In HTTP/0.9 it has no head.
BEGINNINGS = (b"HTTP/1.", b"<html>", b"dsN ")
REFUSAL = re.compile(
    rb"HTTP/1\.1 ((?:400|408|413|431|501|505) [A-Za-z ]+)\r\nContent-Type: text/plain\r\nContent-Length: \d+\r\n"
    rb"Connection: close\r\n\r\n\1\n\Z"
)
# Go skips an empty line before a request only behind a POST on the same socket (net/http/server.go). By baton the
# request may be the first one on its socket, and then Go refuses it.
REFUSAL_BY_GO = re.compile(
    rb"HTTP/1\.1 (400 Bad Request)\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request\Z"
)
NOT_COMPARED = [
    (re.compile(rb"HTTP/1\.1 1\d\d .*?\r\n\r\n", re.S), b""),
    # Apache lists the methods of Allow in any order.
    (re.compile(rb"\r\n(Date|X-Served-By|Allow): [^\r]*"), b""),
    (re.compile(rb"\bds[12] "), b"dsN "),
    # The response to TRACE shows the request as it arrived, and the agent makes h2c in Upgrade unreadable.
    (re.compile(rb"\r\nUpgrade: (h2c|---)"), b""),
]
LOG_LINE = re.compile(r'^(\S+) \d+ "(.*?([nag]\d{8})q\d+.*)" [123]\d\d \d+$')


class Played:
    """The result of a stream: everything that was answered, and whether the connection ended, by "FIN" or by "RST"."""

    def __init__(self, source, address, steps, expected=None):
        self.read, self.end = b"", ""
        with socket.socket() as self.socket:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, PORTS_FROM | PORTS_TO << 16)
            self.socket.bind((source, 0))
            self.socket.settimeout(PATIENCE)
            self.socket.connect(address)
            for step in steps:
                if isinstance(step, bytes):
                    self.send(step)
                elif isinstance(step, float):
                    time.sleep(step)
                else:
                    self.take(WAITS, lambda: self.answers() >= step)
            if expected:
                self.take(PATIENCE, lambda: not expected.end and self.answers() >= expected.answers())
                self.take(0.2)
            else:
                while self.take(SILENCE):
                    pass
        for pattern, replacement in NOT_COMPARED:
            self.read = pattern.sub(replacement, self.read)

    def answers(self):
        return len(STATUS.findall(self.read))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            # The connection has ended. Earlier answers can still be read.
            pass

    def take(self, seconds, is_enough=lambda: False):
        """Reads until it is enough, the connection ends, or the time is over. Returns whether more may come."""
        had, until = len(self.read), time.monotonic() + seconds
        while not self.end and not is_enough() and (left := until - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                break
            try:
                piece = self.socket.recv(1 << 16)
                self.end = "" if piece else "FIN"
                self.read += piece
            except OSError:
                self.end = "RST"
        return len(self.read) > had and not self.end


def recut(steps):
    """Returns the same stream cut only where it waits for answers, and cut behind every empty line."""
    joined, parted = [b""], []
    for step in steps:
        if isinstance(step, bytes):
            joined[-1] += step
        elif isinstance(step, int):
            joined += [step, b""]
    for step in joined:
        if isinstance(step, bytes):
            parted += [piece for part in re.findall(rb"(?s).*?\r\n\r\n|.+\Z", step) for piece in (part, 0.005)]
        else:
            parted.append(step)
    return joined, parted


def ends_unannounced(played):
    """Whether the server has ended the connection behind an answer that says its length, and does not say so."""
    last = played.read[played.read.rfind(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")[0].lower()
    return played.end == "FIN" and b"\r\ncontent-length: " in last and b"\r\nconnection: close" not in last


class Outcome:
    """The results of a stream on both ways, and what is wrong with them as far as the client can tell."""

    def __init__(self, name, number):
        self.name, self.number = name, number
        self.directly = self.by_baton = self.wrong = None
        # The address from which the stream was sent directly.
        self.source = DIRECTLY
        # If baton refused the stream: the status, and the number of answers before it.
        self.refused = self.before = None
        # By baton, another server has answered what is behind the end of the connection (ends_unannounced).
        self.goes_on = False

    def play(self, cluster, server, steps):
        directly = Played(DIRECTLY, (server, PORTS[self.name]), steps)
        by_baton = Played(BY_BATON, (cluster, PORTS[self.name]), steps, directly)
        self.compare(directly, by_baton)
        found = self.wrong
        for source, again in zip(AGAIN, recut(steps)):
            if not self.wrong:
                break
            self.wrong, self.source = None, source
            self.compare(Played(source, (server, PORTS[self.name]), again), by_baton)
        if self.wrong:
            self.wrong, self.directly = found, (directly.read, directly.end)

    def compare(self, directly, by_baton):
        self.refused = self.before = None
        self.directly, self.by_baton = (directly.read, directly.end), (by_baton.read, by_baton.end)
        if directly.read == by_baton.read and bool(directly.end) == bool(by_baton.end):
            return
        if by_baton.read.startswith(directly.read) and ends_unannounced(directly):
            self.goes_on = True
            return
        refusal = REFUSAL.search(by_baton.read)
        if self.name == "goserver":
            refusal = refusal or REFUSAL_BY_GO.search(by_baton.read)
        if not refusal:
            self.wrong = "the answers differ"
            return
        before = by_baton.read[: refusal.start()]
        rest = directly.read[len(before) :]
        self.refused, self.before = refusal[1].decode(), len(STATUS.findall(before))
        if not directly.read.startswith(before) or rest and not rest.startswith(BEGINNINGS):
            self.wrong = "the answers differ before baton refuses"
        elif directly.end and by_baton.end != "FIN":
            self.wrong = "baton refuses, and the connection is not ended in order"


def shown(what):
    """Returns Python's representation, with long runs of a letter shortened."""
    return re.sub(r"([a-z])\1{50,}", lambda run: f"' + b'{run[1]}' * {len(run[0])} + b'", repr(what))


def work(cluster, server, seed, todo, results):
    def run():
        while True:
            try:
                outcome = Outcome(*todo.pop())
            except IndexError:
                return
            try:
                outcome.play(cluster, server, Maker(seed, outcome.name, outcome.number).stream())
            except Exception as error:
                outcome.wrong = f"the client failed: {error!r}"
            results.put(outcome)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def play_all(cluster, server, seed, todo):
    results = multiprocessing.Queue()
    parts = [todo[at::PROCESSES][::-1] for at in range(PROCESSES)]
    processes = [multiprocessing.Process(target=work, args=(cluster, server, seed, part, results)) for part in parts]
    for process in processes:
        process.start()
    outcomes = [results.get() for _ in todo]
    for process in processes:
        process.join()
    return sorted(outcomes, key=lambda outcome: (outcome.name, outcome.number))


class Logs:
    """How often servers have carried out each request of a stream, by client address and the name in the targets."""

    def __init__(self, lab):
        self.files = {ds: open(f"{lab}/{ds}/access.log", errors="replace") for ds in ("ds1", "ds2")}
        self.rests = dict.fromkeys(self.files, "")
        self.forget()
        self.strange = []
        for file in self.files.values():
            file.seek(0, 2)

    def forget(self):
        self.seen = {address: collections.defaultdict(collections.Counter) for address in (DIRECTLY, BY_BATON, *AGAIN)}

    def read(self):
        for ds, file in self.files.items():
            *lines, self.rests[ds] = (self.rests[ds] + file.read()).split("\n")
            for line in lines:
                found = LOG_LINE.match(line)
                if not found or found[1] not in self.seen:
                    continue
                self.seen[found[1]][found[3]][found[2]] += 1
                pool = re.match(r"\S+ /(ds[12])/", found[2])
                if found[1] == BY_BATON and pool and pool[1] != ds:
                    self.strange.append(f"{ds} has carried out {line}")

    def wrong(self, outcome):
        name = f"{outcome.name[0]}{outcome.number:08}"
        directly, by_baton = self.seen[outcome.source][name], self.seen[BY_BATON][name]
        if (more := by_baton - directly) and not outcome.goes_on:
            return f"carried out by baton alone: {list(more)}"
        if outcome.refused and by_baton.total() > outcome.before:
            return f"carried out although baton has refused before: {list(by_baton)}"
        if not outcome.refused and (less := directly - by_baton):
            return f"not carried out by baton: {list(less)}"
        return None


def main():
    lab, cluster, server, seed, streams, *only = sys.argv[1:]
    print(f"seed {seed}", flush=True)
    logs, totals, failed = Logs(lab), collections.Counter(), 0
    first = int(only[1]) if only[1:] else 0
    end = first + int(streams)
    for begin in range(first, end, ROUND):
        todo = [(name, number) for number in range(begin, min(begin + ROUND, end)) for name in only[:1] or PORTS]
        outcomes = play_all(cluster, server, seed, todo)
        until, is_late = time.monotonic() + LOGS_WITHIN, True
        while is_late and time.monotonic() < until:
            time.sleep(LOGS_AFTER)
            logs.read()
            is_late = any(not outcome.wrong and logs.wrong(outcome) for outcome in outcomes)
        for outcome in outcomes:
            wrong = outcome.wrong or logs.wrong(outcome)
            totals[outcome.name, f"refused: {outcome.refused}" if outcome.refused else "answered"] += 1
            if wrong:
                failed += 1
                if failed > SHOWN:
                    print(f"{outcome.name} {outcome.number}: {wrong}")
                    continue
                sent = Maker(seed, outcome.name, outcome.number).stream()
                print(f"{outcome.name} {outcome.number}: {wrong}\n  sent {shown(sent)}")
                print(f"  directly: {shown(outcome.directly)}\n  by baton: {shown(outcome.by_baton)}", flush=True)
        logs.forget()
    for (name, what), count in sorted(totals.items()):
        print(f"{name}: {count} streams {what}")
    print("\n".join([*logs.strange, f"{failed} streams differ"]))
    sys.exit(bool(failed or logs.strange))


if __name__ == "__main__":
    main()
