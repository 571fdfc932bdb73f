"""What the scripts of applications share: programs in a private folder, visitors with cookies, and a
table of checks.

A backend and sunproxyd listen on free ports of loopback, and are ended by their own pids. Visitors
connect to the proxy (or, with --direct, to the backend) and name the site's host in Host, as a browser
does whose resolver leads it to the proxy.
"""

import collections
import ctypes
import http.client
import itertools
import os
import pathlib
import random
import re
import signal
import socket
import string
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402,F401

RECIPES = ROOT / "packaging/recipes"
HOST = "site.test"
OTHER_HOST = "www.site.test"  # a second name of the same site
STRANGER = "a stranger"
START_LIMIT = 120  # seconds for a program to listen, and for one response: they find hangs only


def write_recipe(folder, name, port):
    """The path of a copy in the folder, before an origin at this port in place of its own."""
    copy = folder / f"{name}.conf"
    copy.write_text(re.sub(r"http://[a-z0-9.]+(:\d+)?", f"http://127.0.0.1:{port}",
                           (RECIPES / copy.name).read_text()))
    return copy


class Missing(Exception):
    """A program or package that the application needs is not installed."""


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Program:
    """A child of this process, with its output in a file of the run's folder."""

    def __init__(self, run, name, argv, env=None, cwd=None, folder=None):
        self.name = name
        self.log = (folder or run.folder) / f"{name}.log"
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log, cwd=cwd,
                                          env=dict(os.environ, **(env or {})),
                                          preexec_fn=_die_with_parent, start_new_session=True)
        run.programs.append(self)

    def await_listening(self, family, address):
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end:
            if self.child.poll() is not None:
                break
            with socket.socket(family) as probe:
                try:
                    probe.connect(address)
                    return
                except OSError:
                    time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not listen: {self.log.read_text()[-2000:]}")

    def await_port(self, port):
        self.await_listening(socket.AF_INET, ("127.0.0.1", port))

    def stop(self):
        """Its exit status. Its group is ended, since PHP's workers outlive the process that forked
        them."""
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)
        try:
            return self.child.wait(START_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            return self.child.wait()


class Run:
    """One run of an application: its folder, its programs, its checks.

    `direct` sends the visitors to the backend: that shows what the application does itself. `recipe`
    names the file of packaging/recipes with the rules of the daemon.
    """

    def __init__(self, folder, build, direct, options=(), recipe=None):
        self.folder = folder
        self.build = build
        self.direct = direct
        self.options = options
        self.recipe = recipe
        self.programs = []
        self.daemons = []  # those of the programs that are sunproxyd
        self.checks = []  # (name, "" or what is wrong)
        self.leaks = []  # responses that name the backend's address
        self.sources = collections.Counter()  # responses by what Cache-Status says of them
        self.backend_port = None
        self.proxy_port = free_port()
        self.port = None  # where visitors connect
        self._numbers = itertools.count(1)

    def command(self, argv, env=None, cwd=None):
        """Runs a command to its end; its output is an error's text if it fails."""
        done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd,
                              env=dict(os.environ, **(env or {})))
        if done.returncode != 0:
            raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.stdout[-2000:]}")
        return done.stdout

    def front(self, backend_port, *options):
        """Puts sunproxyd before the backend, as docs/HTTP.md's reverse proxy."""
        self.backend_port = backend_port
        if self.direct:
            self.port = backend_port
            return
        self.port = self.proxy_port
        row = (("--config", write_recipe(self.folder, self.recipe, backend_port)) if self.recipe
               else ("--origin", f"/=http://127.0.0.1:{backend_port}"))
        self.start_daemon("sunproxyd", self.port, *row, *options)

    def start_daemon(self, name, port, *options):
        daemon = Program(self, name, [
            self.build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
            "--http", f"127.0.0.1:{port}", "--access-log", self.folder / f"{name}.access.log",
            *options, *self.options])
        self.daemons.append(daemon)
        daemon.await_port(port)

    def visitor(self, name, host=HOST):
        return Visitor(self, name, host)

    def number(self):
        """A number that no URL of this run had before: its URL is not in the cache."""
        return next(self._numbers)

    def check(self, name, wrong):
        """`wrong` is empty if the check passes, and otherwise says what is wrong."""
        self.checks.append((name, " ".join(str(wrong).split())[:200] if wrong else ""))

    def expect(self, name, condition, otherwise):
        self.check(name, "" if condition else otherwise)

    def check_secrets(self, name, path, sees):
        """Asks for a page in every order of its visitors, then cold in parallel.

        `{}` in `path` becomes a new number each time. `sees` has the words that each visitor's page
        must have; it must have no word of another.
        """
        words = set().union(*sees.values())

        def wrong(visitor, url):
            body = visitor.get(url).body
            found = {word for word in words if word.encode() in body}
            if found == sees[visitor]:
                return None
            return f"{visitor.name} gets {sorted(found)} of {url}"

        wrongs = []
        for order in itertools.permutations(sees):
            url = path.format(self.number())
            for visitor in order + order:
                wrongs.append(wrong(visitor, url))
        self.check(f"{name}: {len(wrongs)} requests in all orders", summary(wrongs))
        wrongs = []
        for _ in range(5):
            url = path.format(self.number())
            clones = [visitor.clone() for visitor in sees for _ in range(3)]
            random.Random(url).shuffle(clones)
            sees_of = {clone: sees[clone.original] for clone in clones}

            def fetch(clone, url=url, sees_of=sees_of):
                body = clone.get(url).body
                found = {word for word in words if word.encode() in body}
                if found != sees_of[clone]:
                    wrongs.append(f"{clone.name} gets {sorted(found)} of {url}")

            threads = [threading.Thread(target=fetch, args=(clone,)) for clone in clones]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.check(f"{name}: {5 * 3 * len(sees)} requests in parallel, cold", summary(wrongs))

    def check_hosts(self, name, path, link):
        """Both names of the site, in both orders: each page has its own host's links, `link` with
        HOST for the host, and none of the other's."""
        wrongs = []
        for order in ((HOST, OTHER_HOST), (OTHER_HOST, HOST)):
            url = path.format(self.number())
            for host in order + order:
                body = self.visitor(STRANGER, host).get(url).body.decode(errors="replace")
                other = HOST if host == OTHER_HOST else OTHER_HOST
                if link.replace("HOST", host) not in body:
                    wrongs.append(f"{host}{url} has no link to its own host")
                if link.replace("HOST", other) in body:
                    wrongs.append(f"{host}{url} has links to {other}")
        self.check(name, summary(wrongs))

    def finish(self):
        """The last checks, and the end of all programs."""
        self.check("no response names the backend's address", summary(self.leaks))
        self.end_programs()

    def end_programs(self):
        for program in reversed(self.programs):
            status = program.stop()
            if program in self.daemons:
                self.expect(f"{program.name} ends with status 0", status == 0, f"status {status}")


def summary(wrongs):
    """How many are wrong, with the first of them."""
    wrongs_only = [wrong for wrong in wrongs if wrong]
    return f"{len(wrongs_only)} wrong: {wrongs_only[0]}" if wrongs_only else ""


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.fields = response.headers
        self.body = body

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def location(self):
        return self.fields.get("Location", "")

    @property
    def source(self):
        """What the proxy says of the response, hit or miss: in Cache-Status (RFC 9211), or as Varnish,
        which names the request that fetched it besides, or as contestants.py has nginx say it."""
        status = self.fields.get("Cache-Status", "")
        others = self.fields.get("X-Varnish", "") + self.fields.get("X-Cache-Status", "")
        if re.search(r"; *hit\b", status) or re.search(r"\d \d|^HIT", others):
            return "hit"
        return "miss" if status or others else "none"


class Visitor:
    """A client with a connection and cookies of its own."""

    def __init__(self, run, name, host):
        self.run = run
        self.name = name
        self.host = host
        self.cookies = {}
        self.fields = {}  # of each request
        self.original = self
        self._connection = None

    def clone(self):
        """The same visitor on another connection."""
        other = Visitor(self.run, self.name, self.host)
        other.cookies = dict(self.cookies)
        other.fields = dict(self.fields)
        other.original = self
        return other

    def request(self, method, target, body=None, fields=None):
        headers = {"Host": self.host, "User-Agent": "apps", **self.fields}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        headers.update(fields or {})
        answer = self._send(method, target, body, headers)
        self._take_cookies(answer)
        self._look_for_backend(method, target, answer)
        self.run.sources[answer.source] += 1
        return answer

    def _send(self, method, target, body, headers):
        reused = self._connection is not None
        if not reused:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.run.port,
                                                          timeout=START_LIMIT)
        try:
            self._connection.request(method, target, body, headers)
            response = self._connection.getresponse()
            return Answer(response, response.read())
        except (http.client.RemoteDisconnected, ConnectionError):
            self._connection.close()
            self._connection = None
            if not reused:
                raise
            # A kept connection may have been closed before the request.
            return self._send(method, target, body, headers)

    def _take_cookies(self, answer):
        for line in answer.fields.get_all("Set-Cookie", []):
            pair, *attributes = line.split(";")
            name, _, value = pair.strip().partition("=")
            expired = any(re.match(r"\s*(max-age=(0|-)|expires=.*\b(19\d\d|20[01]\d)\b)", a, re.I)
                          for a in attributes)
            if expired:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    def _look_for_backend(self, method, target, answer):
        backend = f"127.0.0.1:{self.run.backend_port}"
        text = str(answer.fields) + answer.text
        if backend in text or backend in urllib.parse.unquote(text):
            self.run.leaks.append(f"{method} {target} ({answer.status})")

    def get(self, target, **fields):
        return self.request("GET", target,
                            fields={name.replace("_", "-"): v for name, v in fields.items()})

    def post(self, target, form, fields=None):
        body = urllib.parse.urlencode(form)
        return self.request("POST", target, body, {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://{self.host}", **(fields or {})})

    def upload(self, target, form, name, filename, content, fields=None):
        """POST of a form with a file, as a browser encodes it."""
        boundary = "".join(random.choices(string.ascii_letters, k=24))
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
                 .encode() for key, value in form.items()]
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; '
                     f'filename="{filename}"\r\nContent-Type: application/octet-stream\r\n\r\n'
                     .encode() + content + b"\r\n")
        parts.append(f"--{boundary}--\r\n".encode())
        return self.request("POST", target, b"".join(parts), {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Origin": f"http://{self.host}", **(fields or {})})

    def path_of(self, location):
        """The path of a redirect to this host; None if it leads to another host."""
        url = urllib.parse.urlsplit(location)
        if url.netloc not in ("", self.host) or url.scheme not in ("", "http"):
            return None
        return (url.path or "/") + (f"?{url.query}" if url.query else "")

    def follow(self, answer):
        """Follows redirects that stay on this host."""
        for _ in range(10):
            path = self.path_of(answer.location) if answer.status in (301, 302, 303) else None
            if path is None:
                return answer
            answer = self.get(path)
        return answer


def field(pattern, text):
    """The first group of a pattern in a page; empty if it is not there."""
    match = re.search(pattern, text)
    return match.group(1) if match else ""


def pixels():
    """A PNG of one pixel, which image libraries accept."""
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b""))
