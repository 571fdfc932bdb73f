#!/usr/bin/env python3
"""Fetches URLs with asyncio and aiohttp, at most N at a time, in one thread.

  with_aiohttp.py FETCHES FILE     FILE has a URL a line

A contestant of studies/reproduce_parallel.py: what asyncio does without blocking calls. Prints a line of JSON
as executor.py does. Exit status 69 without aiohttp.
"""

import asyncio
import json
import sys
import time

try:
    import aiohttp
except ImportError:
    sys.exit(69)

TIMEOUT_SECONDS = 60


async def fetch(session, url):
    """The length of the page; None after a failure."""
    try:
        async with session.get(url) as response:
            return len(await response.read()) if response.status == 200 else None
    except (aiohttp.ClientError, asyncio.TimeoutError):
        return None


async def fetch_all(urls, fetches):
    # All wait for a connection from the start: no time limit while they do.
    limit = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_SECONDS, sock_read=TIMEOUT_SECONDS)
    connector = aiohttp.TCPConnector(limit=fetches)
    async with aiohttp.ClientSession(connector=connector, timeout=limit) as session:
        return await asyncio.gather(*(fetch(session, url) for url in urls))


def main():
    with open(sys.argv[2], encoding="ascii") as file:
        urls = file.read().split()
    began, cpu = time.monotonic(), time.process_time()
    lengths = asyncio.run(fetch_all(urls, int(sys.argv[1])))
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    print(json.dumps({"requests": len(urls), "failures": lengths.count(None),
                      "bytes": sum(n or 0 for n in lengths), "seconds": seconds, "cpu_seconds": cpu}))


if __name__ == "__main__":
    main()
