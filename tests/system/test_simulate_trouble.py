"""Traces and options of sunproxy simulate that are odd, wrong or too large, and its end by signals."""

import array
import json
import os
import re
import select
import signal
import subprocess
import time

import harness
from simulate_case import SimulateCase


class TroubleTest(SimulateCase):
    def setUp(self):
        super().setUp()
        self.path = self.trace([f"http://h/{u}" for u in "abcabc"])

    def test_the_nearest_right_one_is_named(self):
        self.assertIn("did you mean lru", self.complaint(self.path, "--policy", "lrv"))
        self.assertIn("did you mean fifo", self.complaint(self.path, "--policy", "lru,fofo"))
        self.assertIn("no parameter", self.complaint(self.path, "--policy", "lru:k=2"))
        self.assertIn("10MiB", self.complaint(self.path, "--capacity", "10MiX"))
        self.assertIn("'ten'", self.complaint(self.path, "--capacity", "ten"))
        self.assertIn("urls", self.complaint(self.path, "--format", "url"))
        self.assertIn("did you mean lru", self.complaint("lrr", command="policies"))
        self.assertIn("did you mean urls", self.complaint(self.path, "--curve=url"))
        self.assertIn("did you mean jsonl", self.complaint(self.path, "--log-format", "json"))
        # Nothing is near to these.
        for arguments, shown in ((["--policy="], "the name of a policy is missing"),
                                (["--policy", "lru,,fifo"], "the name of a policy is missing"),
                                (["--format", "foo"], "unknown trace format 'foo'\n"),
                                (["--capacity", "10Q"], "a capacity is"),
                                (["--capacity", "99999999999999999999"], "is too large")):
            text = self.complaint(self.path, *arguments)
            self.assertIn(shown, text)
            self.assertNotIn("did you mean", text)

    def test_what_only_the_daemon_knows_is_noted(self):
        for command in ("simulate", "advise"):
            done = self.sunproxy(command, self.path, "--policy", "lru,gds:cost=time")
            self.assertIn(b"gds:cost=time: traces have no fetch times", done.stderr)
            done = self.sunproxy(command, self.path, "--policy", "lru,gds:cost=bytes,gdsf")
            self.assertNotIn(b"fetching", done.stderr)

    def test_bytes_without_sizes(self):
        for how in (["--capacity", "10M"], ["--capacity", "10%B"], ["--curve=bytes"]):
            text = self.complaint(self.path, *how)
            self.assertIn("--sizes", text)
            self.assertIn("in URLs", text)
        sized = self.trace(["http://h/a\t5"], name="sized")
        text = self.complaint(sized, "--capacity", "1K", "--ignore-sizes")
        self.assertIn("--ignore-sizes", text)
        self.assertNotIn("--sizes FILE", text)

    def test_the_byte_hit_ratio_without_sizes(self):
        for command in ("simulate", "advise"):
            text = self.complaint(self.path, "--by-bytes", command=command)
            self.assertIn("the byte hit ratio needs sizes, and the trace has none; give them with "
                          "--sizes FILE, or leave --by-bytes out", text)
        for p in self.summary(self.path, command="advise")["policies"]:
            for ratio in ("byte_hit_ratio", "byte_hit_ratio_error", "byte_hit_ratio_at_best"):
                self.assertIsNone(p[ratio])

    def test_numbers_that_are_none(self):
        for option, value in (("--warmup", "100%"), ("--warmup", "x"), ("--sample", "0"),
                              ("--sample", "1"), ("--sample", "1.0"), ("--sample", "1.5"), ("--sample", "101%"), ("--jobs", "0"),
                              ("--seed", "-1"), ("--points", "0"), ("--capacity", ""),
                              ("--capacity", "5,,6"), ("--policy", ""), ("--curve", "of"),
                              ("--log-format", "xml")):
            self.complaint(self.path, f"{option}={value}")

    def test_what_cannot_be_had_together(self):
        self.complaint()
        log = self.dir / "log"
        self.assertIn("one policy", self.complaint(self.path, "--log", log, "--capacity", "2"))
        self.complaint(self.path, "--log", log, "--capacity", "2,3", "--policy", "lru")
        self.complaint("--separate", self.path, self.path, "--log", log, "--capacity", "2", "--policy", "lru")
        self.complaint(self.path, "--curve", "--capacity", "2")
        self.assertFalse(log.exists())
        self.assertIn("name a file", self.complaint(self.path, "--log", "-", "--capacity", "2",
                                                    "--policy", "lru"))

    def test_traces_that_are_none(self):
        self.complaint(self.dir / "none", expect=66)
        empty = self.trace(["ftp://h/a"], name="empty")
        self.assertIn("neither http", self.complaint(empty, expect=65))
        # The others are simulated none the less.
        done = self.simulate("--separate", empty, self.path, "--json", expect=65)
        self.assertEqual(len(json.loads(done.stdout)["traces"]), 1)

    def test_a_log_that_cannot_be_written(self):
        self.complaint(self.path, "--policy", "lru", "--capacity", "2", "--log",
                       self.dir / "no/log", expect=73)
        self.complaint(self.path, "--policy", "lru", "--capacity", "2", "--log", "/dev/full",
                       expect=74)

    def interrupt_at_a_bar(self, bar, *command):
        """As soon as that stands on the terminal: (status, standard output)."""
        terminal, theirs = harness.open_pty()
        out = self.dir / "out.json"
        with open(out, "wb") as stdout:
            run = subprocess.Popen(
                [harness.SUNPROXY, *command], stdout=stdout, stderr=theirs,
                stdin=subprocess.DEVNULL,
                env=harness.sanitizer_environment(self.dir / "sanitizer.ctrl-c",
                                                  {"TERM": "vt100", "NO_COLOR": ""}))
        os.close(theirs)
        seen = b""
        end = time.monotonic() + 60
        while not re.search(bar, seen) and run.poll() is None and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    seen += os.read(terminal, 4096)
                except OSError:
                    break
        run.send_signal(signal.SIGINT)
        while run.poll() is None and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    seen += os.read(terminal, 4096)
                except OSError:
                    break
        status = run.wait(timeout=300)
        os.close(terminal)
        self.assertEqual(status, 130, seen)
        return seen, out.read_text()

    def test_ctrl_c_prints_what_is_finished(self):
        trace = self.trace([f"http://h/{n * n % 19997}" for n in range(200000)])
        # The bar stands there, and something is finished.
        _, out = self.interrupt_at_a_bar(
            rb"simulate [^\r]* [1-9]\d* %", "simulate", trace, "--json", "--policy",
            "lru,lfu,rand,opt", "--capacity", ",".join(str(n) for n in range(1, 1001)))
        summary = json.loads(out)
        self.assertTrue(summary["interrupted"])
        results = summary["traces"][0]["results"]
        self.assertGreater(len(results), 0)
        self.assertLess(len(results), 4000)
        for r in results:
            self.assertEqual(r["requests"], 200000)

    def test_ctrl_c_in_the_one_pass_of_lru(self):
        trace = self.dir / "long"
        trace.write_bytes(array.array("I", [n * n % 1000003 for n in range(3000000)]).tobytes())
        seen, out = self.interrupt_at_a_bar(
            rb"\rlru [^\r]* \d+ %", "simulate", "--separate", *[trace] * 50, "--format", "cache2k", "--curve=urls",
            "--policy", "lru", "--json")
        summary = json.loads(out)
        self.assertTrue(summary["interrupted"])
        self.assertLess(len(summary["traces"]), 50)
        self.assertNotIn(b"sample", seen)  # none is needed

    def interrupt_at_a_fifo(self, *command, send=b""):
        """The last trace comes from a FIFO and does not end: (status, out, err)."""
        fifo = self.dir / "fifo"
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
        out, err = self.dir / "out", self.dir / "err"
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            run = subprocess.Popen([harness.SUNPROXY, *command, fifo], stdout=stdout, stderr=stderr,
                                   stdin=subprocess.DEVNULL, env=harness.sanitizer_environment(
                                       self.dir / "sanitizer.fifo", {}))
        # It can be opened as soon as it is read: then all traces before it are done with.
        writer = None
        end = time.monotonic() + 60
        while writer is None and run.poll() is None and time.monotonic() < end:
            try:
                writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(0.02)
        if writer is None:
            run.kill()
            self.fail(err.read_text())
        os.write(writer, send)
        run.send_signal(signal.SIGINT)
        status = run.wait(timeout=300)
        os.close(writer)
        return status, out.read_text(), err.read_text()

    def test_ctrl_c_while_a_trace_is_read(self):
        simulate = ["simulate", "--separate", "--policy", "lru,fifo", "--capacity", "2"]
        status, out, err = self.interrupt_at_a_fifo(*simulate, "--json", self.path)
        self.assertEqual(status, 130, err)
        summary = json.loads(out)
        self.assertTrue(summary["interrupted"])
        self.assertEqual([len(t["results"]) for t in summary["traces"]], [2])
        self.assertIn("interrupted while reading", err)
        status, out, err = self.interrupt_at_a_fifo(*simulate, self.path,
                                                    send=b"http://h/a\n" * 1000)
        self.assertEqual(status, 130, err)
        self.assertIn("interrupted: 2 of 2 runs are finished; 1 trace was not read\n", out)
        status, out, err = self.interrupt_at_a_fifo(*simulate, "--csv", self.path)
        self.assertEqual((status, len(out.splitlines())), (130, 3))
        status, out, err = self.interrupt_at_a_fifo("simulate", "--separate", "--curve", self.path)
        self.assertEqual(status, 130)
        self.assertIn("; 1 trace was not read\n", out)
        page = self.dir / "page.html"
        status, _, err = self.interrupt_at_a_fifo("report", "--separate", "-o", page, self.path)
        self.assertEqual(status, 130, err)
        self.assertRegex(page.read_text(), r'"interrupted": *true')
        self.assertIn(str(self.path), page.read_text())
        page.write_text("before")
        status, _, err = self.interrupt_at_a_fifo("report", "-o", page)
        self.assertEqual((status, page.read_text()), (130, "before"))
        status, out, err = self.interrupt_at_a_fifo("advise")
        self.assertEqual((status, out), (130, ""))
        self.assertIn("interrupted while reading", err)
