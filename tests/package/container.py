#!/usr/bin/env python3
"""Run an image as a container runtime does, without privileges and on a root that cannot be written.

  tests/package/container.py --root FOLDER --base FOLDER --description FILE

tests/package/container.sh calls it. FILE is what `buildah inspect` prints. The last line is
"N passed, N failed".
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import machine

CONTAIN = pathlib.Path(__file__).with_name("contain.sh")
PROXY = "127.0.0.1:3128"
PAGE = "http://127.0.0.1:8000/page.txt"
MAX_ADDED = 60_000_000
settings = argparse.Namespace()


def size(folder):
    return int(subprocess.run(["du", "-sxB1", folder], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()[0])


class ImageTest(unittest.TestCase):
    def test_its_description(self):
        config = settings.config
        self.assertEqual(config["User"], "sunproxy:sunproxy")
        self.assertEqual(config["Entrypoint"], ["/usr/sbin/sunproxyd"])
        self.assertEqual(config["StopSignal"], "SIGTERM")
        self.assertIn("3128/tcp", config["ExposedPorts"])

    def test_its_size(self):
        added = size(settings.root) - size(settings.base)
        print(f"{added / 1e6:.1f} MB over the base", file=sys.stderr)
        self.assertLess(added, MAX_ADDED)


class ContainerTest(unittest.TestCase):
    def setUp(self):
        config = settings.config
        users = [line.split(":") for line in (settings.root / "etc/passwd").read_text().splitlines()]
        name = config["User"].split(":")[0]
        self.user, self.group = next(row[2:4] for row in users if row[0] == name)
        self.volume, = config["Volumes"]

    def start(self, *arguments, limits=None):
        """With the arguments in place of the image's own, and files of a control group by their names. The
        first process of it."""
        folder = pathlib.Path(self.enterContext(machine.folder()))
        self.said = folder / "said"
        group = folder / "group"
        group.mkdir()
        for name, text in (limits or {}).items():
            (group / name).write_text(text)
        with open(self.said, "wb") as said:
            self.holder = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private",
                 "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "--", "sh", CONTAIN,
                 settings.root, self.user, self.group, self.volume,
                 group if limits else "", "env", "-i",
                 *settings.config["Env"], *settings.config["Entrypoint"],
                 *(arguments or settings.config["Cmd"])],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self.addCleanup(self.holder.wait)
        self.addCleanup(self.holder.kill)
        children = pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        machine.wait_until(lambda: children.exists() and children.read_text().split(), "the first process")
        first = children.read_text().split()[0]
        machine.wait_until(lambda: b" serves with " in self.said.read_bytes(), "the daemon")
        return first

    def inside(self, first, *argv):
        """A further process of the container, as of `podman exec`."""
        return subprocess.run(
            ["nsenter", "-t", first, "-m", "-p", "-n", "-u", "-i", "-r", "-w", "--setuid", self.user,
             "--setgid", self.group, "env", "-i", *settings.config["Env"], *argv],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)

    def is_healthy(self, first):
        kind, *argv = settings.config["Healthcheck"]["Test"]
        self.assertEqual(kind, "CMD")
        return self.inside(first, *argv).returncode == 0

    def end(self, first, number):
        os.kill(int(first), number)
        return self.holder.wait(timeout=60)

    def test_without_arguments(self):
        first = self.start()
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{first}/status").read_text().splitlines() if ":\t" in line)
        self.assertEqual(status["Name"], "sunproxyd")
        self.assertEqual(status["NSpid"].split()[-1], "1")
        self.assertEqual(set(status["Uid"].split()), {self.user})
        self.assertEqual(int(status["CapBnd"], 16), 0)
        self.assertIn("Read-only file system", self.inside(first, "touch", "/written").stdout)
        self.assertTrue(self.is_healthy(first))
        self.assertEqual(self.end(first, signal.SIGTERM), 0)
        self.assertIn(b"stopping on SIGTERM", self.said.read_bytes())

    def fetched(self, first, url=PAGE):
        return subprocess.run(["nsenter", "-t", first, "-n", "--", "curl", "-s", "-x", PROXY, url],
                              stdout=subprocess.PIPE).stdout

    def serve_pages(self, first):
        """A page, and one of a million bytes, which has any number of URLs."""
        pages = pathlib.Path(self.enterContext(machine.folder()))
        (pages / "page.txt").write_text("a page\n")
        (pages / "large").write_bytes(bytes(1_000_000))
        subprocess.run(["touch", "-d", "yesterday", pages / "large"], check=True)
        origin = subprocess.Popen(
            ["nsenter", "-t", first, "-n", "--", sys.executable, "-m", "http.server", "--bind",
             "127.0.0.1", "--directory", pages, "8000"], stderr=subprocess.DEVNULL)
        self.addCleanup(origin.wait)
        self.addCleanup(origin.kill)
        machine.wait_until(lambda: self.fetched(first) == b"a page\n", "the page")

    def test_serving(self):
        first = self.start("--http", PROXY, "--allow-net", "127.0.0.0/8")
        self.serve_pages(first)
        self.assertEqual(self.end(first, signal.SIGINT), 0)

    def test_limits_of_the_control_group(self):
        limit = 160 << 20
        first = self.start("--http", PROXY, "--allow-net", "127.0.0.0/8",
                           limits={"memory.max": f"{limit}\n", "cpu.max": "100000 100000\n"})
        stat = self.inside(first, *settings.config["Healthcheck"]["Test"][1:])
        self.assertIn('"workers":1,', stat.stdout.replace(" ", ""))
        self.assertIn(f"the control group allows {limit} bytes".encode(), self.said.read_bytes())
        self.serve_pages(first)
        # More than the limit, all of which may be stored.
        for number in range(200):
            self.assertEqual(len(self.fetched(first, f"http://127.0.0.1:8000/large?{number}")), 1_000_000)
        stored = json.loads(self.inside(first, "sunproxy", "stat", "--json").stdout)
        self.assertGreater(stored["evictions"], 100)
        resident = int(pathlib.Path(f"/proc/{first}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        print(f"{resident / 1e6:.0f} MB resident of {limit / 1e6:.0f}", file=sys.stderr)
        self.assertLess(resident, limit)
        self.assertEqual(self.end(first, signal.SIGTERM), 0)

    def test_health_of_one_that_hangs(self):
        first = self.start()
        os.kill(int(first), signal.SIGSTOP)
        try:
            # The bound is the runtime's.
            done = self.inside(first, "timeout", "2", *settings.config["Healthcheck"]["Test"][1:])
            self.assertNotEqual(done.returncode, 0)
        finally:
            os.kill(int(first), signal.SIGCONT)
        self.assertTrue(self.is_healthy(first))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--base", type=pathlib.Path, required=True)
    parser.add_argument("--description", type=pathlib.Path, required=True)
    parser.parse_args(namespace=settings)
    settings.config = json.loads(settings.description.read_text())["Docker"]["config"]
    result = unittest.TextTestRunner(verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    bad = len(result.failures + result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
