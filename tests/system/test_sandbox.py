"""The real daemon in its sandbox: what is in force, and that serving goes on in it."""

import os
import pathlib
import shutil
import signal
import socket
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
        self.assertEqual(d.err.count("sandbox: capabilities and new privileges are dropped, "), 1)
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
            # The origin listens on IPv4: localhost is resolved, and all its addresses are checked.
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

        # Within any limit of open files, of which a warning would be.
        d = self.daemon("--access-log", self.dir / "log", "--max-connections", "100", "--max-fetches", "100",
                        origin=self.origin(), preexec=become,
                        program=self.for_other_users(harness.SUNPROXYD))
        with rpc.Connection(d.address) as c:
            self.assertEqual(c.get("http://a.test/").status, "ok")
        for fields in self.fields(d):
            self.assertEqual(fields["Seccomp"], "2")
        self.assertNotIn("warning", d.err)


class ReleaseTest(harness.SystemTest):
    """The filter as operators have it: builds with sanitizers are allowed more."""

    needs = (harness.ORIGIN,)
    sandboxed = True

    def setUp(self):
        super().setUp()
        if not harness.RELEASE_SUNPROXYD.exists():
            self.skipTest(f"{harness.RELEASE_SUNPROXYD} is not built")
        self.o = self.origin()

    def test_a_reply_is_delivered_before_the_connection_closes(self):
        url, size = "http://a.test/fault/size:1000000", 1000000  # one answer
        d = self.daemon(origin=self.o, program=harness.RELEASE_SUNPROXYD)
        with rpc.Connection(d.address) as c:
            self.assertEqual(c.get(url).status, "ok")
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
            s.settimeout(20)
            s.connect(d.address)
            # Behind the call a record that is over the bound, and more input later.
            s.sendall(rpc.record(rpc.call(xid=1, procedure=rpc.V2_GET,
                                          arguments=rpc.get_arguments(url))) + b"\xff\xff\xff\xff")
            received = 0
            while data := s.recv(65536):
                received += len(data)
                if received < 600000:
                    s.send(b"more")
        self.assertGreater(received, size)

    def test_nothing_that_it_does_is_forbidden(self):
        """What the filter refuses shows up as ENOSYS or EPERM under strace."""
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        trace = self.dir / "strace"
        log = self.dir / "log"
        d = self.daemon("--access-log", log, origin=self.o, program=harness.RELEASE_SUNPROXYD,
                        launcher=["strace", "-D", "-f", "-qq", "-o", trace, "-e", "trace=all"])
        for url in ("http://a.test/", "https://a.test/", "http://nowhere.invalid:81/", "http://10.1.1.1/"):
            with rpc.Connection(d.address) as c:
                c.get(url)
        self.sunproxy("stat", daemon=d)
        self.sunproxy("set", "--policy", "lfu", daemon=d)
        self.sunproxy("purge", "--all", daemon=d)
        d.signal(signal.SIGHUP)
        harness.wait_until(lambda: log.exists() and log.stat().st_size, what="the access log")
        lines = trace.read_text(errors="replace").splitlines()
        loaded = next(i for i, line in enumerate(lines) if "SECCOMP_SET_MODE_FILTER" in line)
        # glibc falls back from clone3(), whose flags a filter cannot see, to clone().
        refused = [line for line in lines[loaded + 1:]
                   if (" = -1 EPERM" in line or " = -1 ENOSYS" in line) and "clone3" not in line]
        self.assertEqual(refused, [])
