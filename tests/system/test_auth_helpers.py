"""Users of the forward proxy by helpers of Squid's basic protocol: scripted ones in trouble, and
Debian's own, before a directory and a file. And by a file of users that is in trouble, or under a
flood of wrong passwords."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import unittest

import harness
from proxy_users import ALICE, BOB, EVE, NOBODY, ProxyUsersCase, basic, hash_of

SLAPD = shutil.which("slapd", path=os.environ["PATH"] + ":/usr/sbin")
SLAPADD = shutil.which("slapadd", path=os.environ["PATH"] + ":/usr/sbin")
LDAP_HELPER = pathlib.Path("/usr/lib/squid/basic_ldap_auth")
NCSA_HELPER = pathlib.Path("/usr/lib/squid/basic_ncsa_auth")

# Does what the password says; with channels, of which it answers each at once.
HELPER = """#!/bin/sh
say() { if [ -n "$channels" ]; then echo "$c $1"; else echo "$1"; fi; }
channels=$1
echo $$ >> "$2"
while if [ -n "$channels" ]; then read -r c u p; else read -r u p; fi; do
    case $p in
    secret | b%3Aob) say OK ;;
    die) exit 3 ;;
    hang) sleep 1000 ;;
    nonsense) echo "GET / HTTP/1.1" ;;
    twice) say OK; say OK ;;
    busy) say 'BH message="the directory is away"' ;;
    channel) echo "$(((c + 1) % 8)) OK" ;;
    flood) yes OK ;;
    *) say ERR ;;
    esac
done
"""


def processes():
    """Of this machine: number and command line."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


class HelperCase(ProxyUsersCase):
    def helped(self, command, *lines):
        self.start(*self.lines, f"auth-helper = {command}", *lines)

    def status(self, line, **more):
        return self.get("/x", line, **more).status

    def value(self, name):
        return self.stat(self.d)[name]


class ScriptedTest(HelperCase):
    seconds = 20
    threads = True

    def scripted(self, *lines, channels=""):
        self.helper, self.pids = self.dir / "helper", self.dir / "pids"
        self.helper.write_text(HELPER)
        self.helper.chmod(0o755)
        self.pids.touch()
        self.helped(f"exec {self.helper} '{channels}' {self.pids}", *lines,
                    *(["auth-helper-concurrency = 8"] if channels else []))

    def test_who_gets_in(self):
        for channels in ("", "yes"):
            with self.subTest(channels):
                self.scripted(channels=channels)
                self.assertEqual(self.get("/x").status, 407)
                for _ in range(2):
                    self.assertEqual([self.status(line) for line in (ALICE, BOB, EVE, NOBODY)],
                                     [200, 200, 407, 200])
                self.assertEqual(self.status(basic("alice", "")), 407)
                self.assertEqual(self.value("user_checks_accepted"), 3)
                self.assertEqual(self.value("user_helpers_restarted"), 0)
                self.d.stop()

    def test_trouble(self):
        """Nobody gets in by it, and those who come next are answered."""
        for channels, words in (("", ("die", "nonsense", "flood", "busy", "hang")),
                                ("yes", ("die", "nonsense", "flood", "busy", "channel"))):
            for failure in (503, 407):
                self.scripted("auth-timeout = 2s", f"auth-failure = {failure}", channels=channels)
                for word in words:
                    with self.subTest(word, channels=channels):
                        # A helper that floods may have said OK behind the question.
                        expected = {"busy": (407,), "flood": (failure, 407, 200)}.get(word, (failure,))
                        self.assertIn(self.status(basic("alice", word)), expected)
                        harness.wait_until(lambda: self.status(BOB) == 200, what="an answer for bob")
                said = self.d.err
                self.assertIn("the directory is away", said)
                self.assertIn("something else than OK, ERR or BH", said)
                self.assertIn("has ended with status 3", said)
                self.assertNotIn("secret", said)
                self.assertGreater(self.value("user_helpers_restarted"), 2)
                self.d.stop()

    def test_others_are_answered_while_one_hangs(self):
        self.scripted("auth-timeout = 30s")
        c = self.connect()
        c.send(f"GET {self.o.url}/x HTTP/1.1\r\nHost: x\r\n{basic('alice', 'hang')}\r\n\r\n")
        harness.wait_until(lambda: self.value("user_checks_pending") == 1, what="the check")
        for n in range(20):
            self.assertEqual(self.status(basic(f"user{n}", "secret")), 200)
        self.assertEqual(self.value("user_checks_pending"), 1)

    def test_spellings_of_a_name(self):
        """To the helper they are one user, as to a directory, and so they are to rules."""
        self.scripted("[rule]", "user = bob", "deny = 403")
        for name in ("bob", "Bob", "BOB", " bob", "bob "):
            self.assertEqual(self.status(basic(name, "secret")), 403, name)
        self.assertEqual(self.status(basic("bobby", "secret")), 200)
        self.assertEqual(self.status(basic("  ", "secret")), 407)

    def test_helpers_end_with_the_daemon(self):
        self.scripted("auth-helper-children = 5")
        harness.wait_until(lambda: self.value("user_helpers") == 5, what="five helpers")
        harness.wait_until(lambda: len(self.pids.read_text().split()) == 5, what="their numbers")
        pids = set(map(int, self.pids.read_text().split()))
        self.assertLessEqual(pids, {pid for pid, line in processes() if str(self.helper) in line})
        self.assertIn("sunproxyd-auth", {(p / "comm").read_text().strip()
                                         for p in pathlib.Path("/proc").glob("[0-9]*")
                                         if (p / "comm").exists()})
        self.d.kill()
        harness.wait_until(lambda: not any(str(self.helper) in line for _, line in processes()),
                           what="the end of all helpers")

    def test_a_helper_that_is_killed_is_started_again(self):
        self.scripted("auth-helper-children = 1")
        self.assertEqual(self.status(ALICE), 200)
        os.kill(int(self.pids.read_text()), signal.SIGKILL)
        self.assertEqual(self.status(BOB), 200)
        self.assertEqual(len(self.pids.read_text().split()), 2)
        self.assertEqual(self.value("user_helpers_restarted"), 1)

    def test_a_command_that_is_not_there(self):
        self.helped("/nonexistent/helper", "auth-timeout = 1s")
        self.assertEqual(self.status(ALICE), 503)
        self.assertEqual(self.get("/x").status, 407)
        harness.wait_until(lambda: "has ended with status 127" in self.d.err, what="a line about it")

    def test_it_excludes_a_file(self):
        self.write("auth-helper = cat", f"users = {self.users}")
        done = self.run_daemon("--config", self.file, "--check-config")
        self.assertEqual(done.returncode, 78)
        self.assertIn(f"{self.file}:2: users: --auth-helper is given, too", done.stderr.decode())


@unittest.skipIf(os.geteuid(), "only root can change to another user")
class PrivilegesTest(HelperCase):
    user = "54321:54322"

    def setUp(self):
        super().setUp()
        os.chown(self.dir, *map(int, self.user.split(":")))

    def test_helpers_have_those_of_the_user(self):
        seen = self.dir / "seen"
        self.helped(f"exec 2> {seen}; id -u >&2; id -g >&2; id -G >&2; "
                    "grep -e NoNewPrivs -e Seccomp: /proc/self/status >&2; ls /proc/self/fd >&2; "
                    "while read -r u p; do echo OK; done",
                    "auth-helper-children = 1", f"user = {self.user}")
        self.assertEqual(self.status(ALICE), 200)
        said = seen.read_text().split()
        self.assertEqual(said[:3], ["54321", "54322", "54322"])
        self.assertEqual(said[said.index("Seccomp:") + 1], "0", "helpers are outside of the sandbox")
        # The last one is the folder that ls reads.
        self.assertEqual(said[said.index("Seccomp:") + 2:], ["0", "1", "2", "3"])

    def test_a_file_that_only_root_can_read(self):
        self.serve(f"user = {self.user}")
        self.assertEqual([self.get("/x", line).status for line in (ALICE, EVE)], [200, 407])
        self.hashes["alice"] = hash_of("wrong")
        self.assertIn("changed: users", self.reload_users())
        self.assertEqual([self.get("/x", line).status for line in (ALICE, EVE)], [407, 200])


class ReloadsTest(HelperCase):
    def test_users_come_and_go(self):
        self.start(*self.lines)
        self.assertEqual(self.get("/x").status, 200)
        self.reload(*self.lines, f"users = {self.users}")
        self.assertEqual([self.get("/x").status, self.get("/x", ALICE).status], [407, 200])
        self.reload(*self.lines)
        self.assertEqual(self.get("/x").status, 200)
        self.assertIn("changed by a restart only: auth-helper",
                      self.refused(*self.lines, "auth-helper = cat"))

    def test_times(self):
        self.start(*self.lines, f"users = {self.users}")
        for _ in range(3):
            self.assertEqual(self.get("/x", ALICE).status, 200)
        self.assertEqual(self.value("user_checks_accepted"), 1)
        self.reload(*self.lines, f"users = {self.users}", "auth-ttl = 0s")
        self.get("/x", BOB)
        self.assertEqual(self.get("/x", BOB).status, 200)
        self.assertEqual(self.value("user_checks_accepted"), 3)
        # Shorter than any check takes.
        self.reload(*self.lines, f"users = {self.users}", "auth-ttl = 0s", "auth-timeout = 1us",
                    "auth-failure = 407")
        self.assertEqual(self.get("/x", EVE).status, 407)
        self.assertEqual(self.value("user_checks_unavailable") + self.value("user_checks_refused"), 1)

    def test_a_restart(self):
        pids = self.dir / "pids"
        pids.touch()
        self.helped(f"echo $$ >> {pids}; while read -r u p; do echo OK; done", "auth-helper-children = 1")
        self.assertEqual(self.status(ALICE), 200)
        old = int(pids.read_text())
        self.d.signal(signal.SIGUSR2)
        harness.wait_until(lambda: len(pids.read_text().split()) == 2, what="the helper of the next daemon")
        self.d.wait()
        harness.wait_until(lambda: old not in dict(processes()), what="the end of the helper of the first one")
        self.assertEqual(self.status(BOB), 200)
        new = int(pids.read_text().split()[1])
        successor = re.search(r"process (\d+) serves", self.d.err)
        os.kill(int(successor.group(1)), signal.SIGTERM)
        harness.wait_until(lambda: new not in dict(processes()), what="the end of the helper of the second one")


@unittest.skipUnless(NCSA_HELPER.exists(), "squid's basic_ncsa_auth is not installed")
class NcsaTest(HelperCase):
    def test_it_knows_its_users(self):
        self.hashes["j\u00fcrgen (x) 50%"] = hash_of("a b+c%20\u20ac")
        self.write_users()
        self.helped(f"exec {NCSA_HELPER} {self.users}")
        self.assertEqual([self.status(line) for line in (ALICE, BOB, EVE, NOBODY)], [200, 200, 407, 407])
        self.assertEqual(self.status(basic("j\u00fcrgen (x) 50%", "a b+c%20\u20ac")), 200)
        self.assertEqual(self.status(basic("j\u00fcrgen (x) 50%", "a b+c \u20ac")), 407)


@unittest.skipUnless(SLAPD and SLAPADD and LDAP_HELPER.exists(),
                     "slapd or squid's basic_ldap_auth is not installed")
class LdapTest(HelperCase):
    """A directory of OpenLDAP with two users."""

    def setUp(self):
        super().setUp()
        folder = self.dir / "ldap"
        (folder / "db").mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.conf = folder / "slapd.conf"
        self.conf.write_text(
            "".join(f"include /etc/ldap/schema/{name}.schema\n" for name in ("core", "cosine", "inetorgperson"))
            + f"pidfile {folder}/pid\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\ndatabase mdb\n"
              f"suffix dc=office,dc=test\ndirectory {folder}/db\nmaxsize 10485760\n")
        entries = folder / "entries"
        entries.write_text("dn: dc=office,dc=test\nobjectClass: dcObject\nobjectClass: organization\n"
                           "dc: office\no: Office\n\n"
                           + "".join(f"dn: uid={uid},dc=office,dc=test\nobjectClass: inetOrgPerson\nuid: {uid}\n"
                                     f"cn: {uid}\nsn: {uid}\nuserPassword: {password}\n\n"
                                     for uid, password in (("alice", "secret"), ("bob", "b:ob"))))
        done = subprocess.run([SLAPADD, "-f", self.conf, "-l", entries], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.begin()

    def begin(self):
        self.slapd = subprocess.Popen([SLAPD, "-f", self.conf, "-h", f"ldap://127.0.0.1:{self.port}", "-d", "0"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)

        def is_there():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        harness.wait_until(is_there, what="the directory")

    def end(self):
        self.slapd.terminate()
        self.slapd.wait(60)

    def test_it_asks_the_directory(self):
        self.helped(f"exec {LDAP_HELPER} -b dc=office,dc=test -f uid=%s -H ldap://127.0.0.1:{self.port}",
                    "auth-ttl = 0s")
        for _ in range(2):
            self.assertEqual([self.status(line) for line in (ALICE, BOB, EVE, NOBODY)], [200, 200, 407, 407])
        # What would be a filter, a distinguished name, or a bind without a name.
        for name, password in (("*", "secret"), ("ali*", "secret"), ("alice)(uid=*", "secret"),
                               ("alice", ""), ("", "secret"), ("alice\\2a", "secret")):
            with self.subTest(name, password=password):
                self.assertEqual(self.status(basic(name, password)), 407)
        self.end()
        self.assertIn(self.status(ALICE), (407, 503), "nobody gets in without the directory")
        self.begin()
        harness.wait_until(lambda: self.status(ALICE) == 200, what="the directory's next answer")


class FileTroubleTest(ProxyUsersCase):
    def is_refused(self, *words):
        said = self.hang_up()
        self.assertIn("not reloaded; the configuration in force stays", said)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(self.get("/x", ALICE).status, 200, "the users in force stay")
        self.assertEqual(self.get("/x", NOBODY).status, 407)
        done = self.run_daemon("--config", self.file, "--check-config")
        self.assertEqual(done.returncode, 78)
        for word in words:
            self.assertIn(word, done.stderr.decode())

    def test_a_file_that_is_wrong(self):
        self.serve()
        good = self.users.read_text()
        place = f"{self.file}:{len(self.lines) + 1}: users: "
        for text, said in (("", f"{place}{self.users}:1: the file has no user"),
                           (good[:-2], f"{place}{self.users}:2: the hash is cut"),
                           (good[:good.index("bob") + 2], f"{self.users}:2: a line is NAME:HASH"),
                           (good + good, f"{self.users}:3: line 1 has a user of the same name"),
                           (good + "carol:secret\n", f"{self.users}:3: this is no hash"),
                           (good + "carol:$apr1$4u8tHYLv$x2ZgfCDM.aNPKcs5oDCsj0\n", f"{self.users}:3: this is no hash"),
                           (good + "\0\n", f"{self.users}:3: a zero byte"),
                           ("x" * 100000, f"{self.users}:1: a line is NAME:HASH")):
            with self.subTest(said):
                self.users.write_text(text)
                self.is_refused(said)
        self.users.write_text(good)
        self.assertIn("nothing has changed", self.hang_up())

    def test_what_is_no_file_or_too_large(self):
        self.serve()
        good = self.users.read_text()
        self.users.unlink()
        self.is_refused(f"cannot read {self.users}: No such file")
        self.users.mkdir()
        self.is_refused(f"cannot read {self.users}: Invalid argument")
        self.users.rmdir()
        os.mkfifo(self.users)
        self.is_refused(f"cannot read {self.users}: Invalid argument")
        self.users.unlink()
        with self.users.open("wb") as file:
            file.truncate(2 << 30)
        self.is_refused(f"{self.users} is larger than 8388608 bytes")
        self.users.unlink()
        self.users.write_text(good)
        self.users.chmod(0o600)
        self.assertIn("nothing has changed", self.hang_up())

    def test_a_file_that_others_can_read(self):
        self.users.chmod(0o644)
        self.serve()
        self.assertIn(f"users: {self.users} can be read by its group or by others", self.d.err)
        self.assertEqual(self.get("/x", ALICE).status, 200)


class FloodTest(HelperCase):
    threads = True

    def test_wrong_passwords_hold_up_nobody_else(self):
        """200 connections of one client, each with passwords of its own, and slow hashes."""
        for name in self.hashes:
            done = subprocess.run([harness.SUNPROXY, "passwd", "--stdin", "--method", "bcrypt", self.users, name],
                                  input=b"secret\n", check=False, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.start(*self.lines, f"users = {self.users}", "auth-timeout = 600s")
        for n in range(200):
            c = self.connect("127.0.0.2")
            c.send(f"GET {self.o.url}/x HTTP/1.1\r\nHost: x\r\n{basic('alice', f'wrong{n}')}\r\n\r\n")
        harness.wait_until(lambda: self.value("user_checks_pending") > 150, what="the flood")
        before = self.value("user_checks_refused")
        self.assertEqual(self.get("/x", ALICE, c=self.connect("127.0.0.3")).status, 200)
        # One that was being made, one whose turn came before, and one for the time to ask.
        self.assertLessEqual(self.value("user_checks_refused") - before, 10)

    def test_each_refusal_costs_the_same_work(self):
        """A user that is not there is checked like one that is."""
        self.serve("auth-ttl = 0s")
        for n in range(10):
            self.assertEqual(self.get("/x", basic("alice", f"wrong{n}")).status, 407)
            self.assertEqual(self.get("/x", basic(f"user{n}", "wrong")).status, 407)
        self.assertEqual(self.value("user_checks_refused"), 20)
