#!/usr/bin/env python3
"""Runs real web applications behind sunproxyd as a reverse proxy, and checks what visitors get.

    run.py [--build FOLDER] [--keep FOLDER] [--option OPTION]... [APP...]

Applications: wordpress (Debian's packages wordpress, php-cli, php-mysql and mariadb-server), django
(python3-django, or Django of the Python that runs this script) and mediawiki (Debian's packages
mediawiki and php-sqlite3). `streams` is none: curl and python3-websockets ask a small backend for
ranges, uploads, event streams and WebSockets, in reverse and forward mode. `mirrors` are pip, npm, apt
and skopeo with servers of packages, as far as they are installed. Without APP all that are installed
run.

Each application is set up in a folder of its own, which is removed at the end unless --keep names it.
Its checks run by visitors that connect to the application itself, through sunproxyd, and through
sunproxyd with the rules of packaging/recipes, where those have some for it. A check that fails without
the proxy says nothing about the proxy; it is an error of the check.

Prints a table of checks. The exit status is 1 if one fails, 69 if an application that was named is not
installed.
"""
import argparse
import importlib
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import driver  # noqa: E402

APPLICATIONS = {"wordpress": "wordpress", "django": "django_site", "mediawiki": "mediawiki",
                "streams": "streams", "mirrors": "mirrors"}
EX_UNAVAILABLE = 69


def run_once(module, folder, build, direct, options, recipe=None):
    folder.mkdir(parents=True)
    run = driver.Run(folder, build, direct, options, recipe)
    try:
        module.run(run)
    finally:
        run.finish()
    return run


def report(run, itself):
    """Prints the checks of a run, with what is wrong without the proxy. How many have failed."""
    failed = 0
    print(f"  with the rules of {run.recipe}.conf" if run.recipe else "  through the daemon")
    for check, wrong in run.checks:
        failed += bool(wrong or itself.get(check))
        print(f"  {'failed' if wrong else 'passed'}  {check}")
        if wrong:
            print(f"          {wrong}")
        if itself.get(check):
            print(f"          fails without the proxy, too: {itself[check]}")
    print(f"  {len(run.checks) - failed} of {len(run.checks)} checks passed; "
          f"{run.sources.total()} responses, {run.sources['hit']} of them hits", flush=True)
    return failed


def run_application(name, folder, build, options):
    module = importlib.import_module(APPLICATIONS[name])
    print(f"\n{module.find()}", flush=True)
    itself = dict(run_once(module, folder / "direct", build, True, options).checks)
    failed = report(run_once(module, folder / "proxied", build, False, options), itself)
    if hasattr(module, "Visits"):
        failed += report(run_once(module, folder / "ruled", build, False, options,
                                  module.Visits.recipe), itself)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=driver.ROOT / "build/release")
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for what the programs write")
    parser.add_argument("--option", action="append", default=[],
                        help="option for sunproxyd; may be repeated")
    parser.add_argument("app", nargs="*", help=", ".join(APPLICATIONS))
    arguments = parser.parse_args()
    for name in arguments.app:
        if name not in APPLICATIONS:
            parser.error(f"{name} is none of {', '.join(APPLICATIONS)}")
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="sunproxy-apps."))
    failed = 0
    missing = False
    try:
        for name in arguments.app or APPLICATIONS:
            try:
                failed += run_application(name, folder / name, arguments.build.resolve(),
                                          arguments.option)
            except driver.Missing as error:
                print(f"\n{name} is not run: {error}", flush=True)
                missing = missing or bool(arguments.app)
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)
    return 1 if failed else EX_UNAVAILABLE if missing else 0


if __name__ == "__main__":
    sys.exit(main())
