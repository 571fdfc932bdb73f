"""Clients that are none of ours: they know proxy.x, or RFC 5531, and nothing else."""

import os
import re
import shutil
import subprocess
import sys

import harness
import rpc

PEERS = harness.TOP / "build/peers"
SOURCES = harness.TOP / "tests/system/peers"


class StubsTest(harness.SystemTest):
    """rpcgen's own client stubs on libtirpc's CLIENT."""

    def setUp(self):
        super().setUp()
        self.stubs = harness.PEERS / "stubs"
        self.assertTrue(self.stubs.exists(), f"{self.stubs} is not built (make peers)")

    def test_both_versions(self):
        d = self.daemon(origin=self.origin())
        for version in "12":
            for scheme in ("http", "https"):
                for size in (0, 1, 1000, 300001):
                    url = f"{scheme}://v{version}.test/fault/size:{size}"
                    done = self.run_program([self.stubs, d.port, "127.0.0.1", version, url])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(done.stdout, harness.origin_text(url, size))
        self.assertEqual(done.stderr, b"http 200 source 1 stored 1\n")
        done = self.run_program([self.stubs, d.port, "127.0.0.1", "2", url])
        self.assertEqual(done.stderr, b"http 200 source 0 stored 1\n")

    def test_errors(self):
        d = self.daemon(origin=self.origin())
        for url, words in (("ftp://a.test/", b"decode arguments"),
                           ("http://a.test/fault/short", b"system error"),
                           ("http://a.test/fault/zero", b"system error")):
            done = self.run_program([self.stubs, d.port, "127.0.0.1", "1", url])
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(words, done.stderr)
        done = self.run_program([self.stubs, d.port, "127.0.0.1", "2", "ftp://a.test/"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"status 1: ", done.stderr)

    def test_found_through_rpcbind(self):
        ns = harness.Namespace(self)
        ns.rpcbind()
        o = self.origin(namespace=ns)
        self.daemon(origin=o, namespace=ns, rpcbind=True, listen=False)
        harness.wait_until(
            lambda: b"591728913" in ns.run(["rpcinfo", "127.0.0.1"]).stdout, what="registration")
        for version in "12":
            url = "https://a.test/"
            done = self.run_program([self.stubs, "rpcbind", "127.0.0.1", version, url],
                                    namespace=ns)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, harness.origin_text(url, len(done.stdout)))
            self.assertGreater(len(done.stdout), 1000)


class PythonTest(harness.SystemTest):
    """Two clients from the Python Package Index, in one environment of their own."""

    seconds = 20

    @staticmethod
    def runs_here(python):
        """Another user's Python may be out of our reach."""
        try:
            return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0
        except OSError:
            return False

    def make(self, *argv):
        """Runs a step of the installation; skips the test where it fails."""
        try:
            made = subprocess.run(argv, capture_output=True, text=True, timeout=500)
        except (OSError, subprocess.TimeoutExpired) as e:
            self.skipTest(f"{argv[-1]} cannot be had: {e}")
        if made.returncode:
            lines = made.stderr.strip().splitlines() or [f"{argv[0]} failed"]
            self.skipTest(f"{argv[-1]} cannot be had: {lines[-1]}")

    def install(self, *packages):
        """The Python of an environment that has the packages."""
        folder = PEERS / "python"
        python = folder / "bin/python"
        if not self.runs_here(python):
            shutil.rmtree(folder, ignore_errors=True)
            self.make(sys.executable, "-m", "venv", folder)
        done = folder / re.sub(r"\W", "-", "installed " + packages[0])
        if not done.exists():
            self.make(python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                      "--retries", "1", *packages)
            done.touch()
        return python

    def fetch(self, script, *packages):
        python = self.install(*packages)
        d = self.daemon(origin=self.origin())
        for url, size in (("http://a.test/", None), ("https://a.test/fault/size:200003", 200003)):
            done = self.run_program([python, SOURCES / script, d.port, url])
            if b"No module named 'xdrlib'" in done.stderr:
                self.skipTest(f"{packages[0]} needs a module that this Python no longer has")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, harness.origin_text(url, size or len(done.stdout)))
            self.assertGreater(len(done.stdout), 1000)
        done = self.run_program([python, SOURCES / script, d.port, "ftp://a.test/"])
        self.assertNotEqual(done.returncode, 0)
        with rpc.Connection(d.address) as c:
            self.assertEqual(c.get("http://a.test/").source, "hit")

    def test_vxi11(self):
        self.fetch("client_vxi11.py", "python-vxi11==0.9")

    def test_sunrpc(self):
        # It imports termcolor without saying so.
        self.fetch("client_sunrpc.py", "sunrpc==1.1.0", "termcolor")


class GoTest(harness.SystemTest):
    """goxdr compiles proxy.x itself."""

    MODULE = "github.com/xdrpp/goxdr"
    VERSION = "v0.1.1"

    def build(self):
        go = shutil.which("go")
        if not go:
            self.skipTest("go is not installed")
        folder = PEERS / "go"
        folder.mkdir(parents=True, exist_ok=True)
        # A bare `string` as an argument is rpcgen's own; RFC 4506 wants its bound.
        text = (harness.TOP / "proxy.x").read_text()
        text = text.replace("PROXY_FETCH(string)", "PROXY_FETCH(proxy_url_v1)")
        text = text.replace("struct webpageResponse",
                            "typedef string proxy_url_v1<>;\n\nstruct webpageResponse", 1)
        (folder / "proxy.x").write_text(text)
        shutil.copy(SOURCES / "client.go", folder / "client.go")
        if not (folder / "go.mod").exists():
            (folder / "go.mod").write_text("module peer\n\ngo 1.19\n")
        env = dict(os.environ, GOFLAGS="-mod=mod -modcacherw", GOTOOLCHAIN="local",
                   GOPATH=str(PEERS / "gopath"))

        def go_runs(*arguments):
            try:
                return subprocess.run([go, *arguments], cwd=folder, env=env, capture_output=True,
                                      text=True, timeout=500)
            except subprocess.TimeoutExpired as e:
                self.skipTest(f"goxdr cannot be had: {e}")

        got = go_runs("get", f"{self.MODULE}/xdr@{self.VERSION}",
                      f"{self.MODULE}/rpc@{self.VERSION}", f"{self.MODULE}/cmd/goxdr@{self.VERSION}")
        if got.returncode:
            self.skipTest(f"goxdr cannot be had: {got.stderr.strip().splitlines()[-1]}")
        made = go_runs("build", "-o", "goxdr", f"{self.MODULE}/cmd/goxdr")
        self.assertEqual(made.returncode, 0, made.stderr)
        made = subprocess.run([folder / "goxdr", "-p", "main", "-o", "proxy.go", "proxy.x"],
                              cwd=folder, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        made = go_runs("build", "-o", "client", ".")
        self.assertEqual(made.returncode, 0, made.stderr)
        return folder / "client"

    def test_both_versions(self):
        import signal

        signal.alarm(400)  # the compiler may be cold
        client = self.build()
        d = self.daemon(origin=self.origin())
        for version in "12":
            for size in (1, 1000, 200003):
                url = f"https://v{version}.test/fault/size:{size}"
                done = self.run_program([client, d.port, version, url])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, harness.origin_text(url, size))
        self.assertIn(b"http 200 PROXY_MISS\npolicy lru\n", done.stderr)
        done = self.run_program([client, d.port, "2", "ftp://a.test/"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"PROXY_BAD_URL", done.stderr)
        self.assertEqual(self.run_program([client, d.port, "1", "ftp://a.test/"]).returncode, 1)
