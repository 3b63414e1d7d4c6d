"""Runs a TLS client, and checks in how many TCP segments it sends each of its ClientHellos.

usage: tls_hellos.py ADDRESS PORT SEGMENTS COMMAND...

All that leaves by the interface eth0 for ADDRESS and PORT while COMMAND runs is looked at. COMMAND must succeed, and
must have begun at least one TLS connection, and each ClientHello must have been sent in SEGMENTS segments or more. The
interface must send segments as they are on a wire (`ethtool -K eth0 tso off gso off`).
"""

import socket
import struct
import subprocess
import sys
import threading

ETH_P_ALL, PACKET_OUTGOING = 3, 4
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_RCVBUFFORCE = 33
SYN = 2
# A ClientHello is read from this much of what a connection sends first, which is more than any client needs.
LOOKED_AT = 20000


class Connection:
    """What a client sends first on a connection."""

    def __init__(self, first):
        self.first = first  # the sequence number of the first byte
        self.pieces = {}  # what a segment brought, by how many bytes are before it

    def hello(self):
        """The length of the ClientHello in its record, and in how many segments it came; None if there is none."""
        data, segments = b"", []
        for at in sorted(self.pieces):
            if at > len(data):
                break
            segments.append(at)
            data = data[:at] + self.pieces[at]
        if len(data) < 6 or data[0] != 22 or data[5] != 1:
            return None
        length = 5 + int.from_bytes(data[3:5], "big")
        return length, sum(at < length for at in segments)


class Sniffer:
    """Looks at the packets that leave for an address while this context is entered."""

    def __init__(self, address):
        self.host, self.port = socket.inet_aton(address[0]), address[1]
        self.connections = []
        self.open = {}  # the newest connection from each of the client's ports
        self.done = False

    def __enter__(self):
        self.packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.packets.bind(("eth0", ETH_P_ALL))
        self.packets.settimeout(0.1)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done = True
        self.thread.join()
        dropped = struct.unpack("II", self.packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        assert not dropped, f"{dropped} packets were not looked at"

    def read(self):
        """Takes packets until the client has ended and all that it has sent was looked at."""
        while True:
            try:
                packet, how = self.packets.recvfrom(1 << 16)
            except TimeoutError:
                if self.done:
                    return
                continue
            if how[2] == PACKET_OUTGOING and packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
                self.take(packet)

    def take(self, packet):
        length, ip_header = int.from_bytes(packet[2:4], "big"), (packet[0] & 15) * 4
        source, target, sequence = struct.unpack_from("!HHI", packet, ip_header)
        if packet[16:20] != self.host or target != self.port:
            return
        data = packet[ip_header + (packet[ip_header + 12] >> 4) * 4 : length]
        if packet[ip_header + 13] & SYN:
            # A SYN that is sent again begins no other connection.
            if source not in self.open or self.open[source].first != (sequence + 1) & 0xFFFFFFFF:
                self.open[source] = Connection((sequence + 1) & 0xFFFFFFFF)
                self.connections.append(self.open[source])
        elif data and source in self.open:
            connection = self.open[source]
            at = (sequence - connection.first) & 0xFFFFFFFF
            if at < LOOKED_AT:
                connection.pieces.setdefault(at, data)


address, least, command = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3]), sys.argv[4:]
with Sniffer(address) as sniffer:
    status = subprocess.run(command).returncode
if status:
    sys.exit(f"{command[0]} has failed: {status}")
hellos = [hello for connection in sniffer.connections if (hello := connection.hello())]
print(f"{len(hellos)} ClientHellos, bytes and segments: {sorted(set(hellos))}")
if not hellos:
    sys.exit("no TLS connection has begun")
if few := [hello for hello in hellos if hello[1] < least]:
    sys.exit(f"less than {least} segments: {few}")
