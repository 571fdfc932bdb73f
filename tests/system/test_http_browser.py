"""Chromium as a client of the HTTP front, forward, reverse and through a tunnel, with an origin on
loopback."""

import base64
import json
import struct
import zlib

import browser
from http_clients import ForwardTest, ReverseTest, TunnelTest, noise


def png(width, height, colour):
    """A picture of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def wave(seconds):
    """Sound of 176,400 bytes a second, with a header that allows to seek."""
    data = noise("wave", 176400) * seconds
    return (b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
            + struct.pack("<IHHIIHH", 16, 1, 2, 44100, 176400, 4, 16)
            + b"data" + struct.pack("<I", len(data)) + data)


FETCH = """(async () => {
    const response = await fetch(%r, %s);
    const bytes = new Uint8Array(await response.arrayBuffer());
    let text = "";
    for (let i = 0; i < bytes.length; i += 4096)
        text += String.fromCharCode(...bytes.subarray(i, i + 4096));
    return [response.status, response.headers.get("Content-Range"), btoa(text)];
})()"""

SEEK = """(async () => {
    const media = document.createElement("video");
    const is = (name) => new Promise((done, failed) => {
        media.addEventListener(name, done, { once: true });
        media.addEventListener("error", () => failed(new Error(media.error.message)), { once: true });
    });
    media.preload = "auto";
    media.src = %r;
    await is("loadedmetadata");
    const at = [];
    for (const second of %s) {
        media.currentTime = second;
        await is("seeked");
        at.push(media.currentTime);
    }
    return [media.duration, at];
})()"""


class Chromium:
    program = browser.PROGRAM or "chromium"
    seconds = 8

    def setUp(self):
        super().setUp()
        proxy = [f"--proxy-server=http://{self.address}"] if self.forward else []
        self.browser = browser.Browser("--disable-features=HttpsUpgrades,OptimizationHints", *proxy)
        self.addCleanup(self.browser.close)

    def fetch(self, path, **fields):
        status, content_range, text = self.browser.run(
            FETCH % (self.base + path, json.dumps({"headers": fields})))
        return status, content_range, base64.b64decode(text)

    def test_a_page_with_resources(self):
        pictures = {f"/p{n}.png": self.file(f"p{n}.png", png(10 + n, 20, (n, 255 - n, 99)))
                    for n in range(12)}
        self.file("style.css", b"body { background: rgb(1, 2, 3) }")
        self.file("script.js", b"document.title = 'it ran'")
        page = ('<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="icon" href="data:,">'
                '<link rel="stylesheet" href="style.css"></head><body>'
                + "".join(f'<img src="{name}">' for name in pictures)
                + '<script src="script.js"></script></body></html>')
        self.file("index.html", page.encode())
        for _ in range(2):
            self.browser.open(f"{self.base}/")
            self.assertEqual(self.browser.run("document.title"), "it ran")
            self.assertEqual(
                self.browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(1, 2, 3)")
            self.assertEqual(
                self.browser.run("[...document.images].map((i) => [i.naturalWidth, i.naturalHeight])"),
                [[10 + n, 20] for n in range(12)])
            self.assertEqual(self.browser.complaints(), [])
            for name, body in pictures.items():
                self.assertEqual(self.fetch(name)[2], body)
            self.browser.ask("Network.clearBrowserCache")
        # The second time everything came from the proxy.
        for path in ("/", "/style.css", "/script.js", *pictures):
            self.assertEqual(len(self.o.requests(path)), 1, path)
        self.assertGreaterEqual(self.hits(), 15)

    def test_ranges(self):
        body = self.file("large.bin", noise("large", 8 << 20))
        self.file("index.html", b"<!DOCTYPE html><html></html>")
        self.browser.open(f"{self.base}/")
        for begin, end in ((0, 99999), (7 << 20, (7 << 20) + 49999), (123456, 234567)):
            status, content_range, part = self.fetch("/large.bin", Range=f"bytes={begin}-{end}")
            self.assertEqual((status, content_range), (206, f"bytes {begin}-{end}/{len(body)}"))
            self.assertEqual(part, body[begin:end + 1])

    def test_a_seek(self):
        body = self.file("long.wav", wave(120))  # 20 MiB
        self.file("index.html", b"<!DOCTYPE html><html></html>")
        self.browser.open(f"{self.base}/")
        duration, at = self.browser.run(SEEK % (self.base + "/long.wav", [100, 10, 110.5]))
        self.assertEqual((round(duration), at), (120, [100, 10, 110.5]))
        out = self.run_client("curl", "-fsS", f"{self.base}/long.wav")
        self.assertEqual(out, body)


class ChromiumForwardTest(Chromium, ForwardTest):
    pass


class ChromiumReverseTest(Chromium, ReverseTest):
    pass


class ChromiumTunnelTest(TunnelTest):
    program = browser.PROGRAM or "chromium"

    def test_a_page_with_resources(self):
        self.file("script.js", b"document.title = 'it ran'")
        self.file("index.html", b'<!DOCTYPE html><html><script src="script.js"></script></html>')
        chromium = browser.Browser(f"--proxy-server=http://{self.address}",
                                   "--ignore-certificate-errors")
        self.addCleanup(chromium.close)
        chromium.open(f"{self.base}/")
        self.assertEqual(chromium.run("document.title"), "it ran")
        self.assertGreater(self.stat(self.d)["tunnels_opened"], 0)
