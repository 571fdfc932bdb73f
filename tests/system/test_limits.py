"""Limits per client: administrators reach a daemon that a client has filled, and clients of other
addresses reach one that a client has filled up to its share."""

import os
import resource
import threading
import time

import harness
import http_front
import rpc

RESERVE = 16  # connections and descriptors kept for administrators
CROWD = 100


class LimitsTest(harness.SystemTest):
    threads = True

    def setUp(self):
        super().setUp()
        self.crowd = []
        self.addCleanup(lambda: [c.close() for c in self.crowd])

    def start(self, *options, **more):
        self.o = self.origin()
        self.d = self.daemon("--policy", "lru", "--capacity-urls", "100", *options, origin=self.o,
                             **more)

    def admit(self, count, source=None, address=None):
        """Opens connections until the end of the test; how many of them are answered."""
        answered = 0
        for _ in range(count):
            c = rpc.Connection(address or self.d.address, source=source)
            try:
                answered += c.ping()
                self.crowd.append(c)
            except (OSError, EOFError):
                c.close()
        return answered

    def administrate(self):
        """What an administrator does works; returns the statistics."""
        purged = self.sunproxy("purge", "--all", daemon=self.d)
        self.assertEqual(purged.returncode, 0)
        return self.stat(self.d)


class ConnectionsTest(LimitsTest):
    def test_administrators_get_in_when_all_connections_are_taken(self):
        self.start("--max-connections", "20")
        self.assertEqual(self.admit(30), 20)
        s = self.administrate()
        self.assertEqual((s["connections_refused"], s["refused_full"]), (10, 10))
        self.assertEqual((s["refused_client"], s["refused_descriptors"]), (0, 0))
        # The reserve is for administrators alone, and has an end.
        self.assertEqual(self.admit(RESERVE, address=self.d.socket), RESERVE)
        self.assertEqual(self.admit(2, address=self.d.socket), 0)
        self.assertEqual(self.admit(1), 0)
        self.crowd.pop().close()
        harness.wait_until(lambda: self.admit(1, address=self.d.socket), what="a place again")
        self.assertEqual(self.crowd[0].get("http://a.test/").status, "ok")

    def test_a_client_has_a_share(self):
        self.start("--max-connections", "20", "--max-connections-per-client", "5")
        self.assertEqual(self.admit(8, "127.0.0.2"), 5)
        self.assertEqual(self.admit(3, "127.0.0.3"), 3)
        s = self.administrate()
        self.assertEqual((s["connections_refused"], s["refused_client"]), (3, 3))
        self.crowd[0].close()
        harness.wait_until(lambda: self.admit(1, "127.0.0.2"), what="a place again")
        self.assertEqual(self.admit(1, "127.0.0.2"), 0)
        # Administrators have none.
        self.assertEqual(self.admit(8, address=self.d.socket), 8)

    def test_a_network_may_be_one_client(self):
        self.start("--max-connections-per-client", "5", "--client-prefix-ipv4", "30")
        self.assertEqual(self.admit(3, "127.0.0.1"), 3)
        self.assertEqual(self.admit(4, "127.0.0.2"), 2)
        self.assertEqual(self.admit(4, "127.0.0.4"), 4)

    def test_another_user_cannot_keep_administrators_out_of_the_socket(self):
        if os.geteuid() != 0:
            self.skipTest("to become another user needs root")
        self.start("--max-connections", "50", "--max-connections-per-client", "10")
        os.chmod(self.dir, 0o711)
        ready, theirs = os.pipe()
        end, ours = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgid(65534)
                os.setuid(65534)
                os.write(theirs, b"%d\n" % self.admit(30, address=self.d.socket))
                flood = threading.Thread(target=self.flood, daemon=True)
                flood.start()
                os.write(theirs, b"flooding\n")
                os.read(end, 1)
            finally:
                os._exit(0)
        os.close(theirs)
        with os.fdopen(ready) as lines:
            self.assertEqual(lines.readline(), "10\n")
            self.assertEqual(lines.readline(), "flooding\n")
            for _ in range(5):
                s = self.administrate()
            harness.wait_until(lambda: self.stat(self.d)["refused_client"] > 1000,
                               what="the flood to be refused")
        self.assertEqual(s["refused_full"], 0)
        os.write(ours, b".")
        os.waitpid(child, 0)
        for fd in (end, ours):
            os.close(fd)

    def flood(self):
        """Fills the socket's backlog without end; ended with the process."""
        while True:
            some = []
            try:
                for _ in range(200):
                    some.append(rpc.Connection(self.d.socket))
            except OSError:
                pass
            for c in some:
                c.close()


class ConnectionEachTest(LimitsTest):
    """Clients with a connection for each request, of ten times as many as there may be."""

    LIMIT = 8

    def setUp(self):
        super().setUp()
        self.unix = str(self.dir / "http.sock")
        self.start("--max-connections", str(self.LIMIT), "--max-connections-per-client",
                   str(self.LIMIT // 2), "--http", "127.0.0.1:0", "--http", f"unix:{self.unix}")
        self.http = harness.wait_until(lambda: http_front.http_address(self.d), what="the HTTP front")
        self.url = http_front.stored("http://a.test/?fault=size:60K")

    def no_refusal(self):
        self.assertEqual(self.stat(self.d)["connections_refused"], 0)

    def test_that_http_ends(self):
        for n in range(10 * self.LIMIT):
            c = http_front.Connection(self.unix if n % 4 == 3 else self.http)
            response = (c.get(self.url, version="1.0") if n % 2 else
                        c.get(self.url, "Connection: close"))
            self.assertEqual((response.status, len(response.body)), (200, 60 << 10))
            self.assertTrue(c.is_closed())
            c.close()
        self.no_refusal()

    def test_that_http_clients_end(self):
        for _ in range(10 * self.LIMIT):
            c = http_front.Connection(self.http)
            self.assertEqual(len(c.get(self.url).body), 60 << 10)
            c.close()
        self.no_refusal()

    def test_that_rpc_clients_end(self):
        for _ in range(10 * self.LIMIT):
            with rpc.Connection(self.d.address) as c:
                self.assertEqual(len(c.get("http://a.test/?fault=size:60K").body), 60 << 10)
        self.no_refusal()


class DescriptorsTest(LimitsTest):
    LIMIT = 200

    def bounded(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))

    def lowered(self, d):
        """(connections, of one client, fetches) that the daemon says it serves."""
        start = "the limit of open files is"
        harness.wait_until(lambda: start in d.err, what="the warning")
        line = next(x for x in d.err.splitlines() if start in x)
        words = line.replace("(", " ").split()
        self.assertIn(f"{start} {self.LIMIT},", line)
        numbers = [int(w) for w in words[words.index("most"):] if w.isdigit()]
        return numbers if len(numbers) == 3 else [numbers[0], 0, numbers[1]]

    def test_fetches_and_administrators_have_descriptors_left(self):
        self.start("--max-connections-per-client", "0", "--max-fetches-per-client", "0",
                   "--max-fetches-waiting", "4096", preexec=self.bounded)
        connections, _, fetches = self.lowered(self.d)
        self.assertGreater(connections, 40)
        self.assertGreater(fetches, 10)
        self.assertEqual(self.admit(CROWD), connections)
        self.assertEqual(self.administrate()["refused_full"], CROWD - connections)
        # As many fetches as there may be, to different origins, with all connections taken.
        for n in range(2 * fetches):
            self.crowd[n % connections].send(rpc.record(rpc.call(
                xid=n, procedure=rpc.V2_GET,
                arguments=rpc.get_arguments(f"http://h{n}.test/?fault=delay:1s"))))
        harness.wait_until(lambda: self.stat(self.d)["fetches_active"] == fetches, what="fetches")
        self.assertEqual(self.admit(RESERVE, address=self.d.socket), RESERVE)
        self.assertLessEqual(self.d.descriptors(), self.LIMIT)
        for n in range(2 * fetches):
            reply = self.crowd[n % connections].receive()
            self.assertEqual(rpc.Page(reply.results).status, "ok")
        self.assertEqual(self.crowd[-1].stat().refused_descriptors, 0)

    def test_the_share_of_a_client_is_lowered_as_well(self):
        self.start(preexec=self.bounded)
        connections, of_one, _ = self.lowered(self.d)
        self.assertEqual(of_one, connections // 4)
        self.assertEqual(self.admit(connections), of_one)
        self.assertEqual(self.admit(1, "127.0.0.2"), 1)

    def test_an_origin_that_is_silent_leaves_fetches_to_others(self):
        self.start("--max-fetches-per-client", "0", "--max-fetches", "512",
                   "--max-fetches-waiting", "512", "--max-fetches-per-origin", "64",
                   "--stop-timeout", "1s", preexec=self.bounded)
        fetches = self.lowered(self.d)[2]
        self.assertLess(fetches, 64)
        clients = [f"127.0.0.{n}" for n in range(2, 6)]
        for client in clients:
            self.admit(1, client)
        for n in range(2 * fetches):
            self.crowd[n % len(clients)].send(rpc.record(rpc.call(
                xid=n, procedure=rpc.V2_GET,
                arguments=rpc.get_arguments(f"http://h.test/{n}?fault=hang-silent"))))
        harness.wait_until(lambda: self.stat(self.d)["fetches_queued"] >= fetches,
                           what="fetches in the queue")
        self.admit(1, "127.0.0.6")
        self.assertEqual(self.crowd[-1].get("http://other.test/").status, "ok")

    def test_a_store_that_leaves_no_connections_is_refused(self):
        for checks in ("--check-config", "--no-rpcbind"):
            for size, status in (("10G", 0), ("100G", 78)):
                if (checks, status) == ("--no-rpcbind", 0):
                    continue  # it would serve
                done = self.run_program(
                    ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh", harness.SUNPROXYD, checks,
                     "--listen", "none", "--socket", "none", "--http", "127.0.0.1:0",
                     "--store", str(self.dir / "store"), "--store-size", size])
                self.assertEqual(done.returncode, status, done.stderr)
                if status:
                    self.assertIn(b"--store-size: a store of 107374182400 bytes needs 1008 open files",
                                  done.stderr)
        self.assertFalse((self.dir / "store").exists())

    def test_nothing_is_said_where_all_have_descriptors(self):
        self.start("--max-connections", "30", "--max-fetches", "10", preexec=self.bounded)
        self.assertEqual(self.admit(40), 30)
        self.assertNotIn("open files", self.d.err)

    def test_administrators_get_in_after_the_limit_was_lowered(self):
        self.start("--max-connections-per-client", "0")
        self.admit(1)
        soft, hard = resource.prlimit(self.d.pid, resource.RLIMIT_NOFILE)
        limit = self.d.descriptors() + RESERVE + 10
        resource.prlimit(self.d.pid, resource.RLIMIT_NOFILE, (limit, hard))
        answered = self.admit(60)
        self.assertGreater(answered, 0)
        s = self.administrate()
        self.assertEqual(s["refused_descriptors"], 60 - answered)
        # A fetch does not get the administrators' descriptors either.
        page = self.crowd[0].get("http://a.test/")
        self.assertEqual(page.status, "overloaded")
        self.assertIn("no descriptor is left", page.sentence)
        # With every descriptor taken, too: the last ones by administrators.
        taken = self.admit(RESERVE, address=self.d.socket)
        self.assertGreaterEqual(taken, RESERVE - 2)
        self.assertEqual(self.admit(1), 0)
        for _ in range(4):
            self.crowd.pop().close()
        harness.wait_until(lambda: self.admit(1, address=self.d.socket), what="a place again")


class RatesTest(LimitsTest):
    def pipeline(self, c, count, url="http://a.test/"):
        """Asks for a page that many times at once; the answers."""
        call = [rpc.record(rpc.call(xid=n, procedure=rpc.V2_GET, arguments=rpc.get_arguments(url)))
                for n in range(count)]
        c.send(b"".join(call))
        return [rpc.Page(c.receive().results) for _ in call]

    def test_calls_wait(self):
        self.start("--rate-calls", "100:5")
        self.admit(1)
        begin = time.monotonic()
        pages = self.pipeline(self.crowd[0], 40)
        self.assertEqual({p.status for p in pages}, {"ok"})
        self.assertGreater(time.monotonic() - begin, 0.33)
        s = self.administrate()
        self.assertGreater(s["calls_delayed"], 10)
        self.assertEqual((s["calls_bad"], s["clients"]), (0, 1))
        # Administrators do not wait, nor do others.
        with rpc.Connection(self.d.socket) as admin:
            self.pipeline(admin, 200)
        self.assertEqual(self.admit(1, "127.0.0.2"), 1)
        self.assertEqual(self.stat(self.d)["calls_delayed"], s["calls_delayed"])
        self.assertIn(b"RPC calls delayed", self.sunproxy("stat", daemon=self.d).stdout)

    def test_bytes_wait(self):
        self.start("--rate-bytes", "1M:64K")
        self.admit(2)
        url = "http://a.test/?fault=size:300K"
        begin = time.monotonic()
        for c in self.crowd:
            self.assertEqual(len(c.get(url).body), 300 << 10)
        self.assertTrue(self.crowd[0].ping())
        self.assertGreater(time.monotonic() - begin, 0.45)
        self.assertGreater(self.stat(self.d)["calls_delayed"], 0)

    def test_fetches_are_refused(self):
        self.start("--rate-fetches", "1:3", "--client-prefix-ipv4", "31")
        self.admit(1, "127.0.0.2")
        self.admit(1, "127.0.0.3")
        self.admit(1, "127.0.0.4")
        one, other, third = self.crowd
        self.assertEqual([one.get(f"http://{n}.test/").source for n in range(2)], ["miss"] * 2)
        # Both join one fetch, which is the third.
        slow = rpc.record(rpc.call(procedure=rpc.V2_GET,
                                   arguments=rpc.get_arguments("http://s.test/?fault=delay:300ms")))
        for c in (one, other):
            c.send(slow)
        self.assertEqual(sorted(rpc.Page(c.receive().results).source for c in (one, other)),
                         ["coalesced", "miss"])
        pages = (other.get(f"http://x{n}.test/") for n in range(50))
        page = next(p for p in pages if p.status != "ok")
        self.assertEqual(page.status, "overloaded")
        self.assertRegex(page.sentence, "^the rate of fetches for this client is used up; "
                                        r"try again in [0-9.]+ (ms|us|s)$")
        # What is in the cache needs none.
        for _ in range(20):
            self.assertEqual(other.get("http://0.test/").source, "hit")
        self.assertEqual(third.get("http://third.test/").source, "miss")
        with rpc.Connection(self.d.socket) as admin:
            for n in range(10):
                self.assertEqual(admin.get(f"http://admin{n}.test/").source, "miss")
        # Nor does a new connection help; past the cache or in version 1.
        with rpc.Connection(self.d.address, source="127.0.0.2") as late:
            statuses = (late.get(f"http://y{n}.test/", flags=rpc.FLAG_NO_STORE).status
                        for n in range(50))
            self.assertIn("overloaded", statuses)
            replies = (late.ask(version=1, procedure=1, arguments=rpc.opaque(f"http://z{n}.test/"))
                       for n in range(50))
            self.assertIn("SYSTEM_ERR", (r.status for r in replies))
        s = self.stat(self.d)
        self.assertGreaterEqual(s["fetches_refused"], 3)
        self.assertEqual((s["calls_delayed"], s["clients"]), (0, 2))

        def fetched_again():
            return other.get("http://again.test/").status == "ok"

        harness.wait_until(fetched_again, what="a fetch again")

    def test_without_rates_nothing_is_counted(self):
        self.start()
        self.admit(1)
        self.pipeline(self.crowd[0], 500)
        s = self.stat(self.d)
        self.assertEqual((s["calls_delayed"], s["fetches_refused"]), (0, 0))

    def test_rates_that_cannot_be(self):
        for option, text in (("--rate-calls", "ten"), ("--rate-calls", "10:0"),
                             ("--rate-calls", "10:"), ("--rate-fetches", "-1"),
                             ("--rate-calls", "1M"), ("--rate-bytes", "1M:2M:3M"),
                             ("--rate-bytes", "2T"), ("--client-prefix-ipv4", "33")):
            done = self.run_daemon("--check-config", option, text)
            self.assertEqual(done.returncode, harness.EX_USAGE, text)
            self.assertIn(option[2:], done.stderr.decode())
        done = self.run_daemon("--check-config", "--rate-calls", "10", "--rate-bytes", "1M:20M")
        self.assertIn(b"\nrate-calls = 10:10\n", done.stdout)
        self.assertIn(b"\nrate-fetches = 0\n", done.stdout)
        self.assertIn(b"\nrate-bytes = 1048576:20971520\n", done.stdout)
class ControlGroupTest(harness.SystemTest):
    needs = (harness.SUNPROXYD,)

    def options(self, **files):
        """Those in force where the control group has these files."""
        namespace = harness.Namespace(self)
        script = ["mount -t tmpfs tmpfs /sys/fs/cgroup"]
        script += [f"echo {text} > /sys/fs/cgroup/{name.replace('_', '.')}" for name, text in files.items()]
        script += [f"{harness.SUNPROXYD} --no-rpcbind --socket {self.dir}/s --check-config"]
        done = namespace.run(["unshare", "-m", "sh", "-c", " && ".join(script)])
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(line.split(" = ") for line in done.stdout.decode().splitlines() if " = " in line)

    def test_memory_is_lowered_to_it(self):
        if not any(line.startswith("0::/") for line in open("/proc/self/cgroup")):
            self.skipTest("this process is in no control group of version 2")
        free = self.options(memory_max="max")
        self.assertEqual((free["capacity-bytes"], free["max-transit"]), ("268435456", "1073741824"))
        bound = self.options(memory_max=str(512 << 20))
        self.assertEqual((bound["capacity-bytes"], bound["max-transit"]), (str(224 << 20), str(224 << 20)))


