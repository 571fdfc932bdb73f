"""MediaWiki on SQLite and php -S, from Debian's packages.

It runs as behind a cache ($wgUseCdn): pages for strangers have s-maxage, and each edit sends PURGE to
the proxy, with the address that readers use.
"""

import json
import pathlib
import random
import re
import shutil
import subprocess

import driver
from driver import HERE, HOST, STRANGER, Program, field, free_port

SOURCE = pathlib.Path("/usr/share/mediawiki")
PHP_WORKERS = 6
PASSWORD = "%s-has-a-long-password"


def find():
    if not shutil.which("php"):
        raise driver.Missing("php-cli is not installed")
    if not SOURCE.is_dir():
        raise driver.Missing("mediawiki is not installed")
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True).stdout.split()
    for module in ("pdo_sqlite", "intl", "mbstring", "xml"):
        if module not in modules:
            raise driver.Missing(f"php has no module {module}")
    defines = (SOURCE / "includes/Defines.php").read_text()
    return f"MediaWiki {field(r'MW_VERSION.*?([0-9.]+)', defines)}"


def serve(run):
    """Starts the application, and returns its port."""
    site = run.folder / "site"
    site.mkdir()
    for entry in SOURCE.iterdir():
        if entry.name not in ("LocalSettings.php", "images", "config"):
            (site / entry.name).symlink_to(entry)
    (site / "images").mkdir()
    settings = site / "LocalSettings.php"
    environment = {"MW_INSTALL_PATH": str(site), "SITE_FOLDER": str(run.folder),
                   "SITE_CDN": "" if run.direct else f"127.0.0.1:{run.proxy_port}"}
    run.command(["php", SOURCE / "maintenance/install.php", "--confpath", site, "--dbtype", "sqlite",
                 "--dbpath", run.folder / "data", "--dbname", "wiki", "--server", f"http://{HOST}",
                 "--scriptpath", "", "--pass", PASSWORD % "admin", "--skins", "MonoBook", "Example",
                 "Admin"], env=environment)
    with open(settings, "a") as out:
        out.write((HERE / "mediawiki_settings.php").read_text())
    environment["MW_CONFIG_FILE"] = str(settings)
    for name in ("Alice", "Bob"):
        run.command(["php", SOURCE / "maintenance/createAndPromote.php", name, PASSWORD % name],
                    env=environment)
    port = free_port()
    backend = Program(run, "php", ["php", "-S", f"127.0.0.1:{port}", "-t", site, HERE / "php_router.php"],
                      env={"PHP_CLI_SERVER_WORKERS": str(PHP_WORKERS), **environment})
    backend.await_port(port)
    return port


def api(visitor, query, form=None):
    target = f"/api.php?format=json&{query}"
    answer = visitor.get(target) if form is None else visitor.post(target, form)
    try:
        return json.loads(answer.text)
    except ValueError:
        return {"error": {"info": f"{answer.status} {answer.text[:200]}"}}


def token(visitor):
    return api(visitor, "action=query&meta=tokens").get("query", {}).get("tokens", {}).get("csrftoken", "")


def edit(visitor, title, text, **fields):
    answer = api(visitor, "action=edit", {"title": title, "text": text, "token": token(visitor), **fields})
    return answer.get("edit", {}).get("result") or str(answer)


def log_in(visitor, name, password):
    page = visitor.get("/index.php?title=Special:UserLogin").text
    return visitor.post("/index.php?title=Special:UserLogin", {
        "wpName": name, "wpPassword": password, "authAction": "login", "title": "Special:UserLogin",
        "wpLoginToken": field(r'name="wpLoginToken"[^>]*value="([^"]*)"', page)
        or field(r'value="([^"]*)"[^>]*name="wpLoginToken"', page)})


def check_pages(run, stranger):
    redirect = stranger.get("/index.php")
    run.expect("the redirect to the main page stays on the host",
               redirect.status == 301 and "Main_Page" in (stranger.path_of(redirect.location) or ""),
               f"{redirect.status} {redirect.location}")
    pages = [stranger.get("/index.php/Main_Page") for _ in range(3)]
    run.expect("main page", pages[0].status == 200 and "Main Page" in pages[0].text, pages[0].status)
    if not run.direct:
        run.expect("the main page is a hit for the next stranger",
                   run.visitor(STRANGER).get("/index.php/Main_Page").source == "hit", "it is not")
    run.check_hosts("two names of the site, each with its own links",
                    "/index.php?title=Main_Page&both={}", "http://HOST/index.php")
    feed = "/api.php?action=feedrecentchanges&feedformat=atom&both={}"
    run.check_hosts("the feed of each name has its own links", feed, "http://HOST/index.php")
    module = field(r'href="(/load\.php\?[^"]*)"', pages[0].text).replace("&amp;", "&")
    styles = [stranger.get(module) for _ in range(2)]
    run.expect("styles are complete", styles[0].status == 200 and styles[0].body == styles[1].body,
               styles[0].status)
    if not run.direct:
        run.expect("styles are a hit the second time", styles[1].source == "hit", styles[1].source)
    missing = stranger.get("/index.php/Nothing_here")
    run.expect("a missing page is 404", missing.status == 404, missing.status)


def check_logins(run, alice, bob):
    for visitor, name in ((alice, "Alice"), (bob, "Bob")):
        wrong = log_in(run.visitor(STRANGER), name, "wrong")
        run.expect(f"a wrong password for {name} is refused",
                   wrong.status == 200 and "Incorrect username or password" in wrong.text, wrong.status)
        answer = log_in(visitor, name, PASSWORD % name)
        run.expect(f"{name} logs in, and is sent to the host's main page",
                   answer.status == 302
                   and "Main_Page" in (visitor.path_of(answer.location) or ""),
                   f"{answer.status} {answer.location}")
        user = api(visitor, "action=query&meta=userinfo").get("query", {}).get("userinfo", {})
        run.expect(f"the API knows {name}", user.get("name") == name, user)


def check_private(run, alice, bob, stranger):
    for visitor, name in ((alice, "alice"), (bob, "bob")):
        result = edit(visitor, f"Page of {name}", "text", watchlist="watch")
        run.expect(f"{name} makes a watched page", result == "Success", result)
    watched = {alice: {"Page of alice"}, bob: {"Page of bob"}, stranger: set()}
    run.check_secrets("watchlist", "/index.php?title=Special:EditWatchlist&n={}", watched)
    run.check_secrets("list of the watched in the API",
                      "/api.php?action=query&list=watchlistraw&format=json&n={}", watched)
    names = {alice: {'"wgUserName":"Alice"'}, bob: {'"wgUserName":"Bob"'},
             stranger: {'"wgUserName":null'}}
    run.check_secrets("main page with the reader's name", "/index.php?title=Main_Page&n={}", names)
    run.check_secrets("article with the reader's name", "/index.php/Page_of_alice?n={}", names)
    run.check_secrets("preferences", "/index.php?title=Special:Preferences&n={}",
                      {alice: names[alice], bob: names[bob], stranger: set()})


def check_uploads(run, alice, stranger):
    picture = driver.pixels()
    answer = alice.upload("/api.php?action=upload&format=json",
                          {"filename": "Dot.png", "token": token(alice), "ignorewarnings": "1"},
                          "file", "Dot.png", picture)
    info = json.loads(answer.text).get("upload", {}) if answer.status == 200 else {}
    address = info.get("imageinfo", {}).get("url", "")
    run.expect("an upload is taken, and its address is the host's",
               info.get("result") == "Success" and address.startswith(f"http://{HOST}/images/"),
               f"{answer.status} {answer.text[:200]}")
    got = stranger.get(alice.path_of(address) or "/")
    run.expect("a stranger gets the uploaded file", got.body == picture, f"{got.status}")
    refused = stranger.upload("/api.php?action=upload&format=json",
                              {"filename": "Other.png", "token": "+\\"}, "file", "Other.png", picture)
    run.expect("a stranger's upload is refused", '"error"' in refused.text, refused.text)


def check_changes(run, alice, stranger):
    """Edits reach strangers at once: MediaWiki's PURGE removes what the proxy holds."""
    path = "/index.php/Changing"
    edit(alice, "Changing", "first-text")
    seen = []
    for text in ("second-text", "third-text"):
        stranger.get(path)
        held = stranger.get(path).source
        result = edit(alice, "Changing", text)
        seen.append((held, result, text in stranger.get(path).text))
    run.expect("a stranger sees an edit at once",
               all(result == "Success" and shown for _, result, shown in seen), seen)
    if not run.direct:
        run.expect("before that, the page was a hit", all(held == "hit" for held, _, _ in seen), seen)


def check_conditions(run, stranger):
    page = stranger.get("/index.php/Changing")
    modified = page.fields.get("Last-Modified", "")
    again = stranger.get("/index.php/Changing", If_Modified_Since=modified)
    run.expect("a page that has not changed is 304", again.status == 304,
               f"{again.status} {modified}")


def log_out(visitor):
    page = visitor.get("/index.php?title=Special:UserLogout").text
    return visitor.post("/index.php?title=Special:UserLogout", {
        "title": "Special:UserLogout",
        "wpEditToken": field(r'name="wpEditToken"[^>]*value="([^"]*)"', page).replace("&#43;", "+")
        or field(r'value="([^"]*)"[^>]*name="wpEditToken"', page)})


def check_logout(run, alice):
    answer = log_out(alice)
    run.expect("alice logs out", answer.status in (200, 302) and "wgUserName\":\"Alice" not in answer.text,
               answer.status)
    text = alice.get("/index.php/Main_Page").text
    run.expect("after that a page has no name", '"wgUserName":null' in text,
               re.findall(r'"wgUserName":[^,]*', text))
    run.expect("after that the watchlist is refused",
               "Page of alice" not in alice.get("/index.php?title=Special:EditWatchlist").text, "it is not")


def run(run):
    run.front(serve(run), "--purge-net", "127.0.0.1")
    alice, bob, stranger = (run.visitor(name) for name in ("alice", "bob", STRANGER))
    check_pages(run, stranger)
    check_logins(run, alice, bob)
    check_private(run, alice, bob, stranger)
    check_uploads(run, alice, stranger)
    check_changes(run, alice, stranger)
    check_conditions(run, stranger)
    check_logout(run, alice)


class Visits:
    """What hits.py asks of MediaWiki."""

    recipe = "mediawiki"
    has_campaigns = True
    permitted = 16

    def __init__(self, run):
        alice = run.visitor("Alice")
        self.log_in(alice, "alice")
        for number in range(1, 9):
            edit(alice, f"Page {number}", f"Text of page {number}. [[Category:Pages]]")
        edit(alice, "Category:Pages", "All pages.")
        alice.upload("/api.php?action=upload&format=json",
                     {"filename": "Dot.png", "token": token(alice), "ignorewarnings": "1"},
                     "file", "Dot.png", driver.pixels())
        page = run.visitor(STRANGER).get("/index.php/Main_Page").text
        modules = [module.replace("&amp;", "&")
                   for module in re.findall(r'(?:href|src)="(/load\.php\?[^"]*)"', page)]
        self.targets = [
            "/index.php/Main_Page", *(f"/index.php/Page_{number}" for number in range(1, 9)),
            "/index.php/Category:Pages", "/index.php?title=Page_1&action=history", *modules,
            "/index.php?title=Page_1&action=raw", "/index.php/Special:RecentChanges",
            "/index.php/Special:AllPages", "/opensearch_desc.php",
            "/api.php?action=feedrecentchanges&feedformat=atom",
            "/api.php?action=query&titles=Page_1&format=json"]
        self.others = ["/index.php/Special:Preferences", "/index.php?title=Main_Page&n=1",
                       "/api.php?action=query&meta=userinfo&format=json",
                       "/index.php?title=Page_2&action=edit"]

    def log_in(self, visitor, name):
        log_in(visitor, name.capitalize(), PASSWORD % name.capitalize())

    def log_out(self, visitor):
        log_out(visitor)

    def shows(self, name, text):
        name = name.capitalize()
        return f'"wgUserName":"{name}"' in text or f'"name":"{name}"' in text

    def tokens(self, text):
        return set(re.findall(r'(?:"csrfToken":|name="wp(?:Edit|Login)Token"[^>]*value=)"(\w{32,})', text))

    def check_private(self, run, alice, bob, stranger):
        check_private(run, alice, bob, stranger)

    def write(self, visitor):
        words = f"words {random.randrange(10**9)}"
        edit(visitor, "Page 1", words)
        return [("/index.php/Page_1", words)]

    def write_as_guest(self, visitor):
        """An edit without a login, which MediaWiki shows to everybody."""
        return []
