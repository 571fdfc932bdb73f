"""What the daemon may do: --user, capabilities, ownership of what root opened."""

import os
import re
import signal
import stat

import harness
import rpc

UID = 54321
GID = 54322
USER = f"{UID}:{GID}"
PROGRAM = str(rpc.PROGRAM)


def status_of(pid):
    """The fields of /proc/PID/status as lists of words."""
    with open(f"/proc/{pid}/status") as f:
        return {name: rest.split() for name, rest in (line.split(":", 1) for line in f)}


class RootTest(harness.SystemTest):
    """A folder of the user's; only root can start the daemon as another user."""
    sandboxed = True

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can change to another user")
        os.chown(self.dir, UID, GID)

    @staticmethod
    def await_serving(daemon):
        """Its socket can be connected to before it has changed its user."""
        harness.wait_until(lambda: "serves with" in daemon.err, what="the daemon")

    def as_user(self, argv):
        return self.run_program(["setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups",
                                 "--", *argv])


class UserTest(RootTest):
    def test_ids_and_capabilities(self):
        d = self.daemon("--user", USER, origin=self.origin())
        self.await_serving(d)
        for task in os.listdir(f"/proc/{d.pid}/task"):
            fields = status_of(f"{d.pid}/task/{task}")
            self.assertEqual(fields["Uid"], [str(UID)] * 4)
            self.assertEqual(fields["Gid"], [str(GID)] * 4)
            self.assertEqual(fields["Groups"], [])
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                self.assertEqual(int(fields[name][0], 16), 0, name)
            self.assertEqual(fields["NoNewPrivs"], ["1"])
        # No other process of that user can look inside.
        self.assertEqual(os.stat(f"/proc/{d.pid}/environ").st_uid, 0)
        with rpc.Connection(d.address) as c:
            self.assertEqual(c.get("https://a.test/").status, "ok")
        self.assertNotIn("serving as root", d.err)

    def test_by_name_with_its_groups(self):
        os.chown(self.dir, 1, 1)
        d = self.daemon("--user", "daemon")
        self.await_serving(d)
        fields = status_of(d.pid)
        self.assertEqual((fields["Uid"][0], fields["Gid"][0]), ("1", "1"))
        groups = self.run_program(["id", "-G", "daemon"]).stdout.decode().split()
        self.assertEqual(sorted(fields["Groups"]), sorted(groups))
        d = self.daemon("--user", "daemon:nogroup")
        self.await_serving(d)
        self.assertEqual(status_of(d.pid)["Gid"], ["65534"] * 4)

    def test_files_are_the_users(self):
        d = self.daemon("--user", USER, "--socket-mode", "0600")
        self.await_serving(d)
        for path, mode in ((d.socket, 0o600), (d.socket + ".lock", 0o600)):
            st = os.stat(path)
            self.assertEqual((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (UID, GID, mode))
        self.assertEqual(d.stop(), 0)
        self.assertFalse(os.path.exists(d.socket))

    def test_the_user_is_an_administrator(self):
        d = self.daemon("--user", USER)
        done = self.as_user([self.for_other_users(harness.SUNPROXY), "set", "--socket", d.socket, "--capacity-urls", "5"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_port_that_is_roots(self):
        ns = harness.Namespace(self)
        d = self.daemon("--user", USER, "--port", "80", namespace=ns, listen=False)
        done = ns.run([harness.SUNPROXY, "ping", "--host", "127.0.0.1", "--port", "80"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(d.stop(), 0)

    def test_the_default_socket(self):
        ns = harness.Namespace(self)
        d = self.daemon("--user", USER, "--listen", "none", namespace=ns, listen=False,
                        socket_path=None, ready=False, env={"XDG_RUNTIME_DIR": str(self.dir)})
        self.await_serving(d)
        done = ns.run(["stat", "-c", "%u", "/run/sunproxy", "/run/sunproxy/sunproxy.sock"])
        self.assertEqual(done.stdout.split(), [str(UID).encode()] * 2)
        # A folder that is the daemon's is trusted there, by root's client and at another start.
        done = ns.run(["env", "-u", "XDG_RUNTIME_DIR", harness.SUNPROXY, "ping"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(d.stop(), 0)
        self.assertNotEqual(ns.run(["stat", "/run/sunproxy/sunproxy.sock"]).returncode, 0)
        d = self.daemon("--user", USER, "--listen", "none", namespace=ns, listen=False,
                        socket_path=None, ready=False)
        self.await_serving(d)

    def test_users_that_cannot_be(self):
        for user in ("no-such-user", "", "root", "0:0", "54321", "daemon:no-such-group",
                     "x" * 300, ":daemon"):
            for more in ([], ["--check-config"]):
                done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket",
                                       self.dir / "s", "--user", user, *more)
                self.assertEqual(done.returncode, 78, (user, done.stderr))
                self.assertIn(b"user", done.stderr)

    def test_only_root_can_become_another(self):
        argv = [self.for_other_users(harness.SUNPROXYD), "--no-rpcbind", "--listen", "none",
                "--socket", self.dir / "s"]
        done = self.as_user([*argv, "--user", "daemon"])
        self.assertEqual(done.returncode, 71, done.stderr)
        self.assertIn(b"only root", done.stderr)

    def test_a_user_that_it_is_already(self):
        d = self.daemon("--user", USER, preexec=self.become,
                        program=self.for_other_users(harness.SUNPROXYD))
        self.await_serving(d)
        fields = status_of(d.pid)
        self.assertEqual((fields["CapPrm"], fields["NoNewPrivs"]), (["0" * 16], ["1"]))
        with rpc.Connection(d.socket) as c:
            self.assertTrue(c.ping())

    @staticmethod
    def become():
        os.setgroups([])
        os.setresgid(GID, GID, GID)
        os.setresuid(UID, UID, UID)

    def test_serving_as_root_is_warned_of(self):
        d = self.daemon()
        self.await_serving(d)
        self.assertRegex(d.err, "warning: serving as root; --user")
        fields = status_of(d.pid)
        self.assertEqual((fields["CapEff"], fields["NoNewPrivs"]), (["0" * 16], ["1"]))


class LogTest(RootTest):
    def setUp(self):
        super().setUp()
        self.folder = self.dir / "logs"
        self.folder.mkdir()
        self.log = self.folder / "access.log"

    def start(self):
        d = self.daemon("--user", USER, "--access-log", self.log, origin=self.origin())
        self.c = rpc.Connection(d.socket)
        self.addCleanup(self.c.close)
        return d

    def ask(self, url):
        self.c.get(url)
        harness.wait_until(lambda: self.log.exists() and url in self.log.read_text(), what="a line")

    def test_rotation_in_a_folder_of_the_users(self):
        os.chown(self.folder, UID, GID)
        d = self.start()
        self.ask("http://a.test/1")
        self.assertEqual(self.log.stat().st_uid, UID)
        os.rename(self.log, self.folder / "access.log.1")
        d.signal(signal.SIGHUP)
        harness.wait_until(self.log.exists, what="the new log")
        self.ask("http://a.test/2")

    def test_a_log_in_a_folder_of_roots(self):
        self.log.write_text("")
        os.chmod(self.log, 0o640)
        d = self.start()
        self.ask("http://a.test/1")
        self.assertEqual(self.log.stat().st_uid, UID)
        # As logrotate does with "create".
        os.rename(self.log, self.folder / "access.log.1")
        self.log.touch(0o640)
        os.chown(self.log, UID, GID)
        d.signal(signal.SIGHUP)
        harness.wait_until(lambda: f"{self.log} opened again" in d.err, what="the new log")
        self.ask("http://a.test/2")

    def test_links_of_the_users_lead_nowhere(self):
        os.chown(self.folder, UID, GID)
        victim = self.dir / "victim"
        victim.write_text("precious")
        os.chmod(victim, 0o600)
        self.log.symlink_to(victim)
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket", self.dir / "s",
                               "--user", USER, "--access-log", self.log)
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertEqual((victim.stat().st_uid, victim.read_text()), (0, "precious"))


class RpcbindTest(RootTest):
    def setUp(self):
        super().setUp()
        self.ns = harness.Namespace(self)
        self.ns.rpcbind()

    def entries(self):
        """{(version, netid): owner} of our program."""
        done = self.ns.run(["rpcinfo", "127.0.0.1"])
        rows = (line.split() for line in done.stdout.decode().splitlines())
        return {(r[1], r[2]): r[-1] for r in rows if r and r[0] == PROGRAM}

    def start(self, *options, **more):
        return self.daemon(*options, namespace=self.ns, rpcbind=True, listen=False, **more)

    def registered_by(self, owner):
        """One after the other: both versions on TCP of both families and on the socket."""
        harness.wait_until(lambda: list(self.entries().values()) == [owner] * 6,
                           what="six entries of " + owner)

    def test_registration_is_the_users_and_roots_stale_entries_go(self):
        root = self.start()
        self.registered_by("superuser")
        root.kill()
        d = self.start("--user", USER)
        self.registered_by(str(UID))
        self.assertRegex(d.err, "rpcbind had version 1 on tcp at .*, registered by superuser; removed")
        self.assertEqual(d.stop(), 0, d.err)
        self.assertEqual(self.entries(), {})

    def test_an_rpcbind_that_does_not_answer_delays_the_start_only(self):
        self.processes[-1].signal(signal.SIGSTOP)
        d = self.start("--user", USER)
        with rpc.Connection(d.socket) as c:
            self.assertTrue(c.ping())
        self.assertIn("rpcbind does not answer", d.err)
        self.assertEqual(d.stop(), 0, d.err)

    def test_an_entry_of_another_users_is_told(self):
        root = self.start()
        self.registered_by("superuser")
        root.kill()
        d = self.start("--user", USER, preexec=None)
        self.registered_by(str(UID))
        argv = ["setpriv", f"--reuid={UID + 1}", f"--regid={GID}", "--clear-groups", "--",
                self.for_other_users(harness.SUNPROXYD), "--socket", "none"]
        other = harness.Process(self, "other", self.ns.enter(argv))
        harness.wait_until(lambda: re.search(
            f"refuses version 1 on tcp; it has .*, registered by {UID}; that user or root "
            f"can remove it with \"rpcinfo -d {PROGRAM} 1\"", other.err), what="a word on it")
        self.assertEqual(d.stop(), 0)
