"""A page that consists of many pictures and scripts from several servers."""

import base64
import pathlib
import random
import struct
import zlib

from devtools import body

WIDTH = 100  # pixels of a picture
BEGIN = "<!doctype html><title>Several servers</title><script>let arrived = 0</script>\n"
# In the page: how many pictures and how many scripts are whole.
WHOLE = """Promise.all([...document.images].map(picture => picture.decode()))
    .then(pictures => [pictures.length, arrived])"""


def picture(noise, height, tint):
    """A PNG picture that cannot be compressed, in reds, greens or blues."""

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


def write(folder, path, sites, each):
    """Writes all files to the folder, which servers have under this path. Returns the files by their URLs.

    A site is a host, and a folder (`""` or `"name/"`) inside of this one. So many files of each site make up the page,
    half of them pictures and half scripts. The page itself is `index.html` at the first host.
    """
    folder, noise = pathlib.Path(folder), random.Random(11)
    files, page = {}, BEGIN
    for number in range(each * len(sites)):
        turn, site = divmod(number, len(sites))
        host, place = sites[site]
        is_picture = turn % 2 == 0
        name = f"{place}{number}.png" if is_picture else f"{place}{number}.js"
        content = picture(noise, 10 + 40 * turn, 2 - site) if is_picture else script(noise, 1000 << turn // 2)
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        url = f"https://{host}{path}/{name}"
        files[url] = content
        page += f'<img src="{url}">\n' if is_picture else f'<script src="{url}"></script>\n'
    (folder / "index.html").write_text(page)
    files[f"https://{sites[0][0]}{path}/index.html"] = page.encode()
    return files


def opened(browser, files, protocol):
    """Opens the page in a browser. Returns URL, server and connection of each of its files, which are as written."""
    browser.open(next(url for url in files if url.endswith("/index.html")))
    assert not browser.named("Network.loadingFailed"), browser.named("Network.loadingFailed")
    came = {}
    for event in browser.named("Network.responseReceived"):
        answer = event["response"]
        url = answer["url"]
        if url not in files:
            continue
        by = next(value for name, value in answer["headers"].items() if name.lower() == "x-served-by")
        assert (answer["status"], answer["protocol"]) == (200, protocol), (url, answer)
        assert body(browser, event) == files[url], f"{url} is not as it was sent"
        came.setdefault(url, []).append((by, answer["connectionId"]))
    assert came.keys() == files.keys(), files.keys() - came.keys()
    return [(url, by, connection) for url, times in came.items() for by, connection in times]


def keep_picture(browser, file):
    """Writes a picture of what the browser shows to a file."""
    pathlib.Path(file).write_bytes(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
