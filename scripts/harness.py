"""What the scripts that replay traces share: programs started and stopped, an origin, daemons, runs.

Everything that is started is stopped when the work ends, also on Ctrl-C. The programs come from
$SUNPROXY_BUILD (build/release by default), the origin from $SUNPROXY_ORIGIN (by default, from there
too).
"""

import concurrent.futures
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("SUNPROXY_BUILD", "build/release"))
ORIGIN = pathlib.Path(os.environ.get("SUNPROXY_ORIGIN", BUILD / "tests/origin/origin"))
READY_SECONDS = 60
PROGRAM = 0x23451111
STOPPED_BY = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Failure(Exception):
    """A sentence for the user."""


class Children:
    """Everything that was started, each in a process group of its own, to be stopped by pid."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = []
        self.stopping = False

    def start(self, argv, log, output=None, die_with_us=False):
        """A program whose complaints go to a log, and its output to a file of its own or there."""
        def die_with_parent():
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG

        with self.lock, open(log, "ab") as err, open(output or log, "ab") as out:
            if self.stopping:
                raise Failure("interrupted")
            child = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True, preexec_fn=die_with_parent if die_with_us else None)
            self.running.append(child)
        return child

    def run(self, argv, log, output):
        """Waits for the program; its output as text. Fails with its last words if it fails."""
        child = self.start(argv, log, output)
        status = child.wait()
        self._forget(child)
        if status != 0:
            raise Failure(f"{argv[0]} ended with status {status}:\n{last_words(log)}")
        return output.read_text()

    def end(self, child):
        """Stops one of them."""
        _terminate(child)
        self._forget(child)

    def _forget(self, child):
        with self.lock:
            if child in self.running:
                self.running.remove(child)

    def stop(self):
        """Stops the last one first, so that no program loses one that it needs."""
        with self.lock:
            self.stopping = True
            children = list(reversed(self.running))
        for child in children:
            _terminate(child)


def _terminate(child):
    if child.poll() is None:
        child.terminate()
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        print(f"{child.args[0]} (pid {child.pid}) does not end, and is killed", file=sys.stderr)
        child.kill()
        child.wait()


def last_words(log):
    return "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-5:])


def wait_for(condition, child, what, log):
    """Until it is true; fails when the child ends or takes too long."""
    end = time.monotonic() + READY_SECONDS
    while not condition():
        if child.poll() is not None or time.monotonic() > end:
            raise Failure(f"{what} does not start; its log {log} ends with\n{last_words(log)}")
        time.sleep(0.02)


# ---- rpcbind -------------------------------------------------------------------------------------

def has_program(name):
    return shutil.which(name) is not None


def rpcbind_answers():
    try:
        socket.create_connection(("127.0.0.1", 111), 1).close()
        return True
    except OSError:
        return False


def registered():
    """Is some sunproxyd registered with rpcbind?"""
    if not has_program("rpcinfo"):
        return False
    listing = subprocess.run(["rpcinfo", "-p", "127.0.0.1"], capture_output=True, text=True,
                             timeout=10, check=False).stdout
    return any(line.split()[:1] == [str(PROGRAM)] for line in listing.splitlines())


def start_rpcbind(children, folder):
    """Whether a daemon should register; says why not."""
    if not rpcbind_answers():
        if not has_program("rpcbind"):
            print("rpcbind: not installed; going on without")
            return False
        if os.geteuid() != 0:
            print("rpcbind: none runs, and only root can start one; going on without")
            return False
        log = folder / "rpcbind.log"
        child = children.start(["rpcbind", "-f"], log, die_with_us=True)
        try:
            wait_for(rpcbind_answers, child, "rpcbind", log)
        except Failure:
            print(f"rpcbind: does not answer, see {log}; going on without")
            return False
        print("rpcbind: started, until the end of this")
        return True
    if registered():
        print("rpcbind: runs, and knows another sunproxyd, which is left alone")
        return False
    print("rpcbind: runs")
    return True


# ---- an origin, daemons, and replays -------------------------------------------------------------

class Origin:
    """An origin that answers for every host; `folder` is its own and has its logs."""

    def __init__(self, children, folder, *options):
        folder.mkdir(parents=True, exist_ok=True)
        self.cacert = folder / "ca.pem"
        ports_file, log = folder / "origin.ports", folder / "origin.log"
        self.child = children.start(
            [ORIGIN, "--ports-file", ports_file, "--tls-dir", folder, "--max-seconds", 1800,
             "--quiet", *options], log, die_with_us=True)
        wait_for(lambda: ports_file.exists() and len(ports_file.read_text().split()) == 4,
                 self.child, "the origin", log)
        ports = dict(line.split() for line in ports_file.read_text().splitlines())
        self.http, self.https = ports["http"], ports["https"]


class Daemon:
    """sunproxyd with an exact cache (one shard) that stores every page until it is evicted, as the
    papers' do, led to an origin; `path` is its socket."""

    def __init__(self, children, folder, name, origin, *options, register=False):
        self.path, log = folder / f"{name}.sock", folder / f"{name}.daemon.log"
        argv = [BUILD / "sunproxyd", "--listen", "127.0.0.1", "--port", 0, "--socket", self.path,
                "--shards", 1, "--workers", 1, "--freshness", "off", "--allow-net", "127.0.0.0/8",
                "--connect-to", f":80:127.0.0.1:{origin.http}",
                "--connect-to", f":443:127.0.0.1:{origin.https}", "--cacert", origin.cacert,
                *options]
        self.child = children.start(argv if register else argv + ["--no-rpcbind"], log,
                                    die_with_us=True)
        wait_for(self._answers, self.child, "sunproxyd", log)

    def _answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(self.path)) == 0


class Service:
    """A server of the studies over HTTP, a program of ours in Python; `arguments` follow the file to which
    it writes its port."""

    def __init__(self, children, folder, name, script, *arguments):
        port_file, log = folder / f"{name}.port", folder / f"{name}.log"
        self.child = children.start([sys.executable, TOP / "studies" / script, port_file, *arguments],
                                    log, die_with_us=True)
        wait_for(port_file.exists, self.child, name, log)
        self.port = int(port_file.read_text())


class ReverseProxy:
    """sunproxyd with an exact cache (one shard), before an origin on a port of this machine. It serves
    HTTP on `port`, and on the AF_UNIX socket `path` for purges."""

    def __init__(self, children, folder, name, origin_port, *options):
        self.path, log = folder / f"{name}.http", folder / f"{name}.log"
        self.child = children.start(
            [BUILD / "sunproxyd", "--listen", "none", "--socket", folder / f"{name}.sock", "--no-rpcbind",
             "--http", "127.0.0.1:0", "--http", f"unix:{self.path}", "--metrics", "127.0.0.1:0",
             "--workers", 1, "--shards", 1,
             "--origin", f"/=http://127.0.0.1:{origin_port}", "--allow-net", "127.0.0.1/32", *options],
            log, die_with_us=True)
        wait_for(lambda: "serves with" in log.read_text(errors="replace"), self.child, "sunproxyd", log)
        text = log.read_text(errors="replace")
        self.port, self.metrics_port = (
            int(re.search(rf"{what}127\.0\.0\.1:(\d+)", text)[1]) for what in ("HTTP on ", "metrics at http://"))

    def settle(self):
        """Waits until nothing is being fetched: a client may have the end of a body before the cache has
        stored it and evicted for it."""
        end = time.monotonic() + READY_SECONDS
        while not re.search(r'(?m)^sunproxy_cache_objects\{state="busy"\} 0$', self.metrics()):
            if time.monotonic() > end:
                raise Failure("a fetch does not end")
            time.sleep(0.002)

    def metrics(self):
        """In the text format of OpenMetrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text


def replay(children, daemon, trace, policy, capacity, folder, name, *options):
    """One replay with one policy and one size (None: no bound is given); what the client measured.
    Writes folder/name.log, a line a request, and folder/name.json."""
    argv = [BUILD / "sunproxy", "replay", trace, "--socket", daemon.path, "--policy", policy,
            "--log", folder / f"{name}.log", "--json", *options]
    if capacity is not None:
        argv += ["--capacity", capacity]
    result = json.loads(children.run(argv, folder / f"{name}.err", folder / f"{name}.json"))
    failures = result["runs"][0]["failures"]
    if failures:
        raise Failure(f"{failures} requests failed; see {folder}/{name}.log")
    return result


def run_all(function, wanted, at_once):
    """{arguments: function(*arguments)} of all that is wanted, begun in that order; some at once."""
    results = {}
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    try:
        runs = {pool.submit(function, *arguments): arguments for arguments in wanted}
        for done in concurrent.futures.as_completed(runs):
            results[runs[done]] = done.result()
            show_progress(len(results), len(wanted))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return results


def show_progress(done, total):
    if sys.stdout.isatty():
        print(f"\r{done} of {total} runs\033[K" if done < total else "\r\033[K", end="", flush=True)


def capacities(distinct, shares):
    """Pages that these shares of the distinct URLs, in per cent, are."""
    return [max(1, round(distinct * percent / 100)) for percent in shares]


def empty(folder):
    """Makes a folder, or empties one in build/; other files are not removed."""
    if folder.resolve().is_relative_to((TOP / "build").resolve()):
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.exists() and any(folder.iterdir()):
        raise Failure(f"{folder} is not empty")
    folder.mkdir(parents=True, exist_ok=True)


# ---- the frame of it all -------------------------------------------------------------------------

def perform(name, folder, work):
    """Runs work(children) with an empty folder, from the project's top; stops what was started
    whatever happens. The exit status."""
    # Daemons stand where an ordinary user's path does not lead.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    sys.stdout.reconfigure(line_buffering=True)
    for program in (BUILD / "sunproxyd", BUILD / "sunproxy", ORIGIN):
        if not os.access(program, os.X_OK):
            print(f'{name}: {program} is not built; run "make {name}"', file=sys.stderr)
            return 69
    children = Children()

    def handle(handler):
        for number in STOPPED_BY:
            signal.signal(number, handler)

    def nothing(*_):
        """Not SIG_IGN: a program that is started at this moment would inherit it and not stop."""

    def interrupt(number, _):
        handle(nothing)  # stopping is not interrupted
        raise SystemExit(128 + number)

    handle(interrupt)
    try:
        empty(folder)
        work(children)
        return 0
    except (Failure, OSError) as e:
        print(f"{name}: {e}", file=sys.stderr)
        return 70
    except SystemExit:
        print(f"\n{name}: interrupted; stopping what was started", file=sys.stderr)
        raise
    finally:
        handle(nothing)
        children.stop()
