#!/usr/bin/env python3
"""Sends a real daemon and a scripted origin a long mix of requests (tests/soak/mix.c).

  soak.py [--origin-option=OPTION]... [--daemon-option=OPTION]... [REQUESTS]

Prints memory, descriptors and threads of the daemon at ten points, at rest, and at five more while only
rare rows are asked. Exit status: 0 when every answer was as expected, the cache worked
(tests/soak/tally.h) and the daemon is flat (tests/soak/flat.h); 130 after Ctrl-C, with what stands by
then; 1 otherwise. The programs come from $SUNPROXY_BUILD (build/release).
"""

import argparse
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
import harness  # noqa: E402
import ports  # noqa: E402

SOAK = harness.BUILD / "tests/soak/soak"
ORIGIN_OPTIONS = ["--size-min", 256, "--size-max", 4096]  # as tests/soak/text.h states them
DAEMON_OPTIONS = [
    "--no-rpcbind", "--workers", 2, "--capacity-urls", 1000, "--capacity-bytes", "8M",
    "--allow-net", "127.0.0.0/8", "--access-log", "/dev/null", "--log-level", "info",
    # Stalled origins are given up soon, but not those on a busy machine.
    "--first-byte-timeout", "4s", "--stall-timeout", "4s", "--fetch-timeout", "20s",
]


def daemon_options(http_port, refusing_port):
    return [*DAEMON_OPTIONS, "--connect-to", f":80:127.0.0.1:{http_port}",
            "--connect-to", f":82:127.0.0.1:{refusing_port}"]


def tcp_port(log):
    """The port that the system chose, from the daemon's log; None before it is there."""
    found = re.search(r"listening on TCP port (\d+)", log.read_text()) if log.exists() else None
    return found and found[1]


def soak(children, folder, requests, origin_options=(), options=()):
    origin = harness.Origin(children, folder, "--max-seconds", 0, *ORIGIN_OPTIONS, *origin_options)
    path, log = folder / "soak.sock", folder / "daemon.log"
    daemon = children.start(
        [harness.BUILD / "sunproxyd", "--listen", "127.0.0.1", "--port", 0, "--socket", path,
         *daemon_options(origin.http, ports.free_port()), *options], log, die_with_us=True)

    def answers():
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(path)) == 0 and tcp_port(log) is not None

    harness.wait_for(answers, daemon, "sunproxyd", log)
    load = subprocess.Popen([SOAK, "--port", tcp_port(log), "--socket", path,
                             "--pid", str(daemon.pid), "--requests", str(requests)])
    while True:
        try:
            status = load.wait()
            break
        except KeyboardInterrupt:
            # It prints what stands; Ctrl-C on a terminal has reached it already.
            load.send_signal(signal.SIGINT)
    if daemon.poll() is not None:
        print(f"sunproxyd ended with {daemon.returncode}:\n{harness.last_words(log)}")
        return 1
    children.end(daemon)
    if status == 0 and daemon.returncode != 0:
        print(f"sunproxyd ended with {daemon.returncode}:\n{harness.last_words(log)}")
        return 1
    return status


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--origin-option", action="append", default=[])
    parser.add_argument("--daemon-option", action="append", default=[])
    parser.add_argument("requests", nargs="?", type=int, default=10000000)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = harness.Children()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sunproxy-soak."))
    try:
        return soak(children, folder, args.requests, args.origin_option, args.daemon_option)
    except harness.Failure as failure:
        print(f"soak: {failure}", file=sys.stderr)
        return 1
    finally:
        children.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
