"""A server whose chunked responses pause in the middle of their body, for as long as the path says.

usage: pausing.py PORT NAME

GET /any/path/SECONDS is answered with three chunks: "NAME begins ", after the pause "NAME ends ", and the path.
"""

import socketserver
import sys
import time


class Pausing(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def chunk(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def handle(self):
        name = sys.argv[2].encode()
        while request := self.rfile.readline():
            while self.rfile.readline().strip():
                pass
            path = request.split()[1]
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            self.chunk(name + b" begins ")
            time.sleep(float(path.rsplit(b"/", 1)[1] or 0))
            self.chunk(name + b" ends ")
            self.chunk(path)
            self.wfile.write(b"0\r\n\r\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


Server(("", int(sys.argv[1])), Pausing).serve_forever()
