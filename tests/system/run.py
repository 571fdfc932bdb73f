"""Runs the system tests, some classes at a time, and says of each test how it ended.

  run.py [--jobs N] [--most N] [--threads] [--results FILE] [--logs DIR] [PATTERN]...

A PATTERN is part of a test's name (module.Class.method). --threads takes only classes that have
`threads = True`. Classes with larger `seconds` begin first. --jobs classes run at a time, and up to
--most while processors are idle, since most tests wait more than they compute. FILE gets a line a
test: passed, failed or skipped, the name, and why, tabs between.
"""

import argparse
import gc
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CLASS_SECONDS = int(os.environ.get("CLASS_SECONDS", "1800"))
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


def run_here(tests, results):
    """The child's part: runs the tests of a class."""
    result = Result(results)
    begun = time.monotonic()
    unittest.TestSuite(tests).run(result)
    used = [resource.getrusage(part) for part in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(f"  class    {tests[0].id().rpartition('.')[0]} ({time.monotonic() - begun:.1f} s, "
          f"{cpu:.1f} s of CPU time)", flush=True)
    return 0 if result.wasSuccessful() else 1


class Group:
    """The tests of a class, in a process of their own.

    It is a copy of this process, which has imported all tests; this process starts no thread.
    """

    def __init__(self, tests, logs):
        self.names = [test.id() for test in tests]
        self.out = tempfile.TemporaryFile(prefix="sunproxy-out.")
        self.results = tempfile.NamedTemporaryFile("r", prefix="sunproxy-results.")
        self.process = multiprocessing.get_context("fork").Process(
            target=self._child, args=(tests, logs))
        self.process.start()
        self.end = time.monotonic() + CLASS_SECONDS

    def _child(self, tests, logs):
        for number in (1, 2):
            os.dup2(self.out.fileno(), number)
        if logs:
            os.environ["TEST_LOGS"] = str(logs)
        sys.exit(run_here(tests, self.results.name))

    def finish(self):
        """Waits for the end; returns lines of results."""
        if time.monotonic() >= self.end:
            self.process.kill()
        self.process.join()
        self.out.seek(0)
        sys.stdout.write(self.out.read().decode(errors="replace"))
        sys.stdout.flush()
        lines = [line.rstrip("\n") for line in self.results]
        ended = {line.split("\t")[1] for line in lines}
        for name in self.names:
            if name not in ended:
                lines.append(f"failed\t{name}\tdid not come to its end "
                             f"(status {self.process.exitcode})")
        self.out.close()
        self.results.close()
        return lines


class Width:
    """How many classes run at once: more while processors are idle, fewer while none is."""

    SECONDS = 0.5  # the least time between two looks

    def __init__(self, least, most):
        self.least = least
        self.most = most
        self.width = least
        self.seen = self._count()
        self.at = time.monotonic()

    @staticmethod
    def _count():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(word) for word in f.readline().split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)  # idle and waiting for a disk, of all

    def look(self):
        """The width by the share of idle time since the last look, by which it moves by one."""
        if time.monotonic() - self.at < self.SECONDS:
            return self.width
        before, self.seen, self.at = self.seen, self._count(), time.monotonic()
        idle = (self.seen[0] - before[0]) / max(1, self.seen[1] - before[1])
        if idle >= 0.08:
            self.width = min(self.most, self.width + 1)
        elif idle < 0.02:
            self.width = max(self.least, self.width - 1)
        return self.width


def run_classes(classes, width, logs):
    """Runs classes, as many at once as `width` says; yields result lines."""
    todo = list(reversed(classes))
    running = []
    while todo or running:
        while todo and len(running) < width.look():
            running.append(Group(todo.pop(), logs))
        left = max(0, min(group.end for group in running) - time.monotonic())
        multiprocessing.connection.wait([g.process.sentinel for g in running],
                                        min(left, Width.SECONDS) if todo else left)
        for group in [g for g in running
                      if not g.process.is_alive() or time.monotonic() >= g.end]:
            running.remove(group)
            yield from group.finish()


def main():
    # A shell's background job ignores SIGINT, and one of nohup SIGHUP, and so would every program
    # that is started here; what has a handler is back at its default in a new program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--logs")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    if options.logs:
        options.logs = pathlib.Path(options.logs).resolve()
    groups = {}
    suite = unittest.defaultTestLoader.discover(str(HERE), "test_*.py", str(HERE))
    for test in every_test(suite):
        if options.patterns and not any(p in test.id() for p in options.patterns):
            continue
        if options.threads and not getattr(type(test), "threads", False):
            continue
        groups.setdefault(type(test), []).append(test)
    # Long ones first, so that no processor waits for the last.
    ordered = sorted(groups, key=lambda kind: (getattr(kind, "seconds", 0), len(groups[kind])),
                     reverse=True)
    gc.freeze()  # what is here is never looked through, and so never copied, in the children
    lines = list(run_classes([groups[kind] for kind in ordered],
                             Width(options.jobs, max(options.jobs, options.most)), options.logs))
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
