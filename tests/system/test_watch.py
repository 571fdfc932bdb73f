"""sunproxy stat --watch: a page that is redrawn on a terminal, lines elsewhere, objects with --json."""

import csv
import json
import os
import re
import select
import signal
import subprocess

import harness

CLEAR = b"\033[H\033[2J"


class WatchTest(harness.SystemTest):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def setUp(self):
        super().setUp()
        self.d = self.daemon(origin=self.origin())

    def watch(self, *arguments, stdout=subprocess.PIPE, term="xterm"):
        self.runs += 1
        run = subprocess.Popen(
            [harness.SUNPROXY, "stat", "--socket", self.d.socket, *arguments],
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
            env=harness.sanitizer_environment(self.dir / f"sanitizer.{self.runs}",
                                              {"TERM": term, "NO_COLOR": ""}))
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def get(self, count):
        self.sunproxy("get", *(f"http://a.test/{n}" for n in range(count)), daemon=self.d)

    def lines(self, run, wanted):
        """The lines of a pipe, up to the one that wanted() is true of."""
        seen = []
        while not seen or not wanted(seen):
            line = run.stdout.readline()
            self.assertTrue(line.endswith(b"\n"), seen)
            seen.append(line.decode())
        return seen

    def ended(self, run, status, words):
        self.assertEqual(run.wait(300), status)
        self.assertRegex(run.stderr.read(), words)

    def test_lines_in_a_pipe(self):
        run = self.watch("--watch=.02")
        seen = self.lines(run, lambda seen: len(seen) == 2)
        self.assertEqual(seen[0].split()[:3], ["requests/s", "hits/s", "hit"])
        self.assertEqual(seen[1].split()[:3], ["0.0", "0.0", "0.00"])
        self.get(9)
        self.lines(run, lambda seen: float(seen[-1].split()[0]) > 0)
        self.get(9)
        row = self.lines(run, lambda seen: seen[-1].split()[2] == "100.00")[-1].split()
        self.assertEqual((row[0], row[5]), (row[1], "9"))
        # No rate is reckoned over counters that were set to zero in between.
        self.sunproxy("set", "--cold", daemon=self.d)
        for line in self.lines(run, lambda seen: seen[-1].split()[5] == "0"):
            self.assertTrue("hits/s" in line or "-" not in line, line)
        # The columns are named again after twenty lines.
        seen = self.lines(run, lambda seen: "requests/s" in seen[-1])
        self.assertEqual(len(self.lines(run, lambda seen: "requests/s" in seen[-1])), 21)
        run.stdout.close()
        self.ended(run, 74, rb"\A\Z")

    def test_a_page_on_a_terminal(self):
        master, slave = harness.open_pty()
        run = self.watch("--watch=.02", stdout=slave)
        os.close(slave)
        seen = b""

        def pages():
            nonlocal seen
            if select.select([master], [], [], .1)[0]:
                seen += os.read(master, 65536)
            return seen.split(CLEAR)[1:-1]

        try:
            first = harness.wait_until(pages, what="the first page")[0]
            self.assertNotRegex(first, rb"\d\.\d/s|B/s")  # the path of a socket may have "5/s"
            self.get(9)
            harness.wait_until(
                lambda: any(re.search(rb"(?m)^requests +9 +\d+\.\d/s\r?$", page)
                            and re.search(rb"(?m)^bytes served +\S+ \S+ +\S+ \S+/s\r?$", page)
                            for page in pages()), what="a page with rates")
            self.d.stop()
            while run.poll() is None:
                if select.select([master], [], [], .1)[0]:
                    try:
                        os.read(master, 65536)
                    except OSError:
                        break
            self.ended(run, 69, rb"sunproxy stat: .+")
        finally:
            os.close(master)

    def test_lines_on_a_dumb_terminal(self):
        master, slave = harness.open_pty()
        run = self.watch("--watch=.02", stdout=slave, term="dumb")
        os.close(slave)
        seen = b""
        while seen.count(b"\n") < 3:
            seen += os.read(master, 65536)
        self.assertNotIn(b"\033", seen)
        self.assertTrue(seen.lstrip().startswith(b"requests/s"), seen)
        os.close(master)
        self.ended(run, 74, rb"\A\Z")

    def test_objects_with_json(self):
        run = self.watch("--watch=.02", "--json")
        first, second = map(json.loads, self.lines(run, lambda seen: len(seen) == 2))
        self.assertNotIn("per_second", first)
        self.assertEqual(second["per_second"]["requests"], 0)
        self.assertNotIn("pages", second["per_second"])
        self.get(9)
        seen = self.lines(run, lambda seen: json.loads(seen[-1])["per_second"]["misses"] > 0)
        rates = json.loads(seen[-1])["per_second"]
        self.assertEqual(set(rates) - set(first), set())
        self.assertGreater(rates["bytes_served"], 0)
        self.d.stop()
        for line in run.stdout:
            json.loads(line)
        run.stdout.close()
        self.ended(run, 69, rb"sunproxy stat: .+")

    def test_csv(self):
        run = self.watch("--watch=.02", "--csv")

        def rows(wanted):
            seen = self.lines(run, lambda seen: wanted(next(csv.reader([seen[-1]]))))
            return list(csv.reader(seen))
        head, *first = rows(lambda row: row[1] == "fetched_bytes")
        self.assertEqual(head, ["seconds", "name", "kind", "value", "per_second"])
        self.assertEqual({(row[0], row[4]) for row in first}, {("0.000", "")})
        first = {row[1]: row[2:4] for row in first}
        self.assertEqual(first["policy"], ["text", "lru"])
        self.assertEqual(first['requests{outcome="miss"}'], ["counter", "0"])
        self.assertEqual(first["cache_pages"], ["gauge", "0"])
        self.assertEqual(first["miss_duration_microseconds_count"], ["histogram", "0"])
        self.get(9)
        row = rows(lambda row: row[1] == 'requests{outcome="miss"}' and float(row[4]) > 0)[-1]
        self.assertGreater(float(row[0]), 0)
        self.assertLessEqual(int(row[3]), 9)
        run.stdout.close()
        self.ended(run, 74, rb"\A\Z")

    def test_the_reader_is_gone_before_the_first_line(self):
        reader, writer = os.pipe()
        os.close(reader)
        run = self.watch("--watch=.02", stdout=writer)
        os.close(writer)
        self.ended(run, 74, rb"\A\Z")

    def test_interrupted(self):
        run = self.watch("--watch")
        self.lines(run, lambda seen: len(seen) == 2)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(300), -signal.SIGINT)
        run.stdout.close()
