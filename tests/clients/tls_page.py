"""Writes a page that consists of many pictures and scripts from two hosts."""

import pathlib
import random
import struct
import zlib

EACH = 12  # pictures and scripts together, from each host
WIDTH = 100  # pixels of a picture
BEGIN = "<!doctype html><title>Two servers</title><script>let arrived = 0</script>\n"


def picture(noise, height, tint):
    """A PNG picture that cannot be compressed, in reds or blues."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colours = [256 if at == tint else 90 for at in range(3)] * WIDTH
    rows = b"".join(b"\0" + bytes(noise.randrange(most) for most in colours) for _ in range(height))
    header = struct.pack(">IIBBBBB", WIDTH, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def script(noise, length):
    """A script that counts itself once its last byte has come."""
    return b"/* %s */ arrived++;\n" % noise.randbytes(length // 2).hex().encode()


def write(folder, path, hosts):
    """Writes all files to the folder, which servers have under this path. Returns the files by their URLs.

    The page itself is `index.html` at the first host.
    """
    folder, noise = pathlib.Path(folder), random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    files, page = {}, BEGIN
    for number in range(EACH * len(hosts)):
        turn, host = divmod(number, len(hosts))
        is_picture = turn % 2 == 0
        name = f"{number}.png" if is_picture else f"{number}.js"
        content = picture(noise, 10 + 40 * turn, 2 * host) if is_picture else script(noise, 1000 << turn // 2)
        (folder / name).write_bytes(content)
        url = f"https://{hosts[host]}{path}/{name}"
        files[url] = content
        page += f'<img src="{url}">\n' if is_picture else f'<script src="{url}"></script>\n'
    (folder / "index.html").write_text(page)
    files[f"https://{hosts[0]}{path}/index.html"] = page.encode()
    return files
