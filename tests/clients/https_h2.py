"""HTTP/2 clients of labs/https.toml: curl, and frames by hand.

usage: https_h2.py HOST PORT TIMES
"""

import hashlib
import re
import ssl
import struct
import subprocess
import sys
import tempfile

from http2_frames import DATA, GOAWAY, RESET, Frames, frame, literal, request

HOST, PORT = sys.argv[1], int(sys.argv[2])
TIMES = int(sys.argv[3])
NAMES = {"ds1.example": "ds1", "ds2.example": "ds2", "a.ds3.example": "ds3"}
PAGES = {"4k": "609f24ecd546a75b", "64k": "61232a41c8f3858a", "1m": "bc9d1d01517351f3", "64m": "06c76628fe78ebe6"}


def curl(name, *args, status=0, text=None):
    """What curl says of URLs below https://NAME/."""
    words = ["curl", "-sSk", "--http2", "--resolve", f"{name}:{PORT}:{HOST}", *args]
    done = subprocess.run(words, input=text, capture_output=True)
    assert done.returncode == status, (str(words)[:1000], done.returncode, done.stderr)
    return done.stdout


def pages():
    for name, server in NAMES.items():
        for page, digest in PAGES.items():
            said = curl(name, "-w", "%{stderr}%{http_version}", f"https://{name}/{page}")
            assert hashlib.sha256(said).hexdigest().startswith(digest), (name, page)
        said = curl(name, f"https://{name}/whoami", "-D", "-").decode()
        assert said.startswith("HTTP/2 200") and f"x-served-by: {server}\r\n" in said and said.endswith(f"{server}\n"), said
        assert "connection:" not in said and "keep-alive:" not in said, said


def parallel():
    """Very many streams of one connection, of which each gets its own page."""
    for name, server in NAMES.items():
        with tempfile.TemporaryDirectory() as directory:
            count = 100 * TIMES
            said = curl(
                name, "--parallel", "--parallel-max", "100", "--create-dirs", "-o", f"{directory}/#1",
                "-w", "%{num_connects} %{http_version} %{http_code}\n", f"https://{name}/{server}/[1-{count}]",
            ).decode().split("\n")[:-1]
            assert all(line.endswith(" 2 200") for line in said) and len(said) == count, said
            assert sum(int(line.split()[0]) for line in said) <= 2, said
            for number in range(1, count + 1):
                with open(f"{directory}/{number}") as file:
                    assert file.read() == f"{server} /{server}/{number}\n", number


def uploads():
    body = bytes(range(256)) * 16000
    upload = "https://ds1.example/upload"
    for how in (["--data-binary", "@-", upload, upload], ["-T", "-", upload]):
        said = curl("ds1.example", *how, text=body).decode()
        # nginx names the length of a body that came in chunks as well.
        assert set(said.split()) == {str(len(body))}, said
    # The server answers this before it has read the body. Larger ones hang curl 7.88: it no longer reads then.
    assert curl("ds1.example", "--data-binary", "@-", "https://ds1.example/whoami", text=body[:300000]) == b"ds1\n"
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        each = ["-T", file.name, "https://ds2.example/upload"]
        said = curl("ds2.example", "--parallel", *each, *(["--next", "-sSk", *each] * 9)).decode()
        assert said.split() == [str(len(body))] * 10, said


def kinds():
    """Responses without bodies, errors, and what the agent answers itself."""
    url = "https://ds1.example/"
    said = curl("ds1.example", "-I", url + "1m").decode()
    assert said.startswith("HTTP/2 200") and "content-length: 1048576\r\n" in said, said
    head = ["-o", "/dev/null", "-w", "%{http_code} %{size_download}"]
    assert curl("ds1.example", *head, url + "empty") == b"200 0"
    assert curl("ds1.example", *head, url + "none").startswith(b"404 ")
    said = curl("ds1.example", "-r", "5-9", "-w", " %{http_code}", url + "4k")
    assert len(said) == 5 + 4 and said.endswith(b" 206"), said
    etag = re.search(r"etag: (.*)\r", curl("ds1.example", "-I", url + "4k").decode())[1]
    assert curl("ds1.example", *head, "-H", f"If-None-Match: {etag}", url + "4k") == b"304 0"
    assert curl("ds1.example", *head, "-H", "Cookie: " + "a" * 61000, url).startswith(b"431 ")
    # A length that is not the body's resets the stream.
    curl("ds1.example", *head, "-H", "Content-Length: 5", url, status=92)


def by_hand():
    # The preface in pieces, and a request.
    client = Frames((HOST, PORT))
    for byte in request(1):
        client.say(bytes([byte]))
    assert any(kind == DATA and content == b"ds1\n" for kind, _, content in client.frames() if kind == DATA)
    # A connection-specific field is an error of its stream only.
    client = Frames((HOST, PORT))
    client.say(request(1, ("connection", "close")) + request(3))
    seen = {}
    for kind, stream, content in client.frames():
        seen[kind, stream] = content
        if (RESET, 1) in seen and (DATA, 3) in seen:
            break
    else:
        raise AssertionError(seen)
    # What is no HTTP/2 ends the connection, in order.
    client = Frames((HOST, PORT))
    client.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert GOAWAY in [kind for kind, _, _ in client.frames()]


def resets():
    """A client that resets each stream at once is let go, or served: it harms nobody else (CVE-2023-44487)."""
    client = Frames((HOST, PORT))
    try:
        for number in range(5000):
            stream = 2 * number + 1
            client.say(request(stream) + frame(RESET, 0, stream, struct.pack(">I", 8)))
    except (ssl.SSLError, OSError):
        pass
    assert curl("ds1.example", "https://ds1.example/whoami") == b"ds1\n"


def continuations():
    """A head without an end (CVE-2024-27316) ends its connection."""
    client = Frames((HOST, PORT))
    field = literal("x-filler", "a" * 120)
    client.say(request(1, flags=0))
    for _ in range(100):
        client.say(frame(9, 0, 1, field * 100))
    assert GOAWAY in [kind for kind, _, _ in client.frames()]
    assert curl("ds1.example", "https://ds1.example/whoami") == b"ds1\n"


for part in (pages, parallel, uploads, kinds, by_hand, resets, continuations):
    print(part.__name__, flush=True)
    part()
print("all as it should be")
