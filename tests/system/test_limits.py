"""Limits per client: administrators reach a daemon that a client has filled, and clients of other
addresses reach one that a client has filled up to its share."""

import os
import resource
import threading

import harness
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
        with os.fdopen(ready) as told:
            self.assertEqual(told.readline(), "10\n")
            self.assertEqual(told.readline(), "flooding\n")
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


class DescriptorsTest(LimitsTest):
    LIMIT = 200

    def bounded(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.LIMIT, self.LIMIT))

    def lowered(self, d):
        """(connections, of one client, fetches) that the daemon says it serves."""
        line = next(x for x in d.err.splitlines() if "the limit of open files is" in x)
        words = line.replace("(", " ").split()
        self.assertIn(f"the limit of open files is {self.LIMIT},", line)
        numbers = [int(w) for w in words[words.index("most"):] if w.isdigit()]
        return numbers if len(numbers) == 3 else [numbers[0], 0, numbers[1]]

    def test_fetches_and_administrators_have_descriptors_left(self):
        self.start("--max-connections-per-client", "0", "--max-fetches-per-origin", "256",
                   preexec=self.bounded)
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
