"""Makes random streams of bytes for a client to send: valid requests in odd spellings, and attempts at smuggling."""

import random
import re

METHODS = ["GET", "GET", "GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"]

# Header lines without effect here.
HARMLESS = [
    *["X-Empty:", "X-Empty: ", "X-Tabs:\tvalue\t", "x-case: VALUE  ", "X_Underscore: 1", "X-Colons: a:b: c", "X-Host: b"],
    *["Accept: */*", "Cookie: a=b; c=d", "Content-Type: text/plain", "TE: trailers", "If-None-Match: *", "Range: bytes=0-0"],
    *["X-Like: Content-Length: 7", "Content-Lengths: 9", "Transfer-Encodings: chunked", "Upgrade-Insecure-Requests: 1"],
    *["Connection: keep-alive", "Connection: Upgrade\r\nUpgrade: h2c", "User-Agent: \xe9\x80", 'X-Quoted: "a, \\"b"'],
]

# Values of Content-Length, with the body's length for each {}.
LENGTHS = [
    *["+{}", "-{}", " {}", "\t{}", "{} ", "{} ,{}", "{},{}", "{}, {}", "{} {}", "0x{}", "{}.0", "{}e0", "{};", "'{}'", "{}_0", ""],
    *["0{}", "00000000000000000000{}", "1{:020}", "18446744073709551621", "9223372036854775807", "4294967301"],
    *["\x0b{}", "{}\x00", "{}\r", "\xa0{}"],
]

# Transfer codings, and lines behind them.
CODINGS = [
    *["xchunked", "chunkedx", "identity", "gzip", "gzip, chunked", "chunked, identity", "identity, chunked", "chunked, chunked"],
    *["chunked,", ",chunked", "chunked;q=1", '"chunked"', "", "Chunked", "CHUNKED", "\tchunked", "chunked\t", " chunked "],
    *["\x0bchunked", "\x0cchunked", "chunked\x00", "chun\rked", "chunked\r", "\r\n chunked", "chunked\r\n "],
    *["chunked\r\nTransfer-Encoding: identity", "identity\r\nTransfer-Encoding: chunked"],
    *["chunked\r\nTransfer-Encoding: chunked", "chunked\r\nContent-Length: 3"],
]

# Spellings of a chunk's size, with its length for {}.
SIZES = [
    *["+{:x}", "-{:x}", " {:x}", "{:x} ", "\t{:x}", "{:x}\t", "0x{:x}", "{:x}g", "{:x},", "{:x}_0", "{:x}.0", "{:x} 0", ""],
    *["1{:08x}", "1{:016x}", "000000000000000000000000{:x}", "ffffffffffffffff", "8000000000000005"],
    *["{:x};", "{:x} ;a", '{:x};a="\r\n"', "{:x};a\nb", "{:x};a\rb", "{:x};\x00"],
    *["{:x}\r", "{:x}\x00", "{:x}\x0b", "\r\n{:x}"],
]
ENDS_OF_CHUNK = ["\n", "", "\r", "x\r\n", "\r\n\r\n", " \r\n", "\n\r", "\r\r\n"]
TRAILERS = ["X-Trailer: 1\r\n", "X-Empty:\r\n", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", "Host: b\r\n"]
ENDS_OF_TRAILERS = ["\n", " x\r\n\r\n", "\r\r\n", "a\r\n\r\n", "X: \x00\r\n\r\n", "X: a\nb\r\n\r\n"]

VERSIONS = [
    *["HTTP/1.0", "HTTP/1.2", "HTTP/1.10", "HTTP/1.01", "HTTP/01.1", "HTTP/2.0", "HTTP/0.9", "HTTP/1", "HTTP/4294967297.1", ""],
    *["http/1.1", "HTTP/1.1 ", "HTTP/1.1x", "HTTP/1.1\t", "HTTP/1.1 HTTP/1.1", "HTTP/1.1\r", "HTTP/ 1.1"],
]

# Header lines that servers read in different ways, or refuse.
LINES = [
    *[" folded: line", "\tfolded", "no colon", ": no name", "X Y: a", "X(): a", "X\x7f: a", "X: \x7f\x01", "X-\xe9: a", "\r"],
    *["Host : a", "Content-Length : 5", "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Content-Length\x0b: 5"],
    *["X-CR: a\rb", "X-CR: a\rContent-Length: 5", "X\rY: a", "X-CRCR: a\r", "Content-\rLength: 5", "X-NUL: a\x00b", "X\x00: a"],
    *["X-LF: a\nY: b", "X-LF: a\nContent-Length: 7", "X-LF: a\nTransfer-Encoding: chunked", "\x0bContent-Length: 5"],
    *["Content-Length: 5", "Content-Length: 0", "Content-Length:5\r\n 5", "Transfer-Encoding: chunked", "Host: b"],
    *["Content_Length: 5", "Transfer_Encoding: chunked", "Expect: other", "Expect: 100-continue"],
    *["Connection: close", "Connection: TE, close", "Connection: Content-Length", "Proxy-Connection: close", "Keep-Alive: 5"],
]

# Targets, with the stream's name for {}.
TARGETS = [
    *["*", "", "x", "?{}", "cluster:80", "//ds1/{}", "/ds1/{} x", "/ds1/{}#a", "/ds1/{}\xe9"],
    *["/ds1/{}\x00", "/ds1/\t{}", "/ds1/{}\x0b"],
]
ODD_METHODS = ["GET", "POST", "get", "G", "CONNECT", "TRACE", "PROPFINDS", "M-SEARCH", "GET\t", ""]


class Maker:
    """Makes a random stream for one of the servers "nginx", "apache" and "goserver"."""

    def __init__(self, seed, server, number):
        self.chance = random.Random(f"{seed} {server} {number}")
        self.is_nginx, self.is_go = server == "nginx", server == "goserver"
        # All targets hold the stream's name and, behind a letter, their own number.
        self.name, self.targets = f"{server[0]}{number:08}", 0

    def one(self, *choices):
        return self.chance.choice(choices)

    def happens(self, part):
        return self.chance.random() < part

    def label(self):
        self.targets += 1
        return f"{self.name}q{self.targets}"

    def target(self):
        return f"/{self.one('ds1', 'ds2')}/{self.label()}"

    def body(self):
        request = f"GET {self.target()} HTTP/1.1\r\nHost: in-body\r\n\r\n"
        like_requests = self.one(request, request, request, "\r\n" + request, "0\r\n\r\n" + request, request * 3)
        long = "b" * self.one(1, 2, 3, 1000, 1460, 5000, 40_000)
        return self.one("", "hello", like_requests, like_requests, long, "\r\n", "\r\n\r\n", "0\r\n\r\n", "\n")

    def size(self, length):
        return format(length, self.one("x", "x", "X", "04x", "012x")) + self.one("", "", "", ";a=b", ';a="b;c"', ";")

    def chunks(self, body, is_odd):
        """Returns the body in chunks. If `is_odd`, one is spelled so that servers may not understand it."""
        pieces = []
        while body:
            at = self.chance.randint(1, len(body))
            pieces, body = [*pieces, body[:at]], body[at:]
        wrong, text = self.chance.randint(0, len(pieces)) if is_odd else -1, ""
        for number, piece in enumerate([*pieces, ""]):
            size, end, line_end = self.size(len(piece)), "\r\n", "\r\n"
            if number == wrong and self.happens(0.7):
                size = self.one(*SIZES).format(len(piece))
            elif number == wrong:
                end, line_end = self.one(*ENDS_OF_CHUNK), self.one("\r\n", "\r\n", *ENDS_OF_CHUNK)
            text += size + line_end + (piece + end if piece else "")
        trailers = "".join(self.chance.sample(TRAILERS, self.one(0, 0, 0, 1, 2)))
        return text + trailers + (self.one(*ENDS_OF_TRAILERS) if is_odd and self.happens(0.3) else "\r\n")

    def framing(self, body, wrong):
        """Returns header lines that say how long the body is, and the body as it is sent."""
        length = f"Content-Length: {len(body)}"
        if wrong == "length":
            return ["Content-Length:" + self.one("", " ") + self.one(*LENGTHS).format(len(body), len(body))], body
        if wrong == "lengths":
            return [length, f"Content-Length: {self.one(len(body), 0, 5, len(body) + 1)}"], body
        if wrong in ("coding", "chunks", "both") or self.happens(0.5):
            lines = ["Transfer-Encoding: " + self.one("chunked", "chunked", "Chunked")]
            if wrong == "both":
                lines.append(f"Content-Length: {self.one(len(body), 0, 5, 3)}")
            elif wrong == "coding":
                lines = ["Transfer-Encoding:" + self.one("", " ") + self.one(*CODINGS)]
            return lines, self.chunks(body, wrong == "chunks")
        return [self.one(length, length, length.lower(), length.upper(), f"Content-Length:{len(body):05}")], body

    def request(self, is_odd):
        """Head and body. Of a request that is odd, something is spelled in a way that servers may read in different ways."""
        wrong = ""
        if is_odd:
            wrong = self.one("line", "line", "length", "lengths", "both", "coding", "chunks", "chunks", "version", "target", "end")
        method, target, version, body = self.one(*METHODS), self.target(), "HTTP/1.1", ""
        lines = self.chance.sample(HARMLESS, self.one(0, 0, 1, 2, 5))
        if self.happens(0.1):
            lines.append(self.one("X-Long: ", "Cookie: a=") + "l" * self.one(900, 1400, 3000, 7000, 9000, 16_000))
        if wrong not in ("", "version", "target", "end") or self.happens(0.5):
            # Other pages are answered by some before they have read the body: then it is chance what becomes of a wrong one.
            method = "POST" if is_odd else self.one("POST", "POST", "PUT", "PUT" if method == "HEAD" else method)
            target = f"/upload?{self.label()}" if method == "POST" else target
            framing, body = self.framing(self.body(), wrong)
            lines += framing
            # The others may close the connection then, if they have no use for the body or have not read it yet.
            if self.is_nginx and not is_odd and self.happens(0.1):
                lines.append("Expect: 100-continue")
        lines.append(self.one("Host: one", "Host: two", "Host: cluster", "host:one", "HOST:  Two:80", "hOST: cluster."))
        self.chance.shuffle(lines)
        if wrong == "line":
            lines.insert(self.chance.randint(0, len(lines)), self.one(*LINES))
        elif wrong == "version":
            version = self.one(*VERSIONS)
        elif wrong == "target":
            target, method = self.one(*TARGETS).format(self.label()), self.one(method, *ODD_METHODS)
        if target.startswith("/") and self.happens(0.1):
            target = self.one("http://cluster", "HTTP://cluster:80", "http://other") + target
        head = "\r\n".join([f"{method} {target} {version}", *lines, "", ""])
        if wrong == "end":
            last = self.one("\n", "\r\r\n")
            head = self.one(head.replace("\r\n", "\n"), head.replace("\r\n", "\n", 1), head[:-2] + last, " " + head)
        # Go takes an empty line for a request, unless a POST is before it.
        if not self.is_go and self.happens(0.1):
            head = "\r\n" + head
        return head.encode("latin-1"), body.encode("latin-1")

    def cut(self, text):
        """At places where something begins or ends, and anywhere, with pauses."""
        edges = [at for found in re.finditer(rb"\r\n\r\n|\n", text) for at in found.span()]
        cuts = set()
        for _ in range(self.one(0, 0, 0, 1, 1, 2, 3, 10)):
            near = bool(edges) and self.happens(0.6)
            cuts.add(self.one(*edges) + self.chance.randint(-3, 3) if near else self.chance.randrange(len(text)))
        cuts = sorted(cut for cut in cuts if 0 < cut < len(text))
        pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)])]
        return [step for piece in pieces for step in (self.one(0.001, 0.001, 0.002, 0.01), piece)]

    def stream(self):
        """A list of bytes that are sent, pauses in seconds before them, and numbers of answers that are waited for."""
        count, is_kept = self.one(1, 2, 3, 4), self.happens(0.4)
        odd = self.chance.randrange(count) if self.happens(0.6) else -1
        steps, text = [], b""
        for number in range(count):
            head, body = self.request(number == odd)
            if b"100-continue" in head and self.happens(0.5):
                steps += [*self.cut(text + head), 0.05]
                text, head = b"", b""
            text += head + body
            if is_kept and text and self.happens(0.8):
                steps += [*self.cut(text), number + 1]
                text = b""
        last = [f"GET {self.target()} HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n\r\n" for _ in range(7)]
        # Whatever a server waits for behind what is odd comes at last.
        last = last if odd >= 0 else last[:1]
        last.insert(4, "\r\n0\r\n\r\n" if odd >= 0 else "")
        return steps + self.cut(text + "".join(last).encode())
