"""What the commands of the laboratory take a trace for: the files, the sizes, the lifetime of pages."""

import contextlib
import json
import os
import random
import select
import subprocess

import harness
from simulate_case import SimulateCase


class SeveralFilesTest(SimulateCase):
    """A rotated log: three files, the newest first."""

    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        rows = [f"{1700000000 + n}\thttp://h/{int(40 * draw.random() ** 2)}\t{900 + n % 7}\n"
                for n in range(450)]
        self.whole = self.table("whole.tsv", rows)
        self.parts = [self.table(f"log.{n}", rows[150 * (2 - n):150 * (3 - n)]) for n in range(3)]

    def table(self, name, rows):
        path = self.dir / name
        path.write_text("time\turl\tsize\n" + "".join(rows))
        return path

    def describe(self, *arguments):
        done = self.sunproxy("trace", "describe", "--json", *arguments)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_they_are_one_trace_in_every_command(self):
        def alike(trace, files):
            self.assertEqual(trace.pop("files"), files)
            trace.pop("trace")
            for result in trace.get("results", []) + trace.get("policies", []):
                result.pop("cpu_us", None)
            return trace

        for command in ("simulate", "advise"):
            how = ["--policy", "lru,arc"]
            joined = self.summary(*self.parts, *how, command=command)
            alone = self.summary(self.whole, *how, command=command)
            if command == "simulate":
                [joined], [alone] = joined["traces"], alone["traces"]
            self.assertEqual(alike(joined, 3), alike(alone, 1), command)
        [joined], [alone] = self.describe(*self.parts), self.describe(self.whole)
        self.assertEqual(alike(joined, 3), alike(alone, 1))
        self.assertEqual(joined["requests"], 450)
        text = self.simulate(*self.parts, "--policy", "lru").stdout.decode()
        self.assertTrue(text.startswith(f"{self.parts[0]} and 2 more files (ordered by time) (table): "
                                        "450 requests for 40 URLs"), text)
        self.assertIn(" and 2 more files (ordered by time)", self.simulate(
            *self.parts, "--policy", "lru", "--curve").stdout.decode())

    def test_they_are_as_many_traces_with_separate(self):
        traces = self.summary("--separate", *self.parts, "--policy", "lru")["traces"]
        self.assertEqual([t["trace"] for t in traces], [str(p) for p in self.parts])
        self.assertEqual([t["requests"] for t in traces], [150] * 3)
        traces = self.describe("--separate", *self.parts)
        self.assertEqual([t["requests"] for t in traces], [150] * 3)

    def test_they_are_converted_to_one(self):
        def converted(*paths):
            return self.sunproxy("trace", "convert", "--to", "tsv", *paths).stdout

        self.assertEqual(converted(*self.parts), converted(self.whole))
        # Without times they follow each other.
        one, two = self.trace(["http://h/b"], "b"), self.trace(["http://h/a"], "a")
        self.assertEqual(self.sunproxy("trace", "convert", "--to", "urls", one, two).stdout,
                         b"http://h/b\nhttp://h/a\n")

    def test_an_option_for_the_whole(self):
        [whole] = self.describe(*self.parts, "--limit", "200")
        self.assertEqual((whole["requests"], whole["first_us"]), (200, 1700000000 * 10**6))


class SizesTest(SimulateCase):
    """Sizes that are all 1 are unknown."""

    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.urls = self.trace([f"http://h/{int(60 * draw.random() ** 3)}" for _ in range(600)])
        self.oracle = self.dir / "requests.oracleGeneral"
        self.sunproxy("trace", "convert", self.urls, "-o", self.oracle)

    def test_urls_and_an_oracle_trace_without_sizes_get_the_same_answer(self):
        how = ["--policy", "lru,arc,gdsf,opt"]
        for command, more in (("simulate", []), ("simulate", ["--curve", "--points", "5"]),
                              ("advise", [])):
            answers = []
            for trace in (self.urls, self.oracle):
                answer = self.summary(trace, *how, *more, command=command)
                for one in [answer, *answer.get("traces", [])]:
                    for name in ("trace", "format"):
                        one.pop(name, None)
                answers.append(self.without_times(answer))
            self.assertEqual(*answers)
        self.assertRegex(self.sunproxy("advise", self.oracle, *how).stdout.decode(),
                         r"\n  \S+ with \d+ URLs, ")

    def without_times(self, value):
        if isinstance(value, dict):
            return {k: self.without_times(v) for k, v in value.items() if k != "cpu_us"}
        return [self.without_times(v) for v in value] if isinstance(value, list) else value

    def test_it_is_said(self):
        done = self.sunproxy("trace", "describe", "--json", self.oracle)
        self.assertIn("all sizes are 1 and taken to be unknown", done.stderr.decode())
        self.assertIsNone(json.loads(done.stdout)["bytes"])
        done = self.sunproxy("trace", "describe", "--json", "--sizes-as-read", self.oracle)
        self.assertEqual(json.loads(done.stdout)["bytes"], 600)
        self.assertIn("needs sizes", self.complaint(self.oracle, "--by-bytes", command="advise"))


class LifetimeTest(SimulateCase):
    """Which lifetime is assumed of pages, and what an infinite cache hits with it."""

    def setUp(self):
        super().setUp()
        # Each page comes twice within 5 s, and after 100 s again.
        self.timed = self.dir / "timed.tsv"
        self.timed.write_text("time\turl\n" + "".join(
            f"{100 * n + m}\thttp://h/{m // 2}\n" for n in range(10) for m in range(20)))

    def test_an_infinite_cache_keeps_it(self):
        trace, = self.summary(self.timed, "--policy", "lru", "--capacity", "10")["traces"]
        self.assertEqual(trace["infinite"]["hit_ratio"], 0.95)
        trace, = self.summary(self.timed, "--policy", "lru", "--capacity", "10", "--ttl",
                              "20s")["traces"]
        self.assertEqual(trace["infinite"]["hit_ratio"], 0.5)
        self.assertEqual([r["hit_ratio"] for r in trace["results"]], [0.5])
        advice = self.summary(self.timed, "--policy", "lru", "--ttl", "20s", command="advise")
        self.assertEqual((advice["infinite"]["hit_ratio"], advice["capacity_urls"]), (0.5, 1))
        trace, = self.summary(self.timed, "--policy", "lru", "--capacity", "10", "--min-uses",
                              "3")["traces"]
        self.assertEqual([r["hit_ratio"] for r in trace["results"]],
                         [trace["infinite"]["hit_ratio"]])

    def test_the_first_lines_state_it(self):
        never, soon = "pages are assumed never to expire (no --ttl)", \
            "pages expire 20.00 s after they are stored (--ttl)"
        for command in (["simulate"], ["simulate", "--curve"], ["simulate", "--markdown"], ["advise"]):
            for more, words in (([], never), (["--ttl", "20s"], soon)):
                text = self.sunproxy(*command, self.timed, "--policy", "lru", *more).stdout.decode()
                self.assertIn(words, "\n".join(text.splitlines()[:4]), text)
        self.assertIn("all of them are 100%", self.complaint(self.timed, "--sample", "1"))
        self.summary(self.timed, "--policy", "lru", "--sample", "100%")


class LoadingTest(harness.SystemTest):
    """A long load shows on a terminal how far it is."""

    needs = (harness.SUNPROXY,)

    def test_progress(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        keep = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)  # the trace does not end before the test wants it to
        terminal, theirs = harness.open_pty()
        run = subprocess.Popen(
            [harness.SUNPROXY, "simulate", "--policy", "lru", fifo], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=theirs,
            env=harness.sanitizer_environment(self.dir / "sanitizer", {"TERM": "vt100", "NO_COLOR": ""}))
        os.close(theirs)
        seen = b""

        def look():
            nonlocal seen
            with contextlib.suppress(BlockingIOError):
                os.write(keep, b"http://h/a\n" * 5000)
            if select.select([terminal], [], [], 0.05)[0]:
                seen += os.read(terminal, 4096)
            return b"\rreading " in seen

        harness.wait_until(look, what="the progress of reading")
        self.assertRegex(seen, rb"\rreading [\d.]+ [KM]iB ")
        os.close(keep)
        self.assertEqual(run.wait(timeout=60), 0, seen)
        os.close(terminal)


if __name__ == "__main__":
    harness.main()
