"""WordPress on MariaDB and php -S, from Debian's packages.

Its address is the host of each request, so that each link shows which host the backend was told.
"""

import html
import json
import pathlib
import random
import re
import shutil
import socket
import subprocess
import threading
import time

import driver
from driver import HERE, HOST, STRANGER, Program, field, free_port

SOURCE = pathlib.Path("/usr/share/wordpress")
PHP_WORKERS = 6
THEME = "twentytwentythree"

CONFIG = """<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:%(socket)s');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $kind) {
    define("${kind}_KEY", "key of $kind");
    define("${kind}_SALT", "salt of $kind");
}
define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']);
define('WP_SITEURL', WP_HOME);
define('WP_CONTENT_DIR', '%(site)s/wp-content');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', '%(site)s/');
}
require_once ABSPATH . 'wp-settings.php';
"""


def find():
    for program in ("php", "mariadbd", "mariadb-install-db"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            raise driver.Missing(f"{program} is not installed")
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True).stdout
    if "mysqli" not in modules.split():
        raise driver.Missing("php-mysql is not installed")
    if not (SOURCE / "wp-content/themes" / THEME).is_dir():
        raise driver.Missing(f"wordpress or wordpress-theme-{THEME} is not installed")
    version = field(r"\$wp_version = '(.*?)'", (SOURCE / "wp-includes/version.php").read_text())
    return f"WordPress {version}"


def start_database(run):
    data = run.folder / "database"
    path = run.folder / "db.sock"
    run.command(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root",
                 "--auth-root-authentication-method=normal", "--skip-test-db"])
    database = Program(run, "mariadbd", [
        "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={path}", "--user=root",
        "--skip-networking", f"--pid-file={run.folder}/db.pid", "--innodb-buffer-pool-size=32M"])
    database.await_listening(socket.AF_UNIX, str(path))
    run.command(["mariadb", "--no-defaults", f"--socket={path}", "--user=root", "--execute",
                 "CREATE DATABASE wordpress CHARACTER SET utf8mb4"])
    return path


def serve(run):
    """Starts the application, and returns its port."""
    site = run.folder / "site"
    shutil.copytree(SOURCE, site, symlinks=True,
                    ignore=lambda folder, names: [n for n in names if n in ("wp-config.php", ".htaccess",
                                                                            "languages")])
    (site / "wp-content/uploads").mkdir(parents=True, exist_ok=True)
    plugins = site / "wp-content/mu-plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "comments.php").write_text(
        "<?php add_filter('wp_is_comment_flood', '__return_false', 100);\n")
    path = start_database(run)
    (site / "wp-config.php").write_text(CONFIG % {"socket": path, "site": site})
    run.command(["php", HERE / "wordpress_setup.php"], cwd=site)
    port = free_port()
    backend = Program(run, "php", ["php", "-S", f"127.0.0.1:{port}", "-t", site, HERE / "php_router.php"],
                      env={"PHP_CLI_SERVER_WORKERS": str(PHP_WORKERS)})
    backend.await_port(port)
    return port


def leads_to(visitor, answer, path):
    """Whether a redirect leads to a path on the visitor's host."""
    return (visitor.path_of(answer.location) or "").startswith(path)


def log_in(visitor, name):
    visitor.get("/wp-login.php")
    return visitor.post("/wp-login.php", {
        "log": name, "pwd": f"{name}-password", "wp-submit": "Log In", "testcookie": "1",
        "redirect_to": f"http://{visitor.host}/wp-admin/"})


def publish(visitor, title, text, status="publish"):
    nonce = visitor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    post = json.dumps({"title": title, "content": text, "status": status}).encode()
    return visitor.request("POST", "/wp-json/wp/v2/posts", post,
                           {"Content-Type": "application/json", "X-WP-Nonce": nonce})


def check_pages(run, stranger):
    home = stranger.get("/")
    run.expect("home page", home.status == 200 and "News of alice" in home.text, home.status)
    run.expect("links of the home page name the client's host",
               f"http://{HOST}/news-alice/" in home.text, re.findall(r'href="(http[^"]*)', home.text)[:3])
    run.check_hosts("two names of the site, each with its own links", "/?both={}",
                    "http://HOST/news-alice/")
    run.check_hosts("the feed of each name has its own links", "/feed/?both={}",
                    "http://HOST/news-alice/")
    redirect = stranger.get("/news-alice")
    run.expect("the redirect to a canonical address stays on the host",
               redirect.status == 301 and stranger.path_of(redirect.location) == "/news-alice/",
               f"{redirect.status} {redirect.location}")
    redirect = stranger.get("/wp-admin/")
    run.expect("a stranger is sent to the login page of the host",
               redirect.status == 302 and leads_to(stranger, redirect, "/wp-login.php")
               and HOST in redirect.location, f"{redirect.status} {redirect.location}")
    style = f"/wp-content/themes/{THEME}/style.css"
    served = stranger.get(style)
    run.expect("a file of the theme is complete",
               served.body == (run.folder / "site" / style[1:]).read_bytes(), len(served.body))
    run.expect("a missing page is 404", stranger.get("/nothing-here/").status == 404, "not 404")


def check_logins(run, alice, bob):
    for visitor, name in ((alice, "alice"), (bob, "bob")):
        wrong = run.visitor(STRANGER).post("/wp-login.php", {"log": name, "pwd": "wrong"})
        run.expect(f"a wrong password for {name} is refused",
                   wrong.status == 200 and "login_error" in wrong.text, wrong.status)
        answer = log_in(visitor, name)
        run.expect(f"{name} logs in, and is sent to the host's dashboard",
                   answer.status == 302 and leads_to(visitor, answer, "/wp-admin/"),
                   f"{answer.status} {answer.location}")
        dashboard = visitor.get("/wp-admin/profile.php")
        run.expect(f"{name} sees a profile of the own account",
                   f"{name}@site.test" in dashboard.text, dashboard.status)


def check_private(run, alice, bob, stranger):
    sees = {alice: {"secret-of-alice"}, bob: {"secret-of-bob"}, stranger: set()}
    only_alice = {alice: {"secret-of-alice"}, bob: set(), stranger: set()}
    run.check_secrets("home page with private posts", "/?n={}", sees)
    run.check_secrets("private post of alice", "/diary-alice/?n={}", only_alice)
    run.check_secrets("feed", "/feed/?n={}", sees)
    run.check_secrets("feed of an author", "/author/alice/feed/?n={}", only_alice)
    run.check_secrets("feed of a search", "/?s=secret-of&feed=rss2&n={}", sees)
    run.check_secrets("feed in Atom", "/feed/atom/?n={}", sees)
    account = {alice: {"alice@site.test"}, bob: {"bob@site.test"}, stranger: set()}
    run.check_secrets("profile", "/wp-admin/profile.php?n={}", account)


def check_guarded(run, stranger):
    guest = run.visitor("a guest with the post's password")
    answer = guest.post("/wp-login.php?action=postpass", {"post_password": "guard-password"},
                        {"Referer": f"http://{HOST}/guarded/"})
    run.expect("a post's password is accepted, with a redirect to the host",
               answer.status == 302 and leads_to(guest, answer, "/guarded/"),
               f"{answer.status} {answer.location}")
    run.check_secrets("post with a password", "/guarded/?n={}",
                      {guest: {"secret-of-guarded"}, stranger: set()})


def check_comments(run, stranger):
    writer = run.visitor("a writer of a comment")
    page = writer.get("/news-alice/").text
    post_id = field(r"name='comment_post_ID' value='(\d+)'", page)
    answer = writer.post("/wp-comments-post.php", {
        "comment": "comment-that-waits", "author": "writer-name", "email": "writer@elsewhere.test",
        "comment_post_ID": post_id, "comment_parent": "0", "wp-comment-cookies-consent": "yes"})
    run.expect("a comment is taken, with a redirect to the host",
               answer.status == 302 and leads_to(writer, answer, "/news-alice/"),
               f"{answer.status} {answer.location}")
    run.check_secrets("name and waiting comment of its writer", "/news-alice/?n={}",
                      {writer: {"writer@elsewhere.test", "comment-that-waits"}, stranger: set()})
    page = writer.get("/news-alice/").text
    run.expect("the page shows its writer the comment", "comment-that-waits" in page, "it is not there")


def check_uploads(run, alice, stranger):
    nonce = alice.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    picture = driver.pixels() + bytes(range(256)) * 4096  # 1 MiB behind the picture
    answer = alice.request("POST", "/wp-json/wp/v2/media", picture, {
        "Content-Type": "image/png", "X-WP-Nonce": nonce,
        "Content-Disposition": 'attachment; filename="dot.png"'})
    address = field(r'"source_url":"(.*?)"', answer.text).replace("\\/", "/")
    run.expect("an upload of 1 MiB is taken, and its address is the host's",
               answer.status == 201 and address.startswith(f"http://{HOST}/wp-content/uploads/"),
               f"{answer.status} {address} {answer.text[:200]}")
    path = alice.path_of(address) or "/"
    run.expect("a stranger gets the uploaded file",
               stranger.get(path).body == picture, "other bytes")
    refused = stranger.request("POST", "/wp-json/wp/v2/media", picture, {
        "Content-Type": "image/png", "X-WP-Nonce": nonce,
        "Content-Disposition": 'attachment; filename="other.png"'})
    run.expect("a stranger's upload is refused", refused.status in (401, 403), refused.status)


def check_changes(run, alice, stranger):
    """A new post is on the pages that were fetched before it was written."""
    pages = ["/", "/author/alice/"]
    # They have Last-Modified and no lifetime: RFC 9111 section 4.2.2 lets a cache choose one.
    feeds = ["/feed/", "/author/alice/feed/"]
    for path in pages + feeds:
        stranger.get(path)
    answer = publish(alice, "Just now", "written-just-now")
    run.expect("alice publishes a post", answer.status == 201, f"{answer.status} {answer.text[:200]}")
    old = [path for path in pages if "Just now" not in stranger.get(path).text]
    run.check("the new post is on every page at once", " ".join(old))
    old = [path for path in feeds
           if "Just now" not in stranger.get(path, Cache_Control="no-cache").text]
    run.check("the new post is in every feed for a reader who reloads", " ".join(old))
    old = [path for path in feeds if "Just now" not in alice.get(path).text]
    run.check("the new post is in every feed for alice at once", " ".join(old))


def check_logout(run, alice):
    page = alice.get("/wp-admin/profile.php").text
    path = html.unescape(field(r"""href=['"]http://[^/]*(/wp-login\.php\?action=logout[^'"]*)""", page))
    answer = alice.get(path or "/nothing")
    run.expect("alice logs out, with a redirect to the host",
               answer.status == 302 and leads_to(alice, answer, "/wp-login.php"),
               f"{answer.status} {answer.location}")
    run.expect("after that the private post is not shown",
               "secret-of-alice" not in alice.get("/diary-alice/").text, "it is shown")
    run.expect("after that the feed has no private post",
               "secret-of-alice" not in alice.get("/feed/").text, "it has one")
    run.expect("after that the dashboard sends to the login page",
               alice.get("/wp-admin/profile.php").status == 302, "it does not")


def check_crowd(run, stranger):
    """Many strangers at once get the same pages as one."""
    pages = ["/", "/news-alice/", "/news-bob/", "/feed/"]
    wrongs = []

    def visit():
        visitor = stranger.clone()
        for path in pages * 3:
            answer = visitor.get(path)
            if answer.status != 200 or "news-from-" not in answer.text:
                wrongs.append(f"{path}: {answer.status}")

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.check("eight strangers at once get all pages", driver.summary(wrongs))


def run(run):
    run.front(serve(run))
    alice, bob, stranger = (run.visitor(name) for name in ("alice", "bob", STRANGER))
    check_pages(run, stranger)
    check_logins(run, alice, bob)
    check_private(run, alice, bob, stranger)
    check_guarded(run, stranger)
    check_comments(run, stranger)
    check_uploads(run, alice, stranger)
    check_changes(run, alice, stranger)
    check_crowd(run, stranger)
    check_logout(run, alice)


class Visits:
    """What hits.py asks of WordPress."""

    recipe = "wordpress"
    has_campaigns = True
    permitted = 22  # hits of a third visit with the recipe

    def __init__(self, run):
        alice = run.visitor("alice")
        log_in(alice, "alice")
        for number in range(1, 9):
            publish(alice, f"Entry {number}", f"text of entry {number}")
        year = time.gmtime().tm_year
        self.targets = [
            "/", "/page/2/", *(f"/entry-{number}/" for number in range(1, 9)), "/news-alice/",
            "/hello-world/", "/sample-page/", "/category/uncategorized/", "/author/alice/", f"/{year}/",
            "/feed/", "/comments/feed/", "/wp-json/wp/v2/posts", "/wp-sitemap.xml", "/?s=entry",
            f"/wp-content/themes/{THEME}/style.css"]
        self.others = ["/?n=1", "/diary-alice/", "/diary-bob/", "/guarded/", "/wp-admin/profile.php",
                       "/wp-json/wp/v2/users/me", "/feed/?n=1"]

    def log_in(self, visitor, name):
        log_in(visitor, name)

    def log_out(self, visitor):
        page = visitor.get("/wp-admin/profile.php").text
        visitor.get(html.unescape(field(
            r"""href=['"]http://[^/]*(/wp-login\.php\?action=logout[^'"]*)""", page)))

    def shows(self, name, text):
        return f'<span class="display-name">{name}</span>' in text or f"secret-of-{name}" in text

    def tokens(self, text):
        return set(re.findall(r"nonce[\w\"'-]*[=:] ?\"?([0-9a-f]{10})\b", text))

    def check_private(self, run, alice, bob, stranger):
        for visitor in (alice, bob):  # among the newest, which the home page and the feeds have
            publish(visitor, "Diary", f"secret-of-{visitor.name}", "private")
        check_private(run, alice, bob, stranger)

    def write(self, visitor):
        title = f"Post {random.randrange(10**9)}"
        publish(visitor, title, "text")
        return [("/", title), comment(visitor, {})]

    def write_as_guest(self, visitor):
        """A comment that waits: its writer alone sees it, by a cookie."""
        return [comment(visitor, {"author": "guest", "email": "guest@elsewhere.test",
                                  "wp-comment-cookies-consent": "yes"})]


def comment(visitor, form):
    """Writes one, and returns where it is shown and its words."""
    words = f"comment {random.randrange(10**9)}"
    page = visitor.get("/entry-1/").text
    visitor.post("/wp-comments-post.php", {
        "comment": words, "comment_parent": "0",
        "comment_post_ID": field(r"name='comment_post_ID' value='(\d+)'", page), **form})
    return "/entry-1/", words
