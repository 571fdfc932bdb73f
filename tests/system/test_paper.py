"""The paper's dataset1, replayed against the daemon: every outcome as the authors' server logged it.

The table is what a simulation of the same rules counts (requests: 997, distinct URLs: 68).
"""

import unittest

import harness
import rpc

FOLDER = harness.DATASETS / "sunrpc-paper"
HITS = {  # entries: hits of each policy
    7: {"lru": 853, "fifo": 832, "lfu": 810},
    14: {"lru": 902, "fifo": 885, "lfu": 862},
    21: {"lru": 917, "fifo": 904, "lfu": 895},
    28: {"lru": 923, "fifo": 913, "lfu": 913},
    35: {"lru": 926, "fifo": 919, "lfu": 920},
    56: {"lru": 929, "fifo": 927, "lfu": 929},
}


def authors_log():
    """What the authors' server wrote, line by line: (outcome, url, victim)."""
    rows = []
    for line in (FOLDER / "LRU_CacheSize7_test1.txt").read_text().splitlines():
        if line.startswith("New Cache Block for:"):
            rows.append(("new", line.split(":", 1)[1], None))
        elif line.startswith("Cache Hit for:"):
            rows.append(("hit", line.split(":", 1)[1], None))
        elif line.startswith("Evicted Cache Block of: "):
            victim, url = line[len("Evicted Cache Block of: ") :].split(",for:")
            rows.append(("evicted", url, victim))
    return rows


@unittest.skipUnless(FOLDER.exists(), f"{FOLDER} is not here")
class PaperTest(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.urls = (FOLDER / "dataset1-urls.txt").read_text().splitlines()
        self.o = self.origin("--size-min", "100", "--size-max", "3000")
        self.d = self.daemon("--freshness", "off", "--shards", "1", "--policy", "lru", "--capacity-urls", "7",
                             origin=self.o)
        self.c = rpc.Connection(self.d.socket)
        self.addCleanup(self.c.close)

    def replay(self):
        """[(outcome, url, victim)] of the whole sequence, in order."""
        rows = []
        for url in self.urls:
            page = self.c.get(url, flags=rpc.FLAG_WANT_VICTIMS)
            self.assertEqual(page.status, "ok", page.sentence)
            if page.source == "hit":
                rows.append(("hit", url, None))
            elif page.evicted:
                self.assertEqual((page.source, page.evicted), ("miss", 1))
                rows.append(("evicted", url, page.victims[0]))
            else:
                self.assertEqual(page.source, "miss")
                rows.append(("new", url, None))
        return rows

    def test_lru_of_capacity_seven_line_by_line(self):
        expected = authors_log()
        self.assertEqual(len(expected), 997)
        self.assertEqual([r[1] for r in expected], self.urls)
        rows = self.replay()
        for n, (mine, theirs) in enumerate(zip(rows, expected)):
            self.assertEqual(mine, theirs, f"request {n + 1}")
        self.assertEqual(len(rows), 997)
        s = self.c.stat()
        self.assertEqual((s.hits, s.misses, s.evictions), (853, 144, 137))

    def test_hits_of_three_policies_at_six_sizes(self):
        for entries, by_policy in HITS.items():
            for policy, hits in by_policy.items():
                with self.subTest(policy=policy, entries=entries):
                    self.assertEqual(
                        self.c.set(policy=policy, set_capacity=True, urls=entries, shards=1,
                                   cold=True)[0], "ok")
                    rows = self.replay()
                    self.assertEqual(sum(r[0] == "hit" for r in rows), hits)
                    s = self.c.stat()
                    self.assertEqual((s.requests, s.hits), (997, hits))
