"""How far one machine goes: the short form of its benchmark, the memory of idle connections, and many workers."""

import contextlib
import io
import resource
import sys
import types
import unittest.mock

import harness
import http_front
import rpc

sys.path.insert(0, str(harness.TOP / "tests/bench"))
import disk


class ScaleTest(harness.SystemTest):
    def test_everything_is_measured(self):
        """tests/bench/scale.py works; the figures of so few are not looked at."""
        done = self.run_program([harness.TOP / "tests/bench/scale.py", "--build", harness.BUILD, "--smoke"],
                                seconds=500)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        for row in ("| HTTP |", "| RPC |", "| 10,000 |", "| prefix | 10,000 | 2 | 10,000 |",
                    "| all | 10,000 | 2 | 10,000 | 2 |", "| 64 |"):
            self.assertIn(row, text)
        # Each hold is for 64 objects at most.
        line = next(line for line in text.splitlines() if line.startswith("| prefix | "))
        self.assertGreaterEqual(int(line.split(" | ")[4]), 10000 // 64)

    def test_a_model_of_many_daemons(self):
        """tests/bench/fleet.py: where it says what the simulator says, the two agree."""
        done = self.run_program([harness.TOP / "tests/bench/fleet.py", "--build", harness.BUILD, "--requests", "10000",
                                 "--pages", "50", "--daemons", "1,4,32", "--keys", "200"], seconds=500)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
        alone = next(row for row in rows if row[1:3] == ["1", "alone"])
        self.assertEqual(alone[3], alone[6])
        owners = next(row for row in rows if row[1:3] == ["4", "owners, one group of 4"])
        self.assertAlmostEqual(float(owners[3]) + float(owners[4]), float(owners[6]), delta=2)
        self.assertIn("both daemons together", text)

    def test_64_workers(self):
        """They serve and stop, on any number of processors and with few descriptors."""
        origin = self.origin()
        d = self.daemon("--workers", "64", origin=origin,
                        preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
        self.assertEqual(self.stat(d)["workers"], 64)
        for n in range(64):
            connection = rpc.Connection(d.address)
            self.addCleanup(connection.close)
            self.assertEqual(connection.get(f"http://many.test/{n % 8}").status, "ok")
        d.stop()


class IdleTest(harness.SystemTest):
    """The release build is measured: a connection that waits for the next request takes at most 1 KiB."""

    COUNT = 2000

    def setUp(self):
        super().setUp()
        if not harness.RELEASE_SUNPROXYD.exists():
            self.skipTest(f"{harness.RELEASE_SUNPROXYD} is not built")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < 2 * self.COUNT:
            self.skipTest(f"only {hard} descriptors may be had")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.http = harness.free_port()
        self.d = self.daemon("--http", f"127.0.0.1:{self.http}", "--max-connections-per-client", "0",
                             origin=self.origin(), program=harness.RELEASE_SUNPROXYD)

    def bytes_of_a_connection(self, connect):
        for _ in range(200):
            connect()
        before = self.d.rss()
        for _ in range(self.COUNT):
            connect()
        return (self.d.rss() - before) / self.COUNT

    def test_http(self):
        def connect():
            c = http_front.Connection(("127.0.0.1", self.http))
            self.addCleanup(c.close)
            c.send("GET http://idle.test/ HTTP/1.1\r\nHost: idle.test\r\n\r\n")
            self.assertEqual(c.receive().status, 200)

        self.assertLessEqual(self.bytes_of_a_connection(connect), 1024)

    def test_rpc(self):
        def connect():
            c = rpc.Connection(self.d.address)
            self.addCleanup(c.close)
            self.assertEqual(c.get("http://idle.test/").status, "ok")

        self.assertLessEqual(self.bytes_of_a_connection(connect), 1024)


class DiskBenchTest(unittest.TestCase):
    """tests/bench/disk.py, without servers."""

    def test_turns_that_are_repeated_are_told(self):
        figures = {"requests": 100, "cpu_us": 5, "median_us": 3, "requests_per_second": 9, "origin_us": 0}
        bench = disk.Bench.__new__(disk.Bench)
        results = {}
        with unittest.mock.patch.object(disk.time, "sleep"):
            for name, counts in (("sunproxyd", [10, 89, 90, 100]), ("nginx", [None, None])):
                counts = iter(counts)
                bench.turn = lambda *_: {**figures, "from_disk": next(counts)}
                results[name] = [bench.measure(types.SimpleNamespace(name=name), 1, 2) for _ in range(2)]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            disk.print_case("case", results)
        lines = {line.split()[0]: line for line in out.getvalue().splitlines() if line}
        self.assertIn("(2 of 4 turns were not from disk, and were repeated)", lines["sunproxyd"])
        self.assertNotIn("repeated", lines["nginx"])
