"""What the system tests share: programs started and ended by pid, each test in a folder of its own,
sanitizer reports looked for after every test, namespaces for rpcbind, and the origin's texts.

Only the standard library. The programs come from $SUNPROXY_BUILD (build/asan by default).
"""

import contextlib
import ctypes
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
import ports  # noqa: E402
from ports import free_port  # noqa: E402

BUILD = TOP / os.environ.get("SUNPROXY_BUILD", "build/asan")
DATASETS = pathlib.Path(os.environ.get("SUNPROXY_DATASETS", TOP / "../shared/datasets"))
ORIGIN = TOP / os.environ.get("SUNPROXY_ORIGIN", "build/asan/tests/origin/origin")
SUNPROXYD = BUILD / "sunproxyd"
# Where memory is measured or bounded: the sanitizers' allocators keep much that has been freed.
RELEASE_SUNPROXYD = TOP / "build/release/sunproxyd"
RELEASE_SUNPROXY = TOP / "build/release/sunproxy"
SUNPROXY = BUILD / "sunproxy"
RELEASE_ORIGIN = TOP / "build/release/tests/origin/origin"
PEERS = BUILD / "tests/system/peers"
TEST_SECONDS = int(os.environ.get("TEST_SECONDS", "600"))
# `make soak` asks for tests in their long form.
LONG = "SUNPROXY_LONG_TESTS" in os.environ
TSAN = "tsan" in BUILD.name
# A program that counts its lines writes the counts where it was built, which the sandbox forbids.
COVERAGE = "coverage" in BUILD.name
# What the page of `sunproxy report` includes, in the folder where `make setup` puts it.
PLOT_FILES = (TOP / "build/third_party/d3.min.js", TOP / "build/third_party/plot.umd.min.js")
# Daemons stand where an ordinary user's path does not lead.
os.environ["PATH"] += ":/usr/sbin:/sbin"
# Of Debian's package, which `make setup` unpacks.
os.environ["PATH"] += f":{TOP}/build/third_party/prometheus/usr/bin"

EX_USAGE = 64
EX_DATAERR = 65
EX_UNAVAILABLE = 69
EX_NOPERM = 77
LINE = 32


def fnv1a(text):
    """The origin's hash of a URL."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def origin_text(url, size):
    """The body that the origin gives a URL (with its path, without its port) at this size."""
    seed = fnv1a(url)
    lines = b"".join(b"%016x %014x\n" % (seed, n) for n in range(size // LINE + 1))
    return lines[:size]


def open_pty():
    """A terminal, (its master, its slave); skips the test where there is none to be had."""
    try:
        return os.openpty()
    except OSError as error:
        raise unittest.SkipTest(f"no terminal can be had here: {error}") from error


def wait_until(condition, seconds=60, what="the condition"):
    """Polls until condition() is true and returns its value; fails the test after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        # A condition that takes long leaves most of the processor to what it waits for.
        time.sleep(min(max(0.02, 2 * (now - begun)), 0.2))


def send_signal(process, number):
    """Sends a signal. A process that is stopped by it does nothing more: one of its threads takes the
    signal, and on a busy machine the others go on until then."""
    def is_stopped():
        states = [path.read_text().rpartition(")")[2].split()[0]
                  for path in pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat")]
        return all(state in "TtZX" for state in states)

    process.send_signal(number)
    if number == signal.SIGSTOP:
        wait_until(is_stopped, what="the stop of all threads")


def made_by(path):
    """The target of make that builds a program."""
    for folder, target in (("tests/origin", "origin"), ("tests/system/peers", "peers"),
                           ("tests/bench", "bench-programs"), ("tests/soak", "soak-programs")):
        if folder in str(path.parent):
            return target
    return "programs"


def release_build(program, otherwise):
    """The release build of a program that only serves a test; the build under test if there is no
    release build, or one that is older and may lack what has been changed."""
    if COVERAGE or not program.exists():
        return otherwise
    current = not otherwise.exists() or program.stat().st_mtime >= otherwise.stat().st_mtime
    return program if current else otherwise


def study_environment():
    """Leads studies/reproduce.sh to the programs of a release build, as `make reproduce` does."""
    origin = release_build(RELEASE_ORIGIN, ORIGIN)
    build = BUILD if origin == ORIGIN else RELEASE_SUNPROXYD.parent
    return {"SUNPROXY_BUILD": str(build), "SUNPROXY_ORIGIN": str(origin)}


def colliding_urls(count, host="collide.test"):
    """URLs of one djb hash: "Ez" and "FY" collide in every position."""
    bits = max(1, (count - 1).bit_length())
    for n in range(count):
        tail = "".join("FY" if n >> i & 1 else "Ez" for i in range(bits))
        yield f"http://{host}/{tail}"


def djb(data):
    value = 5381
    for byte in data:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


# Before a program: the kernel kills it when the thread that has started it ends. A function that
# Python calls in the child would have it copy itself, for 4 ms more of CPU time.
SETPRIV = shutil.which("setpriv")
WITH_PARENT = (SETPRIV, "--pdeathsig", "KILL", "--")


def start_with_parent(argv, **options):
    """Starts a program that ends with this thread. It runs already, so that a signal is for it."""
    process = subprocess.Popen([*WITH_PARENT, *argv], **options)
    try:
        while os.path.samefile(f"/proc/{process.pid}/exe", SETPRIV):
            time.sleep(0.0005)
    except OSError:
        pass  # it has ended, or is another user's
    return process


def open_files(pid):
    """What the descriptors of a process refer to, but for those that are closed meanwhile."""
    names = []
    folder = f"/proc/{pid}/fd"
    for fd in os.listdir(folder) if os.path.exists(folder) else ():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"{folder}/{fd}"))
    return names


class Process:
    """A child with its output in files, ended by its own pid."""

    def __init__(self, test, name, argv, env=None, expect=0, preexec=None, cwd=None, pass_fds=()):
        self.test = test
        self.name = name
        self.expect = expect  # the exit status that stop() accepts
        self.out_path = test.dir / f"{name}.out"
        self.err_path = test.dir / f"{name}.err"
        self.sanitizer = test.dir / f"sanitizer.{name}"

        self.argv = [str(a) for a in argv]
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self.popen = start_with_parent(
                self.argv,
                preexec_fn=preexec,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=sanitizer_environment(self.sanitizer, env),
                cwd=cwd,
                pass_fds=pass_fds,
            )
        self.pid = self.popen.pid
        test.processes.append(self)

    @property
    def out(self):
        return self.out_path.read_text(errors="replace")

    @property
    def err(self):
        return self.err_path.read_text(errors="replace")

    def running(self):
        return self.popen.poll() is None

    def signal(self, number):
        send_signal(self.popen, number)

    def wait(self, seconds=300):
        return self.popen.wait(seconds)

    def kill(self):
        """kill -9; no verdict is asked for."""
        if self.running():
            self.popen.kill()
            self.popen.wait()
        self.expect = None

    def stop(self, seconds=300):
        """SIGTERM, and its exit status."""
        if self.running():
            self.popen.terminate()
        return self.popen.wait(seconds)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def rss(self):
        """Resident bytes."""
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def sanitizer_environment(log, extra=None):
    env = dict(os.environ)
    env["ASAN_OPTIONS"] = ":".join(
        ["detect_leaks=1", "detect_stack_use_after_return=1", "exitcode=99", f"log_path={log}"]
    )
    env["UBSAN_OPTIONS"] = f"print_stacktrace=1:log_path={log}"
    env["TSAN_OPTIONS"] = f"second_deadlock_stack=1:exitcode=66:log_path={log}"
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        env.pop(name, None)
    env.update(extra or {})
    return env


class Namespace:
    """Network and mount namespaces of our own: no port and no /run are shared with the system."""

    def __init__(self, test, resolv_conf=None):
        if os.geteuid() != 0:
            test.skipTest("a network namespace of the test's own needs root")
        for tool in ("unshare", "nsenter", "ip"):
            if not shutil.which(tool):
                test.skipTest(f"a network namespace of the test's own needs {tool}")
        script = "mount --make-rprivate / && mount -t tmpfs tmpfs /run && ip link set lo up"
        if resolv_conf is not None:
            path = test.dir / "resolv.conf"
            path.write_text(resolv_conf)
            nsswitch = test.dir / "nsswitch.conf"
            nsswitch.write_text("hosts: files dns\n")
            target = os.path.realpath("/etc/resolv.conf")
            script += f" && mount --bind {path} {target}"
            script += f" && mount --bind {nsswitch} /etc/nsswitch.conf"
        script += " && echo ready && exec sleep 3600"
        self.test = test
        argv = ["unshare", "-n", "-m", "sh", "-c", script]
        self.keeper = Process(test, "namespace", argv, expect=None)
        end = time.monotonic() + 10
        while "ready" not in self.keeper.out:
            if not self.keeper.running() or time.monotonic() > end:
                test.skipTest(f"no namespace of our own to be had: {self.keeper.err.strip()}")
            time.sleep(0.02)

    def enter(self, argv):
        return ["nsenter", "-t", str(self.keeper.pid), "-n", "-m", "--"] + [str(a) for a in argv]

    def call(self, function, *arguments, **options):
        """Calls a function on a thread inside: the sockets that it makes stay inside."""
        results = []

        def inside():
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{self.keeper.pid}/ns/net") as net:
                if libc.setns(net.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
                    raise OSError(ctypes.get_errno(), "setns")
            results.append(function(*arguments, **options))

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        return results[0]

    def run(self, argv, seconds=300):
        return subprocess.run(
            self.enter(argv),
            capture_output=True,
            timeout=seconds,
            env=sanitizer_environment(self.test.dir / "sanitizer.run"),
        )

    def rpcbind(self):
        """Starts the real rpcbind in here and waits until it answers."""
        if not shutil.which("rpcbind"):
            self.test.skipTest("rpcbind is not installed")
        number = sum(1 for p in self.test.processes if p.name.startswith("rpcbind"))
        process = Process(
            self.test, f"rpcbind{number}", self.enter(["rpcbind", "-f"]), expect=None
        )
        wait_until(lambda: self.run(["rpcinfo", "-p", "127.0.0.1"]).returncode == 0, what="rpcbind")
        return process


class Origin(Process):
    """The scripted origin: the release build, because it only serves the tests. test_origin.py
    runs the build under test."""

    def __init__(self, test, *options, namespace=None, name="origin",
                 program=release_build(RELEASE_ORIGIN, ORIGIN)):
        self.folder = test.dir / name
        self.folder.mkdir()
        self.log = self.folder / "log"
        self.ports = self.folder / "ports"
        self.cacert = self.folder / "ca.pem"
        argv = [program, "--ports-file", self.ports, "--tls-dir", self.folder, "--log", self.log]
        argv += ["--quiet", "--max-seconds", "600", *options]
        if namespace:
            argv = namespace.enter(argv)
        super().__init__(test, name, argv)
        wait_until(lambda: self.ports.exists() or not self.running(), what="the origin")
        if not self.running():
            raise AssertionError(f"the origin does not start: {self.err}")
        ports = dict(line.split() for line in self.ports.read_text().splitlines())
        self.http_port = int(ports["http"])
        self.https_port = int(ports["https"])

    def rewiring(self):
        """Options that lead a daemon here for whatever host it is asked."""
        return [
            "--connect-to", f":80:127.0.0.1:{self.http_port}",
            "--connect-to", f":443:127.0.0.1:{self.https_port}",
            "--cacert", self.cacert,
            "--allow-net", "127.0.0.0/8",
        ]

    def requests(self, path=None):
        """(scheme, host, path, status) of what was asked, in order."""
        rows = []
        if self.log.exists():
            for line in self.log.read_text(errors="replace").splitlines():
                fields = line.split(" ")
                rows.append((fields[1], fields[2], " ".join(fields[3:-1]), int(fields[-1])))
        return [r for r in rows if path is None or r[2] == path]


class PythonOrigin(http.server.ThreadingHTTPServer):
    """An origin written in Python, with a port of its own, until the test ends."""

    daemon_threads = True
    request_queue_size = 1024  # connections that arrive together

    def __init__(self, test, handler):
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        test.addCleanup(self.server_close)
        test.addCleanup(self.shutdown)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        pass  # connections that the test ends


class Daemon(Process):
    """sunproxyd, on a port and a socket of its own, led to an origin if one is given."""

    def __init__(self, test, *options, origin=None, namespace=None, port=None, rpcbind=False,
                 listen=True, socket_path=True, name=None, ready=True, preexec=None, env=None,
                 expect=0, launcher=(), pass_fds=(), program=SUNPROXYD):
        number = sum(1 for p in test.processes if isinstance(p, Daemon))
        name = name or f"sunproxyd{number}"
        self.port = port
        self.host = "127.0.0.1"
        self.socket = None
        argv = [*launcher, program]
        if not rpcbind:
            argv += ["--no-rpcbind"]
        if port is None and listen:
            self.port = free_port()
        if self.port is not None:
            argv += ["--port", self.port]
        if listen:
            argv += ["--listen", "127.0.0.1"]
        if socket_path is True:
            socket_path = test.dir / f"{name}.sock"
        if socket_path:
            self.socket = str(socket_path)
            argv += ["--socket", self.socket]
        if "--workers" not in options:
            argv += ["--workers", "2"]
        if origin:
            argv += origin.rewiring()
        if COVERAGE and not test.sandboxed:
            argv += ["--sandbox", "off"]
        argv += options
        self.namespace = namespace
        if namespace:
            argv = namespace.enter(argv)
        super().__init__(test, name, argv, preexec=preexec, env=env, expect=expect,
                         pass_fds=pass_fds)
        # At these levels, or where its words go elsewhere, nothing says so.
        self.says_ready = not preexec and not {"error", "warning"}.intersection(map(str, options))
        if ready:
            self.wait_ready()

    def wait_ready(self):
        """Until all sockets are open: those of other protocols are opened after that of RPC."""
        def is_ready():
            if not self.running():
                raise AssertionError(f"sunproxyd ended with {self.popen.returncode}: {self.err}")
            try:
                if self.socket:
                    with socket.socket(socket.AF_UNIX) as s:
                        s.connect(self.socket)
                elif not self.namespace:
                    with socket.create_connection((self.host, self.port), 1):
                        pass
                return not self.says_ready or " serves with " in self.err
            except OSError:
                return False

        wait_until(is_ready, 30, "sunproxyd")

    @property
    def address(self):
        return (self.host, self.port)


class SystemTest(unittest.TestCase):
    """A folder, the processes in it, and no sanitizer report at the end."""

    maxDiff = 2000
    needs = (ORIGIN, SUNPROXYD)
    client = SUNPROXY  # the program that sunproxy() runs
    seconds = 0  # what a class takes, if over 8 s: the runner begins with the longest
    sandboxed = False  # its daemons are in the sandbox also where COVERAGE keeps others out of it

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sunproxy-test."))
        self.processes = []
        self.problems = ["nothing was looked at"]
        self.runs = 0
        self.addCleanup(self._clean)
        signal.signal(signal.SIGALRM, self._too_long)
        signal.alarm(TEST_SECONDS)
        for program in self.needs:
            if not program.exists():
                self._say_what_makes(program)

    def _say_what_makes(self, path):
        """A program that is not built is a failure, and a library that cannot be fetched is not."""
        if path in PLOT_FILES:
            self.skipTest(f"{path} is missing: make setup fetches it")
        variant = path.relative_to(TOP / "build").parts[0]
        self.fail(f"{path} is missing: make VARIANT={variant} {made_by(path)}")

    def for_other_users(self, program):
        """The path of a program by which every user can run it: a copy in /tmp if a folder above it,
        such as /root, is closed to others."""
        if all(folder.stat().st_mode & 0o001 for folder in program.resolve().parents):
            return program
        folder = tempfile.TemporaryDirectory(prefix="sunproxy-program.")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        return pathlib.Path(shutil.copy(program, folder.name))

    def _too_long(self, number, frame):
        raise AssertionError(f"the test did not end within {TEST_SECONDS} s")

    def _clean(self):
        signal.alarm(300)
        try:
            problems = []
            for process in reversed(self.processes):
                try:
                    if process.expect is None:
                        process.kill()
                        continue
                    status = process.stop(120)
                    if status != process.expect:
                        problems.append(
                            f"{process.name} ended with {status} instead of {process.expect}: "
                            + process.err[-2000:]
                        )
                except subprocess.TimeoutExpired:
                    problems.append(f"{process.name} did not end on SIGTERM: {process.err[-2000:]}")
                    process.kill()
            for log in sorted(self.dir.glob("sanitizer.*")):
                problems.append(f"{log.name}: {log.read_text(errors='replace')[:4000]}")
            self.problems = problems
            if problems:
                self.fail("\n".join(problems))
        finally:
            signal.alarm(0)
            for process in self.processes:
                process.kill()
            ports.give_back()
            self._keep_or_remove()

    def _keep_or_remove(self):
        """What the programs of a failed test said is kept in $TEST_LOGS."""
        keep = os.environ.get("TEST_LOGS")
        outcome = getattr(self, "_outcome", None)
        if keep and (self.problems or outcome is None or not outcome.success):
            target = pathlib.Path(keep) / self.id()
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True, exist_ok=True)
            for path in self.dir.iterdir():
                if path.is_file() and path.stat().st_size < 1 << 20:
                    shutil.copy(path, target)
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- the programs -----------------------------------------------------------------------

    def origin(self, *options, **more):
        return Origin(self, *options, **more)

    def daemon(self, *options, **more):
        return Daemon(self, *options, **more)

    def run_program(self, argv, namespace=None, seconds=300, stdin=None, env=None):
        """Runs a program to its end; its output is bytes."""
        argv = [str(a) for a in argv]
        if namespace:
            argv = namespace.enter(argv)
        self.runs += 1
        return subprocess.run(
            [*WITH_PARENT, *argv],
            capture_output=True,
            timeout=seconds,
            input=stdin if stdin is not None else b"",
            env=sanitizer_environment(self.dir / f"sanitizer.run{self.runs}", env),
        )

    def sunproxy(self, *arguments, daemon=None, tcp=False, expect=0, client=None, **more):
        """Runs the client against a daemon: over its socket, or over TCP."""
        argv = [client or self.client, arguments[0]]
        if daemon is not None:
            if tcp or not daemon.socket:
                argv += ["--host", daemon.host, "--port", daemon.port]
            else:
                argv += ["--socket", daemon.socket]
        argv += arguments[1:]
        done = self.run_program(argv, **more)
        if expect is not None:
            self.assertEqual(
                done.returncode, expect,
                f"{' '.join(str(a) for a in argv)}: {done.stderr.decode(errors='replace')}",
            )
        return done

    def run_daemon(self, *arguments, **more):
        """Runs sunproxyd as something that ends by itself (--help, --check-config, an error)."""
        return self.run_program([SUNPROXYD, *arguments], **more)

    def stat(self, daemon):
        """The daemon's counters; the client is the release build, because tests poll them."""
        client = release_build(RELEASE_SUNPROXY, self.client)
        return json.loads(self.sunproxy("stat", "--json", daemon=daemon, client=client).stdout)


if __name__ == "__main__":
    sys.exit("run tests/system/run.py")
