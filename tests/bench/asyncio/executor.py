#!/usr/bin/env python3
"""Fetches URLs with asyncio and blocking fetches in an executor of N threads.

  executor.py THREADS FILE     FILE has a URL a line; 0 threads: asyncio's own executor

A contestant of studies/reproduce_parallel.py, written as "Exploiting Parallelism in a Proxy Server" describes
its comparison. Prints a line of JSON: requests, failures, bytes, and the seconds of wall time and CPU time
from the first fetch to the end of the last.
"""

import asyncio
import concurrent.futures
import http.client
import json
import sys
import time
import urllib.request

TIMEOUT_SECONDS = 60


def fetch(opener, url):
    """The length of the page; None after a failure."""
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as response:
            return len(response.read())
    except (OSError, http.client.HTTPException):
        return None


async def fetch_all(urls, executor):
    loop = asyncio.get_running_loop()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return await asyncio.gather(*(loop.run_in_executor(executor, fetch, opener, url) for url in urls))


def main():
    threads = int(sys.argv[1])
    with open(sys.argv[2], encoding="ascii") as file:
        urls = file.read().split()
    executor = concurrent.futures.ThreadPoolExecutor(threads) if threads else None
    began, cpu = time.monotonic(), time.process_time()
    lengths = asyncio.run(fetch_all(urls, executor))
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    print(json.dumps({"requests": len(urls), "failures": lengths.count(None),
                      "bytes": sum(n or 0 for n in lengths), "seconds": seconds, "cpu_seconds": cpu}))


if __name__ == "__main__":
    main()
