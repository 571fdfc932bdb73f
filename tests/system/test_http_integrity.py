"""Short runs of the HTTP soak (tests/soak/http_soak.py, make soak), and what it finds."""

import pathlib
import sys
import tempfile
import time
import unittest

import harness

SOAK = harness.TOP / "tests/soak"
sys.path.insert(0, str(SOAK))
import http_load  # noqa: E402
import http_model  # noqa: E402
import http_wire  # noqa: E402


class SoakTest(harness.SystemTest):
    seconds = 18
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def soak(self, *options):
        env = harness.sanitizer_environment(self.dir / "sanitizer.soak")
        return self.run_program(
            [sys.executable, SOAK / "http_soak.py", *options], seconds=harness.TEST_SECONDS, env={
                "SUNPROXY_BUILD": str(harness.BUILD), "TSAN_OPTIONS": env["TSAN_OPTIONS"],
                "UBSAN_OPTIONS": env["UBSAN_OPTIONS"],
                # Freed memory that AddressSanitizer holds back grows for long.
                "ASAN_OPTIONS": env["ASAN_OPTIONS"] + ":quarantine_size_mb=4"})


class RunTest(SoakTest):
    threads = True

    def test_a_short_run(self):
        done = self.soak("--seconds", "6", "--points", "2")
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())
        self.assertIn(b"\n0 unexpected\n", done.stdout)


class FindingTest(SoakTest):
    def test_pages_that_are_too_old_are_found(self):
        done = self.soak("--seconds", "5", "--points", "1", "--daemon-option=--freshness=off")
        self.assertEqual(done.returncode, 1, done.stdout)
        # Too old, or of another variant.
        self.assertRegex(done.stderr.decode(), r"(?:ended [\d.]+ s before|entity tag).*sunproxy; hit")


class JudgeTest(unittest.TestCase):
    """The load's judgment of responses that a daemon does not give."""

    def setUp(self):
        class Versions:
            ended = 0.0

            def age(self, *_):
                return self.ended

        self.versions = Versions()
        self.load = http_load.Load(self.versions, None, None)
        self.ask = http_load.Ask("fresh", 3)
        self.body = http_model.make_body("fresh", 3, 7)

    def judge(self, status=200, body=None, whole=True, **fields):
        response = http_wire.Response(status, {"etag": '"7"', **fields})
        response.body += self.body if body is None else body
        response.whole = whole
        return self.load.judge(self.ask, response)

    def test_a_good_one(self):
        self.assertIsNone(self.judge())

    def test_other_bytes(self):
        for at in (0, 63, 64, len(self.body) - 1):
            body = bytearray(self.body)
            body[at] ^= 1
            self.assertIn("without its checksum", self.judge(body=body), at)

    def test_another_resource_or_version(self):
        for other in (("fresh", 4, 7), ("fresh", 3, 8), ("purged", 3, 7), ("fresh", 3, 7, "a")):
            self.assertIn("another resource", self.judge(body=http_model.make_body(*other)))

    def test_a_shorter_one(self):
        self.assertIn("without its checksum", self.judge(body=self.body[:-1]))
        self.assertIn("broken off", self.judge(body=self.body[:-1], whole=False))
        self.ask.kind = "faulty"
        self.body = http_model.make_body("faulty", 3, 7)
        self.assertIsNone(self.judge(body=self.body[:-1], whole=False))
        self.assertIn("other bytes", self.judge(body=b"x" + self.body[1:-1], whole=False))

    def test_its_age(self):
        self.versions.ended = 0.9
        self.assertIsNone(self.judge())
        self.ask.validates = True
        self.assertIn("ended 0.900 s before", self.judge())
        self.ask.validates = False
        self.versions.ended = 1.1
        self.assertIn("ended 1.100 s before", self.judge())
        self.versions.ended = 0.0
        self.ask.floor = 8
        self.assertIn("purged or written over", self.judge())

    def test_statuses(self):
        for status in (404, 412, 416, 500, 502):
            self.assertIn(f"status {status}", self.judge(status=status))
        self.assertIn("304", self.judge(status=304, body=b""))
        self.ask.tag = '"7"'
        self.assertIsNone(self.judge(status=304, body=b""))

    def test_parts(self):
        part = {"content-range": f"bytes 10-19/{len(self.body)}"}
        self.assertIn("without a range", self.judge(status=206, body=self.body[10:20], **part))
        self.ask.ranges = [(10, 19)]
        self.assertIsNone(self.judge(status=206, body=self.body[10:20], **part))
        self.assertIn("other bytes", self.judge(status=206, body=self.body[11:21], **part))
        self.ask.ranges = [(10, 18)]
        self.assertIn("was not asked for", self.judge(status=206, body=self.body[10:20], **part))

    def test_the_end_of_versions_is_noted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "versions"
            one, other = http_model.Versions(path), http_model.Versions(path)
            self.assertEqual(one.age("fresh", 3, 0, time.monotonic_ns()), 0)
            self.assertEqual(one.change("fresh", 3), 1)
            self.assertEqual(other.now("fresh", 3), 1)
            self.assertEqual(other.now("fresh", 4), 0)
            self.assertGreater(other.age("fresh", 3, 0, time.monotonic_ns() + 10**9), 1)
            self.assertLess(other.age("fresh", 3, 0, time.monotonic_ns() - 10**9), 0)
            self.assertEqual(other.age("fresh", 3, 1, time.monotonic_ns()), 0)
            self.assertEqual(other.age("fresh", 3, 2, time.monotonic_ns()), float("inf"))
