"""Tunnels through the real daemon: CONNECT of the forward proxy, WebSocket of the reverse proxy."""

import base64
import hashlib
import json
import random
import shutil
import socket
import struct
import threading

import harness
import rpc
from http_front import HttpTest

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Server:
    """A TCP server on loopback: `serve` runs in a thread with each connection."""

    def __init__(self, test, serve):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.serve = serve
        self.errors = []
        threading.Thread(target=self.accept, daemon=True).start()
        test.addCleanup(self.listener.close)
        test.addCleanup(lambda: test.assertEqual(self.errors, []))

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(60)
            threading.Thread(target=self.run, args=(connection,), daemon=True).start()

    def run(self, connection):
        try:
            with connection:
                self.serve(connection)
        except (ConnectionError, EOFError):
            pass
        except Exception as error:  # shown at the test's end
            self.errors.append(error)


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)


def digest_until_end(connection):
    digest = hashlib.sha256()
    while data := connection.recv(65536):
        digest.update(data)
    connection.sendall(digest.digest())


def read_to_end(connection):
    data = bytearray()
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return bytes(data)


def read(connection, count):
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError(f"{len(data)} of {count} bytes")
        data += piece
    return bytes(data)


class TunnelTest(HttpTest):
    options = ("--connect-port", "any", "--connect-port", "443")

    def ask(self, target, after=b"", connection=None):
        """Sends CONNECT and bytes behind it."""
        c = connection or self.connect()
        c.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + after)
        return c

    def tunnel(self, port, after=b""):
        """The socket of a tunnel to a port of loopback."""
        c = self.ask(f"127.0.0.1:{port}", after).socket
        self.assertEqual(read(c, len(ESTABLISHED)), ESTABLISHED)
        return c

    def refused(self, target, status):
        c = self.ask(target, b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        response = c.receive()
        self.assertEqual(response.status, status, response.body)
        self.assertTrue(c.is_closed())
        return response

    def metric(self, name):
        with rpc.Connection(self.d.socket) as c:
            return c.stat().metrics[name]

    def await_no_tunnels(self):
        harness.wait_until(lambda: self.metric("tunnels") == 0, what="the end of the tunnels")


class ConnectTest(TunnelTest):
    def test_curl_over_tls(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        proxy = "http://%s:%d" % self.address
        for url in ("https://a.test/page", "https://b.test/other"):
            result = self.run_program(["curl", "-sS", "-x", proxy, "--cacert", self.o.cacert, url])
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.assertGreater(len(result.stdout), 0)
            self.assertEqual(result.stdout, harness.origin_text(url, len(result.stdout)))
        result = self.run_program(["curl", "-sS", "--proxytunnel", "-x", proxy,
                                   "http://a.test/plain"])
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual([row[:3] for row in self.o.requests()],
                         [("https", "a.test", "/page"), ("https", "b.test", "/other"),
                          ("http", "a.test", "/plain")])
        self.await_no_tunnels()
        self.assertEqual(self.metric("tunnels_opened"), 3)

    def test_bytes_behind_the_head_and_a_half_that_ends(self):
        server = Server(self, digest_until_end)
        text = random.Random(1).randbytes(50000)
        c = self.tunnel(server.port, text[:20000])
        c.sendall(text[20000:])
        c.shutdown(socket.SHUT_WR)
        self.assertEqual(read_to_end(c), hashlib.sha256(text).digest())
        # All of it before the tunnel is made.
        c = self.ask(f"127.0.0.1:{server.port}", text)
        c.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(read_to_end(c.socket), ESTABLISHED + hashlib.sha256(text).digest())
        self.await_no_tunnels()
        self.assertEqual(self.metric('tunnel_bytes{direction="sent"}'), 100000)
        self.assertEqual(self.metric('tunnel_bytes{direction="received"}'), 64)

    def test_much_at_once_both_ways(self):
        server = Server(self, echo)
        text = random.Random(2).randbytes(1 << 20) * 16
        c = self.tunnel(server.port)
        writer = threading.Thread(target=c.sendall, args=(text,), daemon=True)
        writer.start()
        self.assertEqual(hashlib.sha256(read(c, len(text))).digest(), hashlib.sha256(text).digest())
        writer.join(60)
        c.close()
        self.await_no_tunnels()

    def test_refusals(self):
        self.refused("10.0.0.1:8443", 403)
        self.refused("[fe80::1]:8443", 403)
        self.refused("a.test:25", 403)  # --allow-port has not allowed it
        self.refused("a.test", 400)
        self.refused("a.test:0", 400)
        response = self.refused(f"127.0.0.1:{harness.free_port()}", 502)
        self.assertIn("connect-failed", response.field("Cache-Status"))
        c = self.connect()
        c.send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc")
        self.assertEqual(c.receive().status, 400)
        self.assertTrue(c.is_closed())
        self.assertEqual(self.o.requests(), [])

    def test_a_tunnel_behind_a_response(self):
        server = Server(self, echo)
        self.assertEqual(self.c.get("http://a.test/page").status, 200)
        self.ask(f"127.0.0.1:{server.port}", b"hello", self.c)
        self.assertEqual(read(self.c.socket, len(ESTABLISHED) + 5), ESTABLISHED + b"hello")

    def test_a_stop_cuts_tunnels(self):
        server = Server(self, echo)
        c = self.tunnel(server.port, b"hello")
        self.assertEqual(read(c, 5), b"hello")
        self.assertEqual(self.d.stop(20), 0)
        self.assertEqual(read_to_end(c), b"")
        self.assertNotIn("requests in flight", self.d.err)


class PortTest(TunnelTest):
    options = ()

    def test_only_port_443_by_default(self):
        response = self.refused("a.test:444", 403)
        self.assertIn(b"--connect-port", response.body)
        self.refused("a.test:80", 403)
        c = self.ask("a.test:443")
        self.assertEqual(read(c.socket, len(ESTABLISHED)), ESTABLISHED)

    def test_a_bad_port_in_the_options(self):
        for port in ("0", "65536", "https"):
            done = self.run_daemon("--check-config", "--connect-port", port)
            self.assertEqual(done.returncode, 78)
            self.assertIn(b"connect-port", done.stderr)


class LimitTest(TunnelTest):
    MOST = 150
    options = ("--connect-port", "any", "--max-tunnels", str(MOST), "--connect-timeout", "700ms",
               "--max-fetches-per-client", "0")

    def test_many_tunnels(self):
        server = Server(self, echo)
        # The connection of setUp() is accepted, too.
        self.assertEqual(self.c.get("http://a.test/").status, 200)
        before = self.d.descriptors()
        tunnels = [self.tunnel(server.port) for _ in range(self.MOST)]
        self.assertEqual(self.metric("tunnels"), self.MOST)
        self.refused(f"127.0.0.1:{server.port}", 503)
        texts = [random.Random(n).randbytes(3000) for n in range(self.MOST)]
        for c, text in zip(tunnels, texts):
            c.sendall(text)
        for c, text in zip(tunnels, texts):
            self.assertEqual(read(c, len(text)), text)
        for c in tunnels:
            c.close()
        self.await_no_tunnels()
        self.assertEqual(self.metric("tunnels_opened"), self.MOST)
        harness.wait_until(lambda: self.d.descriptors() <= before, what="free descriptors")
        self.tunnel(server.port)

    def test_clients_that_leave_at_any_moment(self):
        source = random.Random(5)
        reset = struct.pack("ii", 1, 0)
        server = Server(self, echo)
        closed = harness.free_port()
        for n in range(300):
            port = closed if n % 7 == 0 else server.port
            c = self.ask(f"127.0.0.1:{port}", source.randbytes(source.randrange(3) * 1000))
            if source.random() < 0.5:
                c.socket.recv(source.choice((1, 39, 2000)))
            if source.random() < 0.3:
                c.socket.shutdown(socket.SHUT_WR)
            if source.random() < 0.5:
                c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            c.close()
        self.await_no_tunnels()
        harness.wait_until(lambda: self.metric('memory_bytes{kind="requests"}') == 0,
                           what="the memory of requests")
        text = source.randbytes(10000)
        self.assertEqual(read(self.tunnel(server.port, text), len(text)), text)

    def test_a_connection_that_is_not_accepted(self):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
            full = [socket.socket() for _ in range(4)]
            for s in full:  # one or two fill the queue
                s.setblocking(False)
                s.connect_ex(listener.getsockname())
            self.refused("127.0.0.1:%d" % listener.getsockname()[1], 504)
            for s in full:
                s.close()


class IdleTest(TunnelTest):
    options = ("--connect-port", "any", "--idle-timeout", "900ms")

    def test_an_idle_tunnel_ends(self):
        ends = []
        server = Server(self, lambda c: ends.append(read_to_end(c)))
        self.assertEqual(read_to_end(self.tunnel(server.port)), b"")
        harness.wait_until(lambda: ends == [b""], what="the end at the origin")


class LogTest(TunnelTest):
    def http_daemon(self, *options, **more):
        return super().http_daemon(*options, "--connect-port", "any", "--access-log",
                                   str(self.dir / "access.log"), **more)

    def test_lines(self):
        server = Server(self, echo)
        c = self.tunnel(server.port, b"hello")
        self.assertEqual(read(c, 5), b"hello")
        c.close()
        self.await_no_tunnels()
        self.refused("10.0.0.1:8443", 403)
        self.await_no_tunnels()
        self.assertEqual(self.d.stop(20), 0)
        rows = [line.split('"') for line in (self.dir / "access.log").read_text().splitlines()]
        self.assertEqual([row[1:3] for row in rows],
                         [[f"CONNECT 127.0.0.1:{server.port} HTTP/1.1", " 200 5 "],
                          ["CONNECT 10.0.0.1:8443 HTTP/1.1", " 403 0 "]])


class RefusedLogTest(TunnelTest):
    def http_daemon(self, *options, **more):
        return super().http_daemon(*options, "--connect-port", "any", "--max-tunnels", "1",
                                   "--access-log", str(self.dir / "access.log"), **more)

    def rows(self, count):
        log = self.dir / "access.log"
        return harness.wait_until(
            lambda: log.exists() and len(log.read_text().splitlines()) == count
            and [tuple(line.split('"')[1:3]) for line in log.read_text().splitlines()],
            what="the log")

    def test_a_tunnel_too_many(self):
        server = Server(self, echo)
        first = self.tunnel(server.port, b"hello")
        self.assertEqual(read(first, 5), b"hello")
        self.refused(f"127.0.0.1:{server.port}", 503)
        (line, rest), = self.rows(1)
        self.assertEqual(line, f"CONNECT 127.0.0.1:{server.port} HTTP/1.1")
        self.assertRegex(rest, r"^ 503 \d+ $")
        first.close()
        self.assertEqual(self.rows(2)[1][1], " 200 5 ")

    def test_a_client_that_leaves_is_499(self):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
            full = [socket.socket() for _ in range(4)]
            for s in full:  # one or two fill the queue
                s.setblocking(False)
                s.connect_ex(listener.getsockname())
            target = "127.0.0.1:%d" % listener.getsockname()[1]
            c = self.connect()
            c.send(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n")
            harness.wait_until(lambda: self.metric("tunnels") == 1, what="the tunnel")
            c.close()
            self.assertEqual(self.rows(1), [(f"CONNECT {target} HTTP/1.1", " 499 0 ")])
            for s in full:
                s.close()


# ---- WebSocket (RFC 6455) ------------------------------------------------------------------------

TEXT, CLOSE = 1, 8


def frame(opcode, data, mask=b""):
    """A whole message; those of clients are masked."""
    bit = 0x80 if mask else 0
    if len(data) < 126:
        head = struct.pack("!BB", 0x80 | opcode, bit | len(data))
    elif len(data) < 65536:
        head = struct.pack("!BBH", 0x80 | opcode, bit | 126, len(data))
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, bit | 127, len(data))
    return head + mask + masked(data, mask)


def masked(data, mask):
    if not mask:
        return data
    pad = (mask * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")


def read_frame(connection):
    first, second = read(connection, 2)
    length = second & 0x7F
    if length == 126:
        length, = struct.unpack("!H", read(connection, 2))
    elif length == 127:
        length, = struct.unpack("!Q", read(connection, 8))
    mask = read(connection, 4) if second & 0x80 else b""
    return first & 0x0F, masked(read(connection, length), mask)


def read_head(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += read(connection, 1)
    lines = head.decode("latin-1").split("\r\n")[:-2]
    return lines[0], {n.lower(): v.strip() for n, v in (l.split(":", 1) for l in lines[1:])}


def accept_of(key):
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


class WebSocketTest(TunnelTest):
    @property
    def options(self):
        return ("--access-log", str(self.dir / "access.log"))

    def http_daemon(self, *options, **more):
        self.heads = []
        self.server = Server(self, self.serve)
        return super().http_daemon(
            *options, "--origin", f"/ws=http://127.0.0.1:{self.server.port}/app", "--origin",
            "/=http://a.test", **more)

    def serve(self, connection):
        """An echo over WebSocket; without an upgrade, a short response."""
        line, fields = read_head(connection)
        self.heads.append((line, fields))
        if fields.get("upgrade", "").lower() != "websocket":
            # A write on a kept connection that is closed meanwhile would be 502.
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nplain")
            return
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                           b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
                           + accept_of(fields["sec-websocket-key"]).encode()
                           + b"\r\n\r\n" + frame(TEXT, b"welcome"))
        opcode = None
        while opcode != CLOSE:
            opcode, data = read_frame(connection)
            connection.sendall(frame(opcode, data))

    def handshake(self, path, upgrade="websocket", method="GET", more=""):
        key = base64.b64encode(random.Random(3).randbytes(16)).decode()
        c = self.connect()
        c.send(f"{method} {path} HTTP/1.1\r\nHost: front.test\r\nConnection: keep-alive, Upgrade\r\n"
               f"Upgrade: {upgrade}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
               f"{more}\r\n")
        return c, key

    def in_flight(self):
        members = json.loads(self.sunproxy("origin", "--json", daemon=self.d).stdout)
        return sum(m["in_flight"] for m in members if m["row"] == "/ws")

    def test_an_echo(self):
        c, key = self.handshake("/ws/chat?room=1")
        line, fields = read_head(c.socket)
        self.assertEqual(line, "HTTP/1.1 101 Switching Protocols")
        self.assertEqual(fields["sec-websocket-accept"], accept_of(key))
        self.assertEqual((fields["connection"], fields["upgrade"]), ("Upgrade", "websocket"))
        self.assertEqual(read_frame(c.socket), (TEXT, b"welcome"))
        source = random.Random(4)
        for size in (0, 1, 125, 126, 65535, 65536, 1000000):
            data = source.randbytes(size)
            c.socket.sendall(frame(TEXT, data, source.randbytes(4)))
            self.assertEqual(read_frame(c.socket), (TEXT, data), size)
        self.assertEqual(self.metric("tunnels"), 1)
        self.assertEqual(self.in_flight(), 1)
        c.socket.sendall(frame(CLOSE, b"\x03\xe8", b"mask"))
        self.assertEqual(read_frame(c.socket), (CLOSE, b"\x03\xe8"))
        self.assertEqual(read_to_end(c.socket), b"")
        line, fields = self.heads[0]
        self.assertEqual(line, "GET /app/chat?room=1 HTTP/1.1")
        self.assertEqual((fields["host"], fields["x-forwarded-host"]), ("front.test", "front.test"))
        self.await_no_tunnels()
        self.assertEqual(self.in_flight(), 0)
        self.assertEqual(self.d.stop(20), 0)
        line, = (self.dir / "access.log").read_text().splitlines()
        self.assertRegex(line, r'"GET /ws/chat\?room=1 HTTP/1.1" 101 1131[0-9]{3} ')

    def test_an_origin_that_does_not_switch(self):
        c, _ = self.handshake("/page")
        response = c.receive()
        self.assertEqual(response.status, 200)
        self.assertEqual(response.body, harness.origin_text("http://front.test/page",
                                                            len(response.body)))
        self.assertEqual(c.get("/other").status, 200)
        self.assertEqual(self.metric("tunnels_opened"), 0)

    def test_other_protocols_are_not_passed_on(self):
        for upgrade, method, more in (("h2c", "GET", "HTTP2-Settings: AAMAAABk\r\n"),
                                      ("tls/1.0", "GET", ""),
                                      ("websocket", "POST", "Content-Length: 0\r\n")):
            path = upgrade.replace("/", "-") + method  # a fetch that ends could be joined
            c, _ = self.handshake(f"/ws/{path}", upgrade, method, more)
            response = c.receive()
            self.assertEqual((response.status, response.body), (200, b"plain"))
            self.assertEqual(len(self.heads), 1, response.fields)
            line, fields = self.heads.pop()
            self.assertEqual(line, f"{method} /app/{path} HTTP/1.1")
            self.assertNotIn("upgrade", fields)
            self.assertNotIn("http2-settings", fields)

    def test_an_origin_that_is_down(self):
        self.server.listener.shutdown(socket.SHUT_RDWR)
        self.server.listener.close()
        c, _ = self.handshake("/ws/chat")
        self.assertEqual(c.receive().status, 502)

    def test_a_stop(self):
        c, _ = self.handshake("/ws/chat")
        read_head(c.socket)
        self.assertEqual(read_frame(c.socket), (TEXT, b"welcome"))
        self.assertEqual(self.d.stop(20), 0)
        self.assertEqual(read_to_end(c.socket), b"")
