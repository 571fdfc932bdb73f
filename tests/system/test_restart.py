"""A daemon is replaced by another one, which takes its listening sockets over: no connection is lost."""

import ctypes
import os
import pathlib
import re
import signal
import socket
import sys
import threading
import time
import unittest

import harness
import rpc
from http_front import Connection, http_address
from test_reverse import Member
from test_service import STARTER, listener

PR_SET_CHILD_SUBREAPER = 36


class Successor(harness.Daemon):
    """The daemon that a test has not started itself, by its number; its words are the first one's."""

    def __init__(self, test, first, pid):
        self.test, self.pid, self.expect = test, pid, 0
        self.name, self.socket = f"successor{pid}", first.socket
        self.host, self.port, self.namespace = first.host, first.port, None
        self.out_path, self.err_path = first.out_path, first.err_path
        self.status = None
        test.processes.append(self)

    def running(self):
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # not reparented yet
                return os.path.exists(f"/proc/{self.pid}")
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is None

    def wait(self, seconds=300):
        harness.wait_until(lambda: not self.running(), seconds, f"the end of process {self.pid}")
        return self.status

    def signal(self, number):
        os.kill(self.pid, number)

    def stop(self, seconds=300):
        if self.running():
            self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self):
        if self.running():
            self.signal(signal.SIGKILL)
            self.wait()
        self.expect = None


def children(pid, name):
    """The child processes of this name."""
    numbers = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(number) for number in numbers
            if pathlib.Path(f"/proc/{number}/comm").read_text().strip() == name]


class RestartCase(harness.SystemTest):
    sandboxed = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A process that another one leaves behind becomes this one's child.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        cls.addClassCleanup(ctypes.CDLL(None).prctl, PR_SET_CHILD_SUBREAPER, 0)

    def setUp(self):
        super().setUp()
        self.member = Member(self)
        self.member.fields = [("Cache-Control", "max-age=600")]
        self.http_socket = self.dir / "http.sock"
        self.file = self.dir / "sunproxyd.conf"

    def start(self, *options, lines=(), **more):
        self.file.write_text("".join(f"{line}\n" for line in lines))
        self.d = self.daemon("--http", "127.0.0.1:0", "--http", f"unix:{self.http_socket}",
                             "--origin", f"/={self.member.url}", "--config", self.file, *options,
                             **more)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")

    def connect(self, address=None):
        c = Connection(address or self.address)
        self.addCleanup(c.close)
        return c

    def ask(self, path="/", connection=None, address=None):
        c = connection or Connection(address or self.address)
        c.send(f"GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n")
        reply = c.receive()
        if not connection:
            c.close()
        return reply

    def said(self, pattern, since=0):
        return harness.wait_until(lambda: re.search(pattern, self.d.err[since:]), what=pattern)

    def restart(self):
        """By SIGUSR2; the process that serves then."""
        before = len(self.d.err)
        self.d.signal(signal.SIGUSR2)
        return self.follow(before)

    def follow(self, before):
        found = self.said(r"process (\d+) serves; this one ends", before)
        d = Successor(self, self.d, int(found[1]))
        self.said(r" serves with ", before)
        return d


class RestartTest(RestartCase):
    seconds = 20
    threads = True

    def test_by_a_signal(self):
        log = self.dir / "access.log"
        self.start("--access-log", log, "--request-db", self.dir / "requests.db")
        self.assertEqual(self.ask("/1").status, 200)
        first = self.d
        for n in range(3):
            self.d = self.restart()
            self.assertEqual(first.wait(), 0, first.err)
            for address in (self.address, str(self.http_socket)):
                self.assertEqual(self.ask(f"/{n}", address=address).status, 200)
            with rpc.Connection(self.d.address) as c:
                self.assertTrue(c.ping())
            # The socket of administrators and its lock are the new process's.
            self.sunproxy("purge", "--all", daemon=self.d)
            with open(f"{self.d.socket}.lock") as lock:
                self.assertEqual(int(lock.read()), self.d.pid)
            first = self.d
        self.assertEqual(self.d.stop(), 0)
        self.assertFalse(os.path.exists(self.d.socket) or self.http_socket.exists(), "all are removed")
        self.assertEqual(len(log.read_text().splitlines()), 7)
        self.assertNotIn(" error", self.d.err)

    def test_requests_that_have_begun_end(self):
        self.start("--stop-timeout", "1h")
        self.member.silence = threading.Event()
        slow, idle, late = self.connect(), self.connect(), self.connect()
        caller = rpc.Connection(self.d.address)
        self.addCleanup(caller.close)
        self.assertTrue(caller.ping())
        slow.send("GET /slow HTTP/1.1\r\nHost: site.test\r\n\r\n")
        harness.wait_until(lambda: self.member.heads, what="the request")
        self.member.silence, silence = None, self.member.silence
        self.assertEqual(self.ask("/1", idle).status, 200)
        old, self.d = self.d, self.restart()
        # A connection of the old process has one more response, which says that it is the last one.
        for c in (idle, late):
            reply = self.ask("/2", c)
            self.assertEqual((reply.status, reply.field("connection")), (200, "close"))
            self.assertIsNone(c.receive())
        self.assertIsNone(self.ask("/2").field("connection"))
        self.assertTrue(caller.ping())
        self.assertTrue(old.running())
        caller.close()
        silence.set()
        self.assertEqual(slow.receive().status, 200)
        self.assertEqual(old.wait(), 0)

    def test_a_tunnel_goes_on_for_a_while(self):
        self.start("--stop-timeout", "1h", "--allow-net", "127.0.0.0/8")
        # A reverse proxy makes no tunnels.
        self.d.stop()
        self.d = self.daemon("--http", "127.0.0.1:0", "--stop-timeout", "1h", "--allow-net",
                             "127.0.0.0/8", "--allow-port", "any", "--connect-port", "any")
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        with listener() as server:
            c = self.connect()
            c.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: h\r\n\r\n" % server.getsockname()[1])
            peer, _ = server.accept()
            self.assertEqual(c.receive(head_only=True).status, 200)
            old, self.d = self.d, self.restart()
            with peer:
                for n in range(3):
                    c.send(b"%d" % n)
                    self.assertEqual(peer.recv(10), b"%d" % n)
                self.assertTrue(old.running())
            self.assertEqual(c.socket.recv(10), b"")
            self.assertEqual(old.wait(), 0)

    def test_a_connection_that_says_nothing_is_closed(self):
        self.start("--stop-timeout", "1h")
        c = self.connect()
        old, self.d = self.d, self.restart()
        self.assertIsNone(c.receive())
        self.assertEqual(old.wait(), 0)

    def test_a_process_that_fails(self):
        self.start(lines=["max-age = 5m"])
        for line, words in (("max-age = 5x", "max-age"), ("workers = 99999", "workers"),
                            ("access-log = /no/folder", "access log"),
                            ("policy = lru:x=3", "policy")):
            with self.subTest(line):
                self.file.write_text(line + "\n")
                before = len(self.d.err)
                self.d.signal(signal.SIGUSR2)
                self.said("has ended; this one goes on serving", before)
                self.assertIn(words, self.d.err[before:])
                self.assertEqual(self.ask("/1").status, 200)
                self.assertEqual(self.ask("/1", address=str(self.http_socket)).status, 200)
                self.sunproxy("ping", daemon=self.d)
        self.file.write_text("max-age = 1h\n")
        old, self.d = self.d, self.restart()
        self.assertEqual(old.wait(), 0)
        self.assertEqual(self.ask("/1").status, 200)

    def test_one_that_fails_at_once_is_over_for_the_manager(self):
        name = str(self.dir / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name)
            manager.settimeout(60)
            self.start(env={"NOTIFY_SOCKET": name})
            self.assertIn("READY=1", manager.recv(4096).decode())
            for process in children(self.d.pid, "sunproxyd-conf"):
                os.kill(process, signal.SIGKILL)
            for _ in range(2):
                before = len(self.d.err)
                self.d.signal(signal.SIGUSR2)
                self.said("SIGUSR2: not restarted: ", before)
                self.assertIn("RELOADING=1", manager.recv(4096).decode())
                self.assertEqual(manager.recv(4096), b"READY=1")
            self.assertEqual(self.ask("/1").status, 200)

    def test_other_addresses_and_workers(self):
        other, extra = self.dir / "other.sock", self.dir / "extra.sock"
        self.start("--workers", "1", lines=[f"http = unix:{other}"])
        self.assertEqual(self.ask("/1", address=str(other)).status, 200)
        self.file.write_text(f"http = unix:{extra}\nworkers = 4\n")
        old, self.d = self.d, self.restart()
        self.assertEqual(old.wait(), 0)
        for address in (self.address, str(self.http_socket), str(extra)):
            self.assertEqual(self.ask("/1", address=address).status, 200)
        self.assertFalse(other.exists(), "what is not used any more is removed")
        self.said("serves with 4 workers|serves with 1 workers")

    def test_by_the_command_line(self):
        self.start()
        old = self.d
        before = len(old.err)
        argv = [*old.argv, "--take-over"]
        new = harness.Process(self, "taker", argv)
        self.said(rf"process {new.pid} serves; this one ends", before)
        self.assertEqual(old.wait(), 0)
        self.assertEqual(self.ask("/1").status, 200)
        # And this one can be replaced in both ways.
        again = harness.Process(self, "again", argv)
        self.assertEqual(new.wait(), 0, new.err)
        harness.wait_until(lambda: " serves with " in again.err, what="the third process")
        before = len(again.err)
        again.signal(signal.SIGUSR2)
        found = harness.wait_until(lambda: re.search(r"process (\d+) serves;", again.err[before:]),
                                   what="the fourth process")
        last = Successor(self, old, int(found[1]))
        self.assertEqual(again.wait(), 0)
        self.assertEqual(self.ask("/1").status, 200)
        self.assertEqual(last.stop(), 0)

    def test_without_a_daemon_there_is_nothing_to_take(self):
        self.start("--take-over")
        self.assertIn("there is no daemon to take over from", self.d.err)
        self.assertEqual(self.ask("/1").status, 200)

    def test_without_a_socket_for_it(self):
        self.d = self.daemon("--http", "127.0.0.1:0", "--socket", "none", "--origin",
                             f"/={self.member.url}", socket_path=None)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        old, self.d = self.d, self.restart()
        self.assertEqual(old.wait(), 0)
        self.assertEqual(self.ask("/1").status, 200)

    def test_sockets_of_a_service_manager(self):
        name = str(self.dir / "notify")
        path = self.dir / "passed.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, listener() as web, \
                listener() as balanced, listener() as metrics, \
                listener(socket.AF_UNIX, str(path)) as local:
            manager.bind(name)
            manager.settimeout(60)
            passed = ((web, "http"), (balanced, "http-proxied"), (metrics, "metrics"), (local, ""))
            fds = ",".join(f"{s.fileno()}={word}" for s, word in passed)
            self.d = self.daemon("--listen", "none", "--origin", f"/={self.member.url}",
                                 launcher=[sys.executable, STARTER, fds], listen=False,
                                 socket_path=None, pass_fds=[s.fileno() for s, _ in passed],
                                 ready=False, env={"NOTIFY_SOCKET": name})
            self.d.socket = str(path)
            self.d.wait_ready()
            self.assertIn("READY=1", manager.recv(4096).decode())
            first = self.d
            for _ in range(2):
                old, self.d = self.d, self.restart()
                self.assertEqual(old.wait(), 0)
                self.assertIn("RELOADING=1", manager.recv(4096).decode())
                self.assertEqual(manager.recv(4096).decode(), f"MAINPID={self.d.pid}")
                self.assertIn("READY=1", manager.recv(4096).decode())
                self.assertEqual(self.ask("/1", address=web.getsockname()).status, 200)
                c = self.connect(balanced.getsockname())
                c.send("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n")
                self.assertEqual(self.ask("/1", c).status, 200)
                c.close()
                self.assertEqual(self.ask("/metrics", address=metrics.getsockname()).status, 200)
                self.sunproxy("ping", daemon=self.d)
            self.assertEqual(self.d.stop(), 0)
            self.assertTrue(path.exists(), "the name belongs to the manager")

    def test_rpcbind_keeps_the_entries(self):
        namespace = harness.Namespace(self)
        namespace.rpcbind()
        path = self.dir / "named.sock"
        self.d = self.daemon("--listen", "127.0.0.1", namespace=namespace, rpcbind=True, listen=False,
                             socket_path=path)

        def entries():
            lines = namespace.run(["rpcinfo"]).stdout.decode().splitlines()
            return sorted(line for line in lines if f"{rpc.PROGRAM} " in line)

        harness.wait_until(lambda: len(entries()) == 4, what="the entries")
        before = entries()
        found = len(self.d.err)
        # The launcher's process is the daemon's: nsenter replaces itself.
        self.d.signal(signal.SIGUSR2)
        old, self.d = self.d, self.follow(found)
        self.assertEqual(old.wait(), 0)
        self.assertEqual(entries(), before)
        self.said("registered with rpcbind", found)
        self.assertEqual(self.d.stop(), 0)
        self.assertEqual(entries(), [])

    @unittest.skipIf(os.getuid(), "only root can change to another user")
    def test_as_another_user(self):
        os.chmod(self.dir, 0o777)
        self.start("--user", "nobody", program=self.for_other_users(harness.SUNPROXYD))
        old, self.d = self.d, self.restart()
        self.assertEqual(old.wait(), 0)
        self.assertEqual(self.ask("/1").status, 200)
        self.assertEqual(os.stat(f"/proc/{self.d.pid}/task/{self.d.pid}").st_uid in (0, 65534), True)
        with open(f"/proc/{self.d.pid}/status") as status:
            self.assertIn("Uid:\t65534\t65534\t65534\t65534", status.read())

    def test_a_reload_meanwhile_is_refused(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        self.start(lines=["max-age = 5m"])
        self.file.write_text(f"include = {fifo}\n")  # the new process hangs there
        before = len(self.d.err)
        self.d.signal(signal.SIGUSR2)
        self.said("SIGUSR2: starting", before)
        self.d.signal(signal.SIGUSR2)
        self.said("was started already", before)
        said = self.sunproxy("reload", daemon=self.d, expect=78)
        self.assertIn(b"another process is about to replace this one", said.stderr)
        self.assertEqual(self.ask("/1").status, 200)
        fifo.write_text("max-age = 6m\n")
        self.d, old = self.follow(before), self.d
        self.assertEqual(old.wait(), 0)


class RestartLoadTest(RestartCase):
    seconds = 10
    threads = True

    def test_restarts_under_load(self):
        restarts, connections = (10, 100000) if harness.LONG else (3, 5000)
        counts, problems, ends = {}, [], threading.Event()

        def over_http(address):
            c = Connection(address)
            c.send("GET /1 HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
            reply = c.receive()
            if reply is None or reply.status != 200 or not reply.whole:
                problems.append((address, reply and reply.status))
            c.close()

        def over_rpc():
            with rpc.Connection(self.d.address) as c:
                if not c.ping():
                    problems.append("rpc")

        kept = {}

        def over_kept(address):
            """A connection that persists until a response says that it is the last one."""
            c = kept.get(address) or kept.setdefault(address, Connection(address))
            c.send("GET /1 HTTP/1.1\r\nHost: site.test\r\n\r\n")
            reply = c.receive()
            if reply is None or reply.status != 200 or not reply.whole:
                problems.append(("kept", reply and reply.status))
            if reply is None or reply.field("connection") == "close":
                kept.pop(address).close()

        def connect_on(name, function, *arguments):
            counts[name] = 0
            while not ends.is_set() and len(problems) < 10:
                try:
                    function(*arguments)
                except Exception as error:  # refused, reset, or no response
                    problems.append((name, repr(error)))
                counts[name] += 1

        self.start()
        self.assertEqual(self.ask("/1").status, 200)
        kinds = [("tcp", over_http, self.address), ("unix", over_http, str(self.http_socket)),
                 ("rpc", over_rpc), ("kept", over_kept, self.address)]
        askers = [threading.Thread(target=connect_on, args=kind) for kind in kinds]
        made = lambda: sum(counts.values()) - counts["kept"]  # connections
        begun = time.monotonic()
        for asker in askers:
            asker.start()
        try:
            for n in range(restarts):
                harness.wait_until(lambda: problems or made() > (n + 1) * connections //
                                   (restarts + 1), what="the load")
                old, self.d = self.d, self.restart()
                self.assertEqual(old.wait(), 0)
            harness.wait_until(lambda: problems or made() >= connections, what="the load")
        finally:
            ends.set()
            for asker in askers:
                asker.join()
        if harness.LONG:
            print(f"\n{made()} connections during {restarts} restarts in "
                  f"{time.monotonic() - begun:.0f} s, {len(problems)} refused, reset or unanswered; "
                  f"requests: {counts}", file=sys.stderr)
        for c in kept.values():
            c.close()
        self.assertEqual(problems, [])
        self.assertGreater(min(counts.values()), 0)


del RestartCase
