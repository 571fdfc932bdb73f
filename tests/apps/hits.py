#!/usr/bin/env python3
"""Counts the hits of an anonymous visitor's pages behind sunproxyd, Varnish and nginx, while others are
logged in, and looks for a page that reaches another visitor.

    hits.py [--build FOLDER] [--keep FOLDER] [--proxy NAME]... [--fetch FOLDER] [APP...]

Applications: wordpress, mediawiki, django, dokuwiki, verdaccio. Those that are not installed are left
out unless they are named. `contestants.py` has the proxies; --proxy selects some of them.

Verdaccio is found in the PATH, or in FOLDER/node_modules; --fetch has npm install it there if it is
not. The other applications are Debian's packages, which docs/TESTING.md names.

Each application is started once with a database of its own and filled with pages. For each proxy, two
users log in, and visit all pages between the visits of three strangers; every visitor has the cookies
of a web analysis (_ga). The last stranger's hits are counted, and once more with the parameters of a
campaign in the URL. A page is wrong if it has the name, a form token or a session of another visitor,
or not the visitor's own name where the application itself shows it. Then a user writes something and
must see it at once, logs out, and logs in again. With rules private pages are requested in all orders
and in parallel besides.

Prints a table. The exit status is 1 if a page through sunproxyd is wrong, or if with the rules fewer
pages are hits than the application allows; 69 if an application that was named is not installed.
"""
import argparse
import importlib
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import contestants  # noqa: E402
import driver  # noqa: E402

APPLICATIONS = {"wordpress": "wordpress", "mediawiki": "mediawiki", "django": "django_site",
                "dokuwiki": "dokuwiki", "verdaccio": "verdaccio"}
EX_UNAVAILABLE = 69
ROW = "{:12} {:18} {:>9} {:>9} {:>6}  {:7} {}"


class Watch:
    """Whether what a visitor gets is the visitor's own."""

    def __init__(self, site):
        self.site = site
        self.named = {}  # by user: the targets where the application itself shows the user's name
        self.owners = {}  # of tokens and sessions
        self.wrongs = []

    def learn(self, run, users):
        """Asks the application itself what it shows to whom."""
        front, run.port = run.port, run.backend_port
        for name, visitor in users.items():
            alone = visitor.clone()
            self.named[name] = {target for target in self.site.targets + self.site.others
                                if self.site.shows(name, alone.get(target).text)}
            if not self.named[name]:
                self.wrongs.append(f"{name} could not log in")
        run.port = front

    def look(self, visitor, target, answer):
        for name in self.named:
            if name != visitor.name and self.site.shows(name, answer.text):
                self.wrongs.append(f"{visitor.name} gets the page of {name}: {target}")
        if target in self.named.get(visitor.name, ()) and not self.site.shows(visitor.name, answer.text):
            self.wrongs.append(f"{visitor.name} gets the page of another: {target}")
        secrets = self.site.tokens(answer.text) if visitor.name in self.named else set()
        secrets |= {line.split(";")[0] for line in answer.fields.get_all("Set-Cookie", [])
                    if len(line.split(";")[0].partition("=")[2]) >= 16 and "_test_" not in line}
        for secret in secrets:
            owner = self.owners.setdefault(secret, visitor)
            if owner.name != visitor.name:
                self.wrongs.append(f"{visitor.name} gets a secret of {owner.name}: {target}")
        return answer


def tracked(run, name):
    """A visitor with the cookies that the scripts of a web analysis have set."""
    visitor = run.visitor(name)
    number = f"{random.randrange(10**9)}.{random.randrange(10**9)}"
    visitor.cookies = {"_ga": f"GA1.1.{number}", "_gid": f"GA1.1.{number[::-1]}"}
    return visitor


def campaign(target, number):
    return (f"{target}{'&' if '?' in target else '?'}utm_source=letter&utm_campaign=c{number}"
            f"&fbclid={random.randrange(10**12)}")


def visit(watch, visitor, targets):
    """How many of them are hits; and those that are not."""
    misses = [target for target in targets
              if watch.look(visitor, target, visitor.get(target)).source != "hit"]
    return len(targets) - len(misses), misses


def write(watch, user, guest, stranger):
    """A user and a guest write; both must see at once what they wrote. When a stranger sees what the
    user wrote."""
    written = watch.site.write(user)
    if not written:
        return "-"
    look_for(watch, user, written)
    for target, words in look_for(watch, guest, watch.site.write_as_guest(guest)):
        if words in watch.look(stranger, target, stranger.get(target)).text:
            watch.wrongs.append(f"{stranger.name} sees what waits: {target}")
    target, words = written[0]
    return "at once" if words in watch.look(stranger, target, stranger.get(target)).text else "later"


def look_for(watch, writer, written):
    for target, words in written:
        if words not in watch.look(writer, target, writer.get(target)).text:
            watch.wrongs.append(f"{writer.name} does not see what {writer.name} wrote: {target}")
    return written


def leave(watch, user):
    """Logs out and in again, as the pages must show."""
    site = watch.site
    name = user.name
    site.log_out(user)
    target = next(iter(sorted(watch.named[name])), None)
    if target and site.shows(name, user.get(target).text):
        watch.wrongs.append(f"{name} has logged out, and is still named: {target}")
    site.log_in(user, name)
    if target and not site.shows(name, user.get(target).text):
        watch.wrongs.append(f"{name} has logged in again, and is not named: {target}")


def check_private(run, watch, users, stranger):
    """Private pages in every order of their visitors, and by all at once (driver.Run)."""
    run.checks.clear()
    watch.site.check_private(run, users["alice"], users["bob"], stranger)
    watch.wrongs += [f"{name}: {wrong}" for name, wrong in run.checks if wrong]


def measure(run, site, verbose, thorough):
    """One proxy: (hits, hits with a campaign's parameters or None, what is wrong, when strangers see a
    change)."""
    watch = Watch(site)
    users = {name: tracked(run, name) for name in ("alice", "bob")}
    strangers = [tracked(run, f"stranger {n}") for n in range(1, 5)]
    for name, user in users.items():
        site.log_in(user, name)
    watch.learn(run, users)
    visit(watch, users["alice"], site.targets[::2] + site.others)
    visit(watch, strangers[0], site.targets + site.others)
    visit(watch, users["bob"], site.targets + site.others)
    visit(watch, strangers[1], site.others[::-1] + site.targets)
    visit(watch, users["alice"], site.targets + site.others)
    hits, misses = visit(watch, strangers[2], site.targets)
    visit(watch, strangers[2], site.others)
    visit(watch, users["bob"], site.others)
    visited = None
    if site.has_campaigns:
        linked = [campaign(target, number) for number, target in enumerate(site.targets)]
        visited, _ = visit(watch, strangers[3], linked)
        visit(watch, users["bob"], linked)
    seen = write(watch, users["bob"], strangers[0], strangers[2])
    leave(watch, users["alice"])
    if thorough:
        check_private(run, watch, users, strangers[2])
    if verbose:
        print(f"    no hits: {' '.join(misses[:20])}{' ...' if len(misses) > 20 else ''}")
    return hits, visited, watch.wrongs, seen


def run_application(name, folder, build, proxies, arguments):
    module = importlib.import_module(APPLICATIONS[name])
    version = module.find() if name != "verdaccio" else module.find(arguments.fetch)
    folder.mkdir(parents=True)
    run = driver.Run(folder, build, False)
    failed = 0
    try:
        run.backend_port = run.port = module.serve(run)
        site = module.Visits(run)
        for proxy in proxies:
            program = contestants.start(proxy, run, site)
            hits, visited, wrongs, seen = measure(run, site, arguments.verbose,
                                                  proxy == contestants.WITH_RULES)
            program.stop()
            bad = wrongs and proxy.startswith(contestants.ALONE)
            bad = bad or proxy == contestants.WITH_RULES and hits < site.permitted
            failed += bool(bad)
            count = len(site.targets)
            print(ROW.format(name, proxy, f"{hits}/{count}",
                             "-" if visited is None else f"{visited}/{count}", len(wrongs), seen,
                             "FAILED" if bad else "").rstrip(), flush=True)
            for wrong in wrongs[:20 if arguments.verbose else 1]:
                print(f"    {wrong}", flush=True)
    finally:
        run.end_programs()
    print(f"  ({version})", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=driver.ROOT / "build/release")
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for what the programs write")
    parser.add_argument("--fetch", type=pathlib.Path, help="folder of npm packages, for verdaccio")
    parser.add_argument("--proxy", action="append", choices=contestants.CONTESTANTS,
                        help="may be repeated; by default all that are installed")
    parser.add_argument("--verbose", action="store_true", help="name the pages")
    parser.add_argument("app", nargs="*", help=", ".join(APPLICATIONS))
    arguments = parser.parse_args()
    for name in arguments.app:
        if name not in APPLICATIONS:
            parser.error(f"{name} is none of {', '.join(APPLICATIONS)}")
    proxies = arguments.proxy or [name for name in contestants.CONTESTANTS if contestants.installed(name)]
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="sunproxy-hits."))
    failed = 0
    missing = False
    print(ROW.format("application", "proxy", "3rd visit", "campaign", "wrong", "changes", "").rstrip())
    try:
        for name in arguments.app or APPLICATIONS:
            try:
                failed += run_application(name, folder / name, arguments.build.resolve(), proxies,
                                          arguments)
            except driver.Missing as error:
                print(f"{name} is not run: {error}", flush=True)
                missing = missing or bool(arguments.app)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)
    return 1 if failed else EX_UNAVAILABLE if missing else 0


if __name__ == "__main__":
    sys.exit(main())
