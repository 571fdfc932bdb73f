"""DokuWiki on php -S, from Debian's package. It keeps its pages and users in files of the run's folder."""

import pathlib
import random
import re
import shutil
import subprocess

import driver
from driver import HERE, Program, field, free_port

SOURCE = pathlib.Path("/usr/share/dokuwiki")
PHP_WORKERS = 6
SETTINGS = """<?php
$conf['title'] = 'Example';
$conf['savedir'] = '%(folder)s/data';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['basedir'] = '/';
$conf['passcrypt'] = 'smd5';
$conf['updatecheck'] = 0;
"""
ACCESS = """*\t@ALL\t1
*\t@user\t8
diary:*\t@ALL\t0
diary:alice\talice\t8
diary:bob\tbob\t8
"""
PEOPLE = ("alice", "bob")


def find():
    if not shutil.which("php"):
        raise driver.Missing("php-cli is not installed")
    if not SOURCE.is_dir():
        raise driver.Missing("dokuwiki is not installed")
    if "xml" not in subprocess.run(["php", "-m"], capture_output=True, text=True).stdout.split():
        raise driver.Missing("php-xml is not installed")
    return f"DokuWiki {(SOURCE / 'VERSION').read_text().strip()}"


def fill(run):
    """Makes its configuration, users, pages and a picture, as files; returns the router for php -S."""
    conf = run.folder / "conf"
    shutil.copytree("/etc/dokuwiki", conf, symlinks=False,
                    ignore=lambda _, names: [n for n in names if n.startswith(("local.php", "users.auth",
                                                                               "acl.auth"))])
    (conf / "local.php").write_text(SETTINGS % {"folder": run.folder})
    (conf / "acl.auth.php").write_text(ACCESS)
    hashes = run.command(["php", "-r", "foreach (array_slice($argv, 1) as $name) "
                          "echo crypt(\"$name-password\", '$1$saltsalt$'), \"\\n\";", *PEOPLE]).split()
    (conf / "users.auth.php").write_text("".join(
        f"{name}:{code}:Reader {name}:{name}@site.test:user\n" for name, code in zip(PEOPLE, hashes)))
    data = run.folder / "data"
    for name in ("attic", "cache", "index", "locks", "log", "media_attic", "media_meta", "meta", "tmp",
                 "pages/diary", "media/wiki"):
        (data / name).mkdir(parents=True)
    for number in range(1, 9):
        (data / f"pages/page{number}.txt").write_text(f"====== Page {number} ======\n\nText.\n")
    (data / "pages/start.txt").write_text("====== Start ======\n\n[[page1]] {{wiki:dot.png}}\n")
    for name in PEOPLE:
        (data / f"pages/diary/{name}.txt").write_text(f"====== Diary ======\n\nsecret-of-{name}\n")
    (data / "media/wiki/dot.png").write_bytes(driver.pixels())
    router = run.folder / "router.php"
    router.write_text(f"<?php define('DOKU_CONF', '{conf}/');\nreturn require '{HERE}/php_router.php';\n")
    return router


def serve(run):
    """Starts the application, and returns its port."""
    router = fill(run)
    port = free_port()
    backend = Program(run, "php", ["php", "-S", f"127.0.0.1:{port}", "-t", SOURCE, router],
                      env={"PHP_CLI_SERVER_WORKERS": str(PHP_WORKERS)})
    backend.await_port(port)
    return port


def token(text):
    return field(r'name="sectok" value="([^"]*)"', text)


class Visits:
    """What hits.py asks of DokuWiki."""

    recipe = "dokuwiki"
    has_campaigns = True
    permitted = 7  # scripts, styles, pictures and media; pages state no-store and set a cookie

    def __init__(self, run):
        page = run.visitor("a reader").get("/doku.php?id=start").text
        parts = [part.replace("&amp;", "&")
                 for part in re.findall(r'(?:href|src)="(/lib/exe/(?:css|js|jquery|fetch|manifest)\.php[^"]*)"',
                                        page)]
        self.targets = [
            "/doku.php?id=start", *(f"/doku.php?id=page{number}" for number in range(1, 9)),
            "/doku.php?id=page1&do=revisions", "/doku.php?id=start&do=index", "/feed.php",
            *dict.fromkeys(parts), "/lib/exe/opensearch.php", "/lib/tpl/dokuwiki/images/logo.png"]
        self.others = ["/doku.php?id=diary:alice", "/doku.php?id=diary:bob", "/doku.php?id=start&do=profile",
                       "/doku.php?id=page1&do=edit"]

    def log_in(self, visitor, name):
        page = visitor.get("/doku.php?id=start&do=login").text
        visitor.post("/doku.php?id=start", {
            "u": name, "p": f"{name}-password", "do": "login", "id": "start", "sectok": token(page)})

    def log_out(self, visitor):
        page = visitor.get("/doku.php?id=start").text
        visitor.get("/doku.php?id=start&do=logout&sectok=" + field(r"do=logout&amp;sectok=(\w+)", page))

    def shows(self, name, text):
        return f"Reader {name}" in text or f"secret-of-{name}" in text

    def tokens(self, text):
        return set(re.findall(r'sectok(?:=|" value=")(\w{32})', text))

    def check_private(self, run, alice, bob, stranger):
        names = {alice: {"Reader alice"}, bob: {"Reader bob"}, stranger: set()}
        run.check_secrets("page with the reader's name", "/doku.php?id=start&n={}", names)
        run.check_secrets("diary of alice", "/doku.php?id=diary:alice&n={}",
                          {alice: {"secret-of-alice"}, bob: set(), stranger: set()})

    def write(self, visitor):
        words = f"words {random.randrange(10**9)}"
        page = visitor.get("/doku.php?id=page1&do=edit").text
        visitor.post("/doku.php?id=page1", {
            "id": "page1", "do[save]": "1", "wikitext": words, "prefix": ".", "suffix": "", "summary": "",
            "rev": "0", "date": field(r'name="date" value="(\d+)"', page), "sectok": token(page),
            "changecheck": field(r'name="changecheck" value="(\w+)"', page), "target": "section"})
        return [("/doku.php?id=page1", words)]

    def write_as_guest(self, _visitor):
        return []
