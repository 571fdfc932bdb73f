"""The real daemon in its sandbox: what is in force, and that serving goes on in it."""

import os
import pathlib
import signal
import tempfile

import harness
import rpc


def status_of(pid, task):
    """The fields of /proc/PID/task/TASK/status, as text."""
    with open(f"/proc/{pid}/task/{task}/status") as f:
        return {name: rest.strip() for name, rest in (line.split(":", 1) for line in f)}


class SandboxTest(harness.SystemTest):
    sandboxed = True

    def fields(self, daemon):
        """Of the threads that serve; a sanitizer has one of its own, which may be older."""
        for task in os.listdir(f"/proc/{daemon.pid}/task"):
            if not (harness.TSAN and self.name_of(daemon, task) == "sunproxyd" and
                    int(task) == daemon.pid + 1):
                yield status_of(daemon.pid, task)

    @staticmethod
    def name_of(daemon, task):
        with open(f"/proc/{daemon.pid}/task/{task}/comm") as f:
            return f.read().strip()

    def test_every_thread_is_inside(self):
        d = self.daemon("--access-log", self.dir / "log", origin=self.origin())
        with rpc.Connection(d.socket) as c:
            self.assertEqual(c.get("https://a.test/").status, "ok")
        for fields in self.fields(d):
            self.assertEqual((fields["Seccomp"], fields["NoNewPrivs"]), ("2", "1"))
            for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
                self.assertEqual(int(fields[name], 16), 0, name)
            if os.geteuid() == 0:
                self.assertEqual(int(fields["CapBnd"], 16), 0)
        self.assertEqual(d.err.count("sandbox: capabilities and new privileges are given up, "), 1)
        self.assertIn("system calls are filtered", d.err)
        self.assertRegex(d.err, r"files are (restricted \(Landlock \d+\)|not restricted)")

    def test_off(self):
        d = self.daemon("--sandbox", "off")
        harness.wait_until(lambda: "serves with" in d.err, what="the daemon")
        for fields in self.fields(d):
            self.assertEqual((fields["Seccomp"], fields["NoNewPrivs"]),
                             (self.own("Seccomp"), self.own("NoNewPrivs")))
        self.assertNotIn("sandbox:", d.err)

    @staticmethod
    def own(name):
        return status_of("self", os.getpid())[name]

    def test_serving_in_it(self):
        """Names by the system's resolver, both schemes, a log that is rotated, a change, an end."""
        log = self.dir / "access.log"
        o = self.origin()
        d = self.daemon("--access-log", log, "--allow-net", "127.0.0.0/8", "--allow-net", "::1",
                        "--cacert", o.cacert)
        with rpc.Connection(d.socket) as c:
            # The origin listens on IPv4: localhost is resolved, and judged, by all its addresses.
            page = c.get(f"http://localhost:{o.http_port}/x")
            self.assertEqual(page.status, "ok", page.sentence)
            page = c.get(f"https://localhost:{o.https_port}/x")
            self.assertEqual(page.status, "ok", page.sentence)
            self.assertEqual(c.get("http://nobody.invalid/").status, "resolve_failed")
            self.assertEqual(c.set(policy="lfu")[0], "ok")
            harness.wait_until(lambda: log.exists() and log.read_text().count("\n") == 3,
                               what="three lines")
            log.rename(self.dir / "access.log.1")
            d.signal(signal.SIGHUP)
            harness.wait_until(log.exists, what="the new log")
        self.assertEqual(d.stop(), 0, d.err)
        self.assertFalse(os.path.exists(d.socket))

    def test_another_folder_of_the_same_name(self):
        """The rules are for the folder, not for its name."""
        # Not in self.dir, where a sanitizer may write its reports.
        with tempfile.TemporaryDirectory(prefix="sunproxy-test.") as top:
            self.replace_folder(pathlib.Path(top) / "logs")

    def replace_folder(self, folder):
        folder.mkdir()
        d = self.daemon("--access-log", folder / "log")
        harness.wait_until(lambda: "serves with" in d.err, what="the daemon")
        if "no Landlock" in d.err:
            self.skipTest("this kernel has no Landlock in force")
        folder.rename(folder.with_name("moved"))
        folder.mkdir()
        d.signal(signal.SIGHUP)
        harness.wait_until(lambda: "cannot be opened again: Permission denied" in d.err,
                           what="a word on it")

    def test_an_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("the other tests run as one")
        os.chown(self.dir, 65534, 65534)

        def become():
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)

        d = self.daemon("--access-log", self.dir / "log", origin=self.origin(), preexec=become)
        with rpc.Connection(d.address) as c:
            self.assertEqual(c.get("http://a.test/").status, "ok")
        for fields in self.fields(d):
            self.assertEqual(fields["Seccomp"], "2")
        self.assertNotIn("warning", d.err)
