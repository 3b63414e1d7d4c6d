"""Servers whose connections or listener belong to more than one process.

usage: descriptors.py MODE PORT

exec     a grandchild answers, over a duplicate of the descriptor that it got by fork() and exec()
give     another program gets each connection (SCM_RIGHTS) and sends back everything that arrives
take     this is that program; PORT is ignored
prefork  three children accept on the listener of their parent, whose process number is in prefork.pid
bequeath the program "take" gets the listener itself, and this program does nothing more
deaf     this server never reads anything
"""
import os
import signal
import socket
import sys
import threading
import time

mode, port = sys.argv[1], int(sys.argv[2])
PLACE = "take.socket"


def listen():
    listener = socket.create_server(("0.0.0.0", port), backlog=128)
    listener.set_inheritable(True)
    return listener


def send_back(connection):
    with connection:
        while data := connection.recv(1 << 16):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def answer(listener, text):
    while True:
        connection, _ = listener.accept()
        with connection:
            if line := connection.makefile("rb").readline():
                connection.sendall(text + b" " + line)


def pass_on(what, name):
    """Sends a descriptor to the program "take", as soon as that is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as way:
        while way.connect_ex(PLACE):
            time.sleep(0.05)
        socket.send_fds(way, [name], [what.fileno()])


def take():
    if os.path.exists(PLACE):
        os.unlink(PLACE)
    place = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.bind(PLACE)
    place.listen(128)
    while True:
        way, _ = place.accept()
        name, (descriptor,), _, _ = socket.recv_fds(way, 16, 1)
        way.close()
        taken = socket.socket(fileno=descriptor)
        work = (taken, b"heir") if name == b"listener" else (taken,)
        target = answer if name == b"listener" else send_back
        threading.Thread(target=target, args=work, daemon=True).start()


signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if mode == "take":
    take()
listener = listen()
if mode == "prefork":
    with open("prefork.pid", "w") as file:
        file.write(str(os.getpid()))
    for _ in range(3):
        if os.fork() == 0:
            answer(listener, b"child")
elif mode == "bequeath":
    pass_on(listener, b"listener")
elif mode == "exec":
    while True:
        connection, _ = listener.accept()
        descriptor = os.dup(connection.fileno())
        os.set_inheritable(descriptor, True)
        if os.fork() == 0:
            script = f'read line <&{descriptor}; echo "exec $line" >&{descriptor}'
            os.execv("/bin/sh", ["sh", "-c", script])
        os.close(descriptor)
        connection.close()
elif mode == "give":
    while True:
        connection, _ = listener.accept()
        pass_on(connection, b"connection")
        connection.close()
elif mode == "deaf":
    kept = []
    while True:
        kept.append(listener.accept())
while True:
    signal.pause()
