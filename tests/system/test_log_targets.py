"""Where the access log goes besides files: commands, syslog, the journal. All in the sandbox."""

import os
import pathlib
import signal
import socket
import subprocess

import harness
import rpc


def processes_of(text):
    """Numbers of the processes whose command line has the text."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


class TargetTest(harness.SystemTest):
    seconds = 12

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.out = self.dir / "out"

    def start(self, target, *options):
        d = self.daemon("--access-log", target, *options, origin=self.o)
        self.c = rpc.Connection(d.socket)
        self.addCleanup(self.c.close)
        return d

    def get(self, name):
        self.assertEqual(self.c.get(f"http://a.test/{name}").status, "ok")

    def await_lines(self, count):
        def enough():
            lines = self.out.read_text().splitlines() if self.out.exists() else []
            return lines if len(lines) >= count else None

        return harness.wait_until(enough, what=f"{count} lines")

    # ---- commands --------------------------------------------------------------------------

    def test_a_command(self):
        d = self.start(f"|cat >> {self.out}", "--log-format", "%m %{url}x %s")
        self.get("1")
        self.assertEqual(self.await_lines(1), ["GET http://a.test/1 200"])
        for n in range(300):
            self.get(n % 3)
        self.assertEqual(d.stop(), 0)
        self.assertEqual(len(self.await_lines(301)), 301)
        self.assertEqual(processes_of(f"cat >> {self.out}"), [])

    def test_a_command_that_ends(self):
        d = self.start(f"|head -n 1 >> {self.out}", "--log-format", "%{url}x")
        self.get("1")
        self.assertEqual(self.await_lines(1), ["http://a.test/1"])
        self.get("2")
        harness.wait_until(lambda: "has ended with status 0; it is started again in 1 s" in d.err,
                           what="a word on it")
        self.get("3")
        self.assertIn("http://a.test/", self.await_lines(2)[1])
        self.assertEqual(d.stop(), 0)

    def end_command(self, pid):
        """Ends a command that outlives the daemon, which makes sunproxyd-log run it once more and end."""
        keeper = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        os.kill(pid, signal.SIGKILL)
        harness.wait_until(lambda: keeper not in os.listdir("/proc"), what="the end of sunproxyd-log")

    def test_a_command_that_never_reads(self):
        number = self.dir / "number"
        d = self.start(f"|test -e {number} && exit; echo $$ > {number}; exec sleep 600", "--stop-timeout", "200ms")
        sleeping = int(harness.wait_until(lambda: number.exists() and number.read_text(), what="its number"))
        self.addCleanup(self.end_command, sleeping)
        url = "http://a.test/" + "x" * 8000
        for _ in range(40):
            self.assertEqual(self.c.get(url).status, "ok")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(300), 0)
        self.assertIn("its reader does not read", d.err)

    def test_a_command_ends_with_the_daemon(self):
        d = self.start(f"|cat >> {self.out}", "--log-format", "%{url}x")
        self.get("1")
        self.await_lines(1)
        self.assertNotEqual(processes_of(f"cat >> {self.out}"), [])
        d.kill()
        harness.wait_until(lambda: processes_of(f"cat >> {self.out}") == [], what="no command")

    def test_the_user_of_a_command(self):
        if os.getuid() != 0:
            self.skipTest("only root changes the user")
        self.dir.chmod(0o755)
        self.out.touch()
        os.chown(self.out, 65534, 65534)
        self.start(f"|{{ id -u; grep CapEff /proc/self/status; cat; }} >> {self.out}", "--user",
                   "65534:65534", "--log-format", "%{url}x", "--policy", "fifo")
        self.get("1")
        self.assertEqual(self.await_lines(3),
                         ["65534", "CapEff:\t0000000000000000", "http://a.test/1"])

    def test_lines_that_are_lost_at_the_end_are_counted(self):
        d = self.start(f"syslog:@{self.dir}/none")
        for n in range(20):
            self.get(n)
        harness.wait_until(lambda: "no process reads it" in d.err, what="a word on it")
        self.assertEqual(d.stop(), 0)
        self.assertIn("/none: 20 lines lost in all\n", d.err)

    # ---- services --------------------------------------------------------------------------

    def serve(self, path):
        service = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(service.close)
        service.bind(str(path))
        service.settimeout(harness.TEST_SECONDS)
        return service

    def test_syslog_that_is_started_anew(self):
        path = self.dir / "log"
        service = self.serve(path)
        d = self.start(f"syslog:local0@{path}", "--log-format", "%{url}x %s")
        for n in range(3):
            self.get(n)
            self.assertRegex(service.recv(65536).decode(),
                             rf"^<134>[A-Z][a-z][a-z] [ \d]\d [\d:]{{8}} sunproxyd\[{d.pid}\]: "
                             rf"http://a\.test/{n} 200$")
            service.close()
            path.unlink()
            self.get("waits")
            harness.wait_until(lambda: "no process reads it; 0 lines lost so far" in d.err,
                               what="a word on it")
            service = self.serve(path)
            self.assertTrue(service.recv(65536).endswith(b": http://a.test/waits 200"))
        self.assertEqual(self.c.stat().log_lines_lost, 0)
        self.assertEqual(d.stop(), 0)

    def test_syslog_over_udp(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as service:
            service.bind(("127.0.0.1", 0))
            service.settimeout(harness.TEST_SECONDS)
            d = self.start(f"syslog:@127.0.0.1:{service.getsockname()[1]}", "--log-format", "json")
            self.get("1")
            self.assertRegex(service.recv(65536).decode(),
                             rf"^<30>1 \d{{4}}-\d\d-\d\dT[\d:.]+Z \S+ sunproxyd {d.pid} access - "
                             r'\{"time":"\d.*"url":"http://a\.test/1",.*\}$')

    def test_the_journal(self):
        service = self.serve(self.dir / "journal")
        self.start(f"journal:{self.dir}/journal")
        self.c.get(b"http://a.test/\nMESSAGE=forged\tMESSAGE=forged")
        self.get("1")
        records = [service.recv(65536).decode() for _ in range(2)]
        some = ["PRIORITY", "SYSLOG_IDENTIFIER", "SUNPROXY_CLIENT", "SUNPROXY_METHOD", "SUNPROXY_URL"]
        names = [[line.partition("=")[0] for line in record.splitlines()] for record in records]
        self.assertEqual(names[0], [*some, *("SUNPROXY_" + name for name in (
            "BYTES", "US", "OUTCOME", "ERROR", "PROTOCOL")), "MESSAGE"])
        self.assertEqual(names[1], [*some, *("SUNPROXY_" + name for name in (
            "STATUS", "BYTES", "US", "OUTCOME", "REASON", "PROTOCOL")), "MESSAGE"])
        for record in records:
            self.assertEqual(record.splitlines()[-1].count("\t"), 8, record)
        self.assertIn("SUNPROXY_URL=http://a.test/\\x0aMESSAGE=forged\\x09MESSAGE=forged\n", records[0])
        self.assertIn("\nSUNPROXY_URL=http://a.test/1\nSUNPROXY_STATUS=200\n", records[1])
        self.assertIn("\nSUNPROXY_OUTCOME=miss\nSUNPROXY_REASON=uri-miss\n", records[1])

    def test_a_command_that_is_not_there_is_a_warning(self):
        for command, warned in (("/nonexistent -x", True), ("/bin/cat", False), ("$HOME/x", False)):
            done = self.run_daemon("--check-config", "--access-log", f"|{command}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(b"--access-log: /nonexistent cannot be run: No such file" in done.stderr,
                             warned, done.stderr)

    def test_targets_that_are_wrong(self):
        for target, why in (("|", "no command follows the |"), ("syslog:loca1", "did you mean local1?"),
                            ("sylog:", "did you mean syslog:?"), ("journal:x", "the absolute path")):
            done = subprocess.run([harness.SUNPROXYD, "--check-config", "--access-log", target],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("sunproxyd: --access-log: ", done.stderr)
            self.assertIn(why, done.stderr)
