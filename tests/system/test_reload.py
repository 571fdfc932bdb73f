"""SIGHUP reads the configuration again: all of it takes effect or none, and nothing else changes."""

import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import harness
import rpc
from http_front import Connection, http_address
from reload_case import ReloadCase


class ReloadTest(ReloadCase):
    seconds = 60

    def test_rows(self):
        self.start(self.row(0, "a.test"), self.row(0, "b.test"))
        for host in ("a.test", "b.test"):
            self.assertEqual(self.member("/1", host), "0")
            self.assertTrue(self.is_hit("/1", host))
        self.assertEqual(self.ask("/1", "c.test").status, 421)
        # A page of the first row is another origin's now, and the other row's pages stay.
        self.reload(self.row(1, "a.test"), self.row(0, "b.test"), self.row(1, "c.test"))
        self.assertEqual(self.member("/1", "a.test"), "1")
        self.assertTrue(self.is_hit("/1", "b.test"))
        self.assertEqual(self.member("/1", "c.test"), "1")
        self.reload(self.row(0, "b.test"))
        self.assertEqual(self.ask("/1", "a.test").status, 421)
        self.assertTrue(self.is_hit("/1", "b.test"))

    def test_members_of_a_row(self):
        self.start(self.row(0))
        self.assertEqual(self.member("/1"), "0")
        # The page can still come from there.
        self.reload(f"{self.row(1)},{self.members[0].url}")
        self.assertTrue(self.is_hit("/1"))
        self.assertEqual(self.member("/2"), "1")

    def test_the_state_of_members(self):
        self.start(self.row(0))
        self.members[0].silence = threading.Event()
        self.c.send("GET /1 HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: self.members[0].heads, what="the request")
        self.reload(self.row(0, "new.test"), self.row(0, "site.test"))

        def counts():
            members = json.loads(self.sunproxy("origin", "--json", daemon=self.d).stdout)
            return [(m["in_flight"], m["requests"]) for m in members]

        def metrics():
            found = json.loads(self.sunproxy("stat", "--json", daemon=self.d).stdout)
            return [found[f"origin_{name}"] for name in
                    ("in_flight", "in_flight_other", "requests", "requests_other")]

        self.assertEqual(counts(), [(1, 1), (1, 1)])
        self.assertEqual(metrics(), [1, 0, 1, 0])
        self.members[0].silence.set()
        self.assertEqual(self.c.receive().status, 200)
        self.assertEqual(counts(), [(0, 1), (0, 1)])
        # A member that is new has counters of its own, and what has been counted stays.
        self.reload(self.row(1))
        self.assertEqual(self.member("/2"), "1")
        self.assertEqual(metrics(), [0, 0, 2, 0])
        with rpc.Connection(self.d.socket) as c:
            found = c.stat()
        self.assertEqual([found.value(f'origin_requests{{origin="{member.url}"}}')
                          for member in self.members], [1, 1])

    def test_a_forward_proxy_becomes_a_reverse_proxy(self):
        self.start("allow-net = 127.0.0.0/8", "allow-port = any")
        url = f"{self.members[0].url}/1"
        self.assertEqual(self.ask(url).field("member"), "0")
        self.assertEqual(self.ask("/1").status, 400)
        self.reload("allow-net = 127.0.0.0/8", "allow-port = any", self.row(1))
        self.assertEqual(self.member("/1"), "1")

    def test_networks_and_ports(self):
        self.start("allow-net = 127.0.0.0/8", "allow-port = any")
        url = f"{self.members[0].url}/1"
        self.assertEqual(self.ask(url).status, 200)
        self.reload("allow-net = 127.0.0.0/8", "allow-port = any", "client-net = 10.0.0.0/8",
                    "purge-net = 127.0.0.0/8", "connect-port = 80")
        self.assertEqual(self.ask(url).status, 403)
        self.c.send(f"PURGE {url} HTTP/1.1\r\nHost: h\r\n\r\n")
        self.assertEqual(self.c.receive().status, 200)

    def test_lifetimes(self):
        for member in self.members:
            member.fields = []
        self.start(self.row(0), "heuristic-lifetime = 0", "max-age = 0")
        self.assertEqual(self.ask("/1").status, 200)
        self.members[0].fields = [("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")]
        self.ask("/2")
        self.assertFalse(self.is_hit("/2"))
        self.reload(self.row(0), "heuristic-lifetime = 10", "max-age = 0")
        self.ask("/3")
        self.assertTrue(self.is_hit("/3"))

    def test_what_options_allow_no_more(self):
        allowed = ("store-cookies = yes", "store-client-errors = yes")
        self.start(self.row(0), *allowed)
        member = self.members[0]
        for path, status, field in (("/cookie", 200, ("Set-Cookie", "session=one")), ("/error", 400, ("X", "y")),
                                    ("/else", 200, ("X", "y"))):
            member.status, member.fields = status, [("Cache-Control", "max-age=600"), field]
            self.ask(path)
            self.assertTrue(self.is_hit(path))
        member.status, member.fields = 200, [("Cache-Control", "max-age=600"), ("Set-Cookie", "session=two")]
        self.reload(self.row(0), allowed[1])
        self.assertEqual(self.ask("/cookie").field("set-cookie"), "session=two")
        self.assertFalse(self.is_hit("/cookie"))
        self.assertTrue(self.is_hit("/error"))
        self.reload(self.row(0), *allowed)
        self.assertFalse(self.is_hit("/cookie"))
        self.assertTrue(self.is_hit("/cookie"))
        self.reload(self.row(0))
        self.assertFalse(self.is_hit("/cookie"))
        self.assertFalse(self.is_hit("/error"))
        self.assertTrue(self.is_hit("/else"))

    def test_lifetimes_that_options_bound(self):
        self.start(self.row(0))
        member, kept = self.members[0], ("Cache-Control", "max-age=600")
        for path, status, field in (("/page", 200, kept), ("/moved", 301, kept), ("/error", 404, kept),
                                    ("/old", 200, ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"))):
            member.status, member.fields = status, [field]
            self.ask(path)
            self.assertTrue(self.is_hit(path))
        self.reload(self.row(0), "redirect-lifetime = 0", "max-age = 1h")
        self.assertFalse(self.is_hit("/moved"))
        self.reload(self.row(0), "error-lifetime = 0", "heuristic-lifetime = 0", "max-age = 1h")
        self.assertFalse(self.is_hit("/error"))
        self.assertFalse(self.is_hit("/old"))
        self.assertTrue(self.is_hit("/page"))
        self.reload(self.row(0), "max-age = 1ms")
        harness.wait_until(lambda: not self.is_hit("/page"), what="the bound")

    def test_limits(self):
        self.start(self.row(0), "max-connections = 9")
        self.assertEqual(self.member("/1"), "0")
        self.reload(self.row(0), "max-connections = 1")
        other = Connection(self.address)
        self.addCleanup(other.close)
        self.assertTrue(other.is_closed(), "it is one too many")
        self.reload(self.row(0), "max-connections = 9", "idle-timeout = 100ms")
        self.assertIsNone(self.c.receive(), "it was idle")
        self.reload(self.row(0), "max-connections = 9", "rate-fetches = 1:2", "idle-timeout = 5m",
                    "max-transit = 64M", "max-holds = 7", "max-tunnels = 9", "stop-timeout = 5s",
                    "max-requests = 9", "rate-calls = 1000", "rate-bytes = 9M", "max-queued-bytes = 4M")
        self.c = Connection(self.address)
        self.addCleanup(self.c.close)
        statuses = [self.ask(f"/rate-{n}").status for n in range(4)]
        self.assertEqual((statuses[0], statuses[-1]), (200, 503))
        self.assertEqual(self.stat(self.d)["memory_limit"], 64 << 20)
        self.reload(self.row(0), "max-connections = 9")
        self.assertEqual([self.ask(f"/rate-{n}").status for n in range(4)], [200] * 4)

    def test_times_and_bounds_of_fetches(self):
        self.start(self.row(0))
        self.members[0].silence = threading.Event()
        self.addCleanup(self.members[0].silence.set)
        other = Connection(self.address)
        self.addCleanup(other.close)
        other.send("GET /early HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: self.members[0].heads, what="the request")
        self.reload(self.row(0), "first-byte-timeout = 200ms", "max-fetches = 7",
                    "max-fetches-queued = 3", "resolve-timeout = 3s", "connect-timeout = 3s",
                    "stall-timeout = 9s", "fetch-timeout = 9s", "dns-ttl = 5s",
                    "max-idle-per-origin = 1")
        self.assertEqual(self.ask("/late").status, 504)
        # The fetch that had begun has the time that it began with.
        self.members[0].silence.set()
        self.assertEqual(other.receive().status, 200)

    def test_where_fetches_may_go(self):
        self.start("allow-port = any")
        url = f"{self.members[0].url}/"
        self.assertEqual(self.ask(f"{url}1").status, 403)
        self.reload("allow-port = any", "allow-net = 127.0.0.0/8")
        self.assertEqual(self.ask(f"{url}2").status, 200)
        port = self.members[1].server_address[1]
        self.reload("allow-port = any", f"connect-to = ::127.0.0.1:{port}")
        self.assertEqual(self.ask("http://else.test/3").field("member"), "1")
        self.reload("allow-port = any", f"upstream-proxy = {self.members[1].url}")
        self.assertEqual(self.ask("http://else.test/4").field("member"), "1")
        self.reload("allow-port = any")
        self.assertEqual(self.ask(f"{url}5").status, 403)

    def test_authorities(self):
        """The file is read by the process that the sandbox does not hold, by its name of then."""
        origins = [self.origin(name=f"origin{n}") for n in range(2)]
        authority = self.dir / "authority.pem"
        authority.write_bytes(origins[0].cacert.read_bytes())
        lines = (f"cacert = {authority}", "allow-net = 127.0.0.0/8",
                 f"connect-to = :443:127.0.0.1:{origins[1].https_port}")
        self.start(*lines)
        url = "https://secure.test/?size=100"
        self.c.send(f"GET {url} HTTP/1.1\r\nHost: secure.test\r\n\r\n")
        self.assertEqual(self.c.receive().status, 502)
        other = self.dir / "other.pem"
        other.write_bytes(origins[1].cacert.read_bytes())
        other.rename(authority)
        self.assertIn("changed: cacert", self.reload(*lines))
        self.assertIn("nothing has changed", self.hang_up())
        self.assertEqual(self.ask(url, "secure.test").status, 200)
        authority.write_text("junk")
        self.assertIn("contains no certificate", self.refused(*lines))
        self.assertEqual(self.ask(f"{url}1", "secure.test").status, 200)

    def test_peers(self):
        self.start(self.row(0), "log-level = info")
        stated = "X-Forwarded-For: 192.0.2.7\r\n"
        self.ask("/1", lines=stated)
        self.reload(self.row(0), "log-level = debug", "trust-forwarded = 127.0.0.1",
                    "forwarded-field = x-forwarded-for", "admin-uid = 4321",
                    "proxy-protocol-net = 10.0.0.0/8", "stop-delay = 10ms")
        c = Connection(self.address)
        self.addCleanup(c.close)
        self.ask("/2", connection=c, lines=stated)
        before, after = (head[2].get("X-Forwarded-For") for head in self.members[0].heads)
        self.assertNotIn("192.0.2.7", before)
        self.assertEqual(after, "192.0.2.7, 127.0.0.1")
        harness.wait_until(lambda: "fetched http" in self.d.err, what="a line of --log-level debug")
        # A connection from before is that of a client.
        self.ask("/3", lines=stated)
        self.assertNotIn("192.0.2.7", self.members[0].heads[-1][2]["X-Forwarded-For"])

    def test_the_format_of_the_logs(self):
        log = self.dir / "access.log"
        access = f"access-log = {log}"
        self.start(self.row(0), access)
        self.ask("/1")
        answer = self.reload(self.row(0), access, "log-format = %m %U %s")
        self.assertIn("changed: log-format", answer)
        self.ask("/2")
        self.refused(self.row(0), access, "log-format = %m%U")
        self.ask("/3")
        self.reload(self.row(0), access, "log-format = json")
        self.ask("/4")
        lines = harness.wait_until(
            lambda: len(found := log.read_text().splitlines()) == 4 and found, what="four lines")
        self.assertIn('"GET /1 HTTP/1.1" 200', lines[0])
        self.assertEqual(lines[1:3], ["GET /2 200", "GET /3 200"])
        self.assertIn('"outcome":', lines[3])
        harness.wait_until(lambda: '"message":' in self.d.err, what="messages as JSON")

    def test_listeners(self):
        ports = [harness.free_port() for _ in range(3)]
        addresses = [("127.0.0.1", port) for port in ports]
        unix = [self.dir / f"web{n}.sock" for n in range(2)]
        lines = lambda *numbers: [line for n in numbers for line in
                                  ("[listener]", f"address = 127.0.0.1:{ports[n]}")]
        self.start(self.row(0), *lines(0), "[listener]", f"address = unix:{unix[0]}")
        # The command line's has a port of the system's, and stays.
        found = [int(port) for port in re.findall(r"serving HTTP on 127.0.0.1:(\d+)", self.d.err)]
        self.address = ("127.0.0.1", next(port for port in found if port != ports[0]))

        def check(served, refused=()):
            for address in (self.address, *served):
                c = Connection(str(address) if isinstance(address, os.PathLike) else address)
                self.assertEqual(self.ask("/1", connection=c).status, 200)
                c.close()
            for address in refused:
                with self.assertRaises(OSError):
                    Connection(str(address) if isinstance(address, os.PathLike) else address).close()

        check((addresses[0], unix[0]), addresses[1:])
        kept = Connection(addresses[0])
        self.addCleanup(kept.close)
        self.assertEqual(self.ask("/1", connection=kept).status, 200)
        before = self.d.descriptors()
        self.assertIn("changed: http", self.reload(
            self.row(0), *lines(1), "[listener]", f"address = unix:{unix[1]}"))
        check((addresses[1], unix[1]), (addresses[0], unix[0]))
        self.assertFalse(unix[0].exists())
        self.assertEqual(self.ask("/1", connection=kept).status, 200, "its connections stay")
        self.reload(self.row(0), *lines(1, 2), "[listener]", "protocol = metrics",
                    f"address = 127.0.0.1:{ports[0]}")
        check(addresses[1:])
        self.assertIn(b"sunproxy", self.ask("/metrics", connection=Connection(addresses[0])).body)
        # Another program has the address: nothing changes.
        with socket.create_server(("127.0.0.1", harness.free_port())) as other:
            said = self.refused(self.row(0), f"http = 127.0.0.1:{other.getsockname()[1]}",
                                "max-age = 1s")
            self.assertIn("is in use by process", said)
        check(addresses[1:])
        self.assertIn("changed: http, metrics", self.reload(
            self.row(0), *lines(0), "[listener]", f"address = unix:{unix[0]}"))
        check((addresses[0], unix[0]), addresses[1:])
        harness.wait_until(lambda: self.d.descriptors() <= before, what="what was closed")

    def test_a_path_may_change_what_it_serves(self):
        path, lock = self.dir / "web.sock", self.dir / "web.sock.lock"
        listener = ("[listener]", f"address = unix:{path}")
        greeting = {"http": "", "http-proxied": "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"}
        self.start(self.row(0), *listener)
        number = path.stat().st_ino
        for protocol in ("http-proxied", "http", "http-proxied"):
            self.reload(self.row(0), *listener, f"protocol = {protocol}")
            for _ in range(2):
                c = Connection(str(path))
                c.send(greeting[protocol])
                self.assertEqual(self.ask("/1", connection=c).status, 200)
                c.close()
            self.assertEqual(path.stat().st_ino, number)
            with open(lock) as f, self.assertRaises(BlockingIOError):
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.reload(self.row(0))
        self.assertFalse(path.exists())
        with open(lock) as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_listeners_of_rpc(self):
        port = harness.free_port()
        self.write(self.row(0), f"port = {port}", "listen = 127.0.0.1")
        self.d = self.daemon("--http", "127.0.0.1:0", "--config", self.file, listen=False, port=None)
        for number in (2, 3):
            self.write(self.row(0), f"port = {port}", "listen = 127.0.0.1", "max-age = 1m",
                       f"listen = 127.0.0.{number}")
            self.assertIn("changed: listen", self.hang_up())
            for other in (1, 2, 3):
                try:
                    with rpc.Connection((f"127.0.0.{other}", port)) as c:
                        self.assertTrue(c.ping() and other in (1, number))
                except ConnectionRefusedError:
                    self.assertNotIn(other, (1, number))
        self.sunproxy("ping", "--host", "127.0.0.3", "--port", str(port))
        other = harness.free_port()
        self.write(self.row(0), f"port = {other}", "listen = 127.0.0.1")
        self.assertIn("changed: listen, port", self.hang_up())
        with rpc.Connection(("127.0.0.1", other)) as c:
            self.assertTrue(c.ping())

    def test_policy_and_capacity(self):
        self.start(self.row(0), "capacity-urls = 10", "shards = 1")
        for n in range(5):
            self.ask(f"/{n}")
        self.assertIn("capacity-urls", self.reload(self.row(0), "capacity-urls = 3", "shards = 1",
                                                   "policy = fifo"))
        self.assertEqual([self.is_hit(f"/{n}") for n in (2, 3, 4)], [True] * 3)
        said = self.sunproxy("stat", "--socket", self.d.socket)
        self.assertIn(b"fifo", said.stdout)

    def test_what_is_wrong(self):
        self.start(self.row(0))
        self.assertEqual(self.member("/1"), "0")
        for line, words in (("max-age = 5x", f"{self.file}:2: max-age: \"5x\" is not a time"),
                            ("orgin = /=http://a", "did you mean origin?"),
                            (self.row(1), "an earlier row has that host and prefix"),
                            ("access-log = /no/folder/log", "access-log"),
                            ("policy = lur", "lru"),
                            ("capacity-urls", "is not of the form key = value"),
                            ("seed = 63", "by a restart only: seed"),
                            ("policy = belady", "policy")):
            with self.subTest(line):
                self.assertIn(words, self.refused(self.row(0), line))
                self.assertTrue(self.is_hit("/1"))
        # A warning is none of the errors.
        key = self.dir / "key"
        key.write_text("0123456789abcdef\n")
        key.chmod(0o644)
        said = self.refused(self.row(0), f"peer-key-file = {key}", "peers = http://127.0.0.1:1,http://127.0.0.1:2")
        self.assertIn("none of the URLs has the address of a listener", said)
        self.assertNotIn("its mode should be 0600", said)
        self.file.unlink()
        self.assertIn("No such file", self.hang_up())
        self.write(self.row(0))
        self.assertIn("nothing has changed", self.hang_up())

    def test_every_line_of_a_file_that_is_cut_or_junk(self):
        lines = ["capacity-bytes = 64M", "max-age = 5m", "tag-rule = /* -> $1",
                 "client-net = 127.0.0.0/8", "store-cookies = yes", "[origin main]",
                 f"member = {self.members[0].url} weight=2", "probe = /probe", "[row]",
                 "host = site.test", "path = /", "origin = main"]
        self.start(*lines)
        for number, line in enumerate(lines):
            for other in (line[:line.index("=")] if "=" in line else line[:-1], "\x7f\xff junk",
                          line.replace(" = ", " = \x01") if "=" in line else "[junk]"):
                if other.startswith("tag-rule"):
                    continue
                with self.subTest(other):
                    said = self.refused(*lines[:number], other, *lines[number + 1:])
                    self.assertIn(f"{self.file}:", said)
        doubled = [line for line in lines if line.split()[0] in ("host", "path", "probe", "[origin")]
        for line in doubled:
            said = self.refused(*(again for each in lines
                                  for again in ((each, each) if each == line else (each,))))
            self.assertIn(f"{self.file}:{lines.index(line) + 2}: ", said)
        self.write(*lines)
        self.assertIn("nothing has changed", self.hang_up())

    def example(self):
        """The lines of --default-config, with a value for each option."""
        values = {"ADDRESS": "127.0.0.1", "PATH": self.dir / "example.sock", "UID": "4321",
                  "ADDRESS:PORT": "127.0.0.1:0", "CIDR": "127.0.0.0/8", "PORT": "443", "NAME": "X-Tags",
                  "N": "7", "PATTERN -> TAG...": "/* -> $1", "HOST:PORT:HOST:PORT": "a.test:80:127.0.0.1:80",
                  "FOLDER": self.dir / "store",
                  "[HOST]/PREFIX=URL[,URL...]": f"site.test/={self.members[0].url}"}
        lines, left_out = [], {"user", "upstream-proxy", "cacert", "access-log", "request-db", "rule",
                               "request-db-max", "socket", "listen", "port", "trust-forwarded", "users",
                               "auth-helper", "peers", "peer-self", "peer-key-file", "shared",
                               "shared-key-file"}
        text = self.run_daemon("--default-config").stdout.decode()
        for line in text[:text.index("\n#[")].splitlines():
            key, equals, value = line.removeprefix("#").partition(" = ")
            if line.startswith("#") and equals and key not in left_out and " " not in key:
                value = str(values.get(value, value))
                lines.append(f"{key} = {value}")
        return [*lines, "[origin main]", f"member = {self.members[1].url}", "balance = least",
                "[row]", "host = other.test", "path = /", "origin = main", "send-host = origin",
                "[listener]", f"address = unix:{self.dir}/listener.sock", "protocol = http"]

    def test_every_line_of_the_example(self):
        """Cut, doubled or replaced by junk, each is an error with its line, and nothing changes."""
        lines = [line for line in self.example() if not line.startswith("sandbox")]
        self.start(*lines)
        self.assertEqual(self.member("/1"), "0")
        self.assertGreater(len(lines), 80)

        def is_refused(number, *other):
            self.write(*lines[:number], *other, *lines[number + 1:])
            done = self.run_daemon("--config", self.file, "--check-config")
            with self.subTest(other):
                self.assertEqual(done.returncode, 78)
                self.assertRegex(done.stderr.decode(), rf"{re.escape(str(self.file))}:\d+: ")

        step = 1 if harness.LONG else 9
        for number in range(0, len(lines), step):
            line = lines[number]
            key = line.partition(" = ")[0]
            is_refused(number, key[:-1] if "=" not in line else f"{key[:-1]} = {line.partition(' = ')[2]}")
            is_refused(number, "\x7f\xff junk")
            if line[0] != "[":
                is_refused(number, key)
                is_refused(number, line, line)
        for number in (0, len(lines) // 2, len(lines) - 1):
            said = self.refused(*lines[:number], "junk = 7", *lines[number + 1:])
            self.assertIn(f"{self.file}:{number + 1}: ", said)
            self.assertTrue(self.is_hit("/1"))
        self.write(*lines)
        self.assertIn("nothing has changed", self.hang_up())

    def test_while_it_stops(self):
        self.start(self.row(0), "stop-timeout = 1h")
        self.members[0].silence = threading.Event()
        self.c.send("GET /slow HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: self.members[0].heads, what="the request")
        self.write(self.row(1))
        self.d.signal(signal.SIGHUP)
        self.d.signal(signal.SIGTERM)
        for _ in range(5):
            self.d.signal(signal.SIGHUP)
        self.members[0].silence.set()
        self.assertEqual(self.c.receive().field("member"), "0", "the request is answered")
        self.assertEqual(self.d.wait(), 0)

    @unittest.skipIf(os.getuid(), "only root can mount a file system")
    def test_with_a_full_disk(self):
        disk = self.dir / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk],
                          capture_output=True).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk])
        log = disk / "access.log"
        self.start(self.row(0), f"access-log = {log}")
        (disk / "filling").write_bytes(b"x" * (60 << 10))
        with open(disk / "rest", "wb", buffering=0) as rest:
            try:
                while rest.write(b"x" * 512):
                    pass
            except OSError:
                pass
        for n in range(50):
            self.assertEqual(self.ask(f"/{n}").status, 200)
        self.reload(self.row(1), f"access-log = {log}", "max-age = 5m")
        self.assertEqual(self.member("/new"), "1")
        self.d.stop()

    def test_a_request_keeps_its_configuration(self):
        self.start(self.row(0), "rewrite-location = on")
        self.members[0].silence = threading.Event()
        self.members[0].status = 302
        self.members[0].fields = [("Location", f"{self.members[0].url}/next"), ("Member", "0")]
        other = Connection(self.address)
        self.addCleanup(other.close)
        other.send("GET /slow HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: self.members[0].heads, what="the request")
        self.reload(self.row(1), "rewrite-location = off")
        self.assertEqual(self.member("/1"), "1")
        self.members[0].silence.set()
        reply = other.receive()
        self.assertEqual((reply.field("member"), reply.field("location")), ("0", "/next"))

    def command(self, *options, expect=0):
        return self.sunproxy("reload", *options, daemon=self.d, expect=expect)

    def test_by_the_command(self):
        self.start(self.row(0))
        self.write(self.row(1), "max-age = 5m")
        self.assertEqual(self.command().stdout, b"changed: origin, max-age\n")
        self.assertEqual(self.member("/1"), "1")
        self.assertEqual(self.command().stdout, b"nothing has changed\n")
        self.write(self.row(1), "max-age = x", "rows = 7")
        said = self.command(expect=78).stderr.decode()
        self.assertIn(f"{self.file}:2: max-age", said)
        self.assertIn(f"{self.file}:3: unknown key", said)

    def test_many_commands_at_a_time(self):
        self.start(self.row(0))
        self.write(self.row(1))
        done = []
        callers = [threading.Thread(target=lambda: done.append(self.command().stdout))
                   for _ in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual(set(done) - {b"changed: origin\n", b"nothing has changed\n"}, set())
        self.assertIn(b"changed: origin\n", done)
        self.assertEqual(len(done), 8)

    def test_sections_and_included_files(self):
        folder = self.dir / "conf.d"
        folder.mkdir()
        part = folder / "site.conf"
        part.write_text(f"[origin main]\nmember = {self.members[0].url}\n")
        lines = ("max-age = 5m", "include = conf.d", "[row]", "host = site.test", "origin = main")
        self.start(*lines)
        self.assertEqual(self.member("/1"), "0")
        self.assertEqual(self.ask("/1", "other.test").status, 421)
        part.write_text(f"[origin main]\nmember = {self.members[1].url}\n")
        self.assertEqual(self.command().stdout, b"changed: origin\n")
        self.assertEqual(self.member("/1"), "1")
        part.write_text(f"[origin main]\nmebmer = {self.members[1].url}\n")
        said = self.command(expect=78).stderr.decode()
        self.assertIn(f"{part}:2: mebmer is no key of [origin]; did you mean member?", said)

    def test_ten_thousand_rows(self):
        rows = [f"origin = h{n}.test/={self.members[0].url}" for n in range(10000)]
        self.start(*rows)
        self.assertEqual(self.member("/1", "h7.test"), "0")
        self.assertIn("changed: origin", self.reload(*rows[:-1], self.row(1, "last.test")))
        self.assertTrue(self.is_hit("/1", "h7.test"))
        self.assertEqual(self.member("/1", "last.test"), "1")

    def test_a_file_that_hangs(self):
        self.start(self.row(0))
        self.file.unlink()
        os.mkfifo(self.file)
        with open(f"/proc/{self.d.popen.pid}/task/{self.d.popen.pid}/children") as f:
            reader = pathlib.Path("/proc", f.read().strip())
        self.d.signal(signal.SIGHUP)
        self.assertEqual(self.member("/1"), "0")
        self.d.stop()
        # Nothing of the daemon's is left, but perhaps a process that waits to be reaped.
        harness.wait_until(lambda: not reader.exists() or not (reader / "cmdline").read_bytes(),
                           what="the end of the process that reads")

    def test_probes_go_on_while_a_file_hangs(self):
        lines = ("[origin main]", f"member = {self.members[0].url}", "probe = /probe",
                 "probe-interval = 1s", "[row]", "origin = main")
        member = self.members[0]
        self.start(*lines)
        harness.wait_until(lambda: member.probes, what="a probe")
        self.file.unlink()
        os.mkfifo(self.file)
        self.d.signal(signal.SIGHUP)
        with open(self.file, "w") as fifo:  # the process reads it
            before, number = len(self.d.err), len(member.probes)
            harness.wait_until(lambda: len(member.probes) > number + 2, what="probes")
            # One that has no response in time is ended.
            member.hangs = threading.Event()
            harness.wait_until(lambda: "a probe had no response in time" in self.d.err, what="its end")
            member.hangs.set()
            self.assertNotIn("read again", self.d.err[before:])
            fifo.write("\n".join(("max-age = 7m", *lines, "")))
        harness.wait_until(lambda: "was read again: changed: max-age" in self.d.err, what="the reload")

    def test_others_may_not_reload(self):
        self.start(self.row(0))
        said = self.sunproxy("reload", daemon=self.d, tcp=True, expect=77)
        self.assertIn(b"only root", said.stderr)

    def test_the_command_line_overrides(self):
        self.start(self.row(0), options=("--max-age", "1h"))
        self.write(self.row(0), "max-age = 5m")
        self.assertIn("nothing has changed", self.hang_up())

    def test_the_process_that_reads_is_killed(self):
        self.start(self.row(0))
        children = f"/proc/{self.d.popen.pid}/task/{self.d.popen.pid}/children"
        with open(children) as f:
            os.kill(int(f.read()), signal.SIGKILL)
        for _ in range(2):
            self.assertIn("the process that reads the configuration has ended",
                          self.refused(self.row(1)))
        self.assertEqual(self.member("/1"), "0")

    @unittest.skipIf(os.getuid(), "only root can change to another user")
    def test_a_file_of_root(self):
        """The daemon's user cannot read it, nor may anything be read in the sandbox."""
        os.chmod(self.dir, 0o755)
        self.write(self.row(0))
        self.file.chmod(0o600)
        self.start(self.row(0), options=("--user", "nobody"))
        self.assertIn("nothing has changed", self.hang_up())
        self.reload(self.row(1))
        self.assertEqual(self.member("/1"), "1")


class ReloadLoadTest(ReloadCase):
    seconds = 10
    threads = True

    def opener(self):
        """The process that reads the configuration and opens sockets."""
        pid = self.d.popen.pid
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def test_many_reloads_under_load(self):
        reloads = 1000 if harness.LONG else 60
        ends = threading.Event()
        problems, counts = [], [0, 0, 0, 0, 0]
        secure = [self.origin(name=f"secure{n}") for n in range(2)]
        authority, hosts = self.dir / "authority.pem", self.dir / "hosts"
        ports = [harness.free_port() for _ in range(2)]

        def note(host, path, reply):
            if reply is None or reply.status != 200 or not reply.whole:
                problems.append((host, path, reply and (reply.status, reply.body)))

        def ask_on(number):
            c = Connection(self.address)
            n = 0
            while not ends.is_set():
                n += 1
                # One host's row changes all the time, and the pages of the other ones stay.
                for host, path in (("a.test", f"/{n % 50}"), ("b.test", f"/{n % 20}"),
                                   ("a.test", f"/new-{number}-{n}"), ("s.test", f"/?size={n % 9 + 9}")):
                    note(host, path, self.ask(path, host, connection=c))
                    counts[number] += 1
            c.close()

        def connect_on(number):
            """One connection for each request, at a listener that is always there."""
            while not ends.is_set():
                c = Connection(("127.0.0.1", ports[0]))
                note("b.test", "/1", self.ask("/1", "b.test", connection=c))
                c.close()
                counts[number] += 1

        def fetch_on(number):
            c = rpc.Connection(self.d.address)
            while not ends.is_set():
                page = c.get(f"http://a.test/rpc-{counts[number]}")
                if (page.status, page.sentence) != ("ok", None):
                    problems.append((page.status, page.sentence))
                counts[number] += 1
            c.close()

        def lines(n):
            # The member of s.test is verified by an authority that comes with it.
            authority.write_bytes(secure[n % 2].cacert.read_bytes() * (n % 3 + 1))
            extra = ["[listener]", f"address = 127.0.0.1:{ports[1]}"] if n % 2 else []
            hosts.write_text(f"denied{n % 3}.test\n")
            if n % 4 != 3:
                extra += ["[rule]", "host = a.test", f"lifetime = {n % 5 + 600}s", "set-field = X-N: 1",
                          f"set-response-field = X-N: {n}", "[rule]", f"host-list = {hosts}",
                          f"deny = {403 + n % 2}", *(["[rule]", "host = a.test", "path = /new-*",
                                                     "remove-parameter = x"] if n % 3 else [])]
            return (f"origin = a.test/={self.members[n % 2].url}", self.row(0, "b.test"),
                    f"origin = s.test/=https://localhost:{secure[n % 2].https_port}",
                    f"cacert = {authority}", f"max-age = {n % 7 + 600}s",
                    f"capacity-bytes = {64 + n % 5}M", f"policy = {('lru', 'lfu', 'gdsf')[n % 3]}",
                    f"tag-rule = /{n} -> x", f"client-net = 127.0.0.0/{8 + n % 8}",
                    f"max-connections = {1000 + n % 9}", f"max-fetches = {500 + n % 9}",
                    f"rate-calls = {100000 + n % 9}", f"first-byte-timeout = {50 + n % 5}s",
                    f"idle-timeout = {50 + n % 5}s", f"max-transit = {100 + n % 9}M",
                    "allow-net = 127.0.0.0/8", *(["allow-net = 10.0.0.0/8"] if n % 2 else []),
                    "[listener]", f"address = 127.0.0.1:{ports[0]}", *extra)

        # AddressSanitizer keeps what is free.
        options = harness.sanitizer_environment(self.dir / "reports")["ASAN_OPTIONS"]
        self.start(*lines(0), env={"ASAN_OPTIONS": f"{options}:quarantine_size_mb=1"
                                                   ":thread_local_quarantine_size_kb=64"})
        self.address = next((host, port) for host, port in
                            (("127.0.0.1", int(port)) for port in
                             re.findall(r"serving HTTP on 127.0.0.1:(\d+)", self.d.err))
                            if port not in ports)
        self.c.close()
        self.c = Connection(self.address)
        self.addCleanup(self.c.close)
        for n in range(20):
            self.ask(f"/{n}", "b.test")
        stored = len(self.members[0].heads)
        askers = [threading.Thread(target=ask_on, args=(n,)) for n in range(3)]
        askers.append(threading.Thread(target=connect_on, args=(3,)))
        askers.append(threading.Thread(target=fetch_on, args=(4,)))
        begun = time.monotonic()
        for asker in askers:
            asker.start()
        opener = self.opener()
        state = lambda: (self.d.descriptors(), self.d.rss(), len(os.listdir(f"/proc/{opener}/fd")),
                         int(pathlib.Path(f"/proc/{opener}/statm").read_text().split()[1]) * 4096)
        try:
            for n in range(1, reloads):
                self.reload(*lines(n))
                if n == max(8, reloads // 10):
                    harness.wait_until(lambda: min(counts) > 50, what="the load")
                    before = state()
        finally:
            ends.set()
            for asker in askers:
                asker.join()
        after = state()
        if harness.LONG:
            print(f"\n{reloads} reloads in {time.monotonic() - begun:.0f} s, {sum(counts)} requests, "
                  f"{len(problems)} failed; descriptors and memory of daemon and opener: {before}, "
                  f"then {after}", file=sys.stderr)
        self.assertEqual(problems, [])
        self.assertGreaterEqual(stored, 20)
        # A request that begins in the moment of a reload passes the cache, where no page is lost.
        self.assertLess(len([head for head in self.members[0].heads[stored:]
                             if head[2]["Host"] == "b.test"]), reloads)
        for n in range(20):
            self.assertTrue(self.is_hit(f"/{n}", "b.test"))
        self.assertEqual(after[2], before[2], "descriptors of the opener")
        # Connections to members that are left are closed after a while.
        harness.wait_until(lambda: self.d.descriptors() <= before[0] + 4, what="idle connections")
        most = (32 if "san" in harness.BUILD.name else 8) << 20
        self.assertLess(after[1] - before[1], most)
        self.assertLess(after[3] - before[3], most)


del ReloadCase
