"""A client with thousands of connections on each of which a request head comes byte by byte, one byte a second.

usage: slow_heads.py HOST PORT POOLS DIRECT COUNT TIMEOUT LAB ROUNDS

/POOL/... is answered by POOL alone, for each of POOLS. COUNT connections are open at once. On half of them the first
line and the Host header come in one piece, followed by a header line that never ends. On the others the head begins
with a single byte, so that its pool is not known yet. On half of each kind the head ends after half of TIMEOUT, the
service's head_timeout in seconds; the answer must be 200, from the pool that it names. On the others it never ends;
the answer must be 408, and not come earlier than TIMEOUT. All this is done ROUNDS times.

Meanwhile another client sends requests to POOLS in turn over one kept connection, and also to a server at the address
DIRECT. None may fail, and the median time must stay below five times what it was before. If the server's direct
answers have become slower too, because the machine is busy, the limit grows in the same proportion. The memory of all
the data servers' daemons together, which are found by their configuration files in the folder LAB, must not grow by
100 MB or more.
"""

import collections
import glob
import multiprocessing
import os
import resource
import selectors
import socket
import statistics
import sys
import time

from kept_connection import Connection, get, say

PERIOD = 1.0
BEFORE = 5.0
PATIENCE = 60.0
# Seconds. An answer that comes while this program does not run is not late, and the clocks of two programs do not start
# at the same moment.
TOLERANCE = 1.0
MOST_MEMORY = 100 << 20
TIMES_SLOWER = 5
# Milliseconds. A shorter median counts as this long.
SHORTEST = 2.0
# So many connections begin at a time, because the agent's listener has room for a limited number that are not accepted
# yet.
BATCH = 50


def daemons(lab):
    """Returns the process numbers of the data servers' nodes, by host."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        for config in glob.glob(f"{lab}/ds*/baton.toml"):
            if b"node" in words and os.path.realpath(config).encode() in words:
                found[config.split("/")[-2]] = int(path.split("/")[2])
    return found


def memory(pids):
    """Returns the bytes that these processes have in memory together."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) << 10
    return total


class Slow:
    """One connection. After `ends_after` seconds, unless None, the rest of the head is sent at once."""

    def __init__(self, address, number, pool, ends_after):
        self.pool, self.ends_after = pool, ends_after
        first_lines = f"GET /{pool}/slow HTTP/1.1\r\nHost: cluster\r\n".encode()
        self.text, self.sent = first_lines + b"X-Long: ", 0
        self.at_once = len(first_lines) if number % 2 else 0
        # The times at which the first byte was sent, the head ended, and the answer was complete.
        self.began = self.ended = self.answered = None
        self.read = b""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(address)

    def take(self, count):
        """Returns the next bytes of the head, which never ends by itself."""
        begin, self.sent = self.sent, self.sent + count
        return self.text[begin : self.sent] or b"f" * count

    def go_on(self, now):
        """Sends the next part of the head. Returns false once the head has ended."""
        if self.began is None:
            self.began = now
            self.socket.send(self.take(max(self.at_once, 1)))
        elif self.ends_after and now - self.began >= self.ends_after:
            self.ended = now
            self.socket.send(self.text[self.sent :] + b"f\r\n\r\n")
        else:
            self.socket.send(self.take(1))
        return self.ended is None

    def is_answered(self):
        head, end, body = self.read.partition(b"\r\n\r\n")
        if not end:
            return False
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return len(body) >= int(lengths[0].split(b":")[1])

    def failure(self, timeout):
        """Returns what is wrong with the answer, or None."""
        at = f"{self.pool}, {'after two lines' if self.at_once else 'from the first byte on'}"
        took = self.answered - self.began
        status = self.read[9:12].decode()
        if self.ended is None:
            if status != "408" or took < timeout - TOLERANCE:
                return f"{at}: {status or 'an end'} after {took:.1f} s of a head that never ends: {self.read[:100]}"
            return None
        is_late = self.ended - self.began > timeout - 2 * TOLERANCE
        if status == "200" and self.read.endswith(f"\r\n\r\n{self.pool} /{self.pool}/slow\n".encode()):
            return None
        if is_late and status == "408":
            return None
        ended = f"the head ended at {self.ended - self.began:.1f} s"
        return f"{at}: {status or 'an end'} after {took:.1f} s, {ended}: {self.read[:100]}"


class Client:
    """The client with all the slow connections."""

    def __init__(self, address, pools, count, timeout):
        self.address, self.pools, self.count, self.timeout = address, pools, count, timeout
        self.selector, self.waiting = selectors.DefaultSelector(), collections.deque()
        self.slow, self.begun, self.left = [], 0, count
        self.sent = 0

    def begin(self):
        for number in range(self.begun, min(self.begun + BATCH, self.count)):
            ends_after = self.timeout / 2 if number // 2 % 2 else None
            one = Slow(self.address, number, self.pools[number % len(self.pools)], ends_after)
            self.slow.append(one)
            self.selector.register(one.socket, selectors.EVENT_WRITE, one)
        self.begun = min(self.begun + BATCH, self.count)

    def end(self, one):
        one.answered = time.monotonic()
        self.selector.unregister(one.socket)
        one.socket.close()
        self.left -= 1

    def write(self, one):
        try:
            if one.go_on(time.monotonic()):
                self.waiting.append((time.monotonic() + PERIOD, one))
            self.sent += 1
        except OSError:
            # Earlier answers can still be read.
            pass

    def handle(self, timeout):
        for key, event in self.selector.select(timeout):
            one = key.data
            if event & selectors.EVENT_WRITE:
                self.selector.modify(one.socket, selectors.EVENT_READ, one)
                error = one.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                assert not error, f"a connection is not made: {os.strerror(error)}"
                self.write(one)
                continue
            try:
                piece = one.socket.recv(1 << 12)
            except OSError as error:
                one.read += f" ({error})".encode() if not one.read else b""
                piece = b""
            one.read += piece
            if not piece or one.is_answered():
                self.end(one)

    def run(self, watch):
        until = time.monotonic() + self.timeout + PATIENCE
        while self.left:
            assert time.monotonic() < until, f"{self.left} connections are not answered"
            under_way = sum(one.began is None for one in self.slow[-2 * BATCH :])
            if self.begun < self.count and under_way < BATCH:
                self.begin()
                until = time.monotonic() + self.timeout + PATIENCE
            self.handle(0.02)
            now = time.monotonic()
            while self.waiting and self.waiting[0][0] <= now:
                _, one = self.waiting.popleft()
                if one.answered is None:
                    self.write(one)
                if self.sent % 256 == 0:
                    break
            watch(self)


class Other:
    """The other client, which must not be affected. It has a process of its own."""

    def __init__(self, cluster, direct, pools):
        self.ends, self.times = multiprocessing.Event(), multiprocessing.Queue()
        arguments = (cluster, direct, pools, self.ends, self.times)
        self.process = multiprocessing.Process(target=self.run, args=arguments, daemon=True)
        self.process.start()

    @staticmethod
    def run(cluster, direct, pools, ends, times):
        measured, failure = [], None
        try:
            through, straight, number = Connection(cluster, PATIENCE), Connection(direct, PATIENCE), 0
            while not ends.is_set():
                pool, path = pools[number % len(pools)], f"/{pools[number % len(pools)]}/{number}"
                took = []
                for connection in (through, straight):
                    began = time.monotonic()
                    connection.send(get(path))
                    response = connection.response()
                    took.append((time.monotonic() - began) * 1000)
                    is_right = response.body.endswith(f" {path}\n".encode()) and response.status == 200
                    assert is_right and (connection is straight or response.server == pool), (path, response)
                measured.append((time.monotonic(), *took))
                number += 1
                time.sleep(0.002)
        except Exception as error:
            failure = f"the other client, after {len(measured)} requests: {error!r}"
        times.put((measured, failure))

    def finish(self):
        self.ends.set()
        return self.times.get(timeout=2 * PATIENCE)


class Watch:
    """The values that are read each second."""

    def __init__(self, pids):
        self.pids, self.next, self.most, self.all_open = pids, 0.0, 0, None

    def __call__(self, client):
        if self.all_open is None and client.begun == client.count and all(one.began for one in client.slow[-BATCH:]):
            self.all_open = time.monotonic()
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + 1
            self.most = max(self.most, memory(self.pids))


def medians(measured, since, until):
    through = [one for at, one, _ in measured if since <= at < until]
    straight = [other for at, _, other in measured if since <= at < until]
    if not through:
        return None
    return statistics.median(through), statistics.median(straight), max(through), max(straight), len(through)


def show(name, found):
    if found:
        through, straight, longest, longest_straight, count = found
        say(f"  {name}: {count} requests, median {through:.2f} ms (longest {longest:.0f})")
        say(f"    the same directly: median {straight:.2f} ms (longest {longest_straight:.0f})")


def one_round(address, pools, count, timeout, pids, before):
    """Returns when it began, when all were open and answered, the growth of memory, the failures, and the statuses."""
    watch, client = Watch(pids), Client(address, pools, count, timeout)
    began = time.monotonic()
    client.run(watch)
    took = time.monotonic() - began
    statuses = collections.Counter(one.read[9:12].decode() or "none" for one in client.slow)
    open_after = (watch.all_open or time.monotonic()) - began
    lived = sum(one.answered - one.began for one in client.slow)
    say(f"{count} connections were open after {open_after:.1f} s and answered after {took:.1f} s: {dict(statuses)}")
    say(f"  a byte was sent on each every {lived / client.sent:.2f} s")
    grown = watch.most - before
    now = memory(pids) - before
    say(f"  the daemons' memory: {before >> 20} MB before, {grown / (1 << 20):.1f} MB more at most")
    say(f"  that is {grown / count:.0f} bytes a connection; {now / (1 << 20):.1f} MB more at the end")
    failures = [one.failure(timeout) for one in client.slow]
    return began, began + open_after, began + took, grown, [failure for failure in failures if failure], statuses


def main():
    host, port, pools, direct, count, timeout, lab, rounds = sys.argv[1:]
    address, pools, count, timeout = (host, int(port)), pools.split(), int(count), float(timeout)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    pids = list(daemons(lab).values())
    assert len(pids) == len(pools), f"of {len(pools)} data servers' daemons these were found: {pids}"
    other, began = Other(address, (direct, int(port)), pools), time.monotonic()
    time.sleep(BEFORE)
    before = memory(pids)
    done = [one_round(address, pools, count, timeout, pids, before) for _ in range(int(rounds))]
    measured, failed = other.finish()
    failures = [failed] if failed else []
    calm = medians(measured, began, began + BEFORE)
    show("before", calm)
    for begins, opened, ends, grown, wrong, statuses in done:
        show("while they were opened", medians(measured, begins, opened))
        show("while they were open", medians(measured, opened, ends))
        failures += wrong[:5] + ([f"{len(wrong)} answers are wrong"] if wrong else [])
        if grown >= MOST_MEMORY:
            failures.append(f"the daemons' memory has grown by {grown >> 20} MB")
        through, straight, *_ = medians(measured, begins, ends) or (float("inf"), 0)
        allowed = TIMES_SLOWER * max(calm[0], SHORTEST) * max(1, straight / calm[1])
        if through > allowed:
            failures.append(f"the other client waits for {through:.1f} ms, before {calm[0]:.1f}; {allowed:.1f} were allowed")
        # This holds on a machine that is not far too slow.
        if statuses["200"] < count // 4:
            failures.append(f"only {statuses['200']} heads that ended were answered with 200")
    for failure in failures:
        say(failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
