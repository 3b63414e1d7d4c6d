"""A client whose requests come in two segments each, and that counts what its TCP has to retransmit.

usage: no_retransmission.py HOST PORT POOLS COUNT LAB BATON FOLDER [CONNECTIONS]

The client sends COUNT times a POST whose head and body are two writes back to back: as first requests of their
connections, on connections that stay with a data server, and on connections that move with each request. As often it
sends a GET with a cookie of 2.5 KB, which does not fit into one segment, on connections that move with each request.
/POOL/... must be answered by POOL alone, and /POOL/upload with the length of the body.

The script prints the TCP counters of this host, and the counters of the data servers' doors (LAB is the folder of the
lab, and BATON the program that asks its nodes). A packet that a door drops arrives only when its client retransmits
it, after 200 ms or more. A client also retransmits on a busy machine where some program does not run for that long.
What the data server sends shows the difference: its acknowledgement echoes the timestamp of the packet that brought
the data (RFC 7323, section 3; RFC 3522 detects needless retransmissions in the same way), or it reports later that
the data came twice (DSACK, RFC 2883). tcpdump writes the packets to a file in FOLDER. A retransmitted packet counts
as lost only if the second packet was echoed, and the first one never came. Nothing may be lost, and hardly any
request may have to wait at a door.

At last come POSTs that their server answers before it has read the body. Their retransmissions are only printed:
nothing follows the body that would acknowledge it, so the data server's TCP delays the acknowledgement for 40 ms. The
connection moves to another data server only when everything is acknowledged, and the next request waits until then,
longer than the client's probe timer.
"""

import collections
import random
import statistics
import struct
import sys
import threading
import time

from capture import Capture
from kept_connection import Connection, get, moved, node_counters, say, tcp_counters

PATIENCE = 60
COOKIE = b"Cookie: " + b"; ".join(b"part%02d=%s" % (number, b"c" * 90) for number in range(25)) + b"\r\n"
BODY = b"GET /ds9/none HTTP/1.1\r\nHost: cluster\r\n\r\n" * 5
CONNECTIONS = 4
PER_CONNECTION = 500
# This part of all requests may be affected on a busy machine.
HARDLY = 0.05
TCP_NAMES = ("RetransSegs", "TCPTimeouts", "TCPLossProbes", "TCPSpuriousRTOs", "TCPFastRetrans", "TCPSynRetrans", "TCPDSACKRecv")
NODE_NAMES = ("ds_door_", "ds_no_socket", "ds_none", "ds_unassigned", "cs_none", "cs_stray", "cs_claim")

FIN, SYN, SACK, TIMESTAMP = 1, 2, 5, 8


def post(path):
    head = f"POST {path} HTTP/1.1\r\nHost: cluster\r\nContent-Length: {len(BODY)}\r\n\r\n"
    return [head.encode(), BODY]


def upload(pool, number):
    """Returns the parts of a request and its response, the body's length, which comes when the server has the body."""
    return post(f"/{pool}/upload"), f"{len(BODY)}\n"


def answered_early(pool, number):
    """Returns the same for a server that does not wait for the body."""
    return post(f"/{pool}/{number}"), f"{pool} /{pool}/{number}\n"


def cookie(pool, number):
    return [get(f"/{pool}/{number}", COOKIE)], f"{pool} /{pool}/{number}\n"


class Phase:
    """Sends COUNT requests of a kind over some connections at once.

    `pool_of`: for whom the next request is, after one for this pool. `waits_at_most`: what may have to wait at doors, as a part of
    COUNT. `is_judged`: whether nothing may be lost.
    """

    def __init__(self, name, request, pool_of, count, per_connection, waits_at_most=None, is_judged=True):
        self.waits_at_most, self.is_judged = waits_at_most, is_judged
        self.name, self.request, self.pool_of = name, request, pool_of
        self.count, self.per_connection = count, per_connection
        self.lock, self.begun, self.times, self.failures = threading.Lock(), 0, [], []

    def next(self):
        with self.lock:
            self.begun += 1
            return self.begun if self.begun <= self.count else None

    def run(self, address, pools, seed):
        chance, connection, left, pool = random.Random(f"{seed} {self.name}"), None, 0, None
        while number := self.next():
            if not connection:
                connection, left, pool = Connection(address, PATIENCE), self.per_connection, chance.choice(pools)
            parts, answer = self.request(pool, number)
            began = time.monotonic()
            try:
                for part in parts:
                    connection.send(part)
                response = connection.response()
                if (response.status, response.server, response.body) != (200, pool, answer.encode()):
                    raise ValueError(response)
            except Exception as error:
                self.failures.append(f"number {number}, for {pool}: {error!r}")
                left = 0
            self.times.append((time.monotonic() - began) * 1000)
            pool, left = self.pool_of(pools, pool, chance), left - 1
            if left <= 0:
                connection.close()
                connection = None

    def run_all(self, address, pools, connections):
        threads = [threading.Thread(target=self.run, args=(address, pools, seed)) for seed in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def same(pools, pool, chance):
    return pool


def other(pools, pool, chance):
    return chance.choice([one for one in pools if one != pool])


class Segments(Capture):
    def packets(self):
        """(whether the client sent it, its port, seq, ack, bytes of sequence space, flags, what options_of says)"""
        with open(self.path, "rb") as file:
            text = file.read()
        at = 24
        while at + 16 <= len(text):
            (kept,) = struct.unpack_from("<I", text, at + 8)
            frame = text[at + 16 : at + 16 + kept]
            at += 16 + kept
            tcp = 14 + (frame[14] & 15) * 4
            (length,) = struct.unpack_from("!H", frame, 16)
            source, target, seq, ack, doff, flags = struct.unpack_from("!HHIIBB", frame, tcp)
            header = (doff >> 4) * 4
            used = length - (tcp - 14) - header + bool(flags & SYN) + bool(flags & FIN)
            by_client = target == self.address[1]
            found = options_of(frame[tcp + 20 : tcp + header])
            yield by_client, source if by_client else target, seq, ack, used, flags, found


def options_of(options):
    """Returns the timestamps and the first block of SACK, each None if there is none."""
    at, stamps, block = 0, None, None
    while at < len(options) and options[at]:
        if options[at] == TIMESTAMP:
            stamps = struct.unpack_from("!II", options, at + 2)
        elif options[at] == SACK:
            block = struct.unpack_from("!II", options, at + 2)
        at += 1 if options[at] == 1 else max(options[at + 1], 2)
    return stamps, block


def is_before(one, other):
    return one != other and (other - one) & 0xFFFFFFFF < 1 << 31


def sent_again(packets):
    """Returns how many retransmissions were needless because the first packet had come, and what was lost, by port."""
    highest, pending, lost, again = {}, collections.defaultdict(list), [], 0
    for by_client, port, seq, ack, used, flags, (stamps, block) in packets:
        if by_client:
            end = (seq + used) & 0xFFFFFFFF
            if flags & SYN and seq != (highest.get(port, 0) - 1) & 0xFFFFFFFF:
                highest[port] = end
                lost += [(port, *one) for one in pending.pop(port, [])]
            elif used and not is_before(highest[port], end):
                pending[port].append((end, stamps))
                again += 1
            elif used:
                highest[port] = end
            continue
        # The receiver reports that data came twice (DSACK, RFC 2883). So the first packet was still on its way, however
        # long that took.
        if block and not is_before(ack, block[1]):
            lost = [one for one in lost if one[0] != port or not is_before(block[0], one[1]) or is_before(block[1], one[1])]
        for one in [one for one in pending.get(port, []) if not is_before(ack, one[0])]:
            pending[port].remove(one)
            if not (stamps and one[1] and is_before(stamps[1], one[1][0])):
                lost.append((port, *one))
    lost += [(port, *one) for port, all_of_it in pending.items() for one in all_of_it]
    return again - len(lost), lost


def show(names, counted):
    return ", ".join(f"{name} {count}" for name, count in sorted(counted.items()) if count and name.startswith(names)) or "nothing"


def measure(phase, address, pools, connections, lab, baton, folder):
    """Returns how many segments were lost, and what failed."""
    hosts = [*pools, "cs1"]
    doors, before = node_counters(baton, lab, hosts), tcp_counters()
    with Segments(address, f"{folder}/packets.pcap") as capture:
        began = time.monotonic()
        phase.run_all(address, pools, connections)
        took = time.monotonic() - began
    counted, after = moved(before), node_counters(baton, lab, hosts)
    after.subtract(doors)
    needless, lost = sent_again(capture.packets())
    waited = after["ds_door_withheld"] + after["ds_door_later"]
    say(f"{phase.count} {phase.name}: {took:.1f} s, median {statistics.median(phase.times):.2f} ms, longest {max(phase.times):.0f} ms")
    say(f"  sent again {counted['RetransSegs']}, not needed {needless}, lost {len(lost)}; not captured {capture.lost}")
    say(f"  the client's TCP: {show(TCP_NAMES, counted)}")
    say(f"  the nodes: {show(NODE_NAMES, after)}")
    failures = phase.failures[:5]
    if phase.failures:
        failures.append(f"{len(phase.failures)} requests failed")
    if phase.is_judged and not capture.lost:
        for port, end, stamps in lost[:5]:
            failures.append(f"lost: port {port}, up to {end}, sent again with timestamp {stamps and stamps[0]}")
        if lost:
            failures.append(f"{len(lost)} segments were lost; the nodes counted {show('', after)}")
    if phase.waits_at_most is not None and waited > phase.waits_at_most * phase.count:
        failures.append(f"{waited} packets had to wait at doors")
    for failure in failures:
        say("  ", failure)
    return len(failures)


def main():
    host, port, pools, count, lab, baton, folder, *rest = sys.argv[1:]
    address, pools, count = (host, int(port)), pools.split(), int(count)
    connections = int(rest[0]) if rest else CONNECTIONS
    two = "POSTs in two writes"
    phases = [
        Phase(f"{two}, the first ones of their connections", upload, other, count // 5, 1, HARDLY),
        Phase(f"{two} for the pool before", upload, same, count * 2 // 5, PER_CONNECTION, HARDLY),
        Phase(f"{two} for another pool than the one before", upload, other, count * 2 // 5, PER_CONNECTION, HARDLY),
        Phase("GETs with a cookie of 2.5 KB for another pool than the one before", cookie, other, count, PER_CONNECTION),
        Phase(f"{two} for another pool, answered early", answered_early, other, count // 5, PER_CONNECTION, is_judged=False),
    ]
    failed = sum(measure(phase, address, pools, connections, lab, baton, folder) for phase in phases)
    sys.exit(bool(failed))


main()
