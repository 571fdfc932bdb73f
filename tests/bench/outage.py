#!/usr/bin/env python3
"""Measures what clients see while one of three members of an origin fails, behind sunproxyd, HAProxy and Varnish.

`haproxy-observe` is HAProxy that also has a member down after five requests that failed one behind the other.

Each proxy has the same three members, probes them every second, and has the same time limits. No response is
stored. Requests begin at a constant rate, whatever becomes of the earlier ones. After some seconds one member
fails in one of these ways, and later serves again; what is reported begins with the failure:

  refuses   it closes its connections and accepts no others
  503       every response, those to probes too, has status 503
  hangs     it reads requests, and probes, and never responds
  hidden    likewise, but responds to probes
  slow      it responds to requests and probes after 800 ms
  flaps     it refuses and serves in turns of two seconds
  all       all three refuse

Prints a table: requests, those that failed (no response, or a status of 500 and above), those that took over a
second, and percentiles of the time that a response took, whatever it was. A program that is not installed is
left out with a line that says so.

Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import asyncio
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402
from server import Failure, Server  # noqa: E402

KINDS = ("refuses", "503", "hangs", "hidden", "slow", "flaps", "all")
MEMBERS = 3
SERVICE = 0.01  # seconds that a response takes
WARM = 3  # seconds before the failure
CLIENT_TIMEOUT = 15
CONNECT_TIMEOUT, RESPONSE_TIMEOUT = 1, 3


class Member:
    """A member of the origin: it responds as its mode says."""

    def __init__(self):
        self.port, self.mode, self.writers, self.server = free_port(), "serves", set(), None

    async def open(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port, backlog=4096)

    async def set_mode(self, mode):
        self.mode = mode
        if mode == "refuses" and self.server:
            self.server.close()
            self.server = None
            for writer in list(self.writers):
                writer.transport.abort()
        elif mode != "refuses" and not self.server:
            await self.open()

    async def respond(self, writer, path):
        mode, probe = self.mode, path == b"/probe"
        if mode == "hangs" or (mode == "hidden" and not probe):
            while self.mode == mode:
                await asyncio.sleep(0.1)
            return False
        await asyncio.sleep(0.8 if mode == "slow" else SERVICE)
        status = b"503 No" if mode == "503" else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\npage\n")
        return True

    async def serve(self, reader, writer):
        self.writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if not await self.respond(writer, head.split(b" ", 2)[1]) or b"connection: close" in head.lower():
                    break
        self.writers.discard(writer)
        writer.close()


# ---- the proxies -----------------------------------------------------------------------------------------------


def start_sunproxyd(build, folder, ports):
    port = free_port()
    row = ",".join(f"http://127.0.0.1:{member}" for member in ports)
    return Server("sunproxyd", [build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
                                "--workers", "2", "--http", f"127.0.0.1:{port}", "--max-connections-per-client", "0",
                                "--connect-timeout", f"{CONNECT_TIMEOUT}s",
                                "--first-byte-timeout", f"{RESPONSE_TIMEOUT}s",
                                "--origin", f"/={row} balance=round-robin probe=/probe probe-interval=1s "
                                            "probe-fall=2 probe-rise=2 slow=500ms"], port, folder)


def start_haproxy(_build, folder, ports, more=""):
    port = free_port()
    members = "\n".join(f"  server m{n} 127.0.0.1:{member} check inter 1s fall 2 rise 2{more}"
                        for n, member in enumerate(ports))
    (folder / "haproxy.cfg").write_text(f"""
global
  nbthread 2
  maxconn 4000
defaults
  mode http
  timeout connect {CONNECT_TIMEOUT}s
  timeout client 30s
  timeout server {RESPONSE_TIMEOUT}s
  timeout queue 1s
  timeout check 2s
  retries 2
  option redispatch 1
  retry-on all-retryable-errors
frontend front
  bind 127.0.0.1:{port}
  default_backend members
backend members
  balance roundrobin
  option httpchk GET /probe
{members}
""")
    return Server("haproxy", [shutil.which("haproxy"), "-f", folder / "haproxy.cfg"], port, folder)


def start_observing_haproxy(build, folder, ports):
    return start_haproxy(build, folder, ports, " observe layer7 error-limit 5 on-error mark-down")


def start_varnish(_build, folder, ports):
    port = free_port()
    backends = "\n".join(f"""backend m{n} {{
  .host = "127.0.0.1"; .port = "{member}"; .probe = up;
  .connect_timeout = {CONNECT_TIMEOUT}s; .first_byte_timeout = {RESPONSE_TIMEOUT}s;
}}""" for n, member in enumerate(ports))
    added = "\n".join(f"  all.add_backend(m{n});" for n in range(len(ports)))
    (folder / "outage.vcl").write_text(f"""vcl 4.1;
import directors;
probe up {{ .url = "/probe"; .interval = 1s; .timeout = 2s; .window = 3; .threshold = 2; .initial = 2; }}
{backends}
sub vcl_init {{
  new all = directors.round_robin();
{added}
}}
sub vcl_recv {{ set req.backend_hint = all.backend(); }}
sub vcl_backend_fetch {{ if (bereq.retries > 0) {{ set bereq.backend = all.backend(); }} }}
sub vcl_backend_response {{ if (beresp.status == 503 && bereq.retries < 2) {{ return (retry); }} }}
sub vcl_backend_error {{ if (bereq.retries < 2) {{ return (retry); }} }}
""")
    return Server("varnish", ["/usr/sbin/varnishd", "-F", "-n", folder / "varnish", "-j", "none",
                              "-a", f"127.0.0.1:{port}", "-f", folder / "outage.vcl", "-s", "malloc,64m",
                              "-p", "thread_pools=2", "-p", "thread_pool_min=500"], port, folder)


STARTERS = {"sunproxyd": start_sunproxyd, "haproxy": start_haproxy,
            "haproxy-observe": start_observing_haproxy, "varnish": start_varnish}
PROGRAMS = {"haproxy": "haproxy", "haproxy-observe": "haproxy", "varnish": "/usr/sbin/varnishd"}


# ---- load ------------------------------------------------------------------------------------------------------


async def ask(port, number):
    """The status of a response; 0: there is none."""
    writer = None
    try:
        async with asyncio.timeout(CLIENT_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /{number} HTTP/1.1\r\nHost: bench.test\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            return int(answer.split(b" ", 2)[1]) if b"\r\n\r\n" in answer else 0
    except (OSError, TimeoutError, IndexError, ValueError):
        return 0
    finally:
        if writer:
            writer.close()


class Load:
    def __init__(self, port, rate):
        self.port, self.rate, self.results, self.since = port, rate, [], 0

    async def one(self, number):
        began = time.monotonic()
        status = await ask(self.port, number)
        self.results.append((began, time.monotonic() - began, status))

    async def run(self, seconds):
        began, tasks = time.monotonic(), []
        for number in range(int(seconds * self.rate)):
            await asyncio.sleep(began + number / self.rate - time.monotonic())
            tasks.append(asyncio.create_task(self.one(number)))
        await asyncio.gather(*tasks)

    def report(self):
        counted = [(took, status) for began, took, status in self.results if began >= self.since]
        times = sorted(took for took, _ in counted)

        def percentile(share):
            return f"{1000 * times[min(len(times) - 1, int(len(times) * share))]:.0f}"

        return [str(len(counted)), str(sum(status == 0 or status >= 500 for _, status in counted)),
                str(sum(took > 1 for took in times)), *map(percentile, (0.5, 0.9, 0.99, 1))]


async def fail(kind, members, seconds):
    if kind == "flaps":
        for turn in range(int(seconds / 2)):
            await members[0].set_mode("serves" if turn % 2 else "refuses")
            await asyncio.sleep(2)
    else:
        for member in members if kind == "all" else members[:1]:
            await member.set_mode("refuses" if kind == "all" else kind)
        await asyncio.sleep(seconds)
    for member in members:
        await member.set_mode("serves")


async def measure(name, kind, options, folder):
    members = [Member() for _ in range(MEMBERS)]
    for member in members:
        await member.open()
    server = STARTERS[name](options.build, folder, [member.port for member in members])
    try:
        await asyncio.to_thread(server.wait_until_listening)
        await asyncio.sleep(3)  # the probes of all of them have passed
        load = Load(server.port, options.rate)
        running = asyncio.create_task(load.run(WARM + 1.5 * options.seconds))
        await asyncio.sleep(WARM)
        early = [status for _, _, status in load.results if status != 200]
        if early or not load.results:
            raise Failure(f"{name}: status {early[:1]} before the outage")
        load.since = time.monotonic()
        await fail(kind, members, options.seconds)
        await running
    finally:
        server.stop()
        for member in members:
            await member.set_mode("refuses")
    return load.report()


HEAD = ["outage", "proxy", "requests", "failed", "over 1 s", "p50 ms", "p90 ms", "p99 ms", "longest ms"]


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--only", action="append", choices=STARTERS, help="this proxy; may be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="this failure; may be repeated")
    parser.add_argument("--rate", type=int, default=100, help="requests a second (100)")
    parser.add_argument("--seconds", type=float, default=12, help="of the failure (12)")
    options = parser.parse_args()
    options.build = options.build.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = []
    for name in options.only or STARTERS:
        if name in PROGRAMS and not shutil.which(PROGRAMS[name]):
            print(f"{name} is not installed and left out", file=sys.stderr)
        else:
            names.append(name)
    print_row(HEAD)
    print_row(["---"] * len(HEAD))
    try:
        for kind in options.kind or KINDS:
            for name in names:
                with tempfile.TemporaryDirectory(prefix="sunproxy-outage-") as folder:
                    os.chmod(folder, 0o755)
                    print_row([kind, name, *asyncio.run(measure(name, kind, options, pathlib.Path(folder)))])
    except (Failure, OSError) as error:
        print(f"outage.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
