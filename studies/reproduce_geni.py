"""The GENI study of web caching, repeated over HTTP: a reverse proxy before an origin whose link has a
limited bandwidth and an added latency.

The study's text and figures are not at hand; known are its questions, which the claims below state. The
sizes of its objects and of its cache are used as they are (a MB is 10^6 bytes). The link, the lifetimes
of the header experiments and all criteria are chosen here.

1. A video of 87 MB, fetched three times with a cache and three times without.
2. Header experiments: a page whose lifetime Expires states (a), max-age (b), and both, differently (c).
3. Objects of 83, 52, 38, 23 and 97 MB in a cache of 256 MB, in this order and in the opposite one; each of
   them again in either order, under FIFO and other policies.
"""

import collections
import concurrent.futures
import http.client
import json
import subprocess
import time

import geni_origin
import harness
import http_service

VIDEO = 87
OBJECTS = [83, 52, 38, 23, 97]
CAPACITY = 256
LARGEST = 128  # the largest object that is stored, as an option of the daemon
FETCHES = 3
POLICIES = ["fifo", "lru", "lfu", "rand", "maxs", "gds", "gdsf", "tinylfu", "s3-fifo", "arc", "sieve"]
# Orders of the first and of the second round through the objects.
ORDERS = {"listed": OBJECTS, "reversed": OBJECTS[::-1]}
ROUNDS = [(first, second) for first in ORDERS for second in ORDERS]
# Seconds after the first request of a header experiment: within the lifetime and behind it.
MOMENTS = [0, 1.5, geni_origin.LIFETIME + 1.5]

# A MB in bytes; bytes a second of the link of the video, and of that of the objects; seconds of
# latency; runs of the video, and of policies that draw random numbers; whether it is a smoke test.
Scale = collections.namedtuple("Scale", "megabyte video_link objects_link latency repeats smoke")
FULL = Scale(10 ** 6, 25 * 10 ** 6, 250 * 10 ** 6, 0.05, 3, False)
SMOKE = Scale(10 ** 4, 4 * 10 ** 6, 250 * 10 ** 6, 0.01, 2, True)
AT_ONCE = 4

# A response: seconds until its end, status, fields (pairs), whether its body is what the origin sends.
Response = collections.namedtuple("Response", "seconds status fields right")
# video: {"with" or "without": [[seconds of each fetch] of each run]}; headers: {experiment: [Response]};
# seen: {experiment: [status]}, what the origin answered; objects: {(policy, first order, second order):
# [[whether each request of the second round was a hit] of each run]}; failures: responses that are wrong.
Result = collections.namedtuple("Result", "scale video headers seen objects failures seconds")


def field(response, name):
    return ", ".join(value for key, value in response.fields if key.lower() == name)


def is_hit(response):
    """Answered by the cache alone (RFC 9211)."""
    return "; hit" in field(response, "cache-status")


def is_validated(response):
    """Answered by the cache after the origin has validated what is stored."""
    return "; fwd-status=304" in field(response, "cache-status")


class Client:
    """Fetches whole bodies, each on a connection of its own, into one buffer."""

    def __init__(self, largest):
        self.buffer = memoryview(bytearray(largest))

    def get(self, port, path, size=None):
        """The body must be `size` bytes of the pattern, if that is given."""
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", path)
        response = connection.getresponse()
        have = 0
        while count := response.readinto(self.buffer[have:]):
            have += count
        seconds = time.monotonic() - begun
        connection.close()
        right = response.status == 200 and (size is None or self._is_pattern(have, size))
        return Response(seconds, response.status, response.getheaders(), right)

    def _is_pattern(self, have, size):
        step = len(http_service.PATTERN)
        return have == size and all(
            bytes(self.buffer[at:min(at + step, size)]) == http_service.PATTERN[:min(step, size - at)]
            for at in range(0, size, step))


class Study:
    def __init__(self, children, out, scale):
        self.children, self.out, self.scale = children, out, scale
        self.failures = 0

    def origin(self, name, bandwidth):
        log = self.out / f"{name}.requests"
        return harness.Service(self.children, self.out, name, "geni_origin.py", log, self.scale.latency,
                               bandwidth), log

    def proxy(self, name, origin, policy, seed):
        scale = self.scale
        return harness.ReverseProxy(
            self.children, self.out, name, origin.port, "--policy", policy, "--seed", seed,
            "--capacity-bytes", CAPACITY * scale.megabyte, "--max-page", LARGEST * scale.megabyte,
            "--count-bytes", "body")

    def get_object(self, client, port, megabytes):
        size = megabytes * self.scale.megabyte
        response = client.get(port, f"/objects/{size}", size)
        if not response.right:
            self.failures += 1
        return response

    def run_video(self, how, run):
        """Seconds of each fetch."""
        name = f"video-{how}-{run}"
        origin, _ = self.origin(f"{name}-origin", self.scale.video_link)
        proxy = self.proxy(name, origin, "lru", run) if how == "with" else None
        client = Client(VIDEO * self.scale.megabyte + 1)
        times = [self.get_object(client, (proxy or origin).port, VIDEO).seconds for _ in range(FETCHES)]
        for child in (proxy, origin):
            if child:
                self.children.end(child.child)
        return times

    def run_headers(self):
        """({experiment: [Response]}, {experiment: [status of the origin]}), all experiments at once."""
        origin, log = self.origin("headers-origin", 0)
        proxy = self.proxy("headers", origin, "lru", 1)
        client, responses = Client(1 << 16), {name: [] for name in geni_origin.EXPERIMENTS}
        begun = time.monotonic()
        for moment in MOMENTS:
            time.sleep(max(0, begun + moment - time.monotonic()))
            for name, line in responses.items():
                line.append(client.get(proxy.port, f"/headers/{name}"))
        seen = {name: [] for name in responses}
        for line in log.read_text().splitlines():
            _, path, status = line.split(" ")
            seen[path.rpartition("/")[2]].append(int(status))
        for child in (proxy, origin):
            self.children.end(child.child)
        return responses, seen

    def run_objects(self, policy, first, second, seed):
        name = f"{policy}-{first[0]}{second[0]}-{seed}"
        origin, _ = self.origin(f"{name}-origin", self.scale.objects_link)
        proxy = self.proxy(name, origin, policy, seed)
        client = Client(max(OBJECTS) * self.scale.megabyte + 1)
        hits = []
        for megabytes in ORDERS[first] + ORDERS[second]:
            hits.append(is_hit(self.get_object(client, proxy.port, megabytes)))
            if not hits[-1]:
                proxy.settle()
        for child in (proxy, origin):
            self.children.end(child.child)
        return hits[len(OBJECTS):]


def drawing_policies():
    """Those of POLICIES that draw random numbers, so that runs with other seeds differ."""
    text = subprocess.run([harness.BUILD / "sunproxy", "policies", "--json"], stdout=subprocess.PIPE,
                          check=True).stdout
    return [row["name"] for row in json.loads(text) if row["draws"] and row["name"] in POLICIES]


def perform(children, out, scale):
    begun = time.monotonic()
    out.mkdir()
    study = Study(children, out, scale)
    # The header experiments wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        headers = pool.submit(study.run_headers)
        # Without a cache the link of each run is the bound, so these overlap. With one they do not.
        video = {}
        for how, at_once in (("without", scale.repeats), ("with", 1)):
            wanted = [(how, run) for run in range(1, scale.repeats + 1)]
            video[how] = list(harness.run_all(study.run_video, wanted, at_once).values())
        responses, seen = headers.result()
    drawing = drawing_policies()
    wanted = [(policy, first, second, seed) for policy in POLICIES for first, second in ROUNDS
              for seed in range(1, 1 + (scale.repeats if policy in drawing else 1))]
    hits = harness.run_all(study.run_objects, wanted, AT_ONCE)
    objects = {(policy, first, second): [] for policy in POLICIES for first, second in ROUNDS}
    for policy, first, second, seed in wanted:
        objects[policy, first, second].append(hits[policy, first, second, seed])
    return Result(scale, video, responses, seen, objects, study.failures, time.monotonic() - begun)
