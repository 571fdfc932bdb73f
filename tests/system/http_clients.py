"""What tests with programs as clients of the HTTP front share: the daemon and an origin of files."""

import random
import shutil

import harness
from file_origin import FileOrigin
from http_front import http_address


def noise(name, size):
    """Bytes that no coding makes shorter, the same for each name."""
    return random.Random(name).randbytes(size)


class ForwardTest(harness.SystemTest):
    """A daemon as a forward proxy, which reaches the origin by any host."""

    needs = (harness.SUNPROXYD,)
    program = None
    options = ()
    forward = True
    port = 80

    def file_origin(self):
        return FileOrigin(self, self.folder)

    def setUp(self):
        if not shutil.which(self.program):
            self.skipTest(f"{self.program} is not installed")
        super().setUp()
        self.folder = self.dir / "files"
        self.folder.mkdir()
        self.o = self.file_origin()
        self.d = self.daemon("--http", "127.0.0.1:0", "--connect-to",
                             f":{self.port}:127.0.0.1:{self.o.port}", *self.options)
        self.address = "%s:%d" % harness.wait_until(lambda: http_address(self.d),
                                                    what="the HTTP front")
        self.base = "http://files.test" if self.forward else f"http://{self.address}"
        self.proxy = {"http_proxy": f"http://{self.address}"} if self.forward else {}

    def file(self, name, body):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        return body

    def run_client(self, *argv, expect=0, env=None, cwd=None, **more):
        """A client, to its end, with what it wrote to stdout."""
        if cwd:
            argv = ["env", "-C", cwd, *argv]
        done = self.run_program(argv, env={**self.proxy, "HOME": str(self.dir), **(env or {})}, **more)
        self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,),
                      f"{argv}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{self.o.seen}")
        return done.stdout

    def hits(self):
        return self.stat(self.d)["hits"]


class ReverseTest(ForwardTest):
    """A daemon as a reverse proxy."""

    forward = False
    options = ("--origin", "/=http://files.test/")


class TunnelTest(ForwardTest):
    """A forward proxy by which clients reach an origin over TLS."""

    port = 443

    def file_origin(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        key, self.certificate = self.dir / "key.pem", self.dir / "certificate.pem"
        done = self.run_program([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", self.certificate, "-days", "2", "-subj", "/CN=files.test", "-addext",
            "subjectAltName=DNS:files.test"])
        self.assertEqual(done.returncode, 0, done.stderr)
        return FileOrigin(self, self.folder, self.certificate, key)

    def setUp(self):
        super().setUp()
        self.base = "https://files.test"
        self.proxy = {"https_proxy": f"http://{self.address}"}
