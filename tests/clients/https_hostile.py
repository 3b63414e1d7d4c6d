"""What hostile clients may send to the agents of labs/https.toml while a good one is served.

usage: https_hostile.py HOST PORT HEAD_TIMEOUT

Each connection must end by itself, in HEAD_TIMEOUT seconds and a little if its client waits for ever, and a regular
client must get all it asks for meanwhile.
"""

import os
import socket
import ssl
import sys
import threading
import time

import tls_raw as raw
from tls_client import Client
from tls_raw import alert, counted, exchange, hello, records

ADDRESS = sys.argv[1], int(sys.argv[2])
HEAD_TIMEOUT = float(sys.argv[3])
# A busy machine may be late by so many seconds.
LATE = 20
SUITES = raw.TLS12_SUITES + raw.TLS13_SUITES
GET = b"GET /whoami HTTP/1.1\r\nHost: ds1.example\r\n\r\n"
failures = []


def at_once(what, count):
    """Does `what(number)` for so many numbers, each in a thread of its own. All must succeed."""

    def one(number):
        try:
            what(number)
        except Exception as error:
            failures.append(f"{what.__name__} {number}: {error!r}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:5]


def ends(*pieces, shut=False):
    """What the server says until it ends the connection, which it must do in time."""
    return exchange(ADDRESS, *pieces, shut=shut, patience=HEAD_TIMEOUT + LATE, until_hello=False)


def cut():
    """A ClientHello that ends after any of its bytes, and whose client then waits, or ends its side."""
    whole = hello(SUITES, tls13=True)

    def wait(number):
        assert not raw.server_hello(ends(whole[: number + 1]))

    def end(number):
        assert not raw.server_hello(ends(whole[: number + 1], shut=True))

    at_once(wait, len(whole) - 1)
    at_once(end, len(whole) - 1)
    assert raw.server_hello(exchange(ADDRESS, whole))


def lies():
    """A ClientHello of which a byte, be it of a length or of something else, is another one. The client then ends."""
    whole = hello(SUITES, tls13=True)
    values = [(at, value) for at in range(len(whole)) for value in {0, 255, whole[at] ^ 1} - {whole[at]}]

    def lie(number):
        for at, value in values[number::64]:
            changed = bytearray(whole)
            changed[at] = value
            said = ends(bytes(changed), shut=True)
            assert said == b"" or records(said)[0][0] in (raw.ALERT, raw.HANDSHAKE), (at, value, said)

    at_once(lie, 64)


def long():
    """ClientHellos of up to 60 KB are read. Longer ones are refused, as is what says that it will be longer."""
    for length in (1000, 17000, 40000, 55000):
        assert raw.server_hello(exchange(ADDRESS, hello(SUITES, more={21: bytes(length)}))), length
    too_long = hello(SUITES, more={21: bytes(65000)})
    for pieces in ([too_long], [too_long[at : at + 1000] for at in range(0, len(too_long), 1000)]):
        said = ends(*pieces)
        assert not raw.server_hello(said) and (said == b"" or alert(said) is not None), said
    for length in (1 << 17, (1 << 24) - 1):
        said = ends(raw.in_records(b"\1" + raw.number(length, 3) + b"\3\3" + bytes(60)))
        assert not raw.server_hello(said), said


def dribbled():
    """A byte a second never ends in time. A byte a millisecond does."""
    whole = hello(SUITES, tls13=True)

    def slowly(number):
        with socket.create_connection(ADDRESS, timeout=LATE) as connection:
            begun = time.monotonic()
            try:
                for byte in whole:
                    connection.sendall(bytes([byte]))
                    connection.settimeout(1)
                    try:
                        if not (said := connection.recv(1000)):
                            break
                        assert not raw.server_hello(said)
                    except TimeoutError:
                        pass
            except ConnectionError:
                pass
            assert time.monotonic() - begun < HEAD_TIMEOUT + LATE

    at_once(slowly, 100)
    with socket.create_connection(ADDRESS, timeout=LATE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in whole:
            connection.sendall(bytes([byte]))
            time.sleep(0.001)
        assert raw.server_hello(connection.recv(1 << 16))


def odd_records():
    """What may not come before, amid, or right behind a ClientHello."""
    whole = hello(SUITES)
    half = len(whole) // 2
    first = bytes([raw.HANDSHAKE, 3, 1]) + counted(whole[5:half])
    rest = bytes([raw.HANDSHAKE, 3, 1]) + counted(whole[half:])
    assert raw.server_hello(exchange(ADDRESS, first, rest))
    empty = bytes([raw.HANDSHAKE, 3, 1, 0, 0])
    heartbeat = bytes([24, 3, 3]) + counted(b"\1" + counted(b"x" * 16) + bytes(16))
    overread = bytes([24, 3, 3]) + counted(b"\1\x40\0")
    change = bytes([20, 3, 3, 0, 1, 1])
    data = bytes([raw.DATA, 3, 3]) + counted(bytes(100))
    oversized = bytes([raw.HANDSHAKE, 3, 3]) + counted(b"\1" + bytes(18500))
    fatal, warning = bytes([21, 3, 3, 0, 2, 2, 40]), bytes([21, 3, 3, 0, 2, 1, 90])
    odd = [
        [empty, whole], [empty] * 100, [first, empty, rest], [heartbeat], [overread, whole], [first, heartbeat, rest],
        [whole, heartbeat], [whole, overread], [change, whole], [whole, change], [first, change, rest], [data, whole],
        [whole, data], [first, data, rest], [oversized], [fatal, whole], [warning] * 100, [first, fatal], [rest, first],
        [whole, whole], [first, first], [b"\x16\x03\x01\xff\xff" + bytes(70000)], [b"\0" * 5], [os.urandom(500)],
    ]

    def send(number):
        said = ends(*odd[number], shut=True)
        # After ServerHello come change_cipher_spec and encrypted records. Only a heartbeat is never answered.
        assert all(kind in (20, raw.ALERT, raw.HANDSHAKE, raw.DATA) for kind, _ in records(said)), said

    at_once(send, len(odd))
    for pieces in ([whole, heartbeat], [whole, overread], [whole, change + data], [whole, whole], [whole, data]):
        said = ends(*pieces)
        assert alert(said) is not None, (pieces[1][:10], said)
    for pieces in ([heartbeat], [oversized]):
        assert alert(ends(*pieces)) == raw.DECODE_ERROR, pieces[0][:10]


def connect(version):
    client = Client(ADDRESS, "ds1.example", version=version)
    client.socket.settimeout(HEAD_TIMEOUT + LATE)
    client.shake_hands()
    assert client.get("/whoami") == ("ds1", b"ds1\n")
    return client


def record(client, text=GET):
    client.tls.write(text)
    return client.outgoing.read()


def broken(client, *pieces):
    """The reason of the alert that ends the session, as OpenSSL calls it, or RESET, and no answer before."""
    try:
        for piece in pieces:
            client.socket.sendall(piece)
        said = client.until(lambda: client.tls.read(1 << 16))
    except ssl.SSLError as error:
        return error.reason
    except ConnectionResetError:
        return "RESET"
    raise AssertionError(said)


def bad_records():
    """Records of a session that are changed, repeated, left out, exchanged, empty, too long, or of no kind."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for at in (5, 20, -16, -1):
            client = connect(version)
            changed = bytearray(record(client))
            changed[at] ^= 1
            assert broken(client, bytes(changed)).endswith("BAD_RECORD_MAC"), at
        client = connect(version)
        first, second = record(client), record(client)
        assert broken(client, second, first).endswith("BAD_RECORD_MAC")
        client = connect(version)
        first = record(client)
        client.socket.sendall(first)
        assert client.response() == ("ds1", b"ds1\n")
        assert broken(client, first).endswith("BAD_RECORD_MAC")
        # A RST may overtake the alert if the agent has not read all of a record.
        for kind, length, reason in (
            (23, 0, ("BAD_RECORD_MAC", "DECODE_ERROR", "UNEXPECTED_MESSAGE")),
            (23, 10, ("BAD_RECORD_MAC", "DECODE_ERROR")),
            (23, 16384 + 2049, ("RECORD_OVERFLOW", "RESET")),
            (23, 65535, ("RECORD_OVERFLOW", "RESET")),
            (24, 40, ("UNEXPECTED_MESSAGE",)),
            (20, 1, ("UNEXPECTED_MESSAGE",)),
            (99, 40, ("UNEXPECTED_MESSAGE",)),
        ):
            client = connect(version)
            said = broken(client, bytes([kind, 3, 3]) + counted(bytes(length)))
            assert said.endswith(reason), (version, kind, length, said)


class Good(threading.Thread):
    """A regular client, which is served all the time: kept connections, and new ones."""

    def __init__(self):
        super().__init__()
        self.stops, self.answers = False, 0

    def run(self):
        try:
            while not self.stops:
                client = Client(ADDRESS, "other.example")
                client.socket.settimeout(60)
                client.shake_hands()
                for turn in range(30):
                    server = f"ds{turn % 3 + 1}"
                    assert client.get(f"/{server}/a") == (server, f"{server} /{server}/a\n".encode())
                    self.answers += 1
                client.socket.close()
        except Exception as error:
            failures.append(f"the good client: {error!r}")


good = Good()
good.start()
begun = time.monotonic()
try:
    for part in (cut, lies, long, dribbled, odd_records, bad_records):
        before = good.answers
        part()
        assert not failures, failures
        print(f"{part.__name__}: {time.monotonic() - begun:.1f} s, the good client had {good.answers - before} answers", flush=True)
        assert good.answers > before
finally:
    good.stops = True
    good.join()
assert not failures, failures
