"""sunproxy passwd: what it makes of a file of users, also when two change it at once."""

import os
import pty
import re
import select
import signal
import stat
import subprocess
import unittest

import harness

INTERRUPT = b"\x03"  # what a terminal makes SIGINT of
PREFIXES = {"yescrypt": "$y$", "bcrypt": "$2b$", "sha512": "$6$"}


class PasswdTest(harness.SystemTest):
    needs = (harness.SUNPROXY, harness.SUNPROXYD)

    def setUp(self):
        super().setUp()
        self.file = self.dir / "users"

    def passwd(self, *arguments, password="secret", status=0, file=None):
        done = self.run_program([harness.SUNPROXY, "passwd", *arguments[:-1], file or self.file, arguments[-1]],
                                stdin=f"{password}\n".encode())
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr.decode()

    def names(self):
        return [line.partition(":")[0] for line in self.file.read_text().splitlines()]

    def test_each_method(self):
        for method, prefix in PREFIXES.items():
            self.passwd("--stdin", "--method", method, method)
            self.assertEqual(self.file.read_text().splitlines()[-1].partition(":")[::2][0], method)
            self.assertIn(f"{method}:{prefix}", self.file.read_text())
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        done = self.run_program([harness.SUNPROXYD, "--check-config", "--users", self.file, "--socket", "none",
                                 "--no-rpcbind", "--port", "0"])
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_a_user_is_changed_in_place_and_removed(self):
        self.file.write_text("# office\nanna:x\n\nbert:y")
        self.file.chmod(0o640)
        self.passwd("--stdin", "anna")
        self.assertRegex(self.file.read_text(), r"\A# office\nanna:\$y\$\S+\n\nbert:y\n\Z")
        self.passwd("--stdin", "c\u00e4cilie")
        self.assertEqual(self.names(), ["# office", "anna", "", "bert", "c\u00e4cilie"])
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o640)
        self.passwd("--delete", "bert")
        self.assertEqual(self.names(), ["# office", "anna", "", "c\u00e4cilie"])
        self.assertIn("has no user 'bert'", self.passwd("-D", "bert", status=67))
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name.startswith("users")], ["users"])

    def test_passwords_that_are_refused(self):
        for password in ("", "a\tb", 512 * "x", "\x7f", "\x1b[31m"):
            self.assertIn("1 to 511 bytes", self.passwd("--stdin", "anna", password=password, status=65))
        self.assertFalse(self.file.exists())
        self.passwd("--stdin", "anna", password=511 * "x")
        done = self.run_program([harness.SUNPROXY, "passwd", "--stdin", self.file, "anna"], stdin=b"")
        self.assertEqual(done.returncode, 65)
        done = self.run_program([harness.SUNPROXY, "passwd", "--stdin", self.file, "anna"], stdin=b"\xff\n")
        self.assertEqual(done.returncode, 65)

    def test_files_that_cannot_be_changed(self):
        self.passwd("--stdin", "anna", file="/proc/none/users", status=73)
        self.passwd("--stdin", "anna", file="/dev/null", status=73)
        self.passwd("--stdin", "anna", file=self.dir, status=66)
        self.file.write_text("anna:x\n")
        self.file.chmod(0o400)
        self.passwd("--stdin", "anna", status=77)
        self.assertEqual(self.file.read_text(), "anna:x\n")

    @unittest.skipIf(os.getuid(), "only root can give files away")
    def test_the_owner_stays(self):
        self.file.write_text("anna:x\n")
        os.chown(self.file, 1234, 2345)
        self.passwd("--stdin", "anna")
        status = self.file.stat()
        self.assertEqual((status.st_uid, status.st_gid), (1234, 2345))

    def test_many_at_once(self):
        running = []
        for i in range(24):
            process = subprocess.Popen([harness.SUNPROXY, "passwd", "--stdin", self.file, f"user{i}"],
                                       stdin=subprocess.PIPE)
            self.addCleanup(process.wait)
            running.append(process)
        for process in running:
            process.communicate(b"secret\n", timeout=120)
            self.assertEqual(process.returncode, 0)
        self.assertEqual(sorted(self.names()), sorted(f"user{i}" for i in range(24)))

    def on_terminal(self, *answers):
        """Runs it on a terminal of its own; returns its status and what it has shown."""
        pid, terminal = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # what runs the tests may ignore it
            signal.alarm(120)
            os.execv(harness.SUNPROXY, ["sunproxy", "passwd", str(self.file), "anna"])
        self.addCleanup(os.close, terminal)
        shown, left = b"", list(answers)
        while True:
            if not select.select([terminal], [], [], 0.1)[0]:
                # readpassphrase() goes on to wait after a signal between its prompt and its read().
                if not left and answer == INTERRUPT:
                    os.write(terminal, answer)
                continue
            try:
                piece = os.read(terminal, 1000)
            except OSError:  # the terminal of a process that has ended
                break
            shown += piece
            if left and shown.count(b": ") > len(answers) - len(left):
                answer = left.pop(0)
                os.write(terminal, answer)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()

    def test_a_terminal(self):
        status, shown = self.on_terminal(b"secret\n", b"secret\n")
        self.assertEqual(status, 0)
        self.assertRegex(shown, r"\APassword: \s*The same again: \s*\Z")
        self.assertEqual(self.names(), ["anna"])
        before = self.file.read_text()
        status, shown = self.on_terminal(b"secret\n", b"secrets\n")
        self.assertEqual(status, 65)
        self.assertIn("the two passwords differ", shown)
        self.assertNotIn("secret", shown.replace("secrets", "secret").replace("passwords", ""))
        status, _ = self.on_terminal(INTERRUPT)
        self.assertEqual(status, -signal.SIGINT)
        self.assertEqual(self.file.read_text(), before)
        self.assertTrue(re.match(r"anna:\$y\$", before))
