"""The GENI project "Web Caching" (CS655 mini project), repeated over HTTP: client, cache and source
server, with the links between them emulated.

3.1  A video of 87 MB is fetched three times from the source and three times from a cache that has
it, by
     curl, which states time_total.
3.2  Three header experiments: max-age alone, Expires alone, both.
3.3  Five objects of 83, 52, 38, 23 and 97 MB in a cache of 256 MB: which object leaves; the five in
a loop of
     three rounds, and each three times in a row.

The study took place between Boston (client and cache) and Los Angeles (source). It states neither
bandwidths nor delays. The links here have the bandwidths that its tables give (CLIENT_LINK and
those that follow), so times are inputs up to what the cache adds to them; which requests hit is
not.
"""

import collections
import concurrent.futures
import hashlib
import http.client
import json
import subprocess
import time

import geni_origin
import harness
import http_service

FETCHES = 3
OBJECTS = [83, 52, 38, 23, 97]
ROUNDS = 3
ORDERS = {"loop": OBJECTS * ROUNDS, "in a row": [size for size in OBJECTS for _ in range(ROUNDS)]}
CAPACITY = 256
LARGEST = 128  # the largest object that is stored, as an option of the daemon
POLICIES = ["fifo", "lru", "lfu", "clock", "sieve", "s3-fifo", "arc", "gds", "gdsf", "tinylfu",
            "maxs", "rand"]

# What the study printed. Seconds of 3.1, and speeds of 3.3 (a) and (b).
PUBLISHED_SECONDS = {"without": [11.273102, 8.905976, 10.915969],
                     "with": [7.459160, 7.443174, 7.554811]}
PUBLISHED_SPEEDS = {
    "loop": [2.93, 3.38, 7.64, 7.99, 3.46, 1.84, 9.12, 8.23, 7.15, 9.66, 9.65, 5.17, 6.56, 7.83,
             7.08],
    "in a row": [9.66, 11.1, 11.0, 9.42, 11.0, 8.68, 4.74, 10.9, 9.3, 7.55, 10.8, 10.2, 1.2, 11.1,
                 11.1],
}
MIB = 1 << 20  # curl's meter shows speeds in these

DELAY = 0.07  # seconds to the first byte from the other coast; the study states none
# In bytes a second: of the client to the cache, and of the source in 3.1, by the mean times printed
# there; of the source in 3.3, by the mean speed of the loop, in which no request is to hit.
CLIENT_LINK = FETCHES * geni_origin.VIDEO_BYTES / sum(PUBLISHED_SECONDS["with"])
SOURCE_LINK = geni_origin.VIDEO_BYTES / (sum(PUBLISHED_SECONDS["without"]) / FETCHES - DELAY)
OBJECTS_LINK = int(6.51 * MIB)

# Bytes of a MB; lifetimes of the header experiments, and the seconds after which
# the object with Expires and that with both are requested; the policies that are compared, and the
# seeds of those that draw random numbers; whether it is a smoke test.
Scale = collections.namedtuple("Scale",
                               "megabyte lifetimes expires_at both_at policies seeds smoke")
FULL = Scale(10 ** 6, geni_origin.Lifetimes(120, 180, 600, 42), 95, 181, POLICIES, [1, 2, 3], False)
SMOKE = Scale(10 ** 4, geni_origin.Lifetimes(2, 3, 60, 1), 1, 4, ["fifo", "lru", "gdsf", "rand"],
              [1, 2], True)
SMALL = 10 ** 4        # bytes of a MB where only hits are counted
# Seconds before the end of a lifetime from which the page is requested, seconds after it until
# which this goes on at most, and seconds between these requests.
BEFORE, AFTER, INTERVAL = 1.5, 20, 0.25

# A response: seconds after the first request, seconds that it took (curl's time_total), bytes a
# second of its body, status, fields (pairs), bytes of its body, and whether that is what the origin
# sends.
Response = collections.namedtuple("Response", "moment seconds speed status fields size right")
# fetches: {"with" or "without": [Response]}; headers: {experiment: [Response]}; seen: {experiment:
# [status]}, what the origin answered; sequences: {order: [Response]}; stored: sizes in MB that are
# stored after the five objects;
# policies: {policy: {"left": [sizes that left, by seed], order: [number of hits, by seed]}}.
Result = collections.namedtuple("Result",
                                "scale fetches headers seen sequences stored policies failures")


def field(response, name):
    return ", ".join(value for key, value in response.fields if key.lower() == name)


def is_hit(response):
    """Answered by the cache alone (RFC 9211)."""
    return "; hit" in field(response, "cache-status")


def pattern_digest(size):
    digest, step = hashlib.sha256(), len(http_service.PATTERN)
    for at in range(0, size, step):
        digest.update(http_service.PATTERN[:min(step, size - at)])
    return digest.digest()


class Study:
    def __init__(self, children, out, scale):
        self.children, self.out, self.scale = children, out, scale
        self.failures = 0

    def origin(self, name, bandwidth, delay, megabyte):
        log = self.out / f"{name}.requests"
        return harness.Service(self.children, self.out, name, "geni_origin.py", log, delay,
                               int(bandwidth), megabyte,
                               *self.scale.lifetimes), log

    def proxy(self, name, origin, policy, seed, megabyte):
        return harness.ReverseProxy(
            self.children, self.out, name, origin.port, "--policy", policy, "--seed", seed,
            "--capacity-bytes", CAPACITY * megabyte, "--max-page", LARGEST * megabyte,
            "--count-bytes", "body")

    def link(self, name, port):
        """The client's link to a port."""
        return harness.Service(self.children, self.out, name, "link.py", port, CLIENT_LINK)

    def curl(self, name, port, path, begun, *options):
        """One request by curl, as the study made them."""
        body, head = self.out / f"{name}.body", self.out / f"{name}.head"
        words = "%{time_total} %{speed_download} %{http_code}"
        text = self.children.run(
            ["curl", "-s", "--max-time", 300, "-o", body, "-D", head, "-w", words, *options,
             f"http://127.0.0.1:{port}{path}"], self.out / f"{name}.curl.log",
            self.out / f"{name}.curl")
        (self.out / f"{name}.curl").unlink()
        moment = time.monotonic() - begun
        seconds, speed, status = text.split()
        fields = [tuple(part.strip() for part in line.split(":", 1))
                  for line in head.read_text(errors="replace").splitlines()[1:] if ":" in line]
        size = body.stat().st_size
        with body.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        right = status == "200" and digest == pattern_digest(size)
        body.unlink()
        self.failures += not right
        return Response(moment, float(seconds), float(speed), int(status), fields, size, right)

    def end(self, *started):
        for one in started:
            self.children.end(one.child)

    def sleep_until(self, moment):
        while (left := moment - time.monotonic()) > 0:
            if self.children.stopping:
                raise harness.Failure("interrupted")
            time.sleep(min(left, 0.1))

    # ---- 3.1

    def run_fetches(self):
        """{"without": [Response], "with": [Response]}; the cache has the video before it is
        measured."""
        size = geni_origin.VIDEO_BYTES * self.scale.megabyte // 10 ** 6
        origin, _ = self.origin("video-origin", SOURCE_LINK, DELAY, self.scale.megabyte)
        proxy = self.proxy("video", origin, "fifo", 1, self.scale.megabyte)
        link, begun, path = self.link("video-link",
                                      proxy.port), time.monotonic(), f"/objects/{size}"
        found = {"without": [self.curl("video", origin.port, path, begun) for _ in range(FETCHES)]}
        self.curl("video", link.port, path, begun)
        proxy.settle()
        found["with"] = [self.curl("video", link.port, path, begun) for _ in range(FETCHES)]
        self.end(link, proxy, origin)
        return found

    # ---- 3.2

    def run_headers(self):
        """({experiment: [Response]}, {experiment: [status of the origin]}), all experiments at
        once."""
        origin, log = self.origin("headers-origin", 0, 0, self.scale.megabyte)
        proxy = self.proxy("headers", origin, "fifo", 1, self.scale.megabyte)
        lifetimes, begun = self.scale.lifetimes, time.monotonic()
        end = lifetimes.max_age
        # Seconds after the first response of an experiment; those of max-age go on until its second
        # fetch.
        wanted = {"max-age": [end - BEFORE], "expires": [self.scale.expires_at,
                                                         lifetimes.expires + 1.5],
                  "both": [self.scale.both_at]}
        found = {name: [self.curl("headers", proxy.port, f"/headers/{name}", begun)]
                 for name in wanted}
        queue = [(found[name][0].moment + moment, name) for name, moments in wanted.items()
                 for moment in moments]
        last = found["max-age"][0].moment + end + AFTER
        while queue:
            queue.sort()
            moment, name = queue.pop(0)
            self.sleep_until(begun + moment)
            found[name].append(self.curl("headers", proxy.port, f"/headers/{name}", begun))
            if name == "max-age" and is_hit(found[name][-1]) and moment < last:
                queue.append((moment + INTERVAL, name))
        seen = {name: [] for name in wanted}
        for line in log.read_text().splitlines():
            _, path, status = line.split(" ")
            seen[path.rpartition("/")[2]].append(int(status))
        self.end(proxy, origin)
        return found, seen

    # ---- 3.3

    def run_sequence(self, order):
        """The Responses to the objects in this order, over both links."""
        name, megabyte = f"sequence-{order.replace(' ', '-')}", self.scale.megabyte
        origin, _ = self.origin(f"{name}-origin", OBJECTS_LINK, DELAY, megabyte)
        proxy = self.proxy(name, origin, "fifo", 1, megabyte)
        link, found = self.link(f"{name}-link", proxy.port), []
        for size in ORDERS[order]:
            found.append(self.curl(name, link.port, f"/objects/{size * megabyte}", 0))
            proxy.settle()
        self.end(link, proxy, origin)
        return found

    def fetch(self, proxy, megabyte, size, *fields):
        """(status, whether it was a hit) of an object, over no link."""
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=120)
        connection.request("HEAD" if fields else "GET", f"/objects/{size * megabyte}",
                           headers=dict(fields))
        response = connection.getresponse()
        while response.read(1 << 20):
            pass
        connection.close()
        proxy.settle()
        return response.status, "; hit" in response.getheader("Cache-Status", "")

    def list_stored(self, proxy, megabyte):
        """Sizes of the objects that the cache has; the requests change nothing in it."""
        return [size for size in OBJECTS
                if self.fetch(proxy, megabyte, size, ("Cache-Control", "only-if-cached"))[0] == 200]

    def run_five(self, origin, policy, seed, megabyte):
        """What is stored after the five objects, each once."""
        proxy = self.proxy(f"five-{policy}-{seed}-{megabyte}", origin, policy, seed, megabyte)
        for size in OBJECTS:
            self.fetch(proxy, megabyte, size)
        stored = self.list_stored(proxy, megabyte)
        self.end(proxy)
        return stored

    def count_hits(self, origin, policy, seed, order):
        proxy = self.proxy(f"hits-{policy}-{seed}-{order.replace(' ', '-')}", origin, policy, seed,
                           SMALL)
        hits = sum(self.fetch(proxy, SMALL, size)[1] for size in ORDERS[order])
        self.end(proxy)
        return hits

    def run_policies(self):
        """(sizes that are stored after the five objects in full size, with FIFO; what each policy
        does)"""
        origin, _ = self.origin("policies-origin", 0, 0, SMALL)
        stored, found, drawing = self.run_five(origin, "fifo", 0,
                                               self.scale.megabyte), {}, drawing_policies()
        for policy in self.scale.policies:
            seeds = self.scale.seeds if policy in drawing else self.scale.seeds[:1]
            left = [self.run_five(origin, policy, seed, SMALL) for seed in seeds]
            found[policy] = {"left": [[size for size in OBJECTS if size not in some]
                                      for some in left]}
            for order in ORDERS:
                found[policy][order] = [self.count_hits(origin, policy, seed, order)
                                        for seed in seeds]
        self.end(origin)
        return stored, found


def drawing_policies():
    """Those that draw random numbers, so that runs with other seeds differ."""
    text = subprocess.run([harness.BUILD / "sunproxy", "policies", "--json"],
                          stdout=subprocess.PIPE,
                          check=True).stdout
    return [row["name"] for row in json.loads(text) if row["draws"]]


def perform(children, out, scale):
    if not harness.has_program("curl"):
        raise harness.Failure("curl is not installed; the GENI study measures with it")
    out.mkdir()
    study = Study(children, out, scale)
    # Links are the bound of 3.1 and 3.3 and lifetimes that of 3.2, so all of these overlap.
    pool = concurrent.futures.ThreadPoolExecutor(2 + len(ORDERS))
    try:
        headers = pool.submit(study.run_headers)
        fetches = pool.submit(study.run_fetches)
        sequences = {order: pool.submit(study.run_sequence, order) for order in ORDERS}
        fetches = fetches.result()
        sequences = {order: one.result() for order, one in sequences.items()}
        headers, seen = headers.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return Result(scale, fetches, headers, seen, sequences, *study.run_policies(), study.failures)
