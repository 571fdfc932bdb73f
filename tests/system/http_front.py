"""What tests of the HTTP front share: its connections, and an origin that repeats requests."""

import hashlib
import http.server
import re
import socket
import struct
import time

import harness


class Response:
    def __init__(self, status, fields, body, whole):
        self.status = status
        self.fields = fields  # list of (name in lower case, value)
        self.body = body
        self.whole = whole  # it ended as its framing announced

    def field(self, name):
        return ", ".join(value for key, value in self.fields if key == name.lower()) or None


class Connection:
    """A raw connection: what is sent is what the test says."""

    def __init__(self, address):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, 20)
        self.socket.settimeout(30)
        self.rest = b""

    def close(self):
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))

    def _more(self):
        data = self.socket.recv(65536)
        self.rest += data
        return bool(data)

    def _line(self):
        while b"\r\n" not in self.rest:
            if not self._more():
                return None
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def _bytes(self, count):
        while len(self.rest) < count and self._more():
            pass
        data, self.rest = self.rest[:count], self.rest[count:]
        return data

    def receive(self, head_only=False):
        """The next response; None at the end of the connection."""
        line = self._line()
        if line is None:
            return None
        status = int(line.split()[1])
        fields = []
        while line := self._line():
            name, value = line.decode("latin-1").split(":", 1)
            fields.append((name.lower(), value.strip()))
        response = Response(status, fields, b"", True)
        if head_only or status < 200 or status in (204, 304):
            return response
        if response.field("transfer-encoding") == "chunked":
            while True:
                line = self._line()
                size = int(line, 16) if line else -1
                data = self._bytes(size + 2) if line else b""
                response.whole = len(data) == size + 2 and data.endswith(b"\r\n")
                response.body += data[:-2]
                if not response.whole or size == 0:
                    return response
        length = response.field("content-length")
        if length is not None:
            response.body = self._bytes(int(length))
            response.whole = len(response.body) == int(length)
        else:
            while self._more():
                pass
            response.body, self.rest = self.rest, b""
        return response

    def get(self, url, *lines, version="1.1", method="GET"):
        host = "" if version == "1.0" else "Host: ignored.test\r\n"
        self.send(f"{method} {url} HTTP/{version}\r\n{host}" + "".join(f"{l}\r\n" for l in lines)
                  + "\r\n")
        return self.receive(head_only=method == "HEAD")

    def is_closed(self):
        try:
            return not self.rest and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class HttpTest(harness.SystemTest):
    options = ()

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.unix = str(self.dir / "http.sock")
        self.d = self.http_daemon(*self.options)
        self.c = self.connect()

    def http_daemon(self, *options, **more):
        d = self.daemon("--http", "127.0.0.1:0", "--http", f"unix:{self.unix}", *options,
                        origin=self.o, **more)
        self.address = harness.wait_until(lambda: http_address(d), what="the HTTP front")
        return d

    def connect(self, address=None):
        connection = Connection(address or self.address)
        self.addCleanup(connection.close)
        return connection


def http_address(daemon):
    match = re.search(r"serving HTTP on (127\.0\.0\.1):(\d+)", daemon.err)
    return match and (match[1], int(match[2]))


def stored(url):
    """A URL whose response may be stored: the origin states a lifetime."""
    return url + ("&" if "?" in url else "?") + "fault=header:Cache-Control%3a%20max-age%3d60"


def is_hit(response):
    return response.field("Cache-Status").startswith("sunproxy; hit")


PROXY_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def proxy_header(client, port=54321):
    """The header of the PROXY protocol, version 2, for a client over TCP and IPv4."""
    block = socket.inet_aton(client) + socket.inet_aton("10.0.0.1") + struct.pack(">HH", port, 80)
    return PROXY_SIGNATURE + b"\x21\x11" + struct.pack(">H", len(block)) + block


class EchoOrigin(harness.PythonOrigin):
    """An origin in Python: it reports the requests that it got, and their bodies' digests."""

    BLOCK = bytes(range(256)) * 4096

    def __init__(self, test):
        self.heads = []
        self.sent = 0
        self.slow = 0
        super().__init__(test, EchoHandler)


class EchoHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read_body(self):
        digest, size = hashlib.sha256(), 0
        for count in self.counts():
            while count:
                data = self.rfile.read(min(count, 65536))
                if not data:
                    raise ConnectionError
                digest.update(data)
                size += len(data)
                count -= len(data)
                time.sleep(self.server.slow)
        return f"{digest.hexdigest()} {size}"

    def counts(self):
        """The sizes of the body's parts; each is read before the next one."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield int(self.headers.get("Content-Length", 0))
            return
        while count := int(self.rfile.readline(), 16):
            yield count
            self.rfile.readline()
        self.rfile.readline()

    def do_POST(self):
        self.server.heads.append((self.command, self.path, dict(self.headers)))
        body = self.read_body().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST

    def do_GET(self):
        self.server.heads.append((self.command, self.path, dict(self.headers)))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", f"{self.server.url}/v2/target?x")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path.startswith("/large"):
            self.large(int(self.path.split("?")[1]))
            return
        body = f"{self.server.url}{self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        self.wfile.write(body)

    def large(self, blocks):
        self.send_response(200)
        self.send_header("Content-Length", str(blocks * len(self.server.BLOCK)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        try:
            for _ in range(blocks):
                self.wfile.write(self.server.BLOCK)
                self.server.sent += len(self.server.BLOCK)
        except OSError:
            self.close_connection = True
