"""Runs the system tests, some classes at a time, and says of each test how it ended.

  run.py [--jobs N] [--threads] [--results FILE] [--logs DIR] [PATTERN]...

A PATTERN is part of a test's name (module.Class.method). --threads takes only classes that have
`threads = True`. Classes with `slow = True` begin first. FILE gets a line a test: passed, failed or
skipped, the name, and why, tabs between.
"""

import argparse
import concurrent.futures
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CLASS_SECONDS = int(os.environ.get("CLASS_SECONDS", "400"))
sys.path.insert(0, str(HERE))


class Result(unittest.TestResult):
    """Writes each test's end to a file at once, so that a crash loses nothing that is known."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.begun = {}

    def note(self, outcome, test, why=""):
        seconds = time.monotonic() - self.begun.get(test.id(), time.monotonic())
        print(f"  {outcome:8} {test.id()} ({seconds:.1f} s)", flush=True)
        if outcome != "passed":
            print("\n".join("           " + line for line in why.splitlines()[-25:]), flush=True)
        reason = " ".join(why.strip().splitlines()[-1:])[:300] if outcome == "failed" else why
        with open(self.path, "a") as f:
            f.write(f"{outcome}\t{test.id()}\t{' '.join(reason.split())}\n")

    def startTest(self, test):
        super().startTest(test)
        self.begun[test.id()] = time.monotonic()
        self.bad = None
        self.skip = None

    def addError(self, test, err):
        super().addError(test, err)
        self._bad(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._bad(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._bad(test, err, f"{subtest.id().replace(test.id(), '').strip()}: ")

    def _bad(self, test, err, prefix=""):
        text = prefix + self._exc_info_to_string(err, test)
        if test.id() in self.begun:
            self.bad = f"{self.bad}\n{text}" if self.bad else text
        else:  # setUpClass or an import
            self.note("failed", test, text)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.skip = reason
        if test.id() not in self.begun:
            self.note("skipped", test, reason)

    def stopTest(self, test):
        super().stopTest(test)
        if self.bad is not None:
            self.note("failed", test, self.bad)
        elif self.skip is not None:
            self.note("skipped", test, self.skip)
        else:
            self.note("passed", test)


def every_test(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from every_test(item)
        else:
            yield item


def run_here(names, results):
    """The child's part: runs the tests named."""
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = Result(results)
    begun = time.monotonic()
    suite.run(result)
    used = [resource.getrusage(part) for part in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(f"  class    {names[0].rpartition('.')[0]} ({time.monotonic() - begun:.1f} s, "
          f"{cpu:.1f} s of CPU time)", flush=True)
    return 0 if result.wasSuccessful() else 1


def run_group(names, logs):
    """Runs the tests of a class in a process of their own; returns lines of results."""
    with tempfile.NamedTemporaryFile("r", prefix="sunproxy-results.") as part:
        env = dict(os.environ, TEST_LOGS=str(logs)) if logs else dict(os.environ)
        argv = [sys.executable, __file__, "--child", part.name, *names]
        process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            out, _ = process.communicate(timeout=CLASS_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        sys.stdout.write(out)
        sys.stdout.flush()
        lines = [line.rstrip("\n") for line in part]
    ended = {line.split("\t")[1] for line in lines}
    for name in names:
        if name not in ended:
            lines.append(f"failed\t{name}\tdid not come to its end (status {process.returncode})")
    return lines


def main():
    # A shell's background job ignores SIGINT, and so would every program that is started here; what
    # has a handler is back at its default in a new program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--logs")
    parser.add_argument("--child")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    if options.child:
        return run_here(options.patterns, options.child)
    if options.logs:
        options.logs = pathlib.Path(options.logs).resolve()
    groups, slow = {}, set()
    suite = unittest.defaultTestLoader.discover(str(HERE), "test_*.py", str(HERE))
    for test in every_test(suite):
        if options.patterns and not any(p in test.id() for p in options.patterns):
            continue
        if options.threads and not getattr(type(test), "threads", False):
            continue
        group = (type(test).__module__, type(test).__qualname__)
        groups.setdefault(group, []).append(test.id())
        if getattr(type(test), "slow", False):
            slow.add(group)
    lines = []
    # Long ones first, so that no core waits for the last.
    ordered = sorted(groups, key=lambda group: (group in slow, len(groups[group])), reverse=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for part in pool.map(lambda group: run_group(groups[group], options.logs), ordered):
            lines += part
    if options.results:
        with open(options.results, "w") as f:
            f.writelines(line + "\n" for line in lines)
    failed = sum(line.startswith("failed") for line in lines)
    skipped = sum(line.startswith("skipped") for line in lines)
    if not options.results:
        print(f"{len(lines) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
