"""What the agents of labs/https.toml agree upon with TLS clients, and what they refuse.

usage: https_matrix.py HOST PORT

www.example has an RSA certificate here, and ds1.example one of an elliptic curve.
"""

import subprocess
import sys
import time

import tls_raw as raw
from tls_raw import alert, exchange, hello, server_hello

ADDRESS = sys.argv[1], int(sys.argv[2])
TARGET = f"{sys.argv[1]}:{sys.argv[2]}"
# The suites by their numbers: what OpenSSL calls them, and the server whose certificate fits.
SUITES = {
    0xC02B: ("ECDHE-ECDSA-AES128-GCM-SHA256", "ds1.example"),
    0xC02C: ("ECDHE-ECDSA-AES256-GCM-SHA384", "ds1.example"),
    0xCCA9: ("ECDHE-ECDSA-CHACHA20-POLY1305", "ds1.example"),
    0xC02F: ("ECDHE-RSA-AES128-GCM-SHA256", "www.example"),
    0xC030: ("ECDHE-RSA-AES256-GCM-SHA384", "www.example"),
    0xCCA8: ("ECDHE-RSA-CHACHA20-POLY1305", "www.example"),
    0x1301: ("TLS_AES_128_GCM_SHA256", "www.example"),
    0x1302: ("TLS_AES_256_GCM_SHA384", "www.example"),
    0x1303: ("TLS_CHACHA20_POLY1305_SHA256", "www.example"),
}
# These numbers are signals, and no suites: of renegotiation (RFC 5746) and of a fallback (RFC 7507).
SIGNALS = {0x00FF, 0x5600}
REQUEST = b"GET /whoami HTTP/1.1\r\nHost: www.example\r\nConnection: close\r\n\r\n"
ALL = raw.TLS12_SUITES + raw.TLS13_SUITES


def answer_to(*arguments, **how):
    return exchange(ADDRESS, hello(*arguments, **how))


def chosen(*arguments, **how):
    said = answer_to(*arguments, **how)
    found = server_hello(said)
    assert found, (arguments, how, said)
    return found


def refused(wanted, *arguments, **how):
    said = answer_to(*arguments, **how)
    assert alert(said) == wanted and not server_hello(said), (arguments, how, said)


def openssl(*arguments, name="www.example", text=REQUEST):
    """What openssl s_client says of a connection on which it says this text."""
    command = ["openssl", "s_client", "-connect", TARGET, "-servername", name, "-ign_eof", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, timeout=60)
    return (done.stdout + done.stderr).decode(errors="replace")


def versions():
    for version in (0x0002, 0x0300, 0x0301, 0x0302):
        refused(raw.PROTOCOL_VERSION, ALL + [0x000A, 0x002F, 0x0035], version=version)
    # The extension counts, and what it does not know is passed over (RFC 8701).
    for listed in ([0x0302], [0x0301, 0x0300], [0x0A0A]):
        content = raw.counted(b"".join(map(raw.number, listed)), 1)
        refused(raw.PROTOCOL_VERSION, ALL, tls13=True, more={raw.VERSIONS: content})
    grease = raw.counted(raw.number(0x7A7A) + raw.number(0x0304), 1)
    assert chosen(ALL, tls13=True, more={raw.VERSIONS: grease}).version == 0x0304
    for version in (0x0303, 0x0304, 0x03FF):
        assert chosen(ALL, version=version).version == 0x0303
    for flag, name in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
        said = openssl(flag)
        assert f"New, {name}, Cipher is" in said and "HTTP/1.1 200 OK" in said, said
    # SSL 2.0 has other records.
    two = b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80" + bytes(34)
    assert alert(exchange(ADDRESS, two)) == raw.DECODE_ERROR


def suites():
    for number, (name, server) in SUITES.items():
        tls13 = number >> 8 == 0x13
        how = ["-tls1_3", "-ciphersuites", name] if tls13 else ["-tls1_2", "-cipher", name]
        said = openssl(*how, name=server)
        assert f"Cipher is {name}\n" in said and "HTTP/1.1 200 OK" in said, said
        assert "Compression: NONE" in said and "Expansion: NONE" in said, said
        if not tls13:
            assert "Secure Renegotiation IS supported" in said and "Extended master secret: yes" in said, said


def no_other_suite():
    """Every other number is refused: RSA key exchange, DHE, CBC, RC4, NULL, EXPORT, anonymous, PSK, and the unknown."""
    names = {"www.example", "ds1.example"}
    known = [*range(0x0000, 0x0100), *range(0xC000, 0xC100), *range(0xCC00, 0xCD00), *range(0x1300, 0x1310)]
    accepted = set()
    for number in known:
        for name in names:
            said = answer_to([number], tls13=number >> 8 == 0x13, more={raw.NAME: raw.wanted(name.encode())})
            if found := server_hello(said):
                assert found.suite == number, (number, found.suite)
                accepted.add(number)
            else:
                assert alert(said) == raw.HANDSHAKE_FAILURE, (hex(number), said)
    assert accepted == set(SUITES), [hex(number) for number in accepted ^ set(SUITES)]
    others = [number for number in range(1 << 16) if number not in SUITES]
    for tls13 in (False, True):
        for at in range(0, len(others), 8000):
            refused(raw.HANDSHAKE_FAILURE, others[at : at + 8000], tls13=tls13)
    # Of the key exchange by RSA alone, with which attacks like Bleichenbacher's begin, nothing is there to attack.
    assert all(name.startswith(("ECDHE-", "TLS_")) for name, _ in SUITES.values())


def signals():
    secure = {raw.RENEGOTIATION: b"\0", raw.MASTER_SECRET: b""}
    found = chosen(ALL, more=secure)
    assert found.extensions[raw.RENEGOTIATION] == b"\0" and found.extensions[raw.MASTER_SECRET] == b""
    assert chosen(ALL + [0x00FF]).extensions[raw.RENEGOTIATION] == b"\0"
    # rustls does not know TLS_FALLBACK_SCSV. A client of TLS 1.3 sees by the end of the random number that somebody has
    # kept it from TLS 1.3 (RFC 8446, section 4.1.3).
    assert chosen(ALL + [0x5600]).random.endswith(b"DOWNGRD\x01")
    assert not chosen(ALL, tls13=True).random.endswith(b"DOWNGRD\x01")
    refused(raw.HANDSHAKE_FAILURE, sorted(SIGNALS))


def compression():
    assert chosen(ALL, compression=b"\1\0").compression == 0
    assert chosen(ALL, compression=b"\x40\1\0").compression == 0
    refused(raw.ILLEGAL_PARAMETER, ALL, compression=b"\1")
    refused(raw.ILLEGAL_PARAMETER, ALL, tls13=True, compression=b"\1")


def renegotiation():
    """s_client begins another handshake when it reads a line with an R."""
    command = ["openssl", "s_client", "-connect", TARGET, "-servername", "www.example", "-tls1_2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as client:
        said = b""
        while b"Extended master secret" not in said:
            piece = client.stdout.read1()
            assert piece, said
            said += piece
        client.stdin.write(b"R\n")
        client.stdin.flush()
        said += client.stdout.read()
    assert b"RENEGOTIATING" in said and b"no renegotiation" in said, said


def protocols():
    def offer(*names):
        return {raw.PROTOCOLS: raw.counted(b"".join(raw.counted(name, 1) for name in names))}

    http1, http2 = (b"http/1.1",), (b"h2",)
    for names, agreed in (http1, http1), (http1 + http2, http2), ((b"x" * 255,) + http1, http1), (http2, http2):
        found = chosen(ALL, more=offer(*names))
        assert found.extensions.get(raw.PROTOCOLS) == offer(*agreed)[raw.PROTOCOLS], (names, found.extensions)
    assert raw.PROTOCOLS not in chosen(ALL, more={}).extensions
    for names in ((b"h2c",), (b"h3", b"acme-tls/1"), (b"http/1.0",), (b"HTTP/1.1",), (b"x" * 255,)):
        refused(raw.NO_APPLICATION_PROTOCOL, ALL, more=offer(*names))
    # With TLS 1.3 this alert is encrypted.
    assert "no application protocol" in openssl("-tls1_3", "-alpn", "h3")
    assert "ALPN protocol: h2" in openssl("-alpn", "h2,http/1.1")
    assert "No ALPN negotiated" in openssl()


def names():
    """Any name is served that a host could have, and so are clients that name none."""
    for name in (b"www.example", b"other.example", b"WWW.Example", b"a" * 63 + b".example", b"10.77.0.100", None):
        content = None if name is None else raw.wanted(name)
        assert chosen(ALL, more={raw.NAME: content}), name
    refused(raw.DECODE_ERROR, ALL, more={raw.NAME: raw.wanted(b"")})
    for name in (b"a" * 64 + b".example", b"a." * 127 + b"aa", b"a\0b", "ä.example".encode(), b"a." * 20000):
        refused(raw.ILLEGAL_PARAMETER, ALL, more={raw.NAME: raw.wanted(name)})


begun = time.monotonic()
for part in (versions, suites, no_other_suite, signals, compression, renegotiation, protocols, names):
    part()
    print(f"{part.__name__}: as it should be, {time.monotonic() - begun:.1f} s")
