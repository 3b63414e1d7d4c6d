"""Does one row of the table after the other and says what came of it. It is outside the control group; a child in it does
what a row does not say is done outside."""
import errno
import os
import signal
import socket
import sys
import time

group = sys.argv[1]
MPTCP = 262


def made(kind, host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    if kind == "tcp":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return s


def bound(kind, host, port, *only):
    s = made(kind, host)
    if s.family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, bool(only))
    s.bind((host, int(port)))
    return s


def name(s):
    return "%s %s" % s.getsockname()[:2]


def alive(s, idle):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle)


def connect(kind, host, port):
    with made(kind, host) as s:
        s.connect((host, int(port)))
        return "%s %s" % s.getpeername()[:2]


def call(host, port, before=lambda s: None):
    """As far as a program that does not wait can see."""
    with made("tcp", host) as s:
        before(s)
        s.setblocking(False)
        s.connect((host, int(port)))
        return "connected"


def do(words):
    try:
        if words[0] == "bind":
            with bound(*words[1:]) as s:
                return name(s)
        if words[0] == "connect":
            return connect(*words[1:])
        if words[0] == "call":
            return call(*words[1:])
        if words[0] == "alive":
            return call(*words[3:], before=lambda s: alive(s, 70))
        if words[0] == "mptcp":
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP):
                return "made"
    except OSError as error:
        return errno.errorcode[error.errno]


def in_group(work):
    """Forks a child that joins the group and does it; its number."""
    child = os.fork()
    if not child:
        with open(group + "/cgroup.procs", "w") as procs:
            procs.write("0")
        work()
        os._exit(0)
    return child


def row(words):
    read, write = os.pipe()
    child = in_group(lambda: os.write(write, do(words).encode()))
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


class Listener:
    """A child that listens, and its socket as it was passed to this process."""

    def __init__(self, how, words):
        self.own, its = socket.socketpair()

        def listens():
            s = bound(*words)
            s.listen()
            socket.send_fds(its, [b"x"], [s.fileno()])
            while command := its.recv(100).decode():
                if command == "alive":
                    alive(s, 70)
                else:
                    alive(s.dup(), 71)
                its.send(b"set")

        def begin():
            self.own.close()
            if how == "listen":
                listens()
            elif how == "forked":
                if os.fork():
                    os.wait()
                else:
                    listens()
            else:
                os.set_inheritable(its.fileno(), True)
                os.execv(sys.executable, [sys.executable, __file__, "listens", str(its.fileno()), *words])

        self.child = in_group(begin)
        its.close()
        fds = socket.recv_fds(self.own, 1, 1)[1]
        self.passed = socket.socket(fileno=fds[0])

    def told(self, what):
        self.own.send(what.encode())
        return self.own.recv(10).decode()


if group == "listens":
    # What a child became.
    its = socket.socket(fileno=int(sys.argv[2]))
    s = bound(*sys.argv[3:])
    s.listen()
    socket.send_fds(its, [b"x"], [s.fileno()])
    while command := its.recv(100).decode():
        alive(s if command == "alive" else s.dup(), 70 if command == "alive" else 71)
        its.send(b"set")
    sys.exit()

listener = None
for line in sys.stdin:
    words = line.split()
    if words[0] == "outside":
        said = do(words[1:])
    elif words[0] in ("listen", "forked", "executed"):
        listener = Listener(words[0], words[1:])
        said = "listens"
    elif words == ["alive"] or words[0] == "duplicate":
        said = listener.told(words[0])
    elif words == ["passed", "alive"]:
        alive(listener.passed, 72)
        said = "set"
    elif words == ["passed", "name"]:
        said = name(listener.passed)
    elif words == ["kill"]:
        with open(group + "/cgroup.procs") as procs:
            for process in procs.read().split():
                os.kill(int(process), signal.SIGKILL)
        os.waitpid(listener.child, 0)
        # Once the group is empty, the descriptors of its child are closed as well.
        while "populated 1" in open(group + "/cgroup.events").read():
            time.sleep(0.01)
        said = "killed"
    elif words == ["close"]:
        listener.passed.close()
        said = "closed"
    else:
        said = row(words)
    print(said, flush=True)
