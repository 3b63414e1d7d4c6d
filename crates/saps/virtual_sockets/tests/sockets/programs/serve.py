"""Listens where it is told and does with each connection what it is told; says whom it sees."""
import errno
import socket
import struct
import sys
import threading

what, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
listener = socket.socket(family, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if family == socket.AF_INET6:
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, "only" in sys.argv)
try:
    listener.bind((host, port))
except OSError as error:
    print("refused", errno.errorcode[error.errno], flush=True)
    sys.exit()
listener.listen(128)
print("listens", *listener.getsockname()[:2], flush=True)


def names(c, peer):
    return "%s %s / %s %s / %s %s\n" % (*peer[:2], *c.getpeername()[:2], *c.getsockname()[:2])


def echo(c):
    while data := c.recv(1 << 16):
        c.sendall(data)
    c.shutdown(socket.SHUT_WR)
    c.close()


def serve(c, peer):
    if what == "names":
        c.sendall(names(c, peer).encode())
        c.close()
    elif what == "echo":
        echo(c)
    elif what == "reset":
        c.recv(1)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    elif what == "wait":
        try:
            while c.recv(1 << 16):
                pass
            print("end", flush=True)
        except OSError as error:
            print("error", error.errno, flush=True)
    elif what == "deaf":
        # The first bytes have arrived, and stay unread.
        c.recv(1, socket.MSG_PEEK)
        print("deaf", flush=True)
        sys.stdin.readline()
        total = 0
        while data := c.recv(1 << 16):
            total += len(data)
        print("read", total, flush=True)
    elif what == "half":
        # This end closes its direction first, and goes on reading.
        c.sendall(b"first\n")
        c.shutdown(socket.SHUT_WR)
        total = 0
        while data := c.recv(1 << 16):
            total += len(data)
        print("then", total, flush=True)


while True:
    c, peer = listener.accept()
    threading.Thread(target=serve, args=(c, peer), daemon=True).start()
