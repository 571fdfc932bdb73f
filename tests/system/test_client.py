"""sunproxy, the client's program, against the real daemon."""

import base64
import json
import os
import signal
import socket
import struct
import subprocess
import threading

import harness
import rpc


class ClientTest(harness.SystemTest):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)
    options = ()

    def setUp(self):
        super().setUp()
        self.o = self.origin()
        self.d = self.daemon(*self.options, origin=self.o)

    def get(self, *arguments, **more):
        more.setdefault("daemon", self.d)
        return self.sunproxy("get", *arguments, **more)

    def text(self, url, size=None, body=None):
        return harness.origin_text(url, size if size is not None else len(body))


class VersionOneServer:
    """Serves version 1 only, as the paper's server does; every page is its URL."""

    def __init__(self, test):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        test.addCleanup(self.listener.close)

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    @staticmethod
    def _serve(peer):
        with peer, peer.makefile("rb") as calls:
            while len(mark := calls.read(4)) == 4:
                call = calls.read(struct.unpack(">I", mark)[0] & 0x7FFFFFFF)
                xid, _, _, _, version, procedure = struct.unpack(">IIIIII", call[:24])
                reply = struct.pack(">IIIII", xid, rpc.REPLY, 0, rpc.AUTH_NONE, 0)
                if version != 1:
                    reply += struct.pack(">III", rpc.ACCEPT.index("PROG_MISMATCH"), 1, 1)
                else:
                    reply += struct.pack(">I", 0)
                    # The credential and the verifier are empty.
                    reply += call[40:] if procedure == rpc.V1_FETCH else b""
                peer.sendall(rpc.fragment(reply))


class VersionOneTest(harness.SystemTest):
    needs = (harness.SUNPROXY,)

    def test_the_message_names_the_option(self):
        server = VersionOneServer(self)
        where = ["--host", "127.0.0.1", "--port", server.port]
        url = "http://a.test/"
        self.assertEqual(self.sunproxy("get", *where, "--api", "1", url).stdout, url.encode())
        trace = self.dir / "list"
        trace.write_text(url + "\n")
        for command in (["get", url], ["ping"], ["stat"], ["set", "--cold"], ["purge", url], ["replay", trace]):
            with self.subTest(command=command):
                done = self.sunproxy(command[0], *where, *command[1:], expect=69)
                if command != ["ping"]:  # it prints the time of version 1 before
                    self.assertEqual(done.stdout, b"")
                self.assertIn(b"does not serve version 2 of the protocol", done.stderr)
                self.assertIn(b"--api 1", done.stderr)
        done = self.sunproxy("get", "--json", *where, url, expect=69)
        self.assertIn("--api 1", json.loads(done.stdout)["error"])


class CurlOptionsTest(ClientTest):
    """Options that are named as in curl do as curl does."""

    seconds = 8

    def test_head(self):
        url = "http://a.test/fault/header:X-Mine:%201"
        whole = self.get("-i", url).stdout
        head, body = whole.split(b"\r\n\r\n", 1)
        self.assertGreater(len(body), 100)
        self.assertEqual(self.get("-I", url).stdout, head + b"\r\n\r\n")
        self.get("-I", "-o", self.dir / "head", url)
        self.assertEqual((self.dir / "head").read_bytes(), head + b"\r\n\r\n")

    def test_fail_and_location(self):
        self.assertEqual(self.get("-f", "http://a.test/fault/status:404", expect=22).stdout, b"")
        url = "http://a.test/fault/redirect:http:%2F%2Fb.test%2F"
        self.assertEqual(self.get("-L", url).stdout, self.get(url).stdout)

    def test_remote_name(self):
        urls = ["http://a.test/one/page.html?x=/y#z", "b.test/two", "http://a.test/one/b"]
        argv = [harness.SUNPROXY, "get", "--socket", self.d.socket, "-O", *urls]
        folder = self.dir / "files"
        folder.mkdir()
        subprocess.run([str(a) for a in argv], cwd=folder, check=True, timeout=60, stdin=subprocess.DEVNULL,
                       env=harness.sanitizer_environment(self.dir / "sanitizer.names"))
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["b", "page.html", "two"])
        self.assertEqual((folder / "two").read_bytes(), self.get(urls[1]).stdout)
        # Nothing is fetched if one of the URLs has no such name.
        asked = len(self.o.requests())
        self.get("-O", "http://a.test/new", "http://a.test/", expect=64)
        self.assertEqual(len(self.o.requests()), asked)

    def test_write_out(self):
        url = "http://a.test/w?fault=size:1234"
        form = r"%{http_code} %{response_code} %{size_download} %{source} %{exitcode}\t%{urlnum}%%{x}\n"
        out = self.get("-o", self.dir / "w", "-w", form, url).stdout
        self.assertEqual(out, b"200 200 1234 miss 0\t0%{x}\n")
        self.assertEqual((self.dir / "w").stat().st_size, 1234)
        out = self.get("-o", f"{self.dir}/many/", "-w", r"%{url} %{url_effective} %{source}\n", url,
                       "http://a.test/fault/redirect:http:%2F%2Fb.test%2F").stdout.decode().splitlines()
        self.assertEqual(out[0], f"{url} {url} hit")
        self.assertTrue(out[1].endswith(" http://b.test/ miss"), out[1])
        form = "%{http_code}|%{errormsg}|%{exitcode}|%{size_download}"
        out = self.get("-s", "-w", form, "http://10.0.0.1:81/", expect=77).stdout
        self.assertRegex(out, rb"\A000\|the proxy may not fetch from this address .*\|77\|0\Z")
        out = self.get("-I", "-w", "%{content_type} %{time_total} %{time_server} %{time_origin} %{age}",
                       "http://a.test/fault/header:Content-Type:%20text/x-mine").stdout.decode()
        self.assertRegex(out, r"text/\S+ \d+\.\d{6} \d+\.\d{6} \d+\.\d{6} 0\Z")
        out = self.get("-I", "-w", "%{source} %{time_origin}", url).stdout
        self.assertTrue(out.endswith(b"hit 0.000000"), out)

    def test_write_out_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [str(a) for a in (harness.SUNPROXY, "get", "--socket", self.d.socket, "-o", self.dir / "x",
                                  "-w", "%{url}", "http://a.test/")], stdout=full, stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL, timeout=300,
                env=harness.sanitizer_environment(self.dir / "sanitizer.full"))
        self.assertEqual(done.returncode, 74, done.stderr)

    def test_retry(self):
        url = "http://a.test/fault/first:status:503"
        done = self.get("--retry", "2", "-f", "-w", "|%{http_code} %{num_retries}", url)
        self.assertTrue(done.stdout.endswith(b"|200 1"), done.stdout[-100:])
        self.assertRegex(done.stderr, rb"retry 1 of 2 in 1 s\n\Z")
        self.assertEqual([row[3] for row in self.o.requests()], [503, 200])
        # Each URL waits for itself, and the order stays.
        urls = ["http://a.test/fault/first:status:429", "http://a.test/plain",
                "http://b.test/fault/first:status:500"]
        done = self.get("--retry", "1", "-s", "-w", "|%{urlnum} %{http_code} %{num_retries}|", *urls)
        self.assertRegex(done.stdout, rb"(?s)\|0 200 1\|.*\|1 200 0\|.*\|2 200 1\|\Z")
        self.assertEqual(done.stderr, b"")

    def test_what_is_not_retried(self):
        for url, status in (("http://a.test/fault/status:404", 22), ("http://10.0.0.1:81/", 77),
                            ("http://a.test/fault/short", 76)):
            done = self.get("--retry", "3", "-f", url, expect=status)
            self.assertNotIn(b"retry", done.stderr)

    def test_retries_end(self):
        done = self.get("--retry", "1", "-f", "http://a.test/fault/status:504", expect=22)
        self.assertIn(b"retry 1 of 1", done.stderr)
        self.assertIn(b"HTTP status 504", done.stderr)
        self.assertEqual(len(self.o.requests()), 2)

    def test_an_overloaded_server_is_asked_again(self):
        d = self.daemon("--rate-fetches", "1:1", origin=self.o)
        urls = [f"http://a.test/rate{n}" for n in range(2)]
        self.sunproxy("get", *urls, daemon=d, tcp=True, expect=75)
        done = self.sunproxy("get", "--retry", "4", *[u + "x" for u in urls], daemon=d, tcp=True)
        self.assertIn(b"rate of fetches", done.stderr)


class GetTest(ClientTest):
    seconds = 10

    def test_what_verbose_says_of_a_miss_and_of_a_hit(self):
        for source, words in (("miss", r"HTTP 200, miss, stored, .* \(server .*, origin .*\), evicted 0\n\Z"),
                              ("hit", r"HTTP 200, hit, .* \(server [^,]*\), age \d+ s\n\Z")):
            with self.subTest(source=source):
                message = self.get("-v", "http://a.test/verbose").stderr.decode()
                self.assertRegex(message, words)

    def test_every_way_to_a_page(self):
        for scheme in ("http", "https"):
            for tcp in (False, True):
                for api in ("1", "2"):
                    url = f"{scheme}://h{api}{int(tcp)}.test/"
                    for _ in range(2):
                        body = self.get("--api", api, url, tcp=tcp).stdout
                        self.assertGreaterEqual(len(body), 1024)
                        self.assertEqual(body, self.text(url, body=body))
        self.assertEqual(len(self.o.requests()), 8)

    def test_bodies_are_bytes(self):
        url = "http://a.test/fault/zero"
        body = self.get(url).stdout
        self.assertEqual(body.count(b"\0"), 1)
        done = self.get("--api", "1", url, expect=None)
        self.assertEqual((done.returncode, done.stdout), (76, b""))
        self.assertEqual(len(self.get("http://a.test/fault/size:20971520").stdout), 20971520)
        self.assertEqual(self.get("http://a.test/fault/empty").stdout, b"")

    def test_a_url_without_a_scheme(self):
        body = self.get("a.test/x").stdout
        self.assertEqual(body, self.text("http://a.test/x", body=body))

    def test_in_the_order_asked_for(self):
        urls = [f"http://a.test/{n}?fault=delay:{(7 - n) * 40}ms&fault=size:{100 + n}"
                for n in range(8)]
        expected = b"".join(self.text(u, 100 + n) for n, u in enumerate(urls))
        for jobs in ("1", "3", "8"):
            self.assertEqual(self.get("-j", jobs, *urls).stdout, expected)
        listed = "# a list\n" + "\n".join(urls) + "\n\n"
        self.assertEqual(self.get("-", stdin=listed.encode()).stdout, expected)

    def test_a_long_list(self):
        urls = [f"http://h{n % 9}.test/{n % 300}" for n in range(3000)]
        done = self.get("-j", "32", "--json", "-", stdin="\n".join(urls).encode())
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([r["url"] for r in rows], urls)
        self.assertEqual({r["exit_status"] for r in rows}, {0})
        distinct = len(set(urls))
        self.assertEqual(len(self.o.requests()), distinct)
        self.assertEqual(sum(r["source"] == "miss" for r in rows), distinct)

    def test_lists_that_are_none(self):
        self.assertEqual(self.get("-", stdin=b"# nothing\n \t\n").stdout, b"")
        done = self.get("-", stdin=b"http://a.test/\n" + 70000 * b"x" + b"\n", expect=65)
        self.assertIn(b"line of more than 65536 bytes after 1 of them", done.stderr)
        folder = os.open(self.dir, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        done = subprocess.run([harness.SUNPROXY, "get", "--socket", self.d.socket, "-"], stdin=folder,
                              capture_output=True, timeout=300,
                              env=harness.sanitizer_environment(self.dir / "sanitizer.list"))
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn(b"cannot read standard input: Is a directory", done.stderr)

    def test_to_a_file(self):
        url = "http://a.test/x"
        target = self.dir / "page"
        self.assertEqual(self.get("-o", target, url).stdout, b"")
        body = target.read_bytes()
        self.assertEqual(body, self.text(url, body=body))
        # Nothing half is left, and what was there stays.
        done = self.get("-o", target, "http://a.test/fault/short", expect=None)
        self.assertEqual(done.returncode, 76)
        self.assertEqual(target.read_bytes(), body)
        self.get("-o", self.dir / "none/page", url, expect=74)

    def test_to_a_folder(self):
        urls = ["http://a.test/x", "http://b.test/y/", "http://c.test/../../etc/passwd",
                "http://d.test/%2e%2e%2f", "http://e.test/" + "z" * 3000]
        folder = self.dir / "pages"
        self.get("-o", f"{folder}/", *urls)
        files = sorted(folder.iterdir())
        self.assertEqual(len(files), len(urls))
        self.assertEqual(sorted(p.name for p in self.dir.iterdir() if "passwd" in p.name), [])
        self.assertEqual(files[0].read_bytes(),
                         self.text(urls[0], body=files[0].read_bytes()))

    def test_with_headers(self):
        out = self.get("-i", "http://a.test/?fault=header:X-A:%20b&fault=size:5").stdout
        head, body = out.split(b"\r\n\r\n", 1)
        self.assertRegex(head, rb"^HTTP/1\.1 200")
        self.assertIn(b"X-A: b\r\n", head + b"\r\n")
        self.assertEqual(len(body), 5)

    def test_own_headers_and_no_store(self):
        for _ in range(2):
            out = self.get("-H", "X-Own: yes", "http://a.test/fault/echo").stdout
            self.assertIn(b"X-Own: yes\r\n", out)
        self.get("--no-store", "http://a.test/x")
        self.get("--no-store", "http://a.test/x")
        self.assertEqual(len(self.o.requests()), 4)
        self.assertEqual(self.get("-H", "Host: evil", "http://a.test/", expect=None).returncode, 64)

    def test_verbose_and_silent(self):
        url = "http://a.test/"
        self.assertIn(b"miss", self.get("-v", url).stderr)
        self.assertIn(b"hit", self.get("-v", url).stderr)
        self.assertEqual(self.get(url).stderr, b"")
        bad = "http://a.test/fault/short"
        self.assertIn(b"a.test", self.get(bad, expect=76).stderr)
        self.assertEqual(self.get("-s", bad, expect=76).stderr, b"")

    def test_json(self):
        url = "http://a.test/fault/size:50"
        miss, hit = (json.loads(self.get("--json", url).stdout) for _ in range(2))
        self.assertEqual((miss["source"], hit["source"]), ("miss", "hit"))
        self.assertEqual((hit["url"], hit["status"], hit["final_url"]), (url, 200, url))
        self.assertEqual(hit["body"].encode(), self.text(url, 50))
        row = json.loads(self.get("--json", "http://a.test/fault/zero").stdout)
        raw = self.get("http://a.test/fault/zero").stdout
        if row["body"] is None:
            self.assertEqual(base64.b64decode(row["body_base64"]), raw)
        else:
            self.assertEqual(row["body"].encode(), raw)
        done = self.get("--json", "ftp://a.test/", expect=64)
        row = json.loads(done.stdout)
        self.assertEqual((row["error_code"], row["exit_status"]), ("bad_url", 64))

    def test_json_of_every_failure(self):
        nowhere = ("--socket", self.dir / "nowhere")
        rows = self.sunproxy("get", *nowhere, "--json", "a.test", "b.test", expect=69).stdout
        rows = [json.loads(line) for line in rows.splitlines()]
        self.assertEqual([r["url"] for r in rows], ["http://a.test", "http://b.test"])
        self.assertEqual({(r["exit_status"], r["error_code"]) for r in rows}, {(69, "unreachable")})
        target = self.dir / "page"
        self.sunproxy("get", *nowhere, "--json", "-o", target, "a.test", expect=69)
        self.assertEqual(json.loads(target.read_bytes())["exit_status"], 69)
        for more, status, code in ((("--json",), 64, "usage"),
                                   (("--json", "--bogus", "a.test"), 64, "usage"),
                                   (("--json", "--include", "a.test"), 64, "usage"),
                                   (("--json", "-o", "/dev/null/x/", "a.test"), 73, "no_output"),
                                   (("--json", "-o", target, "a.test", "b.test"), 64, "no_output")):
            with self.subTest(more=more):
                done = self.get(*more, expect=status)
                rows = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertEqual({(r["exit_status"], r["error_code"]) for r in rows}, {(status, code)})
                self.assertGreater(len(done.stderr), 20)
        done = self.get("--json", "-", stdin=b"a\0b\n", expect=65)
        self.assertIsNone(json.loads(done.stdout)["url"])
        self.assertEqual(self.get("a.test", "b.test", daemon=None, expect=64,
                                  env={"SUNPROXY_SERVER": "nonsense"}).stdout, b"")
        done = self.get("--json", "a.test", daemon=None, expect=64,
                        env={"SUNPROXY_SERVER": "nonsense"})
        self.assertEqual(json.loads(done.stdout)["error_code"], "usage")

    def test_a_file_without_write_permission_stays(self):
        """As with cp and curl; root, too, goes by the mode."""
        kept = self.dir / "kept"
        kept.write_text("mine")
        kept.chmod(0o444)
        for more in (("get", "-o", kept, "http://a.test/"),
                     ("replay", "--log", kept, harness.TOP / "datasets/dataset1/History")):
            done = self.sunproxy(*more, daemon=self.d, expect=None)
            self.assertIn(done.returncode, (73, 74))
            self.assertIn(b"Permission denied", done.stderr)
        for more in (("trace", "convert", "-o", kept, "--to", "urls"), ("report", "-o", kept),
                     ("simulate", "--policy", "lru", "--capacity", "5", "--log", kept)):
            done = self.sunproxy(*more, harness.TOP / "datasets/dataset1/History", expect=None)
            self.assertEqual(done.returncode, 73, done.stderr)
            self.assertIn(b"Permission denied", done.stderr)
        self.assertEqual(kept.read_text(), "mine")
        kept.chmod(0o644)
        self.get("-o", kept, "http://a.test/")
        self.assertGreater(kept.stat().st_size, 1000)

    def test_hostile_bytes_on_a_terminal_and_in_json(self):
        url = "http://a.test/?fault=header:X-A:%20%1b]0;x%07%ff&fault=size:5"
        row = json.loads(self.get("--json", url).stdout)
        self.assertTrue(any(h["name"] == "X-A" for h in row["headers"]))
        for hostile in ("\x1b]0;x\x07", "\x9b31m", "\x7f"):
            done = self.get(f"ftp://a.test/{hostile}", expect=None)
            self.assertEqual(done.returncode, 64)
            self.assertIn("ftp://a.test/", done.stderr.decode())
            for c in done.stderr.decode().rstrip("\n"):
                self.assertFalse(ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0, ascii(done.stderr))


class StatusTest(ClientTest):
    def status(self, *arguments, **more):
        done = self.get(*arguments, expect=None, **more)
        if done.returncode:
            self.assertGreater(len(done.stderr), 10, arguments)
            self.assertTrue(done.stderr.isascii() and b"\x1b" not in done.stderr)
        return done.returncode

    def test_usage(self):
        for arguments in (["get"], ["get", "--no-such", "x"], ["nonsense"], [],
                          ["get", "--api", "3", "http://a.test/"], ["get", "-j", "0", "http://a/"],
                          ["get", "--port", "x", "http://a/"], ["get", "--timeout", "x", "http://a/"]):
            done = self.run_program([harness.SUNPROXY, *arguments])
            self.assertEqual((done.returncode, done.stdout), (64, b""), arguments)
            self.assertGreater(len(done.stderr), 10)

    def test_help_and_version(self):
        for arguments in (["--help"], ["help"], ["get", "--help"], ["--version"], ["help", "get"]):
            done = self.run_program([harness.SUNPROXY, *arguments])
            self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
            self.assertGreater(len(done.stdout), 5)

    def test_commands_and_their_parts_are_found_by_name(self):
        for arguments, usage in ((["trace"], b"trace convert ["), (["trace", "describe"], b"trace describe ["),
                                 (["help"], b"help [")):
            done = self.run_program([harness.SUNPROXY, "help", *arguments])
            self.assertEqual((done.returncode, done.stderr), (0, b""), arguments)
            self.assertTrue(done.stdout.startswith(b"usage: sunproxy " + usage), arguments)
        for arguments, message in ((["smulate"], b"did you mean simulate?"), (["hepl"], b"did you mean help?"),
                                (["help", "smulate"], b"did you mean simulate?"),
                                (["help", "trace", "descirbe"], b"did you mean describe?"),
                                (["help", "get", "it"], b"unknown command 'get it'")):
            done = self.run_program([harness.SUNPROXY, *arguments])
            self.assertEqual((done.returncode, done.stdout), (64, b""), arguments)
            self.assertIn(message, done.stderr)

    def test_bad_urls(self):
        for url in ("ftp://a.test/", "http://a.test:99999/", "http://" + "x" * 9000 + "/"):
            self.assertEqual(self.status(url), 64, url[:50])
            self.assertEqual(self.status("--api", "1", url), 64, url[:50])

    def test_no_server(self):
        port = str(harness.free_port())
        for where in (["--port", port], ["--socket", self.dir / "none"],
                      ["--host", "127.0.0.1", "--port", port]):
            self.assertEqual(self.status(*where, "http://a.test/", daemon=None), 69)
        # A server is there, and it is not sunproxyd.
        self.assertIn(self.status("--port", self.o.http_port, "--timeout", "3s", "http://a.test/",
                                  daemon=None), (69, 75, 76))

    def test_what_origins_do(self):
        for fault, status in (("short", 76), ("bad-chunk", 76), ("loop", 76), ("status:404", 0),
                              ("garbage", 76)):
            self.assertEqual(self.status(f"http://a.test/fault/{fault}"), status, fault)
        self.assertEqual(self.status("--api", "1", "http://a.test/fault/gzip-bomb"), 76)
        self.assertEqual(self.status("--fail", "http://a.test/fault/status:404"), 22)
        self.assertEqual(self.status("--fail", "http://a.test/fault/status:500"), 22)
        self.assertEqual(self.status("--fail", "http://a.test/"), 0)
        self.assertEqual(self.status("https://expired.test/"), 76)

    def test_an_origin_that_hangs(self):
        d = self.daemon("--stall-timeout", "500ms", "--first-byte-timeout", "500ms", origin=self.o)
        for fault in ("hang", "hang-silent", "hang-body"):
            self.assertIn(self.status(f"http://a.test/fault/{fault}", daemon=d), (75, 76), fault)

    def test_denied(self):
        self.assertEqual(self.status("http://192.168.0.1:81/"), 77)
        self.assertEqual(self.status("http://169.254.169.254:81/latest/meta-data/"), 77)

    def test_patience_of_its_own(self):
        self.assertEqual(self.status("--timeout", "300ms",
                                     "http://a.test/?fault=delay:600ms"), 75)

    def test_longer_than_25_seconds_is_not_tried_but_more_than_rpcgens_is_allowed(self):
        # rpcgen's stubs give up after 25 s; the default here is beyond, as the help says.
        out = self.run_program([harness.SUNPROXY, "get", "--help"]).stdout
        self.assertIn(b"default: 90s", out)

    def test_output_that_goes_nowhere(self):
        argv = f"exec {harness.SUNPROXY} get --socket {self.d.socket} http://a.test/ > /dev/full"
        self.assertEqual(self.run_program(["sh", "-c", argv]).returncode, 74)
        argv = (f"{harness.SUNPROXY} get --socket {self.d.socket} http://a.test/fault/size:4M; "
                "echo $? >&2")
        done = self.run_program(["bash", "-c", f"({argv}) | head -c 10"])
        self.assertRegex(done.stderr, rb"(?m)^(74|141)$")

    def test_the_server_dies_in_between(self):
        p = subprocess.Popen(
            [harness.SUNPROXY, "get", "--socket", self.d.socket,
             "http://a.test/?fault=delay:500ms&fault=header:X:y"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=harness.sanitizer_environment(self.dir / "sanitizer.client"))
        with rpc.Connection(self.d.socket) as c:
            harness.wait_until(lambda: c.stat().fetches_active, what="the fetch")
        self.d.kill()
        out, err = p.communicate(timeout=300)
        self.assertEqual((p.returncode, out), (69, b""), err)

    def test_interrupted(self):
        target = self.dir / "page"
        p = subprocess.Popen(
            [harness.SUNPROXY, "get", "--socket", self.d.socket, "-o", target,
             "http://a.test/?fault=delay:600ms"],
            env=harness.sanitizer_environment(self.dir / "sanitizer.client"))
        with rpc.Connection(self.d.socket) as c:
            harness.wait_until(lambda: c.stat().fetches_active, what="the fetch")
        p.send_signal(signal.SIGINT)
        self.assertNotEqual(p.wait(300), 0)
        self.assertEqual([f.name for f in self.dir.iterdir() if "page" in f.name], [])


class WhereTest(ClientTest):
    def test_by_the_environment(self):
        url = "http://a.test/"
        for where in (f"unix:{self.d.socket}", f"127.0.0.1:{self.d.port}"):
            done = self.get(url, daemon=None, env={"SUNPROXY_SERVER": where})
            self.assertGreater(len(done.stdout), 1000)
        self.assertEqual(self.get(url, daemon=None, expect=None,
                                  env={"SUNPROXY_SERVER": "nonsense"}).returncode, 64)

    def test_by_the_default_socket(self):
        folder = self.dir / "runtime"
        folder.mkdir()
        env = {"XDG_RUNTIME_DIR": str(folder)}
        env["RUNTIME_DIRECTORY"] = ""
        d = self.daemon(origin=self.o, listen=False, socket_path=None, env=env, port=None,
                        ready=False)
        harness.wait_until(lambda: (folder / "sunproxy.sock").exists(), what="the default socket")
        out = self.sunproxy("get", "http://a.test/", env=env).stdout
        self.assertGreater(len(out), 1000)
        self.assertEqual(d.stop(), 0)

    def test_ping(self):
        for tcp in (False, True):
            out = self.sunproxy("ping", "-c", "3", daemon=self.d, tcp=tcp).stdout
            for version in (b"1", b"2"):
                self.assertGreaterEqual(out.count(b"version " + version), 3, out)
        self.d.stop()
        self.sunproxy("ping", daemon=self.d, expect=69)


class RpcbindTest(harness.SystemTest):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def test_found_without_a_port(self):
        ns = harness.Namespace(self)
        ns.rpcbind()
        o = self.origin(namespace=ns)
        env = {"XDG_RUNTIME_DIR": str(self.dir)}  # no default socket there
        d = self.daemon(origin=o, namespace=ns, rpcbind=True, listen=False)

        def found(*arguments):
            done = self.run_program([harness.SUNPROXY, "get", *arguments, "http://a.test/"],
                                    namespace=ns, env=env)
            return done.returncode == 0 and len(done.stdout) > 1000

        harness.wait_until(found, what="the server by rpcbind")
        self.assertTrue(found("--host", "127.0.0.1"))
        self.assertTrue(found("--host", "::1"))
        self.assertTrue(found("--api", "1"))
        d.kill()
        # The entry is there, and no server listens at its port.
        done = self.run_program([harness.SUNPROXY, "get", "http://a.test/"], namespace=ns, env=env)
        self.assertEqual(done.returncode, 69, done.stderr)
        again = self.daemon(origin=o, namespace=ns, rpcbind=True, listen=False)
        harness.wait_until(found, what="the new server")
        self.assertEqual(again.stop(), 0)
        done = self.run_program([harness.SUNPROXY, "get", "http://a.test/"], namespace=ns, env=env)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertGreater(len(done.stderr), 20)

    def test_each_command_finds_the_transport_that_it_needs(self):
        ns = harness.Namespace(self)
        ns.rpcbind()
        env = {"XDG_RUNTIME_DIR": str(self.dir)}  # no default socket there
        self.daemon(origin=self.origin(namespace=ns), namespace=ns, rpcbind=True, listen=False)
        trace = self.dir / "trace"
        trace.write_text("http://a.test/1\nhttp://a.test/2\n")

        def run(*arguments):
            return self.run_program([harness.SUNPROXY, *arguments], namespace=ns, env=env)

        harness.wait_until(lambda: run("ping").returncode == 0, what="the server by rpcbind")
        for arguments, status, words in (
                (["stat"], 0, rb" at unix:"),
                (["set", "--policy", "fifo"], 0, rb"policy fifo"),
                (["replay", "--via", "tcp", trace], 0, rb"through (127\.0\.0\.1|localhost|\[::1\]):"),
                (["replay", "--via", "unix", "--cold", trace], 0, rb"through unix:"),
                (["replay", "--via", "tcp", "--cold", trace], 0, rb"through [^u]"),
                (["replay", "--via", "unix", "--host", "127.0.0.1", trace], 69, rb"an AF_UNIX socket is on this machine only"),
                (["stat", "--host", "127.0.0.1"], 0, rb" at 127\.0\.0\.1:")):
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertRegex(done.stdout if status == 0 else done.stderr, words)

    def test_the_default_socket_behind_a_link_is_not_trusted(self):
        ns = harness.Namespace(self)  # and no rpcbind
        folder = self.dir / "runtime"
        for made, words in ((False, rb"sunproxy.sock: No such file or directory"),
                            (True, rb"sunproxy.sock: its folder belongs to another user")):
            if made:
                (self.dir / "sunproxy.sock").touch()
                folder.symlink_to(self.dir)
            done = self.run_program([harness.SUNPROXY, "stat"], namespace=ns,
                                    env={"XDG_RUNTIME_DIR": str(folder), "RUNTIME_DIRECTORY": ""})
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertRegex(done.stderr, words)

    def test_a_second_host_name(self):
        ns = harness.Namespace(self)
        done = self.run_program([harness.SUNPROXY, "get", "--host", "no-such-host.invalid",
                                 "http://a.test/"], namespace=ns)
        self.assertIn(done.returncode, (68, 69), done.stderr)
        self.assertIn(b"no-such-host.invalid", done.stderr)
        self.assertTrue(os.path.exists(self.dir))
