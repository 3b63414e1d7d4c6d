"""What goes over a client's interface, as tcpdump writes it into a file. Scripts of this folder import it."""

import subprocess
import time


class Capture:
    """The packets of an address and port at the client's interface, while this is entered; `lost` of them were not written."""

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
        # The last packets are taken soon after they were seen.
        time.sleep(1)
        self.dump.terminate()
        said = self.dump.communicate(timeout=30)[1]
        self.lost = int(next(line.split()[0] for line in said.splitlines() if "dropped by kernel" in line))
