"""Connects, in one of the ways that programs do, and says what it saw."""
import errno
import os
import select
import selectors
import socket
import sys

way, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in host or way == "mapped" else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM)
if way == "mapped":
    host = "::ffff:" + host
if way == "bound":
    s.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))


def name(code):
    return errno.errorcode.get(code, str(code)) if code else "0"


try:
    if way in ("poll", "epoll", "select"):
        s.setblocking(False)
        code = s.connect_ex((host, port))
        print("began", name(code))
        if way == "poll":
            p = select.poll()
            p.register(s, select.POLLOUT)
            (_, events), = p.poll(60000)
            print("poll", "error" if events & (select.POLLERR | select.POLLHUP) else "fine")
        elif way == "epoll":
            p = select.epoll()
            p.register(s, select.EPOLLOUT | select.EPOLLET)
            (_, events), = p.poll(60)
            print("poll", "error" if events & (select.EPOLLERR | select.EPOLLHUP) else "fine")
        else:
            _, writable, _ = select.select([], [s], [], 60)
            print("poll", "fine" if writable else "none")
        code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        print("ended", name(code))
        if code:
            sys.exit()
        s.setblocking(True)
    else:
        s.connect((host, port))
        print("ended 0")
except OSError as error:
    print("ended", name(error.errno))
    sys.exit()
print("peer", *s.getpeername()[:2])
print("own", *s.getsockname()[:2])
s.sendall(b"hello\n")
s.shutdown(socket.SHUT_WR)
data = b""
while more := s.recv(65536):
    data += more
print("heard", data.decode().strip())
