"""A server that speaks first: it sends a greeting with the host's name, and then sends back every line.

usage: greeter.py PORT NAME
"""

import socketserver
import sys


class Greeter(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 " + sys.argv[2].encode() + b" greets\n")
        for line in self.rfile:
            self.wfile.write(line)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


Server(("", int(sys.argv[1])), Greeter).serve_forever()
