"""Registration with a real rpcbind, in namespaces of the test's own."""

import re

import harness
import rpc

PROGRAM = str(rpc.PROGRAM)
WANTED = {("1", "tcp"), ("1", "tcp6"), ("1", "local"), ("2", "tcp"), ("2", "tcp6"), ("2", "local")}


class RpcbindTest(harness.SystemTest):
    seconds = 10

    def setUp(self):
        super().setUp()
        self.ns = harness.Namespace(self)

    def start(self, *options, **more):
        return self.daemon(*options, namespace=self.ns, rpcbind=True, listen=False, **more)

    def entries(self):
        """{(version, netid): universal address} of our program."""
        done = self.ns.run(["rpcinfo", "127.0.0.1"])
        rows = {}
        for line in done.stdout.decode().splitlines():
            fields = line.split()
            if fields and fields[0] == PROGRAM:
                rows[(fields[1], fields[2])] = fields[3]
        return rows

    def registered(self, seconds=20):
        return harness.wait_until(
            lambda: (e := self.entries()) and set(e) == WANTED and e, seconds, "registration")

    @staticmethod
    def port_of(entries):
        high, low = re.search(r"(\d+)\.(\d+)$", entries[("1", "tcp")]).groups()
        return int(high) * 256 + int(low)

    def test_both_versions_on_three_transports(self):
        self.ns.rpcbind()
        d = self.start()
        entries = self.registered()
        port = self.port_of(entries)
        self.assertIn(f"port {port}", d.err)
        self.assertEqual(entries[("2", "tcp")], entries[("1", "tcp")])
        # Other hosts cannot reach the daemon, and are not told to.
        self.assertTrue(entries[("1", "tcp")].startswith("127.0.0.1."), entries)
        self.assertTrue(entries[("1", "tcp6")].startswith("::1."), entries)
        self.assertEqual(entries[("2", "local")], d.socket)
        self.assertEqual(d.stop(), 0, d.err)
        self.assertEqual(self.entries(), {})

    def test_other_hosts_need_listen_and_client_net(self):
        """An address of this host stands for another host: it is not of 127.0.0.0/8."""
        added = self.ns.run(["ip", "address", "add", "10.9.9.1/32", "dev", "lo"])
        self.assertEqual(added.returncode, 0, added.stderr)
        self.ns.rpcbind()
        everywhere = ("--listen", "0.0.0.0", "--listen", "::")

        def stat(*options):
            d = self.start(*options)
            self.registered()
            done = self.ns.run([harness.SUNPROXY, "stat", "--host", "10.9.9.1"])
            self.assertEqual(d.stop(), 0, d.err)
            return done, d

        done, _ = stat()
        self.assertEqual(done.returncode, 69, done.stderr)
        done, d = stat(*everywhere)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn(b"--client-net", done.stderr)
        self.assertIn("--client-net", d.err)
        done, d = stat(*everywhere, "--client-net", "10.9.9.0/24")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("--client-net", d.err)

    def test_rpcinfo_calls_it(self):
        self.ns.rpcbind()
        self.start()
        self.registered()
        for argv in (["-t", "127.0.0.1", PROGRAM], ["-t", "127.0.0.1", PROGRAM, "1"],
                     ["-t", "127.0.0.1", PROGRAM, "2"], ["-T", "tcp", "127.0.0.1", PROGRAM, "1"],
                     ["-T", "tcp", "127.0.0.1", PROGRAM, "2"], ["-T", "tcp6", "::1", PROGRAM, "1"]):
            done = self.ns.run(["rpcinfo", *argv])
            self.assertEqual(done.returncode, 0, (argv, done.stdout, done.stderr))
            self.assertIn(b"ready and waiting", done.stdout)
        done = self.ns.run(["rpcinfo", "-t", "127.0.0.1", PROGRAM, "3"])
        self.assertNotEqual(done.returncode, 0)

    def test_rpcbind_comes_later(self):
        d = self.start()
        with rpc.Connection(d.socket) as c:
            self.assertTrue(c.ping(), "it serves meanwhile")
        harness.wait_until(lambda: "rpcbind" in d.err, what="a word on it")
        self.ns.rpcbind()
        self.registered()

    def test_rpcbind_is_restarted(self):
        first = self.ns.rpcbind()
        self.start()
        before = self.registered()
        first.kill()
        self.ns.rpcbind()
        self.assertEqual(self.registered(), before)

    def test_what_a_killed_daemon_left_is_replaced(self):
        self.ns.rpcbind()
        d = self.start()
        stale = self.registered()
        d.kill()
        self.assertEqual(self.entries(), stale)
        again = self.start()

        def replaced():
            entries = self.entries()
            return (set(entries) == WANTED and entries[("1", "local")] == again.socket
                    and self.port_of(entries) != self.port_of(stale))

        # One entry after another is removed, and another takes its place.
        harness.wait_until(replaced, what="the new entries")
        done = self.ns.run(["rpcinfo", "-t", "127.0.0.1", PROGRAM, "2"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(again.stop(), 0)
        self.assertEqual(self.entries(), {})

    def test_another_daemons_entries_are_left_alone(self):
        self.ns.rpcbind()
        first = self.start()
        self.registered()
        second = self.start()
        harness.wait_until(lambda: self.entries().get(("1", "local")) == second.socket,
                           what="the second's entries")
        self.assertEqual(first.stop(), 0)
        entries = self.registered()
        self.assertEqual(entries[("1", "local")], second.socket)

    def test_no_rpcbind_asked_for(self):
        self.ns.rpcbind()
        d = self.daemon(namespace=self.ns, listen=False)
        with rpc.Connection(d.socket) as c:
            self.assertTrue(c.ping())
        self.assertEqual(self.entries(), {})

    def test_stopping_without_rpcbind(self):
        process = self.ns.rpcbind()
        d = self.start()
        self.registered()
        process.kill()
        self.assertEqual(d.stop(30), 0, d.err)

    def test_stopping_while_rpcbind_does_not_answer(self):
        import signal

        process = self.ns.rpcbind()
        d = self.start()
        self.registered()
        process.signal(signal.SIGSTOP)
        self.assertEqual(d.stop(30), 0, d.err)
