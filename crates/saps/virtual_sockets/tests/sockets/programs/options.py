"""Sets options on a listener, on what it accepts, on what it connects, or on what was connected before; each next step when it is told."""
import socket
import sys

what, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
TCP, SOCKET = socket.IPPROTO_TCP, socket.SOL_SOCKET


def said(text):
    print(text, flush=True)


def alive(s, on, idle):
    s.setsockopt(SOCKET, socket.SO_KEEPALIVE, on)
    s.setsockopt(TCP, socket.TCP_KEEPIDLE, idle)


def more(c):
    c.setsockopt(TCP, socket.TCP_NODELAY, 0)
    c.setsockopt(TCP, socket.TCP_KEEPINTVL, 5)
    c.setsockopt(TCP, socket.TCP_KEEPCNT, 3)
    c.setsockopt(TCP, socket.TCP_USER_TIMEOUT, 9000)
    c.setsockopt(SOCKET, socket.SO_SNDBUF, 20000)
    c.setsockopt(SOCKET, socket.SO_RCVBUF, 25000)
    # What is longer than an int, and than a page, is none of these, and works as ever.
    c.setsockopt(TCP, socket.TCP_CONGESTION, b"reno")
    assert c.getsockopt(TCP, socket.TCP_CONGESTION, 16).startswith(b"reno")
    assert c.getsockopt(TCP, socket.TCP_KEEPINTVL) == 5


s = socket.socket(family, socket.SOCK_STREAM)
alive(s, 1, 77)
if what == "serve":
    s.setsockopt(SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind((host, port))
    s.listen()
    said("listens")
    c, _ = s.accept()
    said("accepted")
    sys.stdin.readline()
    more(c)
    said("set")
    sys.stdin.readline()
    alive(s, 0, 78)
    said("more")
    s.accept()
    c.sendall(c.recv(1))
elif what == "again":
    # The port is used again at once, while its last socket is still open, so both connections have the same ends.
    own = "::" if family == socket.AF_INET6 else "0.0.0.0"
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((own, 5000))
    s.connect((host, port))
    said("connected")
    try:
        s.recv(1)
    except ConnectionResetError:
        said("reset")
    later = socket.socket(family, socket.SOCK_STREAM)
    later.setsockopt(SOCKET, socket.SO_REUSEADDR, 1)
    later.bind((own, 5000))
    later.connect((host, port))
    said("connected")
    s.setsockopt(TCP, socket.TCP_USER_TIMEOUT, 9000)
    s.setsockopt(SOCKET, socket.SO_KEEPALIVE, 1)
    later.setsockopt(TCP, socket.TCP_KEEPINTVL, 5)
    said("set")
else:
    s.connect((host, port))
    said("connected")
    sys.stdin.readline()
    more(s)
    said("set")
sys.stdin.readline()
