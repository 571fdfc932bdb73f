"""sunproxy report: the page in a real browser."""

import json
import re
import unittest

import browser
import harness
import report_case

SHIPPED = harness.TOP / "datasets"
ALWAYS = ["pattern", "shares", "hits", "curve-urls", "runtime", "time", "anomaly"]
SIZED = ["sizes", "curve-bytes", "curve-byte-misses"]


@unittest.skipUnless(browser.PROGRAM, "no Chromium is installed")
@unittest.skipIf(harness.TSAN, "the page is the same")
class PageTest(report_case.ReportCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def figure(self, name, script):
        """What a script comes to, told the figure and the first trace's tables."""
        return self.browser.run(f"""((figure, tables) => {script})(
            document.querySelector('figure[data-figure="{name}"]'),
            JSON.parse(document.getElementById("data").textContent).traces[0].tables)""")

    def said(self, name):
        """The sentence of a figure, with spaces that break."""
        return self.figure(name, "figure.querySelector('figcaption p').textContent").replace("\xa0", " ")

    def check(self, page, figures, **how):
        self.browser.open(page, **how)
        self.assertEqual(self.browser.complaints(), [])
        document = self.browser.run("document.documentElement.outerHTML").partition(
            '<script type="application/json"')[0]
        trouble = re.findall(r'class="trouble">([^<]*drawn[^<]*)<', document)
        self.assertEqual(trouble, [])
        self.assertTrue('data-errors="0"' in document, "the scripts did not get to their end")
        drawn = re.findall(r'<figure[^>]* data-figure="([a-z-]+)"', document)
        self.assertEqual(sorted(drawn), sorted(figures))
        for part in re.split(r"<figure", document)[1:]:
            name = re.search(r'data-figure="([a-z-]+)"', part)[1]
            drawing = part[part.index('class="drawing"'):]
            self.assertTrue(re.search(r"<(path|circle|rect)[^>]* (d|cx|x)=", drawing), name)
            bad = re.search(r".{0,60}(NaN|undefined|Infinity).{0,60}", part)
            self.assertIsNone(bad, f"{name}: {bad and bad[0]}")
            self.assertTrue(re.search(r"<figcaption><h3>[^<]+</h3><p>[^<]{40,}</p>", part), name)
            self.assertIn('data-csv="', part, name)
        return document

    # ---- what there is to draw -------------------------------------------------------------------

    def test_all_figures_are_drawn(self):
        one, two = (SHIPPED / name / "History" for name in ("dataset1", "dataset2"))
        live = self.dir / "live.json"
        live.write_text(json.dumps({
            "trace": str(one), "requests": 997, "policy": "lru", "capacity_urls": 7,
            "capacity_bytes": 0, "mean": {"mean_us": 5000.0, "hit_ratio": 0.85}}))
        page = self.report(one, two, "--sizes", SHIPPED / "dataset1/sizes.tsv", "--sizes",
                           SHIPPED / "dataset2/sizes.tsv", "--live", live, "--policy", "all")
        self.check(page, (ALWAYS + SIZED) * 2 + ["access"])

    def test_without_sizes_and_on_a_narrow_screen(self):
        page = self.report(SHIPPED / "dataset1/History")
        self.check(page, ALWAYS, width=500)

    def test_traces_with_hardly_anything(self):
        for urls in (["http://h/a"], ["http://h/a"] * 3, [f"http://h/{n}" for n in range(5)],
                     ["http://h/a\t1", "http://h/b\t1"], ["http://h/a\t5", "http://h/a\t5"]):
            with self.subTest(urls=urls):
                page = self.report(self.trace(urls))
                self.check(page, ALWAYS + (SIZED if "\t" in urls[0] else []))

    def test_many_requests(self):
        urls = [f"http://h/{n * n % 4999}\t{100 + n * n % 4999}" for n in range(20000)]
        self.check(self.report(self.trace(urls), "--points", "5"), ALWAYS + SIZED)

    def test_no_policy_that_can_be_had(self):
        trace = SHIPPED / "dataset1/History"
        for policies, hits in (("opt", "OPT knows the future. For comparison, a cache that never"),
                               ("none", "Nothing is stored, so nothing hits; a cache that never"),
                               ("none,opt", "OPT knows the future.")):
            with self.subTest(policies=policies):
                self.check(self.report(trace, "--policy", policies), ALWAYS)
                self.assertIn(hits, self.said("hits"))
                self.assertNotIn("lies lowest", self.said("curve-urls"))
                self.assertNotIn("NONE", self.said("hits") + self.said("curve-urls"))

    # ---- what is said ----------------------------------------------------------------------------

    def test_the_bound_is_one_for_those_that_store_every_page(self):
        self.check(self.report(SHIPPED / "dataset1/History", "--policy", "lru,opt"), ALWAYS)
        self.assertIn("no policy that stores whatever it misses can come below",
                      self.said("curve-urls"))
