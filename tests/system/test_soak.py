"""Short runs of the soak (make soak), against the daemon under test and against the release daemon."""

import signal
import sys

import harness

SOAK = harness.TOP / "tests/soak/soak.py"
RELEASE = harness.TOP / "build/release"


class SoakTest(harness.SystemTest):
    seconds = 30

    def environment(self, build):
        for program in ("sunproxyd", "tests/soak/soak"):
            if not (build / program).exists():
                self.skipTest(f"{build}/{program} is not built")
        env = harness.sanitizer_environment(self.dir / "sanitizer.soak")
        return {
            "SUNPROXY_BUILD": str(build), "SUNPROXY_ORIGIN": str(harness.ORIGIN),
            # Freed memory that AddressSanitizer holds back grows for long: to less than a leak. It
            # gives pages back every five seconds, up to 5 MiB at once, so that a point just after
            # that is low and the next ones seem to grow. Without it the points of 14,000 rare
            # requests rise from 30 MiB to 31, and the bytes in use stay at 2.2 MB throughout.
            "ASAN_OPTIONS": env["ASAN_OPTIONS"] + ":quarantine_size_mb=1"
                                                  ":thread_local_quarantine_size_kb=64"
                                                  ":allocator_release_to_os_interval_ms=-1",
            "TSAN_OPTIONS": env["TSAN_OPTIONS"], "UBSAN_OPTIONS": env["UBSAN_OPTIONS"],
        }

    def soak(self, build, requests, *options):
        return self.run_program([sys.executable, SOAK, *options, requests],
                                seconds=harness.TEST_SECONDS, env=self.environment(build))

    def check(self, build, requests):
        done = self.soak(build, requests)
        out, err = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, 0, out + err)
        lines = out.splitlines()
        self.assertEqual(len(lines[1:lines.index("")]), 10, "a line for each point")
        rare = lines[lines.index("rare rows alone:") + 2:lines.index("answered as expected:") - 1]
        self.assertEqual(len(rare), 6, "a line for each point with rare rows")
        self.assertEqual(lines[10].split()[0], str(requests))
        rows = lines[lines.index("answered as expected:") + 1:]
        counts = {}
        for row in rows[:rows.index("")]:
            number, _, name = row.strip().partition("  ")
            counts[name] = int(number)
        self.assertEqual(sum(counts.values()), requests + int(rare[-1].split()[0]))
        self.assertGreater(len(counts), 40)
        self.assertGreater(min(counts.values()), 0, "every row of the mix")
        self.assertIn("0 unexpected answers; flat", out)


class ThisDaemonTest(SoakTest):
    def test_a_short_run(self):
        self.check(harness.BUILD, 5000)


class ReleaseDaemonTest(SoakTest):
    def test_a_short_run(self):
        self.check(RELEASE, 10000)


class FailingTest(SoakTest):
    def test_a_body_that_is_not_the_expected_one_is_told_with_its_url(self):
        done = self.soak(harness.BUILD, 1000, "--origin-option=--size-min=300")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr.decode(),
                         r'row "hit", http://hot\d+\.soak/p\d+: a body of bytes \d+ instead of \d+')
        self.assertIn(b"not finished", done.stdout)

    def test_a_daemon_that_stores_nothing_is_found_out(self):
        done = self.soak(harness.BUILD, 4000, "--daemon-option=--policy=none")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("where its policy was none: 0 hits, 0 stored, 0 evicted", done.stderr.decode())
        self.assertIn(b"0 unexpected answers; not flat, or no working cache", done.stdout)

    def test_ctrl_c_prints_what_stands(self):
        run = harness.Process(self, "soak", [sys.executable, SOAK],
                              env=self.environment(harness.BUILD), expect=130)
        harness.wait_until(lambda: "requests" in run.out, what="the heading")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 130, run.err)
        self.assertIn("answered as expected:", run.out)
        self.assertTrue(run.out.endswith("interrupted\n"), run.out)
        self.assertEqual(run.err, "")
