"""Users of the forward proxy: what a request gets with and without credentials, what its origin and
the logs get, and what rules and reloads make of it."""

import base64
import concurrent.futures
import json
import re
import shutil
import sqlite3
import subprocess
import threading

import harness
from http_front import Connection
from proxy_users import ALICE, BOB, EVE, NOBODY, ProxyUsersCase, basic, hash_of
from test_tunnel import Server, accept_of, echo, read, read_to_end

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class DemandTest(ProxyUsersCase):
    seconds = 15
    threads = True

    def test_who_gets_in(self):
        self.serve("auth-realm = a \"quoted\" realm")
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
            with self.subTest(method):
                response = self.get("/x", method=method)
                self.assertEqual(response.status, 407)
                self.assertEqual(response.field("Proxy-Authenticate"),
                                 'Basic realm="a \\"quoted\\" realm", charset="UTF-8"')
                self.assertIn("detail=user-demanded", response.field("Cache-Status"))
                for line in (EVE, NOBODY):
                    self.assertEqual(self.get("/x", line, method=method).status, 407)
                self.assertEqual(self.get("/x", ALICE, method=method).status, 200)
                self.assertEqual(self.get("/x", BOB, method=method).status, 200)
        self.assertEqual([method for method, _ in self.o.arrivals],
                         [m for m in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
                          for _ in range(2)])

    def test_garbled_credentials(self):
        self.serve()
        for value in ("", "Basic", "Basic ", "Basic !", "Basic YWxpY2U=", "Basic YWxpY2U6c2VjcmV0=",
                      "Bearer YWxpY2U6c2VjcmV0", "Digest username=alice", "Basic " + "A" * 6000,
                      base64.b64encode(b"alice:secret").decode(),
                      "Basic " + base64.b64encode(b"alice:sec\0ret").decode(),
                      "Basic " + base64.b64encode(b"alice\n:secret").decode(),
                      "Basic " + base64.b64encode(b"alice:secret\n").decode(),
                      "Basic " + base64.b64encode(b":secret").decode(),
                      "Basic " + base64.b64encode(b"\xe4lice:secret").decode()):
            with self.subTest(value[:40]):
                self.assertEqual(self.get("/x", f"Proxy-Authorization: {value}").status, 407)
        self.assertEqual(self.get("/x", ALICE, ALICE).status, 407)
        self.assertEqual(self.get("/x", EVE, ALICE).status, 407)
        self.assertEqual(self.get("/x", ALICE.replace("Proxy-", "")).status, 407)
        self.assertEqual(self.o.arrivals, [])

    def test_a_connection_persists(self):
        self.serve()
        c = self.connect()
        for line, status in (("A: b", 407), (EVE, 407), (ALICE, 200), (ALICE, 200), (BOB, 200),
                             ("A: b", 407), (EVE, 407), (BOB, 200)):
            self.assertEqual(self.get("/x", line, c=c).status, status)
        self.assertEqual(len(self.o.arrivals), 4)

    def test_pipelined_requests_are_answered_in_order(self):
        self.serve()
        self.get("/kept", ALICE)
        lines = [(ALICE, "/1"), (BOB, "/2"), (EVE, "/3"), ("A: b", "/4"), (ALICE, "/kept"),
                 (NOBODY, "/5"), (BOB, "/kept"), (ALICE, "/6")]
        c = self.connect()
        c.send("".join(f"GET {self.o.url}{path} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n"
                       for line, path in lines))
        self.assertEqual([c.receive().status for _ in lines],
                         [200, 200, 407, 407, 200, 407, 200, 200])

    def test_a_body_waits_for_the_check(self):
        self.serve()
        body = b"x" * 300000
        for number, (frame, sent) in enumerate((
                ("Content-Length: 300000", body),
                ("Transfer-Encoding: chunked", b"493e0\r\n" + body + b"\r\n0\r\n\r\n"))):
            self.hashes["carol"] = hash_of("c", str(number))  # not checked before
            self.reload_users()
            c = self.connect()
            c.send(f"POST {self.o.url}/x HTTP/1.1\r\nHost: x\r\n{basic('carol', 'c')}\r\n"
                   f"{frame}\r\n\r\n".encode() + sent)
            if number == 0:
                self.assertEqual(c.receive().status, 200)
            c.close()
            c = self.connect()
            c.send(f"POST {self.o.url}/x HTTP/1.1\r\nHost: x\r\n{EVE}\r\n{frame}\r\n\r\n".encode()
                   + sent)
            self.assertEqual(c.receive().status, 407)
            self.assertTrue(c.is_closed())

    def test_100_is_sent_to_users_only(self):
        self.serve()
        for line, status in (("A: b", 407), (EVE, 407), (ALICE, 100)):
            c = self.connect()
            c.send(f"POST {self.o.url}/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                   f"Content-Length: 3\r\n{line}\r\n\r\n")
            self.assertEqual(c.receive().status, status)
        c.send("abc")
        self.assertEqual(c.receive().status, 200)

    def test_what_goes_on_to_the_origin(self):
        self.serve()
        self.get("/x", ALICE, "Authorization: Basic eDp5")
        for head in self.o.heads:
            self.assertNotIn(b"proxy-auth", head.lower())
        self.assertIn(b"Authorization: Basic eDp5", self.o.heads[0])

    def test_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        self.serve()
        proxy = "http://%s:%d" % self.address
        for user, status in (("alice:secret", b"200"), ("bob:b:ob", b"200"), ("alice:no", b"407")):
            for more in ((), ("--proxytunnel",), ("-d", "a=b"), ("--head",)):
                done = self.run_program(["curl", "-s", "-o", "/dev/null", "-w",
                                         "%{http_connect} %{http_code}", "-x", proxy, "-U", user,
                                         *more, self.o.url + "/x"])
                self.assertIn(status, done.stdout.split(), (user, more))

    def test_peers_on_this_machine_are_not_asked(self):
        self.serve(f"http = unix:{self.dir / 'http'}")
        c = Connection(str(self.dir / "http"))
        self.addCleanup(c.close)
        self.assertEqual(self.get(c=c).status, 200)
        self.assertEqual(self.get("/x", EVE, c=c).status, 200)

    def make_slow_user(self):
        """His checks take long."""
        self.hashes["slow"] = subprocess.run(
            ["openssl", "passwd", "-6", "-salt", "rounds=400000$salt", "p"], check=True,
            capture_output=True).stdout.decode().strip()
        self.write_users()

    def test_checks_that_are_not_made(self):
        self.make_slow_user()
        for option, status in ((), 503), (("auth-failure = 407",), 407):
            self.serve("auth-timeout = 1ms", *option)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                responses = list(pool.map(
                    lambda n: self.get("/x", basic("slow", f"{n}")), range(8)))
            unchecked = [r for r in responses if "user-unchecked" in r.field("Cache-Status")]
            self.assertGreater(len(unchecked), 0)
            for response in unchecked:
                self.assertEqual(response.status, status)
                self.assertEqual(response.field("Retry-After"), "1" if status == 503 else None)
                self.assertEqual(response.field("Proxy-Authenticate") is None, status == 503)
            self.assertEqual(self.d.stop(30), 0)
        self.assertEqual(self.o.arrivals, [])

    def test_a_client_that_leaves_gives_its_check_up(self):
        self.make_slow_user()
        self.serve("auth-timeout = 60s")
        for n in range(30):
            c = self.connect()
            c.send(f"GET {self.o.url}/left HTTP/1.1\r\nHost: x\r\n{basic('slow', str(n))}\r\n\r\n")
            c.close()
        self.assertEqual(self.get("/x", ALICE).status, 200)
        self.assertEqual(self.o.arrivals, [("GET", "/x")])

    def test_a_stop_waits_for_a_check(self):
        self.serve()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(self.get, "/x", basic("alice", str(n))) for n in range(8)]
            self.d.signal(15)
            statuses = set()
            for one in asked:
                try:
                    statuses.add(one.result().status)
                except (OSError, AttributeError):
                    pass
        self.assertLessEqual(statuses, {407, 503})
        self.assertEqual(self.d.wait(60), 0)


class TunnelsTest(ProxyUsersCase):
    threads = True

    def test_connect(self):
        self.serve()
        server = Server(self, echo)
        for lines in ((), (EVE,), (NOBODY,), (ALICE, BOB)):
            self.assertEqual(self.connect_status(server.port, *lines), 407)
        for line in (ALICE, ALICE, BOB):
            c = self.tunnel(server.port, line)
            c.send("hello")
            self.assertEqual(read(c.socket, len(ESTABLISHED) + 5), ESTABLISHED + b"hello")

    def test_upgrades(self):
        heads = []

        def serve(connection):
            heads.append(connection.recv(65536))
            key = re.search(rb"(?i)sec-websocket-key: (.*?)\r", heads[0])[1].decode()
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                               b"Upgrade: websocket\r\nSec-WebSocket-Accept: "
                               + accept_of(key).encode() + b"\r\n\r\n")
            echo(connection)

        self.serve()
        server = Server(self, serve)
        for line, status in (("A: b", 407), (EVE, 407), (ALICE, 101)):
            c = self.connect()
            c.send(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n{line}\r\n"
                   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            self.assertEqual(c.receive(head_only=status == 101).status, status)
        c.send("hello")
        self.assertEqual(read(c.socket, 5), b"hello")
        self.assertEqual(len(heads), 1)
        self.assertNotIn(b"proxy-auth", heads[0].lower())

    def test_reloads_end_tunnels(self):
        self.serve()
        server = Server(self, echo)
        tunnels = {}
        for name, line in (("alice", ALICE), ("bob", BOB)):
            tunnels[name] = self.tunnel(server.port, line)
            self.assertEqual(read(tunnels[name].socket, len(ESTABLISHED)), ESTABLISHED)
        self.hashes["carol"] = hash_of("c")
        self.reload_users()
        for c in tunnels.values():
            c.send("a")
            self.assertEqual(read(c.socket, 1), b"a")
        del self.hashes["alice"]
        self.reload_users()
        self.assertEqual(read_to_end(tunnels["alice"].socket), b"")
        tunnels["bob"].send("b")
        self.assertEqual(read(tunnels["bob"].socket, 1), b"b")
        self.assertEqual(self.connect_status(server.port, ALICE), 407)
        self.hashes["bob"] = hash_of("b:ob", "other")
        self.reload_users()
        self.assertEqual(read_to_end(tunnels["bob"].socket), b"")
        self.assertEqual(self.connect_status(server.port, BOB), 200)

    def test_reloads_end_downloads(self):
        self.serve()
        ended = threading.Event()

        def serve(connection):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst")
            ended.wait(60)

        server = Server(self, serve)
        c = self.connect()
        c.send(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n{ALICE}\r\n\r\n")
        response = c.receive(head_only=True)
        self.assertEqual(response.status, 200)
        del self.hashes["alice"]
        self.reload_users()
        self.assertLessEqual(len(read_to_end(c.socket)), 5)
        ended.set()

    def test_a_connection_forgets_a_removed_user(self):
        self.serve()
        c = self.connect()
        self.assertEqual(self.get("/x", ALICE, c=c).status, 200)
        self.hashes["alice"] = hash_of("secret", "other")
        self.reload_users()
        self.assertEqual(self.get("/x", ALICE, c=c).status, 200)
        del self.hashes["alice"]
        self.reload_users()
        self.assertEqual(self.get("/x", ALICE, c=c).status, 407)
        self.assertEqual(self.get("/x", BOB, c=c).status, 200)


class RulesTest(ProxyUsersCase):
    def test_by_user(self):
        names = self.dir / "names"
        names.write_text("bob\n")
        self.serve("[rule]", "path = /only-alice", "user = alice", "deny = no",
                   "[rule]", "path = /only-alice", "deny = 403", "reason = <b>ask alice</b>",
                   "[rule]", "path = /not-bob", f"user-list = {names}", "deny = 404",
                   "[rule]", "path = /open/*", "authenticate = no")
        for path, line, status in (
                ("/only-alice", ALICE, 200), ("/only-alice", BOB, 403), ("/only-alice", EVE, 407),
                ("/only-alice", "A: b", 407), ("/not-bob", ALICE, 200), ("/not-bob", BOB, 404),
                ("/open/x", "A: b", 200), ("/open/x", EVE, 200)):
            with self.subTest(path=path, line=line):
                self.assertEqual(self.get(path, line).status, status)

    def test_a_page_that_says_why(self):
        self.hashes["<i>&"] = hash_of("p")
        self.write_users()
        self.serve("[rule]", "path = /*", "deny = 403", 'reason = <b>not "here"</b>')
        response = self.get("/x", basic("<i>&", "p"), "Accept: text/html")
        page = response.body.decode()
        self.assertEqual(response.status, 403)
        self.assertIn("403 Forbidden", page)
        self.assertIn("for 127.0.0.1 of &lt;i&gt;&amp;: &lt;b&gt;not &quot;here&quot;&lt;/b&gt;", page)
        response = self.get("/x", ALICE)
        self.assertEqual(response.field("Content-Type"), "text/plain; charset=utf-8")
        self.assertIn('for 127.0.0.1 of alice: <b>not "here"</b>', response.body.decode())

    def test_pages_of_rules(self):
        page = self.dir / "page.html"
        page.write_text("<p>ask the desk</p>")
        self.serve("[rule]", "status = 407", f"error-page = {page}")
        for line in ("A: b", EVE):
            response = self.get("/x", line)
            self.assertEqual((response.status, response.body), (407, b"<p>ask the desk</p>"))
            self.assertTrue(response.field("Proxy-Authenticate").startswith("Basic realm="))
        self.assertEqual(self.get("/x", ALICE).status, 200)

    def test_networks_times_hosts_ports_and_methods(self):
        hosts = self.dir / "hosts"
        hosts.write_text("games.test\n")
        server = Server(self, echo)
        self.serve("[rule]", "network = 127.0.0.2/32", "user = bob", "deny = 403",
                   "[rule]", "time = mon-sun", "path = /always", "deny = 410",
                   "[rule]", "time = 00:00-00:00", "path = /never", "deny = 410",
                   "[rule]", f"host-list = {hosts}", "user = alice", "deny = 451",
                   "[rule]", f"port = {server.port}", "user = bob", "deny = 404",
                   "[rule]", "method = DELETE", "deny = 405")
        two = self.connect("127.0.0.2")
        self.assertEqual(self.get("/x", BOB, c=two).status, 403)
        self.assertEqual(self.get("/x", ALICE, c=two).status, 200)
        self.assertEqual(self.get("/x", BOB).status, 200)
        self.assertEqual(self.get("/always", BOB).status, 410)
        self.assertEqual(self.get("/never", BOB).status, 200)
        self.assertEqual(self.connect().get("http://www.games.test/", ALICE).status, 451)
        self.assertEqual(self.connect().get("http://www.games.test/", EVE).status, 407)
        self.assertEqual(self.connect_status(server.port, BOB), 404)
        self.assertEqual(self.connect_status(server.port, ALICE), 200)
        self.assertEqual(self.connect_status(server.port), 407)
        self.assertEqual(self.get("/x", BOB, method="DELETE").status, 405)
        self.assertEqual(self.get("/x", method="DELETE").status, 407)

    def test_rules_about_users_need_users(self):
        for rule in ("user = alice", "user-list = /etc/hostname", "authenticate = no"):
            action = "deny = 403" if rule.startswith("user") else "pass = no"
            self.write(*self.lines, "[rule]", rule, action)
            done = self.run_daemon("--config", self.file, "--check-config")
            self.assertEqual(done.returncode, 78)
            self.assertIn(b"need --users or --auth-helper", done.stderr)

    def test_a_denied_name_is_not_resolved(self):
        self.serve("[rule]", "host = *.games.invalid", "deny = 403",
                   "[rule]", "host = *.games.invalid", "authenticate = no",
                   options=("--workers", "1"))
        threads = self.d.threads()
        for n in range(5):
            url = f"http://x{n}.games.invalid/"
            self.assertEqual(self.connect().get(url, ALICE).status, 403)
            self.assertEqual(self.connect().get(f"http://x{n}.other.invalid/").status, 407)
        self.assertEqual(self.d.threads(), threads)
        # Threads that resolve names start when they are needed.
        self.assertEqual(self.connect().get("http://x.other.invalid/", BOB).status, 502)
        self.assertGreater(self.d.threads(), threads)


class SeenTest(ProxyUsersCase):
    """The user in logs, in the request database, in explanations, and as the client of rates."""

    def ask_all(self):
        server = Server(self, echo)
        self.get("/kept", ALICE)
        self.get("/kept", BOB)
        self.get("/x", EVE)
        self.get("/x")
        self.tunnel(server.port, ALICE, c=self.connect()).socket.recv(100)
        return server

    def log(self, *options):
        path = self.dir / "access.log"
        # One worker logs in the order of the ends.
        self.serve(options=("--access-log", str(path), "--workers", "1", *options))
        self.ask_all()
        self.assertEqual(self.d.stop(30), 0)
        text = path.read_text()
        for secret in (ALICE, BOB, EVE):
            self.assertNotIn(secret.split()[-1], text + self.d.err)
        return text.splitlines()

    def test_the_access_log(self):
        lines = self.log()
        self.assertEqual([re.match(r"127.0.0.1 - (\S+) \[.*?\] \"(\S+) .*\" (\d+) ", line).groups()
                          for line in lines],
                         [("alice", "GET", "200"), ("bob", "GET", "200"), ("-", "GET", "407"),
                          ("-", "GET", "407"), ("alice", "CONNECT", "200")])
        self.assertTrue(lines[2].endswith(" user-refused"))
        self.assertTrue(lines[3].endswith(" user-demanded"))

    def test_the_access_log_in_json(self):
        rows = [json.loads(line) for line in self.log("--log-format", "json")]
        self.assertEqual([row.get("user") for row in rows],
                         ["alice", "bob", None, None, "alice"])

    def test_the_access_log_by_a_pattern(self):
        lines = self.log("--log-format", "%u %{user}x %{Proxy-Authorization}i %s")
        self.assertEqual(lines[:2], ["alice alice - 200", "bob bob - 200"])

    def test_the_request_database(self):
        path = self.dir / "requests.db"
        self.serve(options=("--request-db", str(path), "--workers", "1"))
        self.ask_all()
        self.assertEqual(self.d.stop(30), 0)
        with sqlite3.connect(path) as db:
            rows = db.execute("SELECT user, status, outcome, reason FROM requests "
                              "ORDER BY time_us")
            self.assertEqual(list(rows), [
                ("alice", 200, "miss", "uri-miss"), ("bob", 200, "hit", None),
                (None, 407, "local", "user-refused"), (None, 407, "local", "user-demanded"),
                ("alice", 200, "tunnel", None)])

    def test_rates_count_by_user(self):
        self.serve("rate-fetches = 1:3")
        statuses = [self.get(f"/{n}", ALICE, c=self.connect(f"127.0.0.{n + 1}")).status
                    for n in range(1, 7)]
        self.assertEqual(statuses[:3], [200] * 3)
        self.assertIn(503, statuses)
        self.assertEqual(self.get("/bob", BOB).status, 200)

    def test_what_is_kept_for_users_is_given_back(self):
        self.serve()
        connections = [self.connect() for _ in range(50)]
        for c in connections:
            self.assertEqual(self.get("/x", ALICE, c=c).status, 200)
        for c in connections:
            c.close()
        self.c.close()
        harness.wait_until(
            lambda: self.stat(self.d)["memory_requests"] == 0, what="the memory of requests")

    def test_rpc_over_tcp_names_no_user(self):
        self.serve("[rule]", "path = /open", "authenticate = no")
        for path, tcp, status in (("/x", False, 0), ("/x", True, None), ("/open", True, 0)):
            done = self.sunproxy("get", self.o.url + path, daemon=self.d, tcp=tcp, expect=status)
            if status is None:
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("this proxy needs a user", done.stderr.decode())
        self.assertEqual([path for _, path in self.o.arrivals], ["/x", "/open"])

    def test_explain(self):
        self.serve("[rule]", "user = bob", "deny = 451", "reason = not bob",
                   "[rule]", "path = /open", "authenticate = no")

        def explain(path, *options):
            done = self.sunproxy("explain", *options, self.o.url + path, daemon=self.d)
            return dict(line.split(None, 1) for line in done.stdout.decode().splitlines())

        told = explain("/x")
        self.assertEqual(told["answer"], "denied, status 407")
        self.assertTrue(told["reason"].startswith("user-demanded: "))
        told = explain("/x", "--user", "nobody")
        self.assertTrue(told["reason"].startswith("user-refused: "))
        told = explain("/x", "--user", "alice")
        self.assertEqual((told["user"], told["answer"]), ("alice", "miss"))
        told = explain("/x", "--user", "bob")
        self.assertEqual(told["answer"], "denied, status 451")
        self.assertIn("reason=not bob", told["rule"])
        told = explain("/open", "--user", "bob")
        self.assertEqual((told.get("user"), told["answer"]), (None, "miss"))


class BenchTest(harness.SystemTest):
    seconds = 12

    def test_a_flood_and_lists_are_measured(self):
        """tests/bench/users.py works; the figures of so few are not looked at."""
        done = self.run_program([harness.TOP / "tests/bench/users.py", "--build", harness.BUILD, "--smoke"],
                                seconds=500)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        for row in ("| 1,000 | ", " had status 407", "| hit of a user that has been checked, median | "):
            self.assertIn(row, text)


del ProxyUsersCase
