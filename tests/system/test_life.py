"""The daemon's life: options, configuration, addresses that are taken, limits, notification."""

import os
import re
import signal
import socket
import stat
import subprocess
import threading

import harness
import rpc


class OptionsTest(harness.SystemTest):
    def test_help(self):
        done = self.run_daemon("--help")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for option in ("--config", "--check-config", "--port", "--no-rpcbind", "--socket", "--listen",
                       "--workers", "--policy", "--capacity-urls", "--capacity-bytes", "--shards",
                       "--allow-net", "--connect-to", "--upstream-proxy", "--cacert",
                       "--idle-timeout", "--access-log", "--log-format", "--log-level", "--version"):
            self.assertIn(option.encode(), done.stdout)

    def test_version_and_policies(self):
        done = self.run_daemon("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, rb"^sunproxyd \d+\.\d+\.\d+\n$")
        done = self.run_daemon("--policy", "help")
        self.assertEqual(done.returncode, 0)
        for policy in (b"lru", b"lfu", b"fifo", b"rand", b"maxs", b"lru-k", b"s3-fifo", b"none"):
            self.assertRegex(done.stdout, rb"(?m)^" + policy + rb" ")
        self.assertRegex(done.stdout, rb"(?m)^ +k=1\.\.4: .*\(default: 2\)$")
        self.assertRegex(done.stdout, rb"(?m)^ +draw=once\|each: .*\(default: once\)$")
        self.assertNotRegex(done.stdout, rb"(?m)^opt\b")  # no daemon knows what is to come

    def test_wrong_usage(self):
        for arguments in (["--no-such"], ["stray"], ["--port", "x"], ["--port", "65536"],
                          ["--port", "-1"], ["--workers", "1000"], ["--capacity-bytes", "1Q"],
                          ["--idle-timeout", "soon"], ["--log-format", "xml"], ["--port"]):
            done = self.run_daemon(*arguments)
            self.assertEqual((done.returncode, done.stdout), (harness.EX_USAGE, b""), arguments)
            self.assertGreater(len(done.stderr), 10)

    def test_values_that_only_the_parts_can_check(self):
        for arguments in (["--policy", "nosuch"], ["--allow-net", "127.0.0.1/33"],
                          ["--allow-net", "words"], ["--cacert", "/nowhere"],
                          ["--connect-to", "nonsense"], ["--capacity-urls", "2", "--shards", "8"],
                          ["--listen", "words"], ["--listen", "300.1.1.1"],
                          ["--listen", "none", "--socket", "none"], ["--socket", "x" * 120]):
            for more in ([], ["--check-config"]):
                argv = ["--no-rpcbind", "--socket", self.dir / "s", *arguments, *more]
                done = self.run_daemon(*argv)
                self.assertIn(done.returncode, (harness.EX_USAGE, 78), argv)
                self.assertGreater(len(done.stderr), 10)

    def test_a_value_is_reported_under_the_name_that_was_written(self):
        """With dashes on the command line, without in the file, also where only a part can check it."""
        rows = (("allow-net", "words"), ("client-net", "words"), ("purge-net", "words"), ("listen", "words"),
                ("http", "words"), ("metrics", "words"), ("origin", "words"), ("origin", "/=ftp://h"),
                ("tag-rule", "words"), ("write-rule", "words"), ("connect-port", "words"),
                ("admin-uid", "no such user"), ("max-age", "words"), ("connect-to", "words"),
                ("allow-port", "words"), ("user", "no such user"), ("upstream-proxy", "ftp://h"))
        path = self.dir / "sunproxyd.conf"
        for name, value in rows:
            path.write_text(f"{name} = {value}\n")
            for argv, text in (([f"--{name}", value], f' --{name}: "'), (["-c", path], f' {name}: "')):
                done = self.run_daemon("--no-rpcbind", "--check-config", *argv)
                self.assertIn(done.returncode, (harness.EX_USAGE, 78), argv)
                self.assertIn(text, done.stderr.decode())
        for name, value, more in (("cacert", "/nowhere", ["--check-config"]), ("listen", "words", []),
                                  ("listen", "192.0.2.1", []), ("http", "192.0.2.1:80", [])):
            path.write_text(f"{name} = {value}\n")
            for argv, text in (([f"--{name}", value], f" --{name}: "), (["-c", path], f" {name}: ")):
                done = self.run_daemon("--no-rpcbind", "--socket", self.dir / "s", *more, *argv)
                self.assertEqual(done.returncode, 78, argv)
                self.assertIn(text, done.stderr.decode())

    def test_output_that_cannot_be_written(self):
        for argument in ("--help", "--version", "--check-config"):
            argv = ["sh", "-c", f"exec {harness.SUNPROXYD} {argument} > /dev/full"]
            self.assertNotEqual(self.run_program(argv).returncode, 0)


class ConfigTest(harness.SystemTest):
    def config(self, text):
        path = self.dir / "sunproxyd.conf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def test_errors_name_file_and_line(self):
        for text, line in (("port = 1\nnonsense = 2\n", 2), ("# x\n\nport\n", 3), ("port = x\n", 1),
                           ("port = 1\nport = 65536\n", 2), ("no-rpcbind = maybe\n", 1),
                           ("capacity-bytes = 1 potato\n", 1), ("= 5\n", 1),
                           ("config = other\n", 1), ("help = yes\n", 1)):
            path = self.config(text)
            for more in ([], ["--check-config"]):
                done = self.run_daemon("--config", path, *more)
                self.assertEqual(done.returncode, 78, (text, done.stderr))
                self.assertIn(f"{path}:{line}:".encode(), done.stderr)

    def test_every_error_is_reported_with_its_line(self):
        """Those of values that only the parts can check, too, and of what a start could not open."""
        (self.dir / "folder").mkdir()
        path = self.config("port = x\nallow-net = words\n\nallow-net = 10.0.0.0/8\nallow-net = more\n"
                           "client-net = 1.2.3.4/99\nhttp = 127.0.0.1:1\nhttp = words\n"
                           f"admin-uid = no such user\naccess-log = {self.dir}/none/access.log\n"
                           f"request-db = {self.dir}/folder\ntag-rule = words\ntag-field = a b\n"
                           "connect-port = words\nallow-port = words\nconnect-to = words\n"
                           "cacert = /nowhere\nmetrics = words\nlisten = words\npolicy = none # good\n"
                           "trust-forwarded = words\n")
        done = self.run_daemon("--no-rpcbind", "--check-config", "-c", path, "--purge-net", "words")
        self.assertEqual((done.returncode, done.stdout), (78, b""))
        said = done.stderr.decode()
        lines = [int(n) for n in re.findall(re.escape(str(path)) + r":(\d+): ", said)]
        self.assertEqual(sorted(lines), [1, 2, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 21], said)
        self.assertIn(' --purge-net: "words"', said)
        self.assertIn(f":10: access-log: {self.dir}/none/access.log: No such file or directory", said)
        self.assertIn(f":11: request-db: {self.dir}/folder: Is a directory", said)

    def test_addresses_are_tried(self):
        """As a start would have them; those in use may be a running daemon's."""
        for argv, text in ((("--http", "192.0.2.1:80"), "--http: 192.0.2.1:80: it is not an address"),
                           (("--listen", "192.0.2.1"), "--listen: 192.0.2.1: it is not an address"),
                           (("--socket", "/nowhere/socket"), "--socket: /nowhere/socket: /nowhere: No such"),
                           (("--metrics", "unix:/nowhere/m"), "--metrics: unix:/nowhere/m: /nowhere: No such"),
                           (("--request-db", __file__), "request-db: " + __file__ + ": it is not an SQLite")):
            done = self.run_daemon("--check-config", *argv)
            self.assertIn(done.returncode, (73, 78), argv)
            self.assertIn(text, done.stderr.decode())
        d = self.daemon("--http", "127.0.0.1:0")
        options = d.argv[1:]
        done = self.run_daemon("--check-config", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"warning: --listen: 127.0.0.1: TCP port {d.port} is in use by process {d.pid} ",
                      done.stderr.decode())

    def test_ports_for_other_protocols(self):
        for argv, status in ((["--connect-port", "25"], 78), (["--connect-port", "25", "--allow-port", "25"], 0),
                             (["--connect-port", "25", "--allow-port", "any"], 0), (["--connect-port", "any"], 0)):
            done = self.run_daemon("--no-rpcbind", "--check-config", *argv)
            self.assertEqual(done.returncode, status, argv)
            if status:
                self.assertIn(b"--connect-port: port 25 is for another protocol", done.stderr)

    def test_no_such_file(self):
        done = self.run_daemon("--config", self.dir / "none")
        self.assertEqual(done.returncode, 78)
        self.assertIn(b"No such file", done.stderr)

    def test_hostile_files(self):
        for text in (b"\0\0\0", b"port = 1" + b"0" * 100000, b"x" * 1000000, b"port = 1\0\n",
                     b"\xff\xfe=\n", b"[section]\n"):
            done = self.run_daemon("--check-config", "--config", self.config(text))
            self.assertEqual(done.returncode, 78, text[:20])

    def test_what_it_prints_is_a_configuration(self):
        path = self.config("policy = fifo\n  capacity-urls=7  \n# comment\n\nallow-net = 127.0.0.0/8\n"
                           "allow-net = ::1\nno-rpcbind = yes\nidle-timeout = 1.5s\n")
        first = self.run_daemon("--check-config", "--config", path, "--port", "4711")
        self.assertEqual(first.returncode, 0, first.stderr)
        for line in (b"policy = fifo", b"capacity-urls = 7", b"allow-net = ::1", b"port = 4711"):
            self.assertRegex(first.stdout, rb"(?m)^" + re.escape(line) + rb"$")
        second = self.run_daemon("--check-config", "--config", self.config(first.stdout))
        self.assertEqual((second.returncode, second.stdout), (0, first.stdout), second.stderr)

    def test_it_counts_and_the_command_line_counts_more(self):
        port = harness.free_port()
        path = self.config(f"policy = lfu\ncapacity-urls = 5\nshards = 1\nport = {port}\n")
        d = self.daemon("--config", path, "--capacity-urls", "6", listen=False)
        d.port = port
        with rpc.Connection(d.address) as c:
            s = c.stat()
            self.assertEqual((s.policy, s.capacity_urls), ("lfu", 6))


class TakenTest(harness.SystemTest):
    def second(self, *arguments):
        done = self.run_daemon("--no-rpcbind", *arguments, seconds=300)
        self.assertEqual(done.returncode, harness.EX_UNAVAILABLE, done.stderr)
        return done.stderr.decode()

    def test_two_on_a_port(self):
        first = self.daemon()
        words = self.second("--listen", "127.0.0.1", "--port", first.port, "--socket", "none")
        self.assertIn(str(first.port), words)
        self.assertIn(str(first.pid), words)
        with rpc.Connection(first.address) as c:
            self.assertTrue(c.ping())

    def test_two_on_a_socket(self):
        first = self.daemon()
        words = self.second("--listen", "none", "--socket", first.socket)
        self.assertIn(first.socket, words)
        self.assertIn(str(first.pid), words)
        with rpc.Connection(first.socket) as c:
            self.assertTrue(c.ping())

    def test_another_user_cannot_hold_the_lock(self):
        if os.geteuid() != 0:
            self.skipTest("acting as another user needs root")
        os.chmod(self.dir, 0o755)
        path = str(self.dir / "s")
        first = self.daemon(socket_path=path)
        os.chmod(path + ".lock", 0o644)  # as an earlier version made it
        self.assertEqual(first.stop(), 0)
        again = self.daemon(socket_path=path)
        self.assertEqual(again.stop(), 0)

        def other():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        argv = ["flock", "--shared", "--nonblock", path + ".lock", "true"]
        self.assertEqual(subprocess.run(argv, capture_output=True).returncode, 0)
        done = subprocess.run(argv, preexec_fn=other, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"Permission denied", done.stderr)

    def test_a_default_folder_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("acting as another user needs root")
        folder = self.dir / "run"
        folder.mkdir()
        os.chown(folder, 1, 1)
        done = self.run_daemon("--no-rpcbind", "--listen", "none",
                               env={"XDG_RUNTIME_DIR": str(folder)})
        self.assertEqual(done.returncode, 71, done.stderr)
        self.assertIn(b"it belongs to user daemon; give --socket", done.stderr)

    def test_somebody_else_on_a_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            words = self.second("--listen", "127.0.0.1", "--port", port, "--socket", "none")
            self.assertIn(str(os.getpid()), words)

    def test_a_file_that_is_no_socket_is_left_alone(self):
        path = self.dir / "precious"
        path.write_text("precious")
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket", path, seconds=300)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(path.read_text(), "precious")

    def test_a_socket_that_nobody_serves_is_replaced(self):
        path = self.dir / "dead.sock"
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(path))
        d = self.daemon(socket_path=path)
        with rpc.Connection(d.socket) as c:
            self.assertTrue(c.ping())

    def test_the_loser_of_a_race_does_not_take_the_socket(self):
        path = self.dir / "raced.sock"
        port = harness.free_port()
        racers = [harness.Process(self, f"racer{n}", [
            harness.SUNPROXYD, "--no-rpcbind", "--listen", "none", "--socket", path], expect=None)
            for n in range(4)]

        def one_left():
            return sum(r.running() for r in racers) == 1

        harness.wait_until(one_left, what="one winner")
        for r in racers:
            if not r.running():
                self.assertEqual(r.popen.returncode, harness.EX_UNAVAILABLE, r.err)
        self.assertIsNotNone(port)
        harness.wait_until(lambda: self._pings(str(path)), what="the winner")

    @staticmethod
    def _pings(address):
        try:
            with rpc.Connection(address) as c:
                return c.ping()
        except OSError:
            return False

    def test_an_address_that_is_not_ours(self):
        for address in ("192.0.2.1", "words", "300.1.1.1"):
            done = self.run_daemon("--no-rpcbind", "--listen", address, "--socket", "none", seconds=300)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(address.encode(), done.stderr)

    def test_a_path_too_long_for_a_socket(self):
        done = self.run_daemon("--no-rpcbind", "--listen", "none", "--socket",
                               self.dir / ("x" * 120), seconds=300)
        self.assertNotEqual(done.returncode, 0)
        self.assertGreater(len(done.stderr), 10)


class DoorsTest(harness.SystemTest):
    def test_only_the_socket(self):
        d = self.daemon("--listen", "none", listen=False)
        with rpc.Connection(d.socket) as c:
            self.assertTrue(c.ping())
        with open(f"/proc/{d.pid}/net/tcp") as f:
            self.assertIsNotNone(f.read())

    def test_only_tcp(self):
        d = self.daemon("--socket", "none", socket_path=None)
        with rpc.Connection(d.address) as c:
            self.assertTrue(c.ping())

    def test_ipv6(self):
        port = harness.free_port(socket.AF_INET6)
        d = self.daemon("--listen", "::1", "--port", port, listen=False)
        with rpc.Connection(("::1", port)) as c:
            self.assertTrue(c.ping())
        self.assertEqual(socket.socket().connect_ex(("127.0.0.1", port)) != 0, True)
        self.assertEqual(d.stop(), 0)

    def test_both_families_on_one_port(self):
        port = harness.free_port()
        self.daemon("--port", port, listen=False)
        for host in ("127.0.0.1", "::1"):
            with rpc.Connection((host, port)) as c:
                self.assertTrue(c.ping(1))

    def test_the_sockets_mode(self):
        d = self.daemon("--socket-mode", "0600")
        self.assertEqual(stat.S_IMODE(os.stat(d.socket).st_mode), 0o600)
        d = self.daemon()
        self.assertEqual(stat.S_IMODE(os.stat(d.socket).st_mode), 0o666)

    def test_many_workers(self):
        d = self.daemon("--workers", "16", origin=self.origin())
        for n in range(40):
            with rpc.Connection(d.address) as c:
                self.assertEqual(c.get("http://a.test/").status, "ok")
        with rpc.Connection(d.socket) as c:
            self.assertEqual(c.stat().workers, 16)


class LimitsTest(harness.SystemTest):
    def test_idle_connections_are_closed(self):
        d = self.daemon("--idle-timeout", "300ms")
        with rpc.Connection(d.address) as c:
            self.assertTrue(c.ping())
            self.assertTrue(c.is_closed())

    def test_a_waiting_connection_is_not_idle(self):
        d = self.daemon("--idle-timeout", "300ms", origin=self.origin())
        with rpc.Connection(d.address) as c:
            self.assertEqual(c.get("http://a.test/fault/delay:1500ms").status, "ok")

    def test_records_have_their_time(self):
        d = self.daemon("--record-timeout", "300ms", "--idle-timeout", "0")
        with rpc.Connection(d.address) as c:
            c.send(rpc.record(rpc.call())[:20])
            self.assertTrue(c.is_closed())

    def test_too_many_connections(self):
        d = self.daemon("--max-connections", "5")
        crowd = [rpc.Connection(d.address) for _ in range(12)]
        try:
            served = 0
            for c in crowd:
                try:
                    served += c.ping()
                except (OSError, EOFError):
                    pass
            self.assertIn(served, range(1, 6))
        finally:
            for c in crowd:
                c.close()

        def served_again():
            try:
                with rpc.Connection(d.address) as c:
                    return c.ping()
            except (OSError, EOFError):
                return False

        harness.wait_until(served_again, what="service again")

    def test_larger_pages_are_passed_on_and_not_stored(self):
        d = self.daemon("--max-page", "1000", origin=self.origin())
        with rpc.Connection(d.address) as c:
            for size, sources in ((1000, ("miss", "hit")), (1001, ("miss", "miss")),
                                  (20 << 20, ("miss", "miss")),
                                  ((20 << 20) + 1, ("miss", "miss"))):
                for source in sources:
                    url = f"http://a.test/?fault=size:{size}"
                    page = c.get(url)
                    self.assertEqual((page.status, page.source, len(page.body)),
                                     ("ok", source, size))
                # Version 1 has a bound of its own.
                old = c.fetch_v1(url)
                if size > 20 << 20:
                    self.assertEqual(old, "SYSTEM_ERR")
                else:
                    self.assertEqual(old, page.body)

    def stop_with_a_hanging_fetch(self, d, times):
        with rpc.Connection(d.address) as c, rpc.Connection(d.socket) as admin:
            c.send(rpc.record(rpc.call(procedure=rpc.V2_GET, arguments=rpc.get_arguments(
                "http://a.test/fault/hang-silent"))))
            c.send(rpc.record(rpc.call(version=1, procedure=1, arguments=rpc.opaque(
                "http://a.test/fault/hang-silent"))))
            harness.wait_until(lambda: admin.stat().fetches_active, what="the fetch")
            d.signal(signal.SIGTERM)
            for _ in range(times - 1):
                harness.wait_until(lambda: "stopping" in d.err, what="its stopping")
                d.signal(signal.SIGTERM)
            replies = {c.receive().status: None for _ in range(2)}
            self.assertEqual(set(replies), {"SUCCESS", "SYSTEM_ERR"})
        self.assertEqual(d.wait(300), 0, d.err)

    def test_what_hangs_is_cut_off_in_the_end(self):
        d = self.daemon("--stop-timeout", "700ms", origin=self.origin())
        self.stop_with_a_hanging_fetch(d, 1)

    def test_a_second_signal_cuts_it_short(self):
        d = self.daemon("--stop-timeout", "1h", origin=self.origin())
        self.stop_with_a_hanging_fetch(d, 2)


class NotifyTest(harness.SystemTest):
    def notified(self, address):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(address)
            s.settimeout(30)
            name = address if isinstance(address, str) else "@" + address[1:].decode()
            d = self.daemon(env={"NOTIFY_SOCKET": name}, ready=False)
            words = s.recv(4096).decode()
            self.assertIn("READY=1", words)
            with rpc.Connection(d.address) as c:
                self.assertTrue(c.ping(), "ready means ready")
            d.signal(signal.SIGTERM)
            while "STOPPING=1" not in words:
                words = s.recv(4096).decode()
            self.assertEqual(d.wait(300), 0)

    def test_by_a_path(self):
        self.notified(str(self.dir / "notify"))

    def test_by_an_abstract_name(self):
        self.notified(b"\0sunproxy-test-" + self.dir.name.encode())

    def test_nobody_there(self):
        d = self.daemon(env={"NOTIFY_SOCKET": str(self.dir / "nobody")})
        with rpc.Connection(d.address) as c:
            self.assertTrue(c.ping())


class StartAndStopTest(harness.SystemTest):
    threads = True

    def test_stopped_at_any_moment_of_its_start(self):
        for milliseconds in range(0, 60, 4):
            d = self.daemon(ready=False, name=f"d{milliseconds}", expect=None)
            threading.Event().wait(milliseconds / 1000)
            d.signal(signal.SIGTERM)
            status = d.wait(300)
            # Before its handlers stand, the signal's own effect is as good.
            self.assertIn(status, (0, -signal.SIGTERM), d.err)

    def test_signals_that_do_not_end_it(self):
        d = self.daemon()
        for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGXFSZ):
            d.signal(number)
        with rpc.Connection(d.address) as c:
            self.assertTrue(c.ping())
