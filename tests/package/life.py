#!/usr/bin/env python3
"""Install, use, upgrade, remove and purge the packages, also while a disk is full.

  tests/package/life.py --packages FOLDER --fresh FOLDER --version VERSION [--lintian STATUS]

tests/package/run.sh calls it, as root in a chroot of its own. The last line is "N passed, N failed".
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import unittest

import machine
from machine import settings
from pages import DeploymentTest  # noqa: F401 - is run with the tests of this file

LOAD = pathlib.Path(__file__).with_name("load.py")
PROXY = "127.0.0.1:3128"
ORIGIN = "127.0.0.1:8000"
PAGE = f"http://{ORIGIN}/page.txt"
CONFIGURATION = "etc/sunproxy/sunproxyd.conf"
ROTATION = "etc/logrotate.d/sunproxyd"
# Prints the source of each answer, or "failed", until a file is there.
RPC_LOAD = """while [ ! -e "$2" ]; do
    sunproxy get -w '%{source}\\n' -o /dev/null "$1" || echo failed
done"""
EARLIER = pathlib.Path(__file__).with_name("sunproxyd-0.1.conf")
SOCKETS = ("sunproxyd.socket", "sunproxyd-http.socket")
OURS = ("sunproxyd", "sunproxy", "sunproxy-doc")


def put_packages(root, version):
    """The packages of a version in a folder of the root; their paths there."""
    folder = root / "var/tmp/debs" / version
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in OURS:
        package, = settings.packages.glob(f"{name}_{version}_*.deb")
        (folder / package.name).write_bytes(package.read_bytes())
        paths.append(f"/{(folder / package.name).relative_to(root)}")
    return paths


def files(root):
    """What there is below a root, but for what systems write as they run, and dpkg's own records."""
    found = subprocess.run(
        ["find", ".", "-xdev", "(", "-path", "./var/lib/dpkg", "-o", "-path", "./var/log", "-o", "-path",
         "./var/cache", "-o", "-path", "./var/lib/apt", "-o", "-path", "./var/tmp", "-o", "-path",
         "./var/lib/systemd", "-o", "-path", "./var/lib/logrotate", "-o", "-path", "./root", "-o", "-path", "./filler", ")", "-prune", "-o",
         "-print"],
        cwd=root, check=True, text=True, stdout=subprocess.PIPE).stdout
    return set(found.splitlines())


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(machine.folder()))

    def states(self, system):
        said = system.run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n", *OURS,
                          expect=None).stdout
        return {line.split()[0]: line.split()[1] for line in said.splitlines() if "no packages" not in line}

    def assert_installed(self, system, version):
        said = system.run("dpkg-query", "-W", "-f", "${Status} ${Version}\n", *OURS).stdout
        self.assertEqual(set(said.splitlines()), {f"install ok installed {version}"})
        self.assertEqual(system.run("dpkg", "--audit").stdout, "")
        # Files of configuration may have been edited.
        changed = system.run("dpkg", "--verify", *OURS).stdout.splitlines()
        self.assertEqual([line for line in changed if " c /" not in line], [])


class MachineTest(PackageTest):
    """One system under systemd."""

    def setUp(self):
        super().setUp()
        self.system = machine.Machine(settings.fresh, self.dir)
        self.addCleanup(self.system.stop)
        self.next = f"{settings.version}+next"

    def serve_pages(self):
        pages = self.dir / "pages"
        pages.mkdir()
        (pages / "page.txt").write_text("a page\n")
        subprocess.run(["touch", "-d", "yesterday", pages / "page.txt"], check=True)
        host, port = ORIGIN.split(":")
        origin = self.system.beside("python3", "-m", "http.server", "--bind", host, "--directory", pages, port,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(origin.wait)
        self.addCleanup(origin.kill)
        machine.wait_until(lambda: self.system.run("curl", "-fs", PAGE, expect=None).returncode == 0,
                           "the origin")

    def journal(self):
        return self.system.run("journalctl", "-u", "sunproxyd", "--no-pager").stdout

    def daemon(self):
        """Its number in the machine."""
        return self.system.property("sunproxyd", "MainPID")

    def program_of(self, pid):
        return self.system.run("readlink", f"/proc/{pid}/exe").stdout.strip()

    def configure(self, text):
        (self.system.root / CONFIGURATION).write_text(text)

    def install(self, version):
        self.system.run("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "-o",
                        "Dpkg::Options::=--force-confold", "install",
                        "--allow-downgrades", "--no-install-recommends", *put_packages(self.system.root, version))
        self.assert_installed(self.system, version)

    def under_load(self, action):
        """Calls it while requests are sent over HTTP and RPC, and has each of them answered."""
        end = self.system.root / "var/tmp/end-of-load"
        http = self.system.beside(LOAD, PROXY, PAGE, stdout=subprocess.PIPE, text=True)
        rpc = self.system.begin("sh", "-c", RPC_LOAD, "sh", PAGE, f"/{end.relative_to(self.system.root)}")
        http.stdout.readline()
        try:
            action()
        finally:
            http.send_signal(signal.SIGTERM)
            end.touch()
            said, answers = http.communicate()[0], rpc.communicate()[0].split()
        result = json.loads(said)
        self.assertEqual(result["failures"], [])
        self.assertNotIn("failed", answers)
        self.assertGreater(result["answered"], 100)
        self.assertGreater(len(answers), 10)
        print(f"{result['answered']} requests over HTTP and {len(answers)} over RPC were answered",
              file=sys.stderr)

    def upgrade(self):
        old = self.daemon()
        self.install(self.next)
        machine.wait_until(lambda: self.daemon() not in (old, "0"), "the new daemon")
        self.assertEqual(self.program_of(self.daemon()), "/usr/sbin/sunproxyd")
        # Until the old one has ended, too.
        machine.wait_until(lambda: self.system.run("test", "-e", f"/proc/{old}", expect=None).returncode,
                           "the end of the old daemon")

    def explained(self, steps):
        try:
            steps()
        except Exception:
            print(self.journal()[-5000:], file=sys.stderr)
            raise


class LifeTest(MachineTest):
    """From the installation to the purge."""

    def check_installation(self):
        self.install(settings.version)
        self.assertEqual(self.system.property("sunproxyd", "ActiveState"), "active")
        for unit, state in (("sunproxyd.service", "enabled"), ("sunproxyd.socket", "disabled"),
                            ("sunproxyd-http.socket", "disabled")):
            self.assertEqual(self.system.property(unit, "UnitFileState"), state)
        self.assertEqual(self.system.run("stat", "-c", "%U:%G:%a", "/var/log/sunproxy").stdout,
                         "sunproxy:sunproxy:750\n")
        self.assertEqual(self.system.run("ps", "-o", "user=", "-p", self.daemon()).stdout.strip(), "sunproxy")
        self.assertIn(f"sunproxyd {settings.version} at unix:", self.system.run("sunproxy", "stat").stdout)

    def check_serving(self):
        self.configure(f"http = {PROXY}\nallow-net = 127.0.0.0/8\n"
                       "access-log = /var/log/sunproxy/access.log\n")
        self.system.run("systemctl", "restart", "sunproxyd")
        for source in ("miss", "hit"):
            done = self.system.run("sunproxy", "get", "-w", "%{source}", "-o", "/tmp/page", PAGE)
            self.assertEqual(done.stdout, source)
        self.assertEqual(self.system.run("curl", "-fs", "-x", PROXY, PAGE).stdout, "a page\n")
        self.assertEqual(self.system.run("cat", "/tmp/page").stdout, "a page\n")

    def check_upgrade(self):
        """Files of configuration that were changed are kept, also one whose default has changed."""
        rotation = self.system.root / ROTATION
        changed = rotation.read_text().replace("weekly", "daily")
        rotation.write_text(changed)
        self.under_load(self.upgrade)
        self.assertIn("allow-net", (self.system.root / CONFIGURATION).read_text())
        self.assertEqual(rotation.read_text(), changed)
        self.assertIn("A later build", rotation.with_name(f"{rotation.name}.dpkg-dist").read_text())

    def check_crash(self):
        """systemd starts one anew that a take-over has started, too."""
        old = self.daemon()
        self.system.run("kill", "-KILL", old)
        machine.wait_until(lambda: self.daemon() not in (old, "0"), "another daemon")
        machine.wait_until(lambda: self.system.property("sunproxyd", "ActiveState") == "active", "its service")

    def check_rotation(self):
        log = self.system.root / "var/log/sunproxy"
        machine.wait_until(lambda: (log / "access.log").stat().st_size, "lines of the access log")
        self.system.run("logrotate", "-f", "/etc/logrotate.d/sunproxyd")
        self.assertTrue((log / "access.log.1").stat().st_size)

        def is_written():
            self.system.run("curl", "-fs", "-x", PROXY, PAGE)
            return (log / "access.log").exists() and (log / "access.log").stat().st_size

        machine.wait_until(is_written, "lines of the new access log")

    def check_failing_upgrade(self):
        """A version that cannot start: the one that runs goes on."""
        old = self.daemon()
        kept = (self.system.root / CONFIGURATION).read_text()
        self.configure("no-such-option = 1\n")
        self.install(settings.version)
        machine.wait_until(lambda: "no-such-option" in self.journal(), "the reason in the journal")
        self.assertEqual(self.daemon(), old)
        self.assertEqual(self.system.run("curl", "-fs", "-x", PROXY, PAGE).stdout, "a page\n")
        self.configure(kept)

    def check_removal(self, before):
        self.system.run("apt-get", "-q", "-y", "remove", "sunproxyd")
        self.assertEqual(self.system.property("sunproxyd", "ActiveState"), "inactive")
        self.assertEqual(self.system.run("pgrep", "-x", "sunproxyd", expect=1).stdout, "")
        self.assertTrue((self.system.root / CONFIGURATION).exists())
        self.assertFalse((self.system.root / "usr/sbin/sunproxyd").exists())
        self.system.run("apt-get", "-q", "-y", "purge", *OURS)
        self.assertEqual(self.states(self.system), {})
        self.assertEqual(self.system.run("ls", "/var/log").stdout.split().count("sunproxy"), 0)
        self.assertEqual(files(self.system.root) - before, set())
        self.system.run("getent", "passwd", "sunproxy")

    def test_from_the_installation_to_the_purge(self):
        before = files(self.system.root)
        self.serve_pages()

        def steps():
            self.check_installation()
            self.check_serving()
            self.check_upgrade()
            self.check_crash()
            self.check_rotation()
            self.check_failing_upgrade()
            self.check_removal(before)

        self.explained(steps)


class EarlierTest(MachineTest):
    """A configuration of 0.1, which had no packages, that its administrator has changed; and the sockets
    of systemd, by which that version could be run."""

    def check_installation(self):
        self.install(settings.version)
        self.assertEqual((self.system.root / CONFIGURATION).read_text(), EARLIER.read_text())
        self.assertEqual(self.system.property("sunproxyd", "ActiveState"), "active")
        self.assertRegex(self.system.run("sunproxy", "stat").stdout, r"(?m)^policy lfu, 128 MiB;")
        self.assertEqual(self.system.run("curl", "-fs", "-x", PROXY, PAGE).stdout, "a page\n")

    def check_activation(self):
        self.system.run("systemctl", "stop", "sunproxyd")
        self.system.run("systemctl", "enable", "--now", *SOCKETS)
        self.assertEqual(self.system.property("sunproxyd", "ActiveState"), "inactive")
        self.assertEqual(self.system.run("curl", "-fs", "-x", PROXY, PAGE).stdout, "a page\n")
        self.assertEqual(self.system.property("sunproxyd", "ActiveState"), "active")
        self.assertIn("passed by the service manager", self.journal())

    def check_upgrade(self):
        self.under_load(self.upgrade)
        for unit in SOCKETS:
            self.assertEqual(self.system.property(unit, "ActiveState"), "active")
        self.assertEqual((self.system.root / CONFIGURATION).read_text(), EARLIER.read_text())

    def check_a_start_by_the_same_sockets(self):
        """After a replacement the sockets still start the service."""
        self.system.run("systemctl", "stop", "sunproxyd")
        self.assertEqual(self.system.run("curl", "-fs", "-x", PROXY, PAGE).stdout, "a page\n")
        self.assertEqual(self.system.run("sunproxy", "get", "-w", "%{source}", "-o", "/tmp/page", PAGE).stdout,
                         "hit")

    def check_removal(self):
        self.system.run("apt-get", "-q", "-y", "purge", *OURS)
        for unit in SOCKETS:
            self.assertEqual(self.system.property(unit, "ActiveState"), "inactive")
        self.assertFalse((self.system.root / CONFIGURATION).exists())

    def test_an_upgrade_with_the_sockets_of_systemd(self):
        self.serve_pages()
        (self.system.root / CONFIGURATION).parent.mkdir()
        self.configure(EARLIER.read_text())

        def steps():
            self.check_installation()
            self.check_activation()
            self.check_upgrade()
            self.check_a_start_by_the_same_sockets()
            self.check_removal()

        self.explained(steps)


class FullDiskTest(PackageTest):
    """A disk that is full at a step: the step fails or does all, and a second run completes it."""

    def setUp(self):
        super().setUp()
        self.system = machine.Disk(settings.fresh, self.dir)
        self.addCleanup(self.system.stop)
        self.packages = put_packages(self.system.root, settings.version)
        self.later = put_packages(self.system.root, f"{settings.version}+next")

    def assert_works(self, version=None):
        """All that an installation makes is there."""
        self.assert_installed(self.system, version or settings.version)
        self.assertEqual(self.system.run("stat", "-c", "%U:%a", "/var/log/sunproxy").stdout, "sunproxy:750\n")
        helper = self.system.root / "var/lib/systemd/deb-systemd-helper-enabled/sunproxyd.service.dsh-also"
        self.assertTrue(helper.exists(), "the record by which a purge removes the link")
        link = self.system.root / "etc/systemd/system/multi-user.target.wants/sunproxyd.service"
        self.assertTrue(link.is_symlink())
        self.system.run("sunproxyd", "--config", "/etc/sunproxy/sunproxyd.conf", "--check-config")

    def assert_gone(self, before):
        self.assertEqual(self.states(self.system), {})
        self.assertFalse((self.system.root / "var/log/sunproxy").exists())
        self.assertEqual(files(self.system.root) - before, set())

    def interrupted(self, *argv):
        """Runs a command while the disk is full, and once more with space."""
        self.system.fill()
        done = self.system.run(*argv, expect=None)
        self.system.free()
        print(f"{argv[:2]}: exit status {done.returncode}", file=sys.stderr)
        again = self.system.run(*argv, expect=None)
        # What is complete needs no second run, which dpkg may refuse.
        self.assertIn(0, (done.returncode, again.returncode), done.stdout + again.stdout)
        return done

    def test_unpacking(self):
        self.interrupted("dpkg", "-i", *self.packages)
        self.assert_works()

    def test_configuring(self):
        self.system.run("dpkg", "--unpack", *self.packages)
        self.interrupted("dpkg", "--configure", "-a")
        self.assert_works()

    def test_the_scripts_of_an_installation(self):
        """dpkg has space for its records, the package's script has none."""
        self.system.give_space_to("var/lib/dpkg")
        self.system.run("dpkg", "--unpack", *self.packages)
        done = self.interrupted("dpkg", "--configure", "-a")
        self.assertNotEqual(done.returncode, 0)
        self.assert_works()

    def test_the_later_scripts_of_an_installation(self):
        """Those behind the step that adds the user, and behind that which makes folders."""
        self.system.give_space_to("var/lib/dpkg")
        self.system.run("dpkg", "-i", *self.packages)
        for folders in ([], ["var/log/sunproxy"]):
            self.system.run("dpkg", "--purge", *OURS)
            for folder in folders:
                self.system.run("install", "-d", "-m", "750", "-o", "sunproxy", f"/{folder}")
            self.system.run("dpkg", "--unpack", *self.packages)
            done = self.interrupted("dpkg", "--configure", "-a")
            self.assertNotEqual(done.returncode, 0)
            self.assert_works()

    def test_an_upgrade(self):
        self.system.run("dpkg", "-i", *self.packages)
        self.interrupted("dpkg", "-i", *self.later)
        self.assert_works(f"{settings.version}+next")

    def test_the_scripts_of_an_upgrade(self):
        self.system.run("dpkg", "-i", *self.packages)
        self.system.give_space_to("var/lib/dpkg")
        self.system.run("dpkg", "--unpack", *self.later)
        self.interrupted("dpkg", "--configure", "-a")
        self.assert_works(f"{settings.version}+next")

    def test_removing_and_purging(self):
        before = files(self.system.root)
        self.system.run("dpkg", "-i", *self.packages)
        self.interrupted("dpkg", "--remove", *OURS)
        self.interrupted("dpkg", "--purge", *OURS)
        self.assert_gone(before)

    def test_the_scripts_of_a_purge(self):
        before = files(self.system.root)
        self.system.run("dpkg", "-i", *self.packages)
        self.system.give_space_to("var/lib/dpkg")
        self.interrupted("dpkg", "--purge", *OURS)
        self.assert_gone(before)


class LintianTest(unittest.TestCase):
    def test_it_finds_neither_errors_nor_warnings(self):
        self.assertEqual(settings.lintian, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=pathlib.Path, required=True)
    parser.add_argument("--fresh", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--lintian", type=int, default=0)
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=settings)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]) if not settings.tests else \
        unittest.defaultTestLoader.loadTestsFromNames(settings.tests, sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    bad = len({str(getattr(test, "test_case", test)) for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - bad} passed, {bad} failed")
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
