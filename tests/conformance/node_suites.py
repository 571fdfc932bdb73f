#!/usr/bin/env python3
"""Runs the test suites of Express, koa, send and node-fetch with a proxy between client and server.

    node_suites.py --suites FOLDER [--build FOLDER] [--peer nginx] [--peer squid] [SUITE...]

The suites are not part of this repository. FOLDER has a checkout of each, by its name (express, koa,
send, node-fetch), in which `npm install` has been run. through_proxy.cjs beside this script makes the
suites' clients send their requests through a proxy, as a forward proxy, to the servers that the tests
start. Each suite runs without a proxy, through sunproxyd, and through the peers that are named, which
have to be installed; each of them caches.

Prints how many tests passed by proxy, and each test that passes without a proxy and fails through one.
`suite_exceptions.txt` beside this script names those that are not meant to pass through sunproxyd, with
the reason. The exit status is 1 if another one fails, or one of those passes whose reason does not begin
with "at times".
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from cache_tests import ROOT, await_port, free_port

HERE = pathlib.Path(__file__).resolve().parent
RUN_LIMIT = 1800  # seconds for a suite: ten times what it takes
MOCHA = ["node_modules/.bin/mocha", "--reporter", "json", "--exit"]
SUITES = {
    "express": [*MOCHA, "--require", "test/support/env", "test/", "test/acceptance/"],
    "koa": ["node", "--test", "--test-concurrency=1", f"--test-reporter={HERE}/node_reporter.mjs",
            "--test-reporter-destination=stdout"],
    "send": MOCHA,
    "node-fetch": MOCHA,
}

NGINX = """
daemon off; worker_processes 1; pid %(folder)s/nginx.pid; error_log %(folder)s/nginx.err;
events { worker_connections 1024; }
http {
    access_log off; server_tokens off;
    client_body_temp_path %(folder)s/body; proxy_temp_path %(folder)s/proxy;
    fastcgi_temp_path %(folder)s/f; uwsgi_temp_path %(folder)s/u; scgi_temp_path %(folder)s/s;
    proxy_cache_path %(folder)s/cache keys_zone=one:8m;
    server {
        listen 127.0.0.1:%(port)d;
        resolver 127.0.0.1;
        client_max_body_size 0;
        proxy_cache one;
        proxy_cache_key $scheme$http_host$request_uri;
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        location / { proxy_pass http://$nginx_target$request_uri; }
        # A variable's name would be resolved; localhost is loopback here.
        set $nginx_target $http_host;
        if ($http_host ~ ^localhost(:.*)?$) { set $nginx_target 127.0.0.1$1; }
    }
}
"""

SQUID = """
http_port 127.0.0.1:%(port)d
http_access allow all
cache_mem 64 MB
cache_log %(folder)s/squid.log
access_log none
cache_store_log none
pid_filename %(folder)s/squid.pid
coredump_dir %(folder)s
cache_effective_user %(user)s
shutdown_lifetime 0 seconds
"""


def sunproxyd_command(folder, port, build):
    return [build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
            "--http", f"127.0.0.1:{port}", "--allow-net", "127.0.0.0/8", "--allow-net", "::1",
            "--allow-port", "any"]


def nginx_command(folder, port, build):
    path = folder / "nginx.conf"
    path.write_text(NGINX % {"folder": folder, "port": port})
    return ["nginx", "-c", path, "-e", folder / "nginx.err"]


def squid_command(folder, port, build):
    path = folder / "squid.conf"
    path.write_text(SQUID % {"folder": folder, "port": port, "user": "proxy"})
    shutil.chown(folder, "proxy")
    return ["squid", "-N", "-f", path]


COMMANDS = {"sunproxyd": sunproxyd_command, "nginx": nginx_command, "squid": squid_command}


@contextlib.contextmanager
def running(proxy, build):
    """The environment of a suite; its proxy runs meanwhile."""
    environment = dict(os.environ, PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        environment.pop(name, None)
    if proxy == "direct":
        yield environment
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sunproxy-suites."))
    folder.chmod(0o755)
    port = free_port()
    process = None
    try:
        command = [str(word) for word in COMMANDS[proxy](folder, port, build)]
        with open(folder / "log", "ab") as log:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log)
        await_port(port, process, proxy)
        environment["SUITE_PROXY"] = f"127.0.0.1:{port}"
        environment["NODE_OPTIONS"] = f"--require={HERE}/through_proxy.cjs"
        yield environment
        if process.poll() is not None:
            sys.exit(f"{proxy} has ended with status {process.returncode}")
    finally:
        if process and process.poll() is None:
            process.terminate()
            process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def read_mocha(text):
    """ {name: what was wrong, or ""} of the reporter's object, which follows what tests print."""
    result = json.loads(text[text.index('{\n  "stats"'):])
    outcomes = {}
    for test in result["tests"]:
        error = test.get("err") or {}
        if test["fullTitle"] in [pending["fullTitle"] for pending in result["pending"]]:
            continue
        add(outcomes, test["fullTitle"], error.get("message", "failed") if error else "")
    return outcomes


def read_node(text):
    outcomes = {}
    for line in text.splitlines():
        if line.startswith('{"name"'):
            test = json.loads(line)
            add(outcomes, test["name"], "" if test["passed"] else test["error"] or "failed")
    return outcomes


def add(outcomes, name, wrong):
    """Tests of one name are numbered."""
    name = " ".join(name.split())
    number = 2
    unique = name
    while unique in outcomes:
        unique = f"{name} #{number}"
        number += 1
    outcomes[unique] = " ".join(wrong.split())


def run_suite(suite, folder, proxy, build):
    with running(proxy, build) as environment:
        done = subprocess.run(SUITES[suite], cwd=folder / suite, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=RUN_LIMIT)
    try:
        outcomes = read_node(done.stdout) if suite == "koa" else read_mocha(done.stdout)
    except ValueError:
        outcomes = {}
    if not outcomes:
        sys.exit(f"{suite} did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return outcomes


def read_exceptions():
    """ {(suite, test): reason}; lines "SUITE | TEST | REASON", # begins a comment."""
    exceptions = {}
    for line in (HERE / "suite_exceptions.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            suite, test, reason = (part.strip() for part in line.split(" | "))
            exceptions[suite, test] = reason
    return exceptions


def report(suite, outcomes):
    """Prints a suite's part of the table; true if it holds what was not expected."""
    exceptions = {test: why for (of, test), why in read_exceptions().items() if of == suite}
    direct = outcomes.pop("direct")
    sound = {test for test, wrong in direct.items() if not wrong}
    counts = [f"direct {len(sound)}"]
    failures = {}
    for proxy, results in outcomes.items():
        failures[proxy] = {test: results.get(test, "not run") for test in direct
                           if test in sound and results.get(test, "not run")}
        counts.append(f"{proxy} {len(sound) - len(failures[proxy])}")
    print(f"\n{suite}: {len(direct)} tests; passed {', '.join(counts)}")
    wrong = False
    for test in direct:
        failing = [proxy for proxy in outcomes if test in failures[proxy]]
        ours = "sunproxyd" in failing
        if ours and test not in exceptions:
            wrong = True
        if failing:
            print(f"  {test}\n    fails through {', '.join(failing)}: {failures[failing[0]][test][:300]}")
            if ours and test in exceptions:
                print(f"    expected: {exceptions[test]}")
        certain = test in exceptions and not exceptions[test].startswith("at times")
        if certain and not ours and test in sound:
            wrong = True
            print(f"  {test}\n    passes through sunproxyd, although suite_exceptions.txt names it")
    for test in exceptions:
        if test not in direct:
            wrong = True
            print(f"  {test}\n    is no test of the suite, although suite_exceptions.txt names it")
    sys.stdout.flush()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suites", required=True, type=pathlib.Path, help="folder of the checkouts")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--peer", action="append", default=[], choices=("nginx", "squid"),
                        help="another proxy to run beside sunproxyd; may be repeated")
    parser.add_argument("suite", nargs="*", help=", ".join(SUITES))
    arguments = parser.parse_args()
    suites = arguments.suite or [name for name in SUITES if (arguments.suites / name).is_dir()]
    for name in suites:
        if name not in SUITES or not (arguments.suites / name / "node_modules").is_dir():
            parser.error(f"no checkout of {name} with its node_modules in {arguments.suites}")
    if not suites:
        parser.error(f"{arguments.suites} has no suite: {', '.join(SUITES)}")
    wrong = False
    for suite in suites:
        outcomes = {proxy: run_suite(suite, arguments.suites.resolve(), proxy, arguments.build.resolve())
                    for proxy in ("direct", "sunproxyd", *arguments.peer)}
        wrong |= report(suite, outcomes)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
