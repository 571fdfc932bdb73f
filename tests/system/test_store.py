"""Pages on disk: over an end, kills and a replacement of the daemon, with purges and damage."""

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import threading
import unittest

import harness
from http_front import Connection, http_address
from ports import free_port
from test_reverse import Member


class StoreCase(harness.SystemTest):
    sandboxed = True

    def setUp(self):
        super().setUp()
        self.folder = self.dir / "store"
        self.member = Member(self)
        self.member.fields = [("Cache-Control", "max-age=600")]

    def begin(self, *options, loaded=True, **more):
        self.d = self.daemon("--http", "127.0.0.1:0", "--origin", f"/={self.member.url}", "--store", self.folder,
                             "--store-size", "16M", "--store-sync", "20ms", "--purge-net", "127.0.0.0/8",
                             *options, **more)
        self.address = harness.wait_until(lambda: http_address(self.d), what="the HTTP front")
        if loaded:
            harness.wait_until(lambda: self.stat(self.d)["store_loaded"] == 1, what="the index")

    def again(self, *options):
        self.d.kill()
        self.begin(*options)

    def get(self, path, fields="", method="GET"):
        """Status, body, and whether it was a hit."""
        c = Connection(self.address)
        c.send(f"{method} {path} HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n")
        reply = c.receive()
        c.close()
        return reply.status, reply.body, "; hit" in (reply.field("cache-status") or "")

    def store(self, *paths):
        """Has pages written: at their second request."""
        for path in paths:
            body = self.get(path)[1]
            self.assertEqual(self.get(path), (200, body, True))
        harness.wait_until(lambda: self.have(paths), what="pages on disk")

    def have(self, paths):
        text = b"".join(p.read_bytes() for p in sorted(self.folder.glob("segment-*")))
        return all(f"http://site.test{path}".encode() in text for path in paths)

    def asked(self):
        return len(self.member.heads)


class StoreTest(StoreCase):
    seconds = 30

    def test_pages_outlive_the_daemon(self):
        self.begin()
        paths = [f"/page-{i}" for i in range(10)]
        bodies = {path: self.get(path)[1] for path in paths}
        self.store(*paths)
        self.assertEqual(self.d.stop(), 0)
        asked = self.asked()
        self.begin()
        for path in paths:
            self.assertEqual(self.get(path), (200, bodies[path], True))
        self.assertEqual(self.asked(), asked)
        # And a kill.
        self.again()
        for path in paths:
            self.assertEqual(self.get(path), (200, bodies[path], True))
        self.assertEqual(self.asked(), asked)
        for path in self.folder.iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)
        self.assertEqual(self.folder.stat().st_mode & 0o777, 0o700)

    def test_a_purge_holds_after_a_kill(self):
        self.begin()
        self.store("/one", "/two")
        self.again()
        self.assertEqual(self.get("/one", method="PURGE")[0], 200)
        self.again()
        self.assertEqual(self.get("/one")[2], False)
        self.assertEqual(self.get("/two")[2], True)

    def test_the_command_purges_by_tag(self):
        self.member.fields.append(("Surrogate-Key", "red blue"))
        self.begin()
        self.store("/one", "/two")
        self.again()  # "one" is on disk alone, "two" in memory as well
        self.assertEqual(self.get("/two")[2], True)
        self.assertEqual(self.sunproxy("purge", "--tag", "red", daemon=self.d).stdout,
                         b"1 page in memory, and those that are not in memory, purged\n")
        for path in ("/one", "/two"):
            self.assertEqual(self.get(path)[2], False)
        for tag in ("", "red blue", "red,blue"):
            self.sunproxy("purge", "--tag", tag, daemon=self.d, expect=64)
        done = self.sunproxy("purge", "--tag", "red", "--dry-run", daemon=self.d, expect=64)
        self.assertIn(b"exclude each other", done.stderr)
        self.assertEqual(self.get("/one")[2], True)

    def test_the_command_knows_that_pages_on_disk_are_not_counted(self):
        self.begin()
        self.store("/one", "/two", "/three", "/four")
        self.again()
        for arguments in (["--prefix", "http://site.test/t", "-n"], ["--prefix", "http://site.test/t"],
                          ["http://site.test/one", "-n"], ["--tag", "none"]):
            done = self.sunproxy("purge", "--json", *arguments, daemon=self.d)
            self.assertEqual(json.loads(done.stdout),
                             {"purged": 0, "more": True, "dry_run": "-n" in arguments})
            self.assertEqual(done.stderr, b"")
        for url, count in (("http://site.test/one", 1), ("http://site.test/none", 0)):
            done = self.sunproxy("purge", "--json", url, daemon=self.d, expect=0 if count else 1)
            self.assertEqual(json.loads(done.stdout), {"purged": count, "more": False, "dry_run": False})
        self.assertEqual(self.get("/three")[2], False)
        self.assertEqual(self.get("/four")[2], True)

    def test_each_answer_to_a_purge_or_a_write_holds_after_a_kill_right_behind_it(self):
        ways = [lambda path: self.get(path, method="PURGE"),
                lambda path: self.get(path, fields="Purge: prefix\r\n", method="PURGE"),
                lambda path: self.get(path, fields="Cache-Tag: red\r\n", method="PURGE"),
                lambda path: self.get(path, method="POST", fields="Content-Length: 0\r\n"),
                lambda path: self.sunproxy("purge", f"http://site.test{path}", daemon=self.d),
                lambda path: self.sunproxy("purge", "--prefix", "http://site.test/", daemon=self.d)]
        self.member.fields.append(("Cache-Tag", "red"))
        self.begin("--tag-field", "Cache-Tag")
        for number, way in enumerate(ways):
            path = f"/page-{number}"
            self.store(path)
            way(path)
            self.again("--tag-field", "Cache-Tag")
            self.assertEqual(self.get(path)[2], False, number)

    def test_pages_of_other_rules_or_of_another_origin_are_not_used(self):
        config = self.dir / "settings"
        config.write_text("")
        self.begin("--config", config)
        config.write_text("[rule]\npath = /page*\nlifetime = 1h\n")
        self.sunproxy("reload", daemon=self.d)
        self.store("/page")
        self.again("--config", config)
        self.assertEqual(self.get("/page")[2], True)
        config.write_text("")
        self.again("--config", config)
        self.assertEqual(self.get("/page")[2], False)
        self.store("/page")
        self.member = Member(self)
        self.member.fields = [("Cache-Control", "max-age=600")]
        self.again("--config", config)
        self.assertEqual(self.get("/page")[2], False)

    def test_what_options_allowed_is_not_used_without_them(self):
        self.member.fields = [("Cache-Control", "max-age=600"), ("Set-Cookie", "session=one")]
        self.begin("--store-cookies")
        self.store("/cookie")
        self.again("--store-cookies")
        self.assertEqual(self.get("/cookie")[2], True)
        self.again()
        self.assertEqual(self.get("/cookie")[2], False)
        self.assertEqual(self.asked(), 2)
        self.member.status, self.member.fields = 400, self.member.fields[:1]
        self.again("--store-client-errors")
        error = self.get("/error")[1]
        self.assertEqual(self.get("/error"), (400, error, True))
        harness.wait_until(lambda: self.have(["/error"]), what="a page on disk")
        self.again("--store-client-errors")
        self.assertEqual(self.get("/error")[2], True)
        self.again()
        self.assertEqual(self.get("/error")[2], False)

    def fetched(self, path, way):
        """What a request of this way is given: the status, the cookie, and the conditions that its origin got."""
        if way == "RPC":
            done = self.sunproxy("get", "-w", "%{http_code} %{source}", "-o", self.dir / "got", f"http://site.test{path}",
                                 daemon=self.d, expect=None)
            status, source = done.stdout.decode().split()
            return int(status), "old" if source == "hit" else "new", None
        method = "HEAD" if way == "HEAD" else "GET"
        asked, c = self.asked(), Connection(self.address)
        c.send(f"{method} {path} HTTP/1.1\r\nHost: site.test\r\n{way if ':' in way else ''}\r\n")
        reply = c.receive(head_only=method == "HEAD")
        c.close()
        lines = [fields.get("If-None-Match") for _, _, fields in self.member.heads[asked:]]
        return reply.status, reply.field("set-cookie"), lines[0] if lines else None

    def test_a_change_of_options_on_storing_leaves_what_is_on_disk(self):
        ways = {"GET": 200, "HEAD": 200, "RPC": 200, "Range: bytes=0-3\r\n": 206, "Cache-Control: max-stale\r\n": 200,
                "Cache-Control: only-if-cached\r\n": 200, "If-None-Match: \"a\"\r\n": 304}
        kept = [("Cache-Control", "max-age=600, stale-if-error=600"), ("ETag", '"a"')]
        config = self.dir / "settings"
        allowed = "store-cookies = yes\nstore-client-errors = yes\n"

        def change(text, reloads):
            config.write_text(text)
            if reloads:
                self.sunproxy("reload", daemon=self.d)
            else:
                self.again("--config", config)

        config.write_text(allowed)
        self.begin("--config", config)
        for reloads in (False, True):
            at = f"/{reloads}"
            paths = [f"{at}/{number}" for number in range(len(ways))]
            stale, expired, validated, later, error, other = (
                f"{at}/{name}" for name in ("stale", "expired", "validated", "later", "error", "other"))
            self.member.status, self.member.fields = 200, kept + [("Set-Cookie", "old")]
            self.store(*paths, stale, validated, later)
            self.member.fields.append(("Cache-Control", "stale-while-revalidate=600"))
            self.store(expired)
            self.member.status, self.member.fields = 400, kept
            self.get(error)
            self.get(error)
            self.member.status = 200
            self.store(other)
            harness.wait_until(lambda: self.have([error]), what="pages on disk")
            for path in (stale, expired, validated):
                self.get(path, "Purge: soft\r\n", method="PURGE")
            self.again("--config", config)
            self.member.fields = kept + [("Set-Cookie", "new")]
            # With the options each way has what is on disk.
            self.member.status = 503
            self.assertEqual(self.fetched(stale, "GET"), (200, "old", '"a"'))
            self.member.status = 200
            for (way, status), path in zip(ways.items(), paths):
                if reloads:
                    self.assertEqual(self.fetched(path, way), (status, "old", None), way)
            if reloads:
                self.again("--config", config)
            asked = self.asked()
            change("", reloads)
            self.assertEqual(self.get(other)[2], True)
            self.assertEqual(self.asked(), asked)
            for way, path in zip(ways, paths):
                with self.subTest(way=way, reloads=reloads):
                    status, cookie, condition = self.fetched(path, way)
                    self.assertNotEqual(cookie, "old")
                    self.assertIn(condition, (None, '"a"') if "None" in way else (None,))
            self.member.confirming = kept
            self.assertEqual(self.fetched(validated, "GET"), (200, "new", None))
            self.member.confirming, self.member.status = None, 503
            self.assertEqual(self.fetched(expired, "GET")[0], 503)
            self.member.status = 200
            self.assertEqual(self.get(error)[0], 200)
            # What was not asked for is there when the options are on again.
            asked = self.asked()
            change(allowed, reloads)
            self.assertEqual(self.fetched(later, "GET"), (200, "old", None))
            self.assertEqual(self.get(other)[2], True)
            self.assertEqual(self.asked(), asked)

    def lines(self, path, *options):
        lines = self.sunproxy("explain", *options, f"http://site.test{path}", daemon=self.d).stdout.decode()
        return {line[:14].strip(): line[15:] for line in lines.splitlines()}

    def explained(self, path, *options):
        told = self.lines(path, *options)
        return told["answer"], told.get("reason", "").partition(":")[0]

    def test_what_it_may_have_is_explained(self):
        self.begin()
        self.store("/page")
        self.again()
        for options in ([], ["-X", "HEAD"], ["-H", "Cache-Control: only-if-cached"], ["-H", "Cache-Control: max-age=9"]):
            with self.subTest(options):
                self.assertEqual(self.explained("/page", *options), ("asks the store", ""))
        self.assertEqual(self.explained("/page", "-H", "Cache-Control: no-cache"), ("miss", "uri-miss"))
        self.assertEqual(self.explained("/page", "-X", "POST"), ("bypass", "method"))
        self.assertEqual(self.explained("/other"), ("miss", "uri-miss"))
        self.assertEqual(self.explained("/other", "-X", "HEAD"), ("bypass", "method"))
        self.assertEqual(self.get("/page")[2], True)
        self.assertEqual(self.explained("/page"), ("hit", ""))

    def test_what_is_on_disk_is_explained(self):
        """As what is in memory, and it stays on disk alone."""
        self.member.fields = [("Cache-Control", "max-age=600"), ("ETag", '"1"'), ("Cache-Tag", "red blue"),
                              ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
        self.begin()
        self.store("/page")
        known = self.lines("/page")
        self.again()
        for _ in range(2):
            told = self.lines("/page")
            self.assertEqual(told["stored"], f"{known['stored']}, on disk")
            self.assertRegex(told["age"], r"^\d+\.\d{3} s$")
            self.assertGreaterEqual(float(told["age"].split()[0]), float(known["age"].split()[0]))
            for name in ("lifetime", "tags", "etag", "last-modified", "key"):
                self.assertEqual(told[name], known[name], name)
            self.assertEqual(told["answer"], "asks the store")
            self.assertEqual(self.stat(self.d)["pages"], 0)
        self.assertEqual(self.explained("/page", "-H", "Cache-Control: max-age=0"), ("validation", "request"))
        self.assertEqual(self.get("/page", method="PURGE")[0], 200)
        self.assertEqual(self.explained("/page"), ("miss", "uri-miss"))

    def test_what_has_expired_or_varies_on_disk_is_explained(self):
        self.member.fields = [("Cache-Control", "max-age=1"), ("ETag", '"1"')]
        self.begin()
        self.store("/old")
        self.member.fields = [("Cache-Control", "max-age=600"), ("Vary", "X-A")]
        for _ in range(2):
            self.get("/varies", "X-A: b\r\n")
        harness.wait_until(lambda: self.have(["/varies"]), what="a page on disk")
        self.again()
        harness.wait_until(lambda: self.explained("/old") == ("validation", "stale"), what="its end")
        self.assertIn("on disk", self.lines("/varies", "-H", "X-A: b")["stored"])
        told = self.lines("/varies", "-H", "X-A: c")
        self.assertEqual((told["answer"], told.get("stored")), ("asks the store", None))
        # With the names in memory it is known which one is there.
        self.assertEqual(self.get("/varies", "X-A: b\r\n")[2], True)
        self.assertEqual(self.explained("/varies", "-H", "X-A: c"), ("miss", "vary-miss"))

    def test_options_bound_the_lifetimes_of_what_is_on_disk(self):
        kept = [("Cache-Control", "max-age=600")]
        rows = ((200, kept, "--max-age", "1ms"), (301, kept, "--redirect-lifetime", "0"),
                (404, kept, "--error-lifetime", "0"),
                (200, [("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")], "--heuristic-lifetime", "0"))
        self.begin()
        for number, (status, fields, *option) in enumerate(rows):
            self.member.status, self.member.fields = status, fields
            path = f"/page{number}"
            self.get(path)
            self.assertEqual(self.get(path)[2], True)
            harness.wait_until(lambda: self.have([path]), what="a page on disk")
            self.again()
            self.assertEqual(self.get(path)[2], True)
            self.again(*option)
            harness.wait_until(lambda: not self.get(path)[2], what=f"the bound {option}")
            self.again()

    def test_the_answer_to_a_reload_holds_after_a_kill_right_behind_it(self):
        config = self.dir / "settings"
        config.write_text("")
        self.begin("--config", config)
        for number in range(5):
            config.write_text(f"[rule]\npath = /page*\nlifetime = {number + 1}h\n")
            self.sunproxy("reload", daemon=self.d)
            self.again("--config", config)
            self.assertNotIn("have changed", self.d.err)

    def test_a_damaged_journal_is_said_and_purges_all(self):
        self.begin()
        self.store("/one")
        self.assertEqual(self.d.stop(), 0)
        journal = max(self.folder.glob("journal-*"))
        journal.write_bytes(b"x" + journal.read_bytes()[1:])
        self.begin()
        self.assertIn("the journal is damaged", self.d.err)
        self.assertEqual(list(self.folder.glob("segment-*")), [])
        self.assertEqual(self.get("/one")[2], False)

    def test_a_folder_that_cannot_be_used(self):
        file = self.dir / "file"
        file.write_text("x")
        result = self.run_daemon("--store", str(file), "--socket", "none", "--no-rpcbind")
        self.assertEqual(result.returncode, 73)
        self.assertIn(f"--store: {file}: Not a directory".encode(), result.stderr)


    def test_options_that_do_nothing_are_warned_of(self):
        for options, sentence in (
                (("--store-size", "1G"), "--store-size: it has no effect without store"),
                (("--store-admit", "all"), "--store-admit: it has no effect without store"),
                (("--store", str(self.dir / "s"), "--policy", "none"), "nothing is stored with policy none"),
                (("--store-size", "10G"), None), (("--store", str(self.dir / "s"), "--store-size", "1G"), None)):
            done = self.run_daemon("--check-config", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            if sentence:
                self.assertIn(f"warning: {sentence}" if sentence[0] == "-" else sentence, done.stderr.decode())
            else:
                self.assertNotIn(b"store", done.stderr)

    def test_a_check_refuses_what_a_start_would(self):
        for folder, why in (("/proc", "Operation not supported"), ("/proc/x", "Operation not supported"),
                            (self.dir / "no" / "folder", "No such file or directory"),
                            ("", "No such file or directory")):
            done = self.run_daemon("--check-config", "--store", str(folder))
            self.assertEqual(done.returncode, 73, done.stderr)
            self.assertIn(f"--store: {folder}: {why}".encode(), done.stderr)
        done = self.run_daemon("--check-config", "--store", f"{self.dir}/new/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.dir / "new").exists())
        os.mkdir(self.dir / "fifo")
        os.mkfifo(self.dir / "fifo" / "lock")
        self.expect_refusal("fifo", "/lock: it is no regular file")

    def expect_refusal(self, name, why, *options):
        done = self.run_daemon("--check-config", "--store", str(self.dir / name), *options)
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn(f"--store: {self.dir / name}{why}".encode(), done.stderr)

    @unittest.skipUnless(os.getuid() == 0, "files of another user are made as root")
    def test_a_check_refuses_a_store_of_another_user(self):
        os.chmod(self.dir, 0o755)
        os.mkdir(self.dir / "other", 0o700)
        self.expect_refusal("other", ": Permission denied", "--user", "nobody")
        os.chown(self.dir / "other", pwd.getpwnam("nobody").pw_uid, -1)
        self.expect_permission()
        nobody = pwd.getpwnam("nobody").pw_uid
        for name, owner, mode, refused in (("lock", 0, 0o600, True), ("lock", nobody, 0o600, False),
                                           ("lock", nobody, 0o400, True), ("", nobody, 0o500, True),
                                           ("journal-0000000000000001", 0, 0o600, True),
                                           ("journal-0000000000000001", 0, 0o644, False)):
            file = self.dir / "other" / name
            if name:
                file.touch()
            os.chown(file, owner, -1)
            file.chmod(mode)
            if refused:
                self.expect_refusal("other", f"{name and '/'}{name}: Permission denied", "--user", "nobody")
            else:
                self.expect_permission()
            if name:
                file.unlink()
            else:
                file.chmod(0o700)
        self.dir.chmod(0o700)
        self.expect_refusal("other", ": Permission denied", "--user", "nobody")

    def expect_permission(self):
        done = self.run_daemon("--check-config", "--store", str(self.dir / "other"), "--user", "nobody")
        self.assertEqual(done.returncode, 0, done.stderr)


SHIM = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static volatile const char *hangs;

__attribute__((constructor)) static void
begin(void)
{
    int fd = open(getenv("SHIM_HANGS"), O_RDONLY | O_CLOEXEC);

    hangs = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

#define WAITS(type, name, parameters, arguments)                                     \\
    type name parameters                                                             \\
    {                                                                                \\
        type (*next) parameters = (type (*) parameters)dlsym(RTLD_NEXT, #name);      \\
        while (*hangs == '1')                                                        \\
            usleep(10000);                                                           \\
        return next arguments;                                                       \\
    }

WAITS(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
WAITS(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
WAITS(int, fdatasync, (int fd), (fd))
"""


@unittest.skipUnless(shutil.which("cc"), "there is no compiler for the shim of a disk")
class HangingDiskTest(StoreCase):
    """The daemon's end on a disk that hangs: a shim in front of pread(), pwrite() and fdatasync()."""

    seconds = 60

    def setUp(self):
        super().setUp()
        self.program = harness.release_build(harness.RELEASE_SUNPROXYD, harness.SUNPROXYD)
        if self.program == harness.SUNPROXYD and harness.BUILD.name in ("asan", "tsan"):
            self.skipTest("the shim of a disk needs a build without sanitizers, and there is no release build")
        source, self.library, self.hangs = (self.dir / name for name in ("shim.c", "shim.so", "hangs"))
        source.write_text(SHIM)
        self.hangs.write_text("0")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", self.library, source, "-ldl"], check=True)

    def begin(self, *options, **more):
        # One worker: when it has answered, it has read what was sent before.
        super().begin("--stop-timeout", "1s", "--access-log", self.dir / "access.log", "--workers", "1", *options,
                      program=self.program, env={"LD_PRELOAD": str(self.library), "SHIM_HANGS": str(self.hangs)}, **more)

    def set_hangs(self, hangs):
        with self.hangs.open("r+") as file:
            file.write("1" if hangs else "0")

    def test_the_end_and_the_next_start(self):
        self.begin()
        self.store("/one", "/two", "/three")
        self.again()
        asked = self.asked()
        self.set_hangs(True)
        c = Connection(self.address)
        self.addCleanup(c.close)
        c.send("PURGE /one HTTP/1.1\r\nHost: site.test\r\n\r\n")
        self.assertEqual(self.get("/three")[0], 200)
        self.d.signal(signal.SIGTERM)
        self.assertEqual(c.receive().status, 503)
        self.assertEqual(self.d.wait(), 0)
        self.assertIn("the disk does not answer: it is left as it is", self.d.err)
        self.assertIn("/three", (self.dir / "access.log").read_text())
        self.set_hangs(False)
        self.begin()
        self.assertTrue(self.get("/two")[2])
        self.assertEqual(self.get("/one")[0], 200)
        self.assertLessEqual(self.asked(), asked + 2)
        self.assertNotIn("damaged", self.d.err)
        self.assertEqual(self.get("/two", method="PURGE")[0], 200)


    def test_the_end_while_purges_are_kept(self):
        """Of an idle store: no server of the tier is there, and what was purged is kept on the disk."""
        key = self.dir / "key"
        key.write_text("0123456789abcdef" * 4)
        key.chmod(0o600)
        self.begin("--shared", f"memcached://127.0.0.1:{free_port()}", "--shared-key-file", key)
        self.store("/one")
        self.assertEqual(self.get("/one", method="PURGE")[0], 202)
        self.set_hangs(True)
        self.d.signal(signal.SIGTERM)
        self.assertEqual(self.d.wait(), 0)
        self.assertIn("the disk does not answer: it is left as it is", self.d.err)


class ReplacementTest(StoreCase):
    """A store that another process takes over."""

    seconds = 30

    def test_a_second_daemon_is_refused_and_a_successor_waits(self):
        self.begin()
        self.store("/one")
        other = self.run_daemon("--store", str(self.folder), "--socket", "none", "--no-rpcbind")
        self.assertEqual(other.returncode, 73)
        self.assertIn(b"another process uses it", other.stderr)
        # One that takes over has it when the first one has left.
        first = self.d
        harness.Process(self, "taker", [*first.argv, "--take-over"])
        self.assertEqual(first.wait(), 0)
        asked = self.asked()
        harness.wait_until(lambda: self.get("/one")[2], what="the store")
        self.assertLessEqual(self.asked(), asked + 1)

    def test_a_successor_that_cannot_read_the_journal_leaves_the_store(self):
        self.begin()
        self.store("/one", "/two")
        journal, aside = max(self.folder.glob("journal-*")), self.dir / "aside"
        journal.rename(aside)
        journal.mkdir()
        other = harness.Process(self, "other", [*self.d.argv, "--take-over"])
        other.expect = 73
        self.assertEqual(other.wait(), 73)
        self.assertIn(f"{journal.name}: it is no regular file", other.err)
        harness.wait_until(lambda: "this one goes on serving" in self.d.err, what="the end of the other process")
        self.assertTrue(self.get("/one")[2])
        self.assertEqual(self.get("/one", method="PURGE")[0], 200)
        journal.rmdir()
        aside.rename(journal)
        harness.Process(self, "taker", [*self.d.argv, "--take-over"])
        self.assertEqual(self.d.wait(), 0)
        harness.wait_until(lambda: self.get("/two")[2], what="the store")
        self.assertFalse(self.get("/one")[2])

    def in_part(self, text):
        """A request of which this daemon has the beginning, and the connection."""
        c = Connection(self.address)
        self.addCleanup(c.close)
        c.send(text[:30])
        return c, text[30:]

    def ends(self, c, rest=""):
        c.send(rest)
        self.assertEqual(c.receive().status, 200)

    def replace(self):
        """By a process that takes over, which has the store then."""
        before = len(self.d.err)
        self.d.signal(signal.SIGUSR2)
        harness.wait_until(lambda: re.search(r" serves with ", self.d.err[before:]), what="the other process")
        found = re.search(r"process (\d+) serves; this one ends", self.d.err[before:])
        self.addCleanup(self.end, int(found[1]))
        harness.wait_until(lambda: self.stat(self.d)["store_loaded"] == 1, what="the store")
        return int(found[1])

    @staticmethod
    def end(pid, number=signal.SIGTERM):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="its end")

    def test_what_is_purged_and_written_after_a_replacement_holds_in_both_processes(self):
        self.begin("--stop-timeout", "1h")
        paths = [f"/page-{n}" for n in range(8)]
        self.store(*paths)
        purge = "PURGE {} HTTP/1.1\r\nHost: site.test\r\n{}\r\n"
        waiting = [self.in_part(purge.format(path, fields)) for path, fields in (
            ("/page-0", ""), ("/page-1", "Purge: soft\r\n"), ("/page-2", ""))]
        self.member.silence, writing = threading.Event(), Connection(self.address)
        self.addCleanup(writing.close)
        asked = self.asked()
        writing.send("POST /page-3 HTTP/1.1\r\nHost: site.test\r\nContent-Length: 0\r\n\r\n")
        harness.wait_until(lambda: self.asked() > asked, what="the write")
        self.member.silence, silence = None, self.member.silence
        pid = self.replace()
        for path in paths:
            self.assertEqual(self.get(path)[2], True, path)
        self.ends(*waiting[0])
        self.assertEqual(self.get("/page-0")[2], False)
        self.ends(*waiting[1])
        asked = self.asked()
        self.get("/page-1")
        self.assertEqual(self.asked(), asked + 1)
        silence.set()
        self.ends(writing)
        self.assertEqual(self.get("/page-3")[2], False)
        # What is on disk only is gone as well, and after a kill right behind the answer.
        self.ends(*waiting[2])
        self.end(pid, signal.SIGKILL)
        self.again()
        self.assertEqual(self.get("/page-2")[2], False)
        self.assertEqual(self.get("/page-4")[2], True)

    def test_purges_of_many_pages_after_a_replacement(self):
        self.member.fields.append(("Cache-Tag", "red"))
        self.begin("--tag-field", "Cache-Tag", "--stop-timeout", "1h")
        self.store("/a/1", "/b/1")
        first, other = (self.in_part(f"PURGE {path} HTTP/1.1\r\nHost: site.test\r\n{field}\r\n\r\n")
                        for path, field in (("/a/", "Purge: prefix"), ("/", "Cache-Tag: red")))
        self.replace()
        self.assertEqual(self.get("/a/1")[2], True)
        self.ends(*first)
        self.assertEqual(self.get("/a/1")[2], False)
        self.assertEqual(self.get("/b/1")[2], True)
        self.ends(*other)
        self.assertEqual(self.get("/b/1")[2], False)

    def test_one_that_is_replaced_twice(self):
        self.begin("--stop-timeout", "1h")
        self.store("/one")
        first = self.in_part("PURGE /one HTTP/1.1\r\nHost: site.test\r\n\r\n")
        second = self.replace()
        before = len(self.d.err)
        os.kill(second, signal.SIGUSR2)
        found = harness.wait_until(lambda: re.search(r"process (\d+) serves; this one ends", self.d.err[before:]),
                                   what="the third process")
        self.addCleanup(self.end, int(found[1]))
        harness.wait_until(lambda: self.get("/one")[2], what="the store")
        self.ends(*first)
        self.assertEqual(self.get("/one")[2], False)
        self.assertEqual(self.d.wait(), 0)

    def test_a_check_leaves_the_store_to_its_daemon_and_a_restart_hands_it_over(self):
        self.begin()
        self.store("/one")
        before = sorted(p.name for p in self.folder.iterdir())
        done = self.run_daemon("--check-config", "--store", str(self.folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)
        done = self.run_daemon("--check-config", "--store", "/dev/null")
        self.assertEqual(done.returncode, 73)
        # By a signal, the process that serves then has it.
        first = self.d
        first.signal(signal.SIGUSR2)
        self.assertEqual(first.wait(), 0)
        harness.wait_until(lambda: self.get("/one")[2], what="the store")
        pid, = map(int, re.findall(r"process (\d+) serves; this one ends", first.err))
        os.kill(pid, signal.SIGTERM)
        harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="its end")


class CommandTest(StoreCase):
    """sunproxy store"""

    seconds = 30

    def sunproxy_store(self, *arguments, expect=0):
        return self.sunproxy("store", *arguments, expect=expect).stdout.decode()

    def test_the_command_lists_verifies_and_trims(self):
        self.begin()
        self.store("/one", "/two")
        lines = self.sunproxy_store("list", self.folder).splitlines()
        self.assertEqual(sorted(line.split()[-1] for line in lines), ["http://site.test/one", "http://site.test/two"])
        self.get("/one", method="PURGE")
        self.assertEqual(len(self.sunproxy_store("list", self.folder).splitlines()), 1)
        states = [json.loads(line)["state"] for line in
                  self.sunproxy_store("list", "--all", "--json", self.folder).splitlines()]
        self.assertEqual(sorted(states), ["current", "outdated"])
        self.assertIn(b"a daemon uses", self.sunproxy("store", "verify", self.folder).stderr)
        self.assertIn(b"a daemon uses it", self.sunproxy("store", "trim", self.folder, "0", expect=73).stderr)
        self.assertEqual(self.d.stop(), 0)
        self.assertIn("1 pages, 2 records in 1 segments", self.sunproxy_store("verify", self.folder))
        segment, = self.folder.glob("segment-*")
        content = bytearray(segment.read_bytes())
        content[content.index(b"GET site.test/two")] ^= 1
        segment.write_bytes(content)
        self.assertIn("1 damaged", self.sunproxy_store("verify", self.folder, expect=1))
        aside = self.dir / "aside"
        segment.rename(aside)
        segment.mkdir()
        *unread, sums = self.sunproxy_store("verify", self.folder, expect=66).splitlines()
        self.assertEqual(unread, [f"unread   {segment.name}, offset 0: it is no regular file"])
        self.assertTrue(sums.endswith(", 0 damaged, 1 cannot be read"), sums)
        segment.rmdir()
        aside.rename(segment)
        self.assertEqual(self.sunproxy_store("trim", self.folder, "0"), "1 segment removed\n")
        self.assertEqual(self.sunproxy_store("list", self.folder), "")
        self.assertIn(b"it is no store", self.sunproxy("store", "list", self.dir, expect=66).stderr)

    def test_the_command_shows_a_page(self):
        self.member.fields += [("Cache-Tag", "red blue"), ("Vary", "Accept-Language")]
        self.begin("--tag-field", "Cache-Tag")
        url = "http://site.test/page"
        bodies = {}
        for language in ("de", "fr"):
            fields = f"Accept-Language: {language}\r\n"
            bodies[language] = self.get("/page", fields)[1]
            self.get("/page", fields)
        harness.wait_until(lambda: len(self.sunproxy_store("list", self.folder).splitlines()) == 2, what="variants")
        # Beside the daemon, which says what it knows.
        shown = self.sunproxy("store", "show", "--socket", self.d.socket, self.folder, url)
        self.assertIn(b"a daemon uses the store", shown.stderr)
        self.assertIn(b"has 2 pages in it", shown.stderr)
        self.assertIn(b"\nanswer         miss", shown.stdout)
        *rows, last = map(json.loads, self.sunproxy_store("show", "--json", "--socket", self.d.socket, self.folder,
                                                          url).splitlines())
        self.assertIn({"key": url}, last["daemon"])
        self.assertEqual([row["variant"] for row in rows], [row["variant"] for row in rows if row["fresh"]])
        self.assertEqual(self.d.stop(), 0)
        text = self.sunproxy_store("show", self.folder, url)
        for line in ("state          current", f"url            {url}", "varies by      accept-language",
                     "status         200", "lifetime       600.000 s, fresh", "tags           red blue",
                     "field          Cache-Control: max-age=600"):
            self.assertEqual(text.lower().count(line.lower()), 2, (line, text))
        several = self.sunproxy("store", "show", "-o", "-", self.folder, url, expect=64)
        self.assertIn(b"has 2 responses", several.stderr)
        found = [self.sunproxy("store", "show", "-n", n, "-o", "-", self.folder, url).stdout for n in (1, 2)]
        self.assertEqual(found, [bodies["fr"], bodies["de"]])
        self.sunproxy("store", "show", "-n", 1, "-o", self.dir / "body", self.folder, url)
        self.assertEqual((self.dir / "body").read_bytes(), bodies["fr"])
        for arguments in ((url + "x",), ("-n", 3, url)):
            result = self.sunproxy("store", "show", *arguments[:-1], self.folder, arguments[-1], expect=1)
            self.assertIn(b"no such page", result.stderr)
        # A daemon that is another one, and none.
        other = self.daemon("--store", self.dir / "other")
        self.begin("--tag-field", "Cache-Tag")
        result = self.sunproxy("store", "list", "--socket", other.socket, self.folder)
        self.assertIn(f"uses another one, {self.dir / 'other'}".encode(), result.stderr)
        result = self.sunproxy("store", "list", "--socket", self.dir / "none", self.folder)
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_a_damaged_body_is_not_shown(self):
        self.begin()
        self.store("/one")
        self.assertEqual(self.d.stop(), 0)
        segment, = self.folder.glob("segment-*")
        content = bytearray(segment.read_bytes())
        content[content.index(b"GET site.test/one")] ^= 1
        segment.write_bytes(content)
        self.assertIn("state          damaged", self.sunproxy_store("show", self.folder, "http://site.test/one"))
        result = self.sunproxy("store", "show", "-o", "-", self.folder, "http://site.test/one", expect=65)
        self.assertEqual(result.stdout, b"")
        *rows, sums = map(json.loads, self.sunproxy_store("verify", "--json", self.folder, expect=1).splitlines())
        self.assertEqual([row["state"] for row in rows], ["damaged"])
        self.assertEqual((sums["records"], sums["damaged"], sums["in_use"]), (1, 1, False))
        result = self.sunproxy("store", "export", "--files", self.dir / "files", self.folder)
        self.assertIn(b"0 pages were written", result.stderr)
        self.assertIn(b"1 that are damaged", result.stderr)

    def test_the_command_exports(self):
        self.begin()
        paths = ["/one", "/../../../etc/two", "/%00%2f?a,b\"c", "/gone"]
        bodies = {path: self.get(path)[1] for path in paths}
        self.store(*(path for path in paths if ".." not in path))
        self.get("/../../../etc/two")
        harness.wait_until(lambda: len(self.sunproxy_store("list", self.folder).splitlines()) == 4, what="pages")
        self.get("/gone", method="PURGE")
        self.assertEqual(self.d.stop(), 0)
        to = self.dir / "files"
        self.sunproxy("store", "export", "--files", to, self.folder)
        rows = [json.loads(line) for line in (to / "index.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(p.name for p in to.iterdir()), [*sorted(row["file"] for row in rows), "index.jsonl"])
        self.assertEqual({(to / row["file"]).read_bytes() for row in rows},
                         {body for path, body in bodies.items() if path != "/gone"})
        for row in rows:
            self.assertRegex(row["file"], r"\A\d{8}\Z")
            self.assertIn("Cache-Control: max-age=600", row["fields"])
            self.assertEqual(row["bytes"], (to / row["file"]).stat().st_size)
        self.assertEqual({p.stat().st_mode & 0o777 for p in to.iterdir()}, {0o600})
        self.assertEqual(to.stat().st_mode & 0o777, 0o700)
        again = self.sunproxy("store", "export", "--files", to, self.folder, expect=73)
        self.assertIn(b"File exists", again.stderr)
        (self.dir / "link").symlink_to(self.dir / "elsewhere")
        self.sunproxy("store", "export", "--files", self.dir / "link", self.folder, expect=73)
        self.assertFalse((self.dir / "elsewhere").exists())
        self.assertIn(b"exclude each other", self.sunproxy("store", "export", "--files", to, "-o", "x.tsv", self.folder,
                                                           expect=64).stderr)
        # A trace, which the laboratory reads.
        self.sunproxy("store", "export", "-o", self.dir / "trace.tsv", self.folder)
        known = json.loads(self.sunproxy("trace", "describe", "--json", self.dir / "trace.tsv").stdout)
        self.assertEqual((known["requests"], known["distinct_urls"]), (3, 3))
        csv = self.sunproxy_store("list", "--csv", self.folder).splitlines()
        self.assertEqual(len(csv), 4)
        self.assertIn('""c"', "".join(csv))
        self.assertEqual(len(csv[0].split(",")), len(csv[1].split(",")))
        self.assertEqual(self.sunproxy_store("trim", self.folder, "0"), "1 segment removed\n")
        self.assertIn(b"has no pages", self.sunproxy("store", "export", "--to", "tsv", self.folder, expect=65).stderr)

    def test_the_command_beside_a_daemon_that_writes(self):
        self.begin("--store-admit", "all")
        for i in range(60):
            self.get(f"/page-{i}")
            if i % 10 == 0:
                result = self.sunproxy("store", "verify", "--socket", self.d.socket, self.folder)
                self.assertIn(b" 0 damaged\n", result.stdout)
        for to in (("--to", "tsv", "-o", self.dir / "trace.tsv"), ("--files", self.dir / "files")):
            result = self.sunproxy("store", "export", *to, "--socket", self.d.socket, self.folder)
            self.assertIn(f"the daemon at unix:{self.d.socket} has ".encode(), result.stderr)


class ReadsTest(StoreCase):
    """How pages are read that the kernel does not have in memory, in the sandbox."""

    seconds = 30

    def ways(self):
        stat = self.stat(self.d)
        return [stat[f"store_records_read_{way}"] for way in ("memory", "ring", "thread")]

    def read_cold(self, *options):
        """Of ten pages of an earlier daemon. Once more if the disk was slow: a store leaves such a one."""
        explained = None
        while explained is None:
            explained = self.try_cold(*options)
            if explained is None:
                self.assertEqual(self.d.stop(), 0)
                shutil.rmtree(self.folder)
        return explained

    def try_cold(self, *options):
        paths = [f"/page-{i}" for i in range(10)]
        local = self.dir / "http"
        self.begin(*options)
        self.store(*paths)
        self.assertEqual(self.d.stop(), 0)
        self.begin("--http", f"unix:{local}", *options)
        for path in self.folder.glob("segment-*"):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        asked = self.asked()
        texts = []
        with contextlib.closing(Connection(str(local))) as c:
            for over_http, over_rpc in zip(paths[::2], paths[1::2]):
                c.send(f"EXPLAIN {over_http} HTTP/1.1\r\nHost: site.test\r\n\r\n")
                texts.append(c.receive().body)
                texts.append(self.sunproxy("explain", f"http://site.test{over_rpc}", daemon=self.d).stdout)
        explained = self.ways()
        hits = [self.get(path)[2] for path in paths]
        if self.stat(self.d)["store_reads_late"]:
            return None
        self.assertEqual([text for text in texts if b", on disk\n" not in text], [])
        self.assertEqual(hits, [True] * len(paths))
        self.assertEqual(self.asked(), asked)
        return explained

    def rings(self):
        return sum("io_uring" in name for name in harness.open_files(self.d.pid))

    def test_by_threads(self):
        explained = self.read_cold("--store-reads", "threads")
        self.assertEqual(self.rings(), 0)
        for count, (memory, ring, thread) in ((10, explained), (20, self.ways())):
            self.assertEqual((memory + thread, ring), (count, 0))

    def test_by_io_uring(self):
        done = self.run_daemon("--store-reads", "ring", "--store", self.dir / "other", "--socket", "none",
                               "--no-rpcbind", "--listen", "none", "--http", "nowhere.invalid:1")
        if b"io_uring cannot be used" in done.stderr:
            self.skipTest("the kernel has no io_uring, or refuses it")
        explained = self.read_cold("--workers", "2")
        self.assertEqual(self.rings(), 2)
        for count, (memory, ring, thread) in ((10, explained), (20, self.ways())):
            self.assertEqual((memory + ring, thread), (count, 0))
            # On a file system in memory there is nothing to be read past that.
            if not self.folder_is_in_memory():
                self.assertGreater(ring, 0)

    def folder_is_in_memory(self):
        mounts = [line.split()[1:3] for line in open("/proc/self/mounts")]
        inside = [kind for point, kind in mounts if str(self.folder).startswith(point.rstrip("/") + "/")]
        return "tmpfs" in inside[-1:]


if __name__ == "__main__":
    unittest.main()
