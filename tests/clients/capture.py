"""Captures the packets at a client's interface with tcpdump into a file. Scripts of this folder import it."""

import subprocess
import time


class Capture:
    """Captures the packets of an address and port at the client's interface while this context is entered.

    `lost` is the number of packets that were not written.
    """

    def __init__(self, address, path):
        self.address, self.path, self.lost = address, path, 0

    def __enter__(self):
        host, port = self.address
        which = f"tcp and host {host} and port {port}"
        words = ["tcpdump", "-i", "eth0", "-n", "-s", "110", "-B", "65536", "-w", self.path, which]
        self.dump = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert "listening" in self.dump.stderr.readline()
        return self

    def __exit__(self, *_):
        # tcpdump writes the last packets soon after it has seen them.
        time.sleep(1)
        self.dump.terminate()
        said = self.dump.communicate(timeout=30)[1]
        self.lost = int(next(line.split()[0] for line in said.splitlines() if "dropped by kernel" in line))
