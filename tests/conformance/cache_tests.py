#!/usr/bin/env python3
"""Runs http-tests/cache-tests against sunproxyd as a reverse proxy, or against another cache.

    cache_tests.py --suite FOLDER [--build FOLDER] [--id TEST]
    cache_tests.py --suite FOLDER --base http://HOST:PORT --origin-port PORT

The suite is not part of this repository: clone https://github.com/http-tests/cache-tests and run
`npm install --omit=dev` in it. Without --base the script starts the suite's server and sunproxyd on
free ports and stops both. With --base it starts the suite's server on --origin-port, in front of which
the other cache stands already.

Prints the number of tests passed by kind and each required or optimal test that was not passed. A test
counts as the suite counts it: not passed if a test that it depends on is not. `exceptions.txt` beside
this script names the required tests that are not meant to pass, with the reason. The exit status is 1
if another required test fails, or one of those passes.
"""
import argparse
import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402

RUN_LIMIT = 600  # seconds for the whole suite

LIST_TESTS = """
import suites from '%s/tests/index.mjs'
console.log(JSON.stringify(suites.flatMap(suite => suite.tests.map(test => ({
  id: test.id, name: test.name, kind: test.kind || 'required', suite: suite.id,
  depends_on: test.depends_on || [], browser_only: !!test.browser_only
})))))
"""


def await_port(port, process, what):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit(f"{what} has ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{what} does not listen on port {port}")


def list_tests(suite):
    out = subprocess.run(["node", "--input-type=module", "-e", LIST_TESTS % suite], check=True,
                         capture_output=True, text=True).stdout
    return {test["id"]: test for test in json.loads(out) if not test["browser_only"]}


def start_origin(suite, port):
    environment = dict(os.environ, npm_config_protocol="http", npm_config_port=str(port),
                       npm_config_pidfile=os.devnull)
    process = subprocess.Popen(["node", "test-engine/server/server.mjs"], cwd=suite, env=environment,
                               stdout=subprocess.DEVNULL)
    await_port(port, process, "the suite's server")
    return process


def start_daemon(build, port, origin_port, options):
    process = subprocess.Popen(
        [build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
         "--http", f"127.0.0.1:{port}", "--origin", f"/=http://127.0.0.1:{origin_port}",
         "--allow-net", "127.0.0.0/8", "--allow-port", "any", *options])
    await_port(port, process, "sunproxyd")
    return process


def run_client(suite, base, test_id):
    environment = dict(os.environ, npm_config_base=base, npm_package_config_id=test_id)
    done = subprocess.run(["node", "--no-warnings", "test-engine/cli.mjs"], cwd=suite, env=environment,
                          capture_output=True, text=True, timeout=RUN_LIMIT)
    if test_id:
        print(done.stdout)
        sys.exit(done.returncode)
    if done.returncode:
        sys.exit(f"the suite's client failed:\n{done.stderr}")
    return json.loads(done.stdout)


def verdict(tests, results, test_id):
    """ "pass", or why not: as the suite's lib/results.mjs has it."""
    result = results.get(test_id)
    if result is None:
        return "not run"
    for other in tests[test_id]["depends_on"]:
        if other in tests and verdict(tests, results, other) != "pass":
            return f"depends on {other}"
    if result is True:
        return "pass"
    if result is False:
        return "harness"
    return f"{result[0]}: {result[1]}"


def read_exceptions():
    """ {id: reason}; lines "ID: reason", # begins a comment."""
    exceptions = {}
    for line in (HERE / "exceptions.txt").read_text().splitlines():
        line = line.split("#", 1)[0].strip()
        if line:
            test_id, _, reason = line.partition(":")
            exceptions[test_id.strip()] = reason.strip()
    return exceptions


def report(tests, results):
    exceptions = read_exceptions()
    passed, total = collections.Counter(), collections.Counter()
    wrong = False
    for test_id, test in tests.items():
        kind = test["kind"]
        why = verdict(tests, results, test_id)
        total[kind] += 1
        passed[kind] += why == "pass"
        if kind == "check":
            continue
        if why != "pass":
            expected = test_id in exceptions
            wrong |= kind == "required" and not expected
            print(f"{kind:8}  {test['suite']:20} {test_id:40} {why}"
                  + (f" (expected: {exceptions[test_id]})" if expected else ""))
        elif test_id in exceptions:
            wrong = True
            print(f"{kind:8}  {test_id} passes, although exceptions.txt names it")
    for kind in ("required", "optimal", "check"):
        print(f"{passed[kind]} of {total[kind]} {kind} tests passed")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--suite", required=True, type=pathlib.Path, help="checkout of cache-tests")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--base", help="URL of another cache")
    parser.add_argument("--origin-port", type=int, help="port that the other cache fetches from")
    parser.add_argument("--option", action="append", default=[],
                        help="option for sunproxyd; may be repeated")
    parser.add_argument("--id", default="", help="one test, with its requests and responses")
    parser.add_argument("--json", type=pathlib.Path, help="file for the suite's results")
    args = parser.parse_args()
    if args.base and not args.origin_port:
        parser.error("--base needs --origin-port")
    suite = args.suite.resolve()
    tests = list_tests(suite)
    origin_port, port = args.origin_port or free_port(), free_port()
    started = []
    try:
        started.append(start_origin(suite, origin_port))
        if not args.base:
            started.append(start_daemon(args.build.resolve(), port, origin_port, args.option))
        results = run_client(suite, args.base or f"http://127.0.0.1:{port}", args.id)
        if args.json:
            args.json.write_text(json.dumps(results, indent=2))
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(10)
    return report(tests, results)


if __name__ == "__main__":
    sys.exit(main())
