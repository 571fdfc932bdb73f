#!/usr/bin/env python3
"""Measures how long many misses of one client take with the default limits of sunproxyd, over HTTP.

- A cold start: 8,000 requests for different pages of one origin, whose latency is 100 ms, on 512 connections.
- The time of a miss, alone and beside 1,000 streams of the same client and origin that are open and quiet. The
  target is less than 50 ms more.

Prints both. Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import asyncio
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402
from server import Failure, Server  # noqa: E402

CONNECTIONS = 512


def start_origin(build, folder, name, *options):
    port = free_port()
    return Server(name, [build / "tests/origin/origin", "--quiet", "--http-port", str(port), "--size-min", "1024",
                         "--size-max", "1024", "--header", "Cache-Control: max-age=3600", *options],
                  port, folder).wait_until_listening()


def start_proxy(build, folder, name, origin):
    port = free_port()
    return Server(name, [build / "sunproxyd", "--listen", "none", "--http", f"127.0.0.1:{port}", "--socket", "none",
                         "--no-rpcbind", "--workers", "2", "--origin", f"/=http://127.0.0.1:{origin.port}",
                         "--allow-net", "127.0.0.0/8", "--allow-port", "any"], port, folder).wait_until_listening()


async def ask(reader, writer, path):
    """The head of the response; the whole, if it has a length."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: bench.test\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200") or b"fwd=uri-miss" not in head:
        raise Failure(f"{path}: {head[:80]}")
    return head


async def get(reader, writer, path):
    head = await ask(reader, writer, path)
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    await reader.readexactly(int(fields[b"content-length"]))


async def start_cold(port, requests):
    pages = iter(range(requests))

    async def client():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for page in pages:
            await get(reader, writer, f"/{page}")
        writer.close()

    began = time.monotonic()
    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return time.monotonic() - began


async def miss(port, name):
    """The median of 20."""
    times = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for n in range(20):
        began = time.monotonic()
        await get(reader, writer, f"/{name}{n}")
        times.append(time.monotonic() - began)
    writer.close()
    return statistics.median(times), max(times)


async def beside_streams(port, count):
    alone, _ = await miss(port, "alone")
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for n, (reader, writer) in enumerate(streams):
        await ask(reader, writer, f"/fault/hang-body:10?{n}")
    median, most = await miss(port, "beside")
    for _, writer in streams:
        writer.close()
    return alone, median, most


def measure(build, requests, streams):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        servers = [start_origin(build, folder, "slow", "--latency", "100ms"), start_origin(build, folder, "quick")]
        servers += [start_proxy(build, folder, f"proxy{n}", servers[n]) for n in range(2)]
        try:
            print(f"{requests} misses of 100 ms: {asyncio.run(start_cold(servers[2].port, requests)):.1f} s",
                  flush=True)
            alone, median, most = asyncio.run(beside_streams(servers[3].port, streams))
            print(f"a miss: {alone * 1000:.1f} ms alone; {median * 1000:.1f} ms, and {most * 1000:.1f} ms at most, "
                  f"beside {streams} streams")
        finally:
            for server in servers:
                server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    try:
        measure(options.build.resolve(), options.requests, options.streams)
    except (Failure, OSError, asyncio.IncompleteReadError) as error:
        print(f"cold.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
