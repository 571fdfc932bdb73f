"""A small site on Django: logins, forms with CSRF tokens, private pages, uploads.

Django of the Python that runs this, or else Debian's python3-django.
"""

import html
import random
import re
import subprocess
import sys
import threading

import driver
from driver import HERE, HOST, OTHER_HOST, STRANGER, Program, field, free_port

UPLOAD_BYTES = 5 << 20


def interpreter():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import django"], capture_output=True).returncode == 0:
            return python
    raise driver.Missing("python3-django is not installed")


def find():
    version = subprocess.run([interpreter(), "-m", "django", "--version"], capture_output=True,
                             text=True).stdout.strip()
    return f"Django {version}"


def serve(run):
    """Starts the application, and returns its port."""
    manage = [interpreter(), HERE / "django_project.py"]
    environment = {"SITE_FOLDER": str(run.folder), "SITE_HOSTS": f"{HOST},{OTHER_HOST}",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    run.command([*manage, "migrate", "--verbosity", "0"], env=environment)
    run.command([*manage, "shell", "--command", (
        "from django.contrib.auth.models import User\n"
        "for name in ('alice', 'bob'):\n"
        "    User.objects.create_user(name, f'{name}@site.test', f'{name}-password')\n")], env=environment)
    port = free_port()
    backend = Program(run, "django", [*manage, "runserver", "--noreload", f"127.0.0.1:{port}"],
                      env=environment)
    backend.await_port(port)
    return port


def token(text):
    return field(r'name="csrfmiddlewaretoken" value="([^"]*)"', text)


def log_in(visitor, name, password):
    page = visitor.get("/accounts/login/?next=/private/").text
    return visitor.post("/accounts/login/?next=/private/", {
        "username": name, "password": password, "csrfmiddlewaretoken": token(page)})


def check_pages(run, stranger):
    pages = [stranger.get("/") for _ in range(3)]
    run.expect("home page", pages[0].status == 200 and "home of site.test" in pages[0].text,
               f"{pages[0].status} {pages[0].text[:200]}")
    if not run.direct:
        run.expect("a page with a lifetime is a hit the second time",
                   [page.source for page in pages[1:]] == ["hit", "hit"],
                   [page.source for page in pages])
    run.check_hosts("two names of the site, each with its own pages", "/?both={}",
                    "http://HOST/feed/")
    redirect = stranger.get("/private")
    run.expect("the redirect that adds a slash stays on the host",
               redirect.status == 301 and stranger.path_of(redirect.location) == "/private/",
               f"{redirect.status} {redirect.location}")
    redirect = stranger.get("/private/")
    run.expect("a stranger is sent to the login page",
               redirect.status == 302
               and stranger.path_of(redirect.location) == "/accounts/login/?next=/private/",
               f"{redirect.status} {redirect.location}")
    refused = stranger.get("/", Host="elsewhere.test")
    run.expect("a host that the site does not have is 400, as the site says", refused.status == 400,
               refused.status)
    missing = stranger.get("/nothing/")
    run.expect("a missing page is 404", missing.status == 404, missing.status)
    tokens = {token(run.visitor(STRANGER).get("/accounts/login/").text) for _ in range(4)}
    run.expect("four strangers get four form tokens", len(tokens) == 4 and "" not in tokens, tokens)


def check_logins(run, alice, bob):
    for visitor, name in ((alice, "alice"), (bob, "bob")):
        wrong = log_in(run.visitor(STRANGER), name, "wrong")
        run.expect(f"a wrong password for {name} is refused",
                   wrong.status == 200 and "correct username" in wrong.text,
                   f"{wrong.status} {html.unescape(wrong.text)[:200]}")
        answer = log_in(visitor, name, f"{name}-password")
        run.expect(f"{name} logs in, and is sent on",
                   answer.status == 302 and visitor.path_of(answer.location) == "/private/",
                   f"{answer.status} {answer.location} {answer.text[:300]}")
    refused = run.visitor(STRANGER).post("/accounts/login/", {"username": "alice",
                                                              "password": "alice-password"})
    run.expect("a form without its token is 403", refused.status == 403, refused.status)
    attacker = alice.clone()
    page = attacker.get("/upload/").text
    refused = attacker.post("/upload/", {"csrfmiddlewaretoken": token(page)},
                            {"Origin": "http://elsewhere.test"})
    run.expect("a form of another origin is 403 where Django looks at Origin",
               refused.status == (403 if attacker.get("/version/").text >= "4" else 400),
               refused.status)


def check_private(run, alice, bob, stranger):
    sees = {alice: {"secret-of-alice"}, bob: {"secret-of-bob"}, stranger: set()}
    run.check_secrets("private page", "/private/?n={}", sees)
    run.check_secrets("feed that the session changes, without Vary, no-cache", "/feed/?n={}", sees)
    run.check_secrets("page that the session changes, without Vary, dated", "/dated/?n={}", sees)
    run.check_secrets("page that the session changes, with Vary and a lifetime", "/varies/?n={}", sees)
    run.check_secrets("page that the session changes, private with a lifetime", "/own/?n={}", sees)


def check_uploads(run, alice, bob, stranger):
    content = bytes(range(256)) * (UPLOAD_BYTES // 256)
    page = alice.get("/upload/").text
    answer = alice.upload("/upload/", {"csrfmiddlewaretoken": token(page)}, "file", "of alice.bin",
                          content)
    path = alice.path_of(answer.location) or "/"
    run.expect("an upload of 5 MiB is taken", answer.status == 302 and path.startswith("/files/"),
               f"{answer.status} {answer.location}")
    run.expect("its owner gets the file back", alice.get(path).body == content, "other bytes")
    part = alice.get(path, Range="bytes=1000-1999")
    run.expect("a range of it is those bytes, or the whole file",
               part.body == (content[1000:2000] if part.status == 206 else content), part.status)
    for visitor in (bob, stranger):
        refused = visitor.get(path)
        run.expect(f"{visitor.name} does not get it", refused.status in (302, 403, 404)
                   and content[:1000] not in refused.body, refused.status)
    attempt = stranger.upload("/upload/", {}, "file", "x.bin", content)
    run.expect("a stranger's upload of 5 MiB is 403", attempt.status == 403, attempt.status)


def check_changes(run, alice, stranger):
    stranger.get("/notes/")
    page = alice.get("/notes/").text
    answer = alice.post("/notes/", {"csrfmiddlewaretoken": token(page), "note": "written-just-now"})
    run.expect("alice writes a note", answer.status == 302, answer.status)
    run.expect("a stranger sees it at once", "written-just-now" in stranger.get("/notes/").text,
               "it is not there")


def check_stream(run, stranger):
    answer = stranger.get("/stream/")
    run.expect("a streamed page is complete", answer.text == "".join(f"line {n}\n" for n in range(1000)),
               len(answer.body))


def check_parallel_logins(run):
    """Visitors who log in at the same time get the session of their own."""
    wrongs = []

    def visit(name):
        visitor = run.visitor(name)
        log_in(visitor, name, f"{name}-password")
        for _ in range(5):
            text = visitor.get("/private/").text
            if f"secret-of-{name}" not in text:
                wrongs.append(f"{name} gets {text[:80]!r}")

    threads = [threading.Thread(target=visit, args=(name,)) for name in ("alice", "bob") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.check("eight logins at once, each with the own pages", driver.summary(wrongs))


def log_out(visitor):
    page = visitor.get("/private/").text
    return visitor.post("/accounts/logout/", {"csrfmiddlewaretoken": token(page)})


def check_logout(run, alice):
    answer = log_out(alice)
    run.expect("alice logs out", answer.status == 302 and alice.path_of(answer.location) == "/",
               f"{answer.status} {answer.location}")
    shown = [path for path in ("/private/", "/feed/", "/dated/", "/varies/", "/own/")
             if "secret-of-alice" in alice.get(path).text]
    run.check("after that no page shows the private words", " ".join(shown))


def run(run):
    run.front(serve(run))
    alice, bob, stranger = (run.visitor(name) for name in ("alice", "bob", STRANGER))
    check_pages(run, stranger)
    check_logins(run, alice, bob)
    check_private(run, alice, bob, stranger)
    check_uploads(run, alice, bob, stranger)
    check_changes(run, alice, stranger)
    check_stream(run, stranger)
    check_parallel_logins(run)
    check_logout(run, alice)


class Visits:
    """What hits.py asks of Django."""

    recipe = "django"
    has_campaigns = True
    permitted = 13  # not what is private, states no lifetime, or sets a cookie

    def __init__(self, _run):
        self.targets = [
            "/", *(f"/articles/{number}/" for number in range(1, 9)), "/static/site.css", "/varies/",
            "/dated/", "/feed/", "/own/", "/stream/", "/version/", "/notes/"]
        self.others = ["/private/", "/varies/?n=1", "/dated/?n=1", "/feed/?n=1", "/upload/"]

    def log_in(self, visitor, name):
        log_in(visitor, name, f"{name}-password")

    def log_out(self, visitor):
        log_out(visitor)

    def shows(self, name, text):
        return f"secret-of-{name}" in text or f"hello {name}, " in text

    def tokens(self, text):
        return set(re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', text))

    def check_private(self, run, alice, bob, stranger):
        check_private(run, alice, bob, stranger)

    def write(self, visitor):
        words = f"note {random.randrange(10**9)}"
        visitor.post("/notes/", {"csrfmiddlewaretoken": token(visitor.get("/notes/").text), "note": words})
        return [("/notes/", words)]

    def write_as_guest(self, _visitor):
        return []
