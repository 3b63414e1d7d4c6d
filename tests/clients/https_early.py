"""Sends early data (0-RTT) that the agents of labs/https.toml have not asked for, with OpenSSL's own functions.

usage: https_early.py HOST PORT

A ticket allows no early data (RFC 8446, section 4.6.1). If a client sends some all the same, its session goes on, and
the early data is never a request.
"""

import ctypes
import ctypes.util
import socket
import sys

ADDRESS = sys.argv[1], int(sys.argv[2])
NAME = b"ds1.example"
REQUEST = b"GET /ds1/%s HTTP/1.1\r\nHost: ds1.example\r\n\r\n"
SET_NAME, REJECTED = 55, 1  # SSL_CTRL_SET_TLSEXT_HOSTNAME, SSL_EARLY_DATA_REJECTED
ssl = ctypes.CDLL(ctypes.util.find_library("ssl"))
for function in ("TLS_client_method", "SSL_CTX_new", "SSL_new", "SSL_get1_session"):
    getattr(ssl, function).restype = ctypes.c_void_p
pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
ssl.SSL_CTX_new.argtypes = ssl.SSL_new.argtypes = ssl.SSL_get1_session.argtypes = [pointer]
ssl.SSL_ctrl.argtypes = [pointer, number, ctypes.c_long, ctypes.c_char_p]
ssl.SSL_set_fd.argtypes = [pointer, number]
ssl.SSL_set_session.argtypes = [pointer, pointer]
ssl.SSL_connect.argtypes = ssl.SSL_session_reused.argtypes = ssl.SSL_get_early_data_status.argtypes = [pointer]
ssl.SSL_write.argtypes = ssl.SSL_read.argtypes = [pointer, ctypes.c_char_p, number]
ssl.SSL_write_early_data.argtypes = [pointer, ctypes.c_char_p, size, ctypes.POINTER(size)]
ssl.SSL_SESSION_get_max_early_data.argtypes = [pointer]
ssl.SSL_SESSION_set_max_early_data.argtypes = [pointer, ctypes.c_uint32]
context = ssl.SSL_CTX_new(ssl.TLS_client_method())


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(ADDRESS)
        self.tls = ssl.SSL_new(context)
        assert ssl.SSL_ctrl(self.tls, SET_NAME, 0, NAME) == 1
        ssl.SSL_set_fd(self.tls, self.socket.fileno())

    def shake_hands(self):
        assert ssl.SSL_connect(self.tls) == 1, "no handshake"

    def get(self, path):
        request, said = REQUEST % path, ctypes.create_string_buffer(4096)
        assert ssl.SSL_write(self.tls, request, len(request)) == len(request)
        length = ssl.SSL_read(self.tls, said, 4096)
        assert length > 0, "no answer"
        return said.raw[:length]


first = Connection()
first.shake_hands()
assert b"ds1 /ds1/first\n" in first.get(b"first")
session = ssl.SSL_get1_session(first.tls)
assert ssl.SSL_SESSION_get_max_early_data(session) == 0

# The client is made to believe otherwise.
ssl.SSL_SESSION_set_max_early_data(session, 1 << 14)
for length in (1, 100, 10000):
    again = Connection()
    assert ssl.SSL_set_session(again.tls, session) == 1
    early = (REQUEST % b"early").ljust(length, b"x")
    written = size()
    assert ssl.SSL_write_early_data(again.tls, early, len(early), ctypes.byref(written)) == 1
    again.shake_hands()
    assert ssl.SSL_get_early_data_status(again.tls) == REJECTED, "early data was accepted"
    assert ssl.SSL_session_reused(again.tls) == 1, "the session was not resumed"
    said = again.get(b"late")
    assert said.count(b"HTTP/1.1 200 OK") == 1 and said.endswith(b"ds1 /ds1/late\n"), said
print("early data is passed over")
