"""Holds each frame that comes by one device for a while, then sends it by another.

late.py DEVICE OUT SECONDS MARK READY

The file READY is made as soon as no frame is missed any more.
"""

import select
import socket
import sys
import time
from collections import deque

SOL_PACKET, PACKET_IGNORE_OUTGOING, ETH_P_ALL = 263, 23, 3  # linux/if_packet.h, linux/if_ether.h
SO_MARK = 36  # asm-generic/socket.h
LONGEST = 65535 + 14

device, out, seconds, mark = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])

come = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
come.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
come.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
come.bind((device, 0))
come.setblocking(False)

go = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
go.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
go.bind((out, 0))

open(sys.argv[5], "w").close()

held = deque()
while True:
    wait = max(0, held[0][0] - time.monotonic()) if held else None
    if select.select([come], [], [], wait)[0]:
        held.append((time.monotonic() + seconds, come.recv(LONGEST)))
    while held and held[0][0] <= time.monotonic():
        try:
            go.send(held.popleft()[1])
        except OSError as error:  # The link is down: then the frame is lost as it would be there.
            print(error, file=sys.stderr)
