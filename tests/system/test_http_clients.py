"""Programs that others wrote, as clients of the HTTP front, forward and reverse, with an origin on
loopback. Every body that they receive is compared with the origin's."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile

from http_clients import ForwardTest, ReverseTest, TunnelTest, noise


# ---- curl ----------------------------------------------------------------------------------------


class Curl:
    program = "curl"

    def curl(self, *argv, **more):
        return self.run_client("curl", "-sS", "--max-time", "20", *argv, **more)

    def test_a_file_and_its_copy(self):
        body = self.file("a.bin", noise("a", 3 << 20))
        for _ in range(3):
            self.assertEqual(self.curl(f"{self.base}/a.bin"), body)
        self.assertEqual(len(self.o.requests("/a.bin")), 1)

    def test_many_over_one_connection(self):
        bodies = {f"f{n}": self.file(f"f{n}", noise(n, n * 1000)) for n in range(30)}
        for _ in range(2):
            out = self.curl(f"{self.base}/f[0-29]", "-w", "\nconnections %{num_connects}\n")
            self.assertEqual(out.count(b"\nconnections 1\n"), 1)
            self.assertEqual(re.sub(rb"\nconnections \d\n", b"", out), b"".join(bodies.values()))

    def test_resume(self):
        body = self.file("r.bin", noise("r", 1 << 20))
        part = self.dir / "part"
        for size in (1, 300000, len(body) - 1, len(body)):  # the first one is a miss
            part.write_bytes(body[:size])
            self.curl("-C", "-", "-o", part, f"{self.base}/r.bin")
            self.assertEqual(part.read_bytes(), body, size)

    def test_resume_what_broke_off(self):
        body = self.file("cut.bin", noise("cut", 2 << 20))
        self.o.cut["/cut.bin"] = 700000
        part = self.dir / "part"
        self.curl("-f", "-o", part, f"{self.base}/cut.bin", expect=(18, 56))  # a partial file
        begun = part.read_bytes()
        self.assertLess(len(begun), len(body))
        self.assertEqual(begun, body[:len(begun)])
        self.curl("-C", "-", "-o", part, f"{self.base}/cut.bin")
        self.assertEqual(part.read_bytes(), body)
        self.assertEqual(self.curl(f"{self.base}/cut.bin"), body)

    def test_ranges(self):
        body = self.file("p.bin", noise("p", 1 << 20))
        for _ in range(2):
            for text, part in (("0-0", body[:1]), ("5000-70000", body[5000:70001]),
                               ("-100", body[-100:]), ("1048000-", body[1048000:])):
                self.assertEqual(self.curl("-r", text, f"{self.base}/p.bin"), part)
            self.assertEqual(self.curl(f"{self.base}/p.bin"), body)

    def test_compressed(self):
        body = self.file("t.txt", b"".join(b"line %d\n" % n for n in range(20000)))
        for _ in range(2):
            self.assertEqual(self.curl("--compressed", f"{self.base}/t.txt"), body)
            self.assertEqual(self.curl(f"{self.base}/t.txt"), body)
            for value in ("gzip", "deflate, gzip;q=0.5", "gzip, br;q=0"):
                raw = self.curl("-H", f"Accept-Encoding: {value}", f"{self.base}/t.txt")
                self.assertEqual(gzip.decompress(raw), body, value)
            for value in ("identity", "br", "gzip;q=0, br"):
                raw = self.curl("-H", f"Accept-Encoding: {value}", f"{self.base}/t.txt")
                self.assertEqual(raw, body, value)
        seen = [seen.fields.get("Accept-Encoding") for seen in self.o.requests("/t.txt")]
        # curl offers all that it has, the first time, and the origin uses one of them.
        self.assertEqual(seen[1:], [None, "identity"], seen)

    def test_conditions(self):
        body = self.file("c.bin", noise("c", 50000))
        copy, etag = self.dir / "copy", self.dir / "etag"
        self.curl("--etag-save", etag, "-o", copy, f"{self.base}/c.bin")
        self.assertEqual(copy.read_bytes(), body)
        for options in (["--etag-compare", etag], ["-z", copy]):
            if options[0] == "-z":
                os.utime(copy, (self.folder / "c.bin").stat()[7:9])
            out = self.curl(*options, "-o", self.dir / "none", "-w", "%{http_code}",
                            f"{self.base}/c.bin")
            self.assertEqual(out, b"304")
        self.assertEqual(len(self.o.requests("/c.bin")), 1)

    def test_changed_file_is_validated(self):
        self.o.cache_control["/v.bin"] = "no-cache"
        for name in ("v1", "v1", "v2", "v2"):
            body = self.file("v.bin", noise(name, 100000))
            self.assertEqual(self.curl(f"{self.base}/v.bin"), body)
        self.assertEqual([seen.status for seen in self.o.requests("/v.bin")], [200, 304, 200, 304])

    def test_head(self):
        body = self.file("h.bin", noise("h", 77777))
        for _ in range(2):
            head = self.curl("-I", f"{self.base}/h.bin").decode()
            self.assertIn("200 OK", head)
            self.assertRegex(head, r"(?i)\r\ncontent-length: 77777\r\n")
            self.assertEqual(self.curl(f"{self.base}/h.bin"), body)

    def test_post(self):
        body = noise("post", 3 << 20)
        source = self.dir / "source"
        source.write_bytes(body)
        answer = f"{len(body)} {hashlib.sha256(body).hexdigest()}\n".encode()
        for options in (["--data-binary", f"@{source}"],  # curl expects 100 for this one
                        ["--data-binary", f"@{source}", "-H", "Expect:"],
                        ["-X", "POST", "-T", source, "-H", "Transfer-Encoding: chunked"],
                        ["--http1.0", "--data-binary", f"@{source}"]):
            self.assertEqual(self.curl(*options, f"{self.base}/digest"), answer, options)
        self.assertEqual(self.curl("-d", "", f"{self.base}/digest"),
                         f"0 {hashlib.sha256().hexdigest()}\n".encode())

    def test_http_1_0(self):
        body = self.file("old.bin", noise("old", 100000))
        for _ in range(2):
            self.assertEqual(self.curl("--http1.0", f"{self.base}/old.bin"), body)

    def test_slow_reader(self):
        body = self.file("slow.bin", noise("slow", 1 << 20))
        self.assertEqual(self.curl("--limit-rate", "800k", f"{self.base}/slow.bin"), body)
        self.assertEqual(self.curl(f"{self.base}/slow.bin"), body)


class CurlForwardTest(Curl, ForwardTest):
    def test_proxy_option(self):
        body = self.file("x.bin", noise("x", 100000))
        self.proxy = {}
        for option in (["-x", self.address], ["-x", f"http://{self.address}"],
                       ["--proxy1.0", self.address]):
            self.assertEqual(self.curl(*option, f"{self.base}/x.bin"), body)
        self.assertEqual(len(self.o.requests("/x.bin")), 1)


class CurlReverseTest(Curl, ReverseTest):
    options = (*ReverseTest.options, "--http", "unix:http.sock")

    def daemon(self, *options, **more):
        options = [option.replace("unix:", f"unix:{self.dir}/") if option.startswith("unix:") else option
                   for option in options]
        return super().daemon(*options, **more)

    def test_over_a_local_socket(self):
        body = self.file("u.bin", noise("u", 1 << 20))
        for options in ([], ["--unix-socket", self.dir / "http.sock"]):
            self.assertEqual(self.curl(*options, f"{self.base}/u.bin"), body)
        self.assertEqual(len(self.o.requests("/u.bin")), 1)


class CurlTunnelTest(TunnelTest):
    program = "curl"

    def test_a_tunnel(self):
        body = self.file("a.bin", noise("a", 3 << 20))
        sent = self.file("sent", noise("sent", 1 << 20))
        curl = ["curl", "-sS", "--max-time", "20", "--cacert", self.certificate]
        self.assertEqual(self.run_client(*curl, f"{self.base}/a.bin"), body)
        out = self.run_client(*curl, "--data-binary", f"@{self.folder}/sent", f"{self.base}/digest")
        self.assertEqual(out.decode(), f"{len(sent)} {hashlib.sha256(sent).hexdigest()}\n")
        stat = self.stat(self.d)
        self.assertEqual((stat["tunnels_opened"], stat["pages"]), (2, 0))

    def test_other_ports_are_refused(self):
        out = self.run_client("curl", "-sS", "--max-time", "20", "-w", "%{http_connect}",
                              f"{self.base}:8443/", expect=56)
        self.assertEqual(out, b"403")


# ---- wget ----------------------------------------------------------------------------------------


class Wget:
    program = "wget"

    def wget(self, *argv, **more):
        return self.run_client("wget", "-nv", "--timeout=20", "--no-config", *argv, **more)

    def test_a_file_and_its_copy(self):
        body = self.file("a.bin", noise("a", 2 << 20))
        for _ in range(3):
            self.assertEqual(self.wget("-O", "-", f"{self.base}/a.bin"), body)
        self.assertEqual(len(self.o.requests("/a.bin")), 1)

    def test_resume(self):
        body = self.file("r.bin", noise("r", 1 << 20))
        part = self.dir / "r.bin"
        for size in (300000, 1, len(body) - 1, len(body)):
            part.write_bytes(body[:size])
            self.wget("-c", "-P", self.dir, f"{self.base}/r.bin")
            self.assertEqual(part.read_bytes(), body, size)

    def test_it_resumes_what_broke_off(self):
        body = self.file("cut.bin", noise("cut", 2 << 20))
        self.o.cut["/cut.bin"] = 700000
        self.wget("-t", "5", "--waitretry=1", "-P", self.dir, f"{self.base}/cut.bin")
        self.assertEqual((self.dir / "cut.bin").read_bytes(), body)

    def test_newer_files_only(self):
        body = self.file("n.bin", noise("n", 100000))
        for _ in range(2):
            self.wget("-N", "-P", self.dir, f"{self.base}/n.bin")
            self.assertEqual((self.dir / "n.bin").read_bytes(), body)
        self.assertEqual(len(self.o.requests("/n.bin")), 1)

    def test_a_tree(self):
        names = [f"sub/page{n}.html" for n in range(8)]
        links = "".join(f'<a href="{name}">x</a>' for name in names)
        bodies = {"index.html": self.file("index.html", f"<html>{links}</html>".encode())}
        for name in names:
            bodies[name] = self.file(name, b"<html>" + noise(name, 5000).hex().encode() + b"</html>")
        for copy in ("one", "two"):
            self.wget("-r", "-nH", "-e", "robots=off", "-P", self.dir / copy, f"{self.base}/")
            for name, body in bodies.items():
                self.assertEqual((self.dir / copy / name).read_bytes(), body, name)
        self.assertEqual(len(self.o.seen), len(bodies), self.o.seen)

    def test_post(self):
        body = noise("post", 1 << 20)
        (self.dir / "source").write_bytes(body)
        out = self.wget("-O", "-", f"--post-file={self.dir}/source", f"{self.base}/digest")
        self.assertEqual(out.decode(), f"{len(body)} {hashlib.sha256(body).hexdigest()}\n")


class WgetForwardTest(Wget, ForwardTest):
    pass


class WgetReverseTest(Wget, ReverseTest):
    pass


# ---- apt -----------------------------------------------------------------------------------------


class Apt:
    """With folders of its own: the system's lists, caches and settings are neither read nor written."""

    program = "apt-get"
    packages = [f"sunproxy-test{n}" for n in range(12)]  # more than apt sends ahead of responses

    def setUp(self):
        if not shutil.which("dpkg-deb"):
            self.skipTest("dpkg-deb is not installed")
        super().setUp()
        for name in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d",
                     "etc/preferences.d", "etc/trusted.gpg.d", "log"):
            (self.dir / "apt" / name).mkdir(parents=True)
        (self.dir / "apt/status").touch()
        (self.dir / "apt/etc/sources.list").write_text(f"deb [trusted=yes] {self.base}/debian ./\n")
        proxy = f'Acquire::http::Proxy "http://{self.address}";' if self.forward else ""
        (self.dir / "apt.conf").write_text(
            f'Dir "{self.dir}/apt/"; Dir::State "state"; Dir::State::status "{self.dir}/apt/status";\n'
            f'Dir::Cache "cache"; Dir::Etc "etc"; Dir::Log "log"; APT::Sandbox::User "";\n'
            f'APT::Architecture "amd64"; Acquire::Languages "none"; Acquire::Retries "0";\n{proxy}\n')
        self.proxy = {"APT_CONFIG": str(self.dir / "apt.conf")}

    def build(self, version):
        """Packages of this version and the indices of the repository."""
        entries = []
        for name in self.packages:
            tree = self.dir / "tree" / name
            (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
            (tree / "data").write_bytes(noise(f"{name} {version}", 20000))
            control = (f"Package: {name}\nVersion: {version}\nArchitecture: all\n"
                       "Maintainer: Tests <tests@example.invalid>\n"
                       f"Description: of a test\n")
            (tree / "DEBIAN/control").write_text(control)
            file = self.folder / f"debian/{name}_{version}_all.deb"
            file.parent.mkdir(exist_ok=True)
            self.run_client("dpkg-deb", "-Znone", "--root-owner-group", "-b", tree, file)
            deb = file.read_bytes()
            entries.append(f"{control}Filename: ./{file.name}\nSize: {len(deb)}\n"
                           f"SHA256: {hashlib.sha256(deb).hexdigest()}\n")
        index = self.file("debian/Packages", "\n".join(entries).encode())
        date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
        self.file("debian/Release", (
            f"Origin: test\nDate: {date}\nArchitectures: all amd64\nSHA256:\n"
            f" {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n").encode())

    def download(self, version):
        got = self.dir / "got" / version
        got.mkdir(parents=True)
        self.run_client("apt-get", "-q", "download", *self.packages, cwd=got)
        for name in self.packages:
            file = f"{name}_{version}_all.deb"
            self.assertEqual((got / file).read_bytes(), (self.folder / "debian" / file).read_bytes())

    def test_update_and_download(self):
        self.o.cache_control = {"/": "max-age=600", "/debian/Release": "no-cache",
                                "/debian/Packages": "no-cache"}
        self.build("1.0")
        first = self.run_client("apt-get", "-q", "update").decode()
        self.assertRegex(first, r"(?m)^Get:\d+ http://\S+/debian \./ Release ")
        self.assertRegex(first, r"(?m)^Get:\d+ http://\S+/debian \./ Packages ")
        self.download("1.0")
        second = self.run_client("apt-get", "-q", "update").decode()
        self.assertRegex(second, r"(?m)^Hit:\d+ http://\S+/debian \./ Release$")
        self.assertNotRegex(second, r"(?m)^Get:")
        self.assertEqual([seen.status for seen in self.o.requests("/debian/Release")], [200, 304])
        # Packages come again from the proxy, of the same version, and then a new one.
        shutil.rmtree(self.dir / "got/1.0")
        self.download("1.0")
        for name in self.packages:
            self.assertEqual(len(self.o.requests(f"/debian/{name}_1.0_all.deb")), 1)
        self.build("2.0")
        third = self.run_client("apt-get", "-q", "update").decode()
        self.assertRegex(third, r"(?m)^Get:\d+ http://\S+/debian \./ Packages ")
        self.download("2.0")

    def test_it_resumes_what_broke_off(self):
        self.build("1.0")
        name = f"{self.packages[0]}_1.0_all.deb"
        self.run_client("apt-get", "-q", "update")
        got = self.dir / "got"
        got.mkdir()
        self.o.cut[f"/debian/{name}"] = 9000
        self.run_client("apt-get", "-q", "-o", "Acquire::Retries=0", "download", self.packages[0],
                        cwd=got, expect=(0, 100))  # it may ask again by itself
        self.run_client("apt-get", "-q", "download", self.packages[0], cwd=got)
        self.assertEqual((got / name).read_bytes(), (self.folder / "debian" / name).read_bytes())


class AptForwardTest(Apt, ForwardTest):
    pass


class AptReverseTest(Apt, ReverseTest):
    pass


# ---- git -----------------------------------------------------------------------------------------


class Git:
    program = "git"
    seconds = 8

    def git(self, *argv, **more):
        return self.run_client("git", *argv, env={
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@files.test",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@files.test"}, **more).decode()

    def setUp(self):
        super().setUp()
        self.bare = self.folder / "repo.git"
        self.git("init", "-q", "--bare", "-b", "main", self.bare)
        self.git("-C", self.bare, "config", "http.receivepack", "true")
        self.work = self.dir / "work"
        self.git("init", "-q", "-b", "main", self.work)
        self.git("-C", self.work, "remote", "add", "local", self.bare)
        self.commit("first")
        self.o.programs["/smart/"] = (["git", "http-backend"], {
            "GIT_PROJECT_ROOT": str(self.folder), "GIT_HTTP_EXPORT_ALL": "1", "HOME": str(self.dir),
            "GIT_CONFIG_NOSYSTEM": "1", "REMOTE_USER": "a"})
        # References change; objects have names of their contents.
        self.o.cache_control = {"/": "max-age=600", "/repo.git/info": "no-cache",
                                "/repo.git/HEAD": "no-cache", "/repo.git/objects/info": "no-cache"}

    def commit(self, name, size=50000):
        for n in range(20):
            (self.work / f"{name}{n}").write_bytes(noise(f"{name}{n}", size))
        self.git("-C", self.work, "add", "-A")
        self.git("-C", self.work, "commit", "-q", "-m", name)
        self.git("-C", self.work, "push", "-q", "local", "main")
        self.git("-C", self.bare, "update-server-info")

    def check(self, clone):
        """The clone has what the repository has, object by object."""
        self.git("-C", clone, "fsck", "--full", "--strict")
        heads = [self.git("-C", place, "rev-parse", "main^{tree}") for place in (clone, self.bare)]
        self.assertEqual(heads[0], heads[1])
        for path in self.work.iterdir():
            if path.is_file():
                self.assertEqual((clone / path.name).read_bytes(), path.read_bytes(), path.name)

    def clone_and_pull(self, url):
        for name in ("one", "two"):
            self.git("clone", "-q", url, self.dir / name)
            self.check(self.dir / name)
        self.commit("second")
        self.git("-C", self.dir / "one", "pull", "-q", "--ff-only")
        self.check(self.dir / "one")

    def test_dumb(self):
        self.clone_and_pull(f"{self.base}/repo.git")
        objects = [seen.path for seen in self.o.requests() if re.search(r"/objects/../", seen.path)]
        self.assertGreater(len(objects), 20)
        self.assertEqual(len(objects), len(set(objects)), "an object was fetched twice")

    def test_smart(self):
        self.clone_and_pull(f"{self.base}/smart/repo.git")
        self.assertGreaterEqual(len(self.o.requests("/smart/repo.git/git-upload-pack", "POST")), 3)

    def test_push(self):
        url = f"{self.base}/smart/repo.git"
        one, two = self.dir / "one", self.dir / "two"
        self.git("clone", "-q", url, one)
        self.git("clone", "-q", url, two)
        # Over http.postBuffer, 1 MiB: in chunks.
        (one / "large").write_bytes(noise("large", 3 << 20))
        self.git("-C", one, "add", "-A")
        self.git("-C", one, "commit", "-q", "-m", "large")
        self.git("-C", one, "push", "-q", "origin", "main")
        pushed = self.o.requests("/smart/repo.git/git-receive-pack", "POST")
        self.assertTrue(any(seen.fields.get("Transfer-Encoding") for seen in pushed))
        self.git("-C", two, "pull", "-q", "--ff-only")
        self.check(two)
        self.assertEqual((two / "large").read_bytes(), (one / "large").read_bytes())


class GitForwardTest(Git, ForwardTest):
    pass


class GitReverseTest(Git, ReverseTest):
    pass


class GitTunnelTest(Git, TunnelTest):
    test_dumb = None

    def setUp(self):
        super().setUp()
        self.proxy["GIT_SSL_CAINFO"] = str(self.certificate)


# ---- pip -----------------------------------------------------------------------------------------


class Pip:
    program = sys.executable
    seconds = 8

    def setUp(self):
        done = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True)
        if done.returncode:
            self.skipTest("pip is not installed")
        super().setUp()

    def wheel(self, version):
        name = f"sunproxy_test-{version}"
        path = self.folder / f"files/{name}-py3-none-any.whl"
        path.parent.mkdir(exist_ok=True)
        files = {"sunproxy_test.bin": noise(name, 300000),
                 f"{name}.dist-info/METADATA":
                     f"Metadata-Version: 2.1\nName: sunproxy-test\nVersion: {version}\n".encode(),
                 f"{name}.dist-info/WHEEL":
                     b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
        record = "".join(f"{file},,\n" for file in [*files, f"{name}.dist-info/RECORD"])
        with zipfile.ZipFile(path, "w") as archive:
            for file, body in {**files, f"{name}.dist-info/RECORD": record.encode()}.items():
                archive.writestr(file, body)
        links = "".join(f'<a href="/files/{p.name}#sha256={hashlib.sha256(p.read_bytes()).hexdigest()}"'
                        f'>{p.name}</a>\n' for p in sorted(path.parent.iterdir()))
        self.file("simple/sunproxy-test/index.html", f"<!DOCTYPE html><html>{links}</html>".encode())
        return path

    def download(self, into):
        proxy = ["--proxy", self.proxy["http_proxy"]] if self.forward else []
        self.run_client(sys.executable, "-m", "pip", "--isolated", "download", "-q", "--no-cache-dir",
                        "--disable-pip-version-check", "--no-deps", "--retries", "0", *proxy,
                        "--index-url", f"{self.base}/simple/", "--trusted-host",
                        self.base.removeprefix("http://"), "-d", self.dir / into, "sunproxy-test",
                        env={"http_proxy": ""})
        return {path.name: path.read_bytes() for path in (self.dir / into).iterdir()}

    def test_download(self):
        # pip asks with Cache-Control: max-age=0 for the index: it is validated each time.
        first = self.wheel("1.0")
        for into in ("a", "b"):
            self.assertEqual(self.download(into), {first.name: first.read_bytes()})
        second = self.wheel("1.1")
        self.assertEqual(self.download("c"), {second.name: second.read_bytes()})
        self.assertEqual(len(self.o.requests(f"/files/{first.name}")), 1)
        index = self.o.requests("/simple/sunproxy-test/")
        self.assertEqual([seen.status for seen in index], [200, 304, 200])


class PipForwardTest(Pip, ForwardTest):
    pass


class PipReverseTest(Pip, ReverseTest):
    pass
