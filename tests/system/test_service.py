"""The daemon under a service manager: sockets passed to it, and the messages of a reload."""

import os
import pathlib
import shutil
import signal
import socket
import sys
import time

import harness
import rpc

STARTER = pathlib.Path(__file__).resolve().parent / "pass_sockets.py"


def listener(family=socket.AF_INET, address=("127.0.0.1", 0), kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.bind(address)
    if kind == socket.SOCK_STREAM:
        s.listen(16)
    return s


class PassedSocketTest(harness.SystemTest):
    threads = True

    def passed(self, *sockets, options=(), ready=True, expect=0, **more):
        """A daemon that has these sockets, each (socket, name), from its start."""
        fds = ",".join(f"{s.fileno()}={name}" for s, name in sockets)
        return self.daemon(*options, launcher=[sys.executable, STARTER, fds], listen=False,
                           pass_fds=[s.fileno() for s, _ in sockets], ready=ready, expect=expect,
                           **more)

    def test_both_kinds_are_served_and_left_in_place(self):
        path = self.dir / "passed.sock"
        own = self.dir / "own.sock"
        with listener() as tcp, listener(socket.AF_UNIX, str(path)) as local:
            address = tcp.getsockname()
            for _ in range(2):  # the second as after a restart: the sockets live on
                d = self.passed((tcp, "tcp"), (local, "local"), socket_path=own, ready=False)
                d.socket = str(path)
                d.wait_ready()
                with rpc.Connection(address) as c:
                    self.assertTrue(c.ping())
                self.sunproxy("purge", "--all", daemon=d)
                harness.wait_until(lambda: "serves with" in d.err, what="the last line of the start")
                self.assertIn(f"TCP port {address[1]} (127.0.0.1), passed by the service manager", d.err)
                self.assertIn(f"socket {path}, passed by the service manager", d.err)
                self.assertFalse(own.exists(), "no socket of its own")
                self.assertEqual(d.stop(), 0, d.err)
                self.assertTrue(path.exists(), "the name belongs to the manager")

    def test_the_other_kind_is_opened_as_the_options_say(self):
        with listener() as tcp:
            d = self.passed((tcp, "tcp"))
            self.sunproxy("purge", "--all", daemon=d)
            with rpc.Connection(tcp.getsockname()) as c:
                self.assertTrue(c.ping())
            self.assertEqual(d.stop(), 0, d.err)
            self.assertFalse(os.path.exists(d.socket), "its own is removed")

    def test_a_passed_socket_is_registered_with_rpcbind(self):
        namespace = harness.Namespace(self)
        namespace.rpcbind()
        path = self.dir / "passed.sock"
        # Its name is seen inside the namespace as well; a port would be another network's.
        with listener(socket.AF_UNIX, str(path)) as local:
            fds = f"{local.fileno()}=local"
            d = self.daemon("--listen", "none", namespace=namespace, rpcbind=True, listen=False,
                            socket_path=None, ready=False, pass_fds=[local.fileno()],
                            launcher=[sys.executable, STARTER, fds])

            def entries():
                done = namespace.run(["rpcinfo"])
                return [line for line in done.stdout.decode().splitlines() if str(path) in line]

            harness.wait_until(lambda: len(entries()) == 2, what="the entries of both versions")
            self.assertEqual(d.stop(), 0, d.err)
            self.assertEqual(entries(), [])

    def refused(self, *sockets, sentence):
        d = self.passed(*sockets, ready=False, expect=78)
        self.assertEqual(d.wait(), 78, d.err)
        self.assertRegex(d.err, sentence)

    def test_a_datagram_socket_is_refused_by_its_name(self):
        with listener() as tcp, listener(kind=socket.SOCK_DGRAM) as udp:
            self.refused((tcp, "web"), (udp, "wrong"),
                         sentence=r'passed descriptor 4 \("wrong"\) is not a stream socket')

    def test_two_ports_are_refused(self):
        with listener() as one, listener() as two:
            self.refused((one, "one"), (two, "two"), sentence=r'4 \("two"\) has TCP port \d+, ')

    def test_a_connection_is_refused(self):
        with listener() as tcp, socket.create_connection(tcp.getsockname()) as connection:
            self.refused((connection, ""), sentence="passed descriptor 3 does not listen; .*Accept=no")

    def test_sockets_of_another_process_are_not_taken(self):
        d = self.daemon(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
        with rpc.Connection(d.address) as c:
            self.assertTrue(c.ping())

    def test_a_malformed_number_is_refused(self):
        d = self.daemon(env={"LISTEN_FDS": "1"}, launcher=[
            "/bin/sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=many exec "$0" "$@"'], ready=False, expect=78)
        self.assertEqual(d.wait(), 78, d.err)
        self.assertIn('LISTEN_FDS: "many" is not a number', d.err)

    def test_started_by_systemd_at_the_first_connection(self):
        if not shutil.which("systemd-socket-activate"):
            self.skipTest("systemd-socket-activate is not installed")
        path = self.dir / "activated.sock"
        d = self.daemon("--listen", "none", listen=False, ready=False, socket_path=None,
                        launcher=["systemd-socket-activate", f"--listen={path}"])
        harness.wait_until(path.exists, what="the activator's socket")
        d.socket = str(path)
        done = self.sunproxy("ping", daemon=d)
        self.assertIn(b"version 2", done.stdout)
        harness.wait_until(lambda: "passed by the service manager" in d.err, what="the daemon")
        self.assertEqual(d.stop(), 0, d.err)


class ReloadTest(harness.SystemTest):
    def test_a_reload_is_reported_from_its_beginning_to_its_end(self):
        log = self.dir / "access.log"
        name = str(self.dir / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name)
            manager.settimeout(30)
            d = self.daemon("--access-log", log, env={"NOTIFY_SOCKET": name})
            self.assertIn("READY=1", manager.recv(4096).decode())
            for n in range(3):
                log.rename(self.dir / f"access.log.{n}")
                before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
                d.signal(signal.SIGHUP)
                lines = manager.recv(4096).decode().splitlines()
                self.assertEqual(lines[0], "RELOADING=1")
                key, _, value = lines[1].partition("=")
                self.assertEqual(key, "MONOTONIC_USEC")
                self.assertGreaterEqual(int(value), before)
                self.assertLessEqual(int(value),
                                     time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)
                self.assertEqual(manager.recv(4096), b"READY=1")
                self.assertTrue(log.exists(), "the new log is open when the reload is over")
            self.assertEqual(d.stop(), 0, d.err)
            self.assertIn("STOPPING=1", manager.recv(4096).decode())
