"""sunproxy report: the page in a real browser."""

import base64
import csv
import hashlib
import io
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
    """What the page says and draws. The program that makes it is the release build: the tests of
    test_report.py make such pages with the build under test."""

    seconds = 60
    client = harness.release_build(harness.RELEASE_SUNPROXY, harness.SUNPROXY)

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def figure(self, name, script):
        """What a script yields for the figure and the first trace's tables."""
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
        # Ticks are plain numbers: no thousandths of a URL, no long fractions.
        ticks = re.findall(r"<text[^>]*>([^<]*)</text>", document)
        self.assertEqual([t for t in ticks if re.search(r"[0-9]m$|\.[0-9]{6}", t)], [])
        drawn = re.findall(r'<figure[^>]* data-figure="([a-z-]+)"', document)
        self.assertEqual(sorted(drawn), sorted(figures))
        for part in re.split(r"<figure", document)[1:]:
            name = re.search(r'data-figure="([a-z-]+)"', part)[1]
            drawing = part[part.index('class="drawing"'):]
            self.assertTrue(re.search(r"<(path|circle|rect)[^>]* (d|cx|x)=", drawing), name)
            bad = re.search(r"NaN|undefined|Infinity", part)
            self.assertIsNone(bad, f"{name}: {bad and part[max(0, bad.start() - 60):][:130]}")
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
        page = self.report("--separate", one, two, "--sizes", SHIPPED / "dataset1/sizes.tsv", "--sizes",
                           SHIPPED / "dataset2/sizes.tsv", "--live", live, "--policy", "all")
        self.check(page, (ALWAYS + SIZED) * 2 + ["access"])

    def test_without_sizes_and_on_a_narrow_screen(self):
        page = self.report(SHIPPED / "dataset1/History")
        self.check(page, ALWAYS, width=500)

    def test_traces_with_hardly_anything(self):
        for urls in (["http://h/a"], ["http://h/a"] * 3, [f"http://h/{n}" for n in range(5)],
                     ["http://h/a\t2", "http://h/b\t2"], ["http://h/a\t5", "http://h/a\t5"]):
            with self.subTest(urls=urls):
                page = self.report(self.trace(urls))
                self.check(page, ALWAYS + (SIZED if "\t" in urls[0] else []))

    def test_many_requests(self):
        urls = [f"http://h/{n * n % 4999}\t{100 + n * n % 4999}" for n in range(20000)]
        self.check(self.report(self.trace(urls), "--points", "5"), ALWAYS + SIZED)

    def test_no_policy_that_can_be_had(self):
        trace = SHIPPED / "dataset1/History"
        for policies, hits in (("opt", "OPT knows the future. For comparison, an infinite cache"),
                               ("none", "Nothing is stored, so nothing hits; an infinite cache"),
                               ("none,opt", "OPT knows the future.")):
            with self.subTest(policies=policies):
                self.check(self.report(trace, "--policy", policies), ALWAYS)
                self.assertIn(hits, self.said("hits"))
                self.assertNotIn("lowest mean", self.said("curve-urls"))
                self.assertNotIn("NONE", self.said("hits") + self.said("curve-urls"))

    # ---- what the page may do ----------------------------------------------------------------------

    def test_only_its_own_scripts_and_styles(self):
        page = self.report(SHIPPED / "dataset1/History")
        text = page.read_text()
        policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
        self.assertNotIn("unsafe", policy)
        for kind, name in (("script", "script-src"), ("style", "style-src")):
            contents = re.findall(f"(?s)<{kind}>(.*?)</{kind}>", text)
            hashes = ["'sha256-" + base64.b64encode(hashlib.sha256(c.encode()).digest()).decode() + "'"
                      for c in contents]
            self.assertEqual(re.search(f"{name} ([^;]*)", policy)[1].split(), hashes)
        self.check(page, ALWAYS)
        # Drawn with its styles, keys included.
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.facts')).display"), "grid")
        keys = self.figure("hits", """[...figure.querySelectorAll(".keys svg line")].map((line) =>
            getComputedStyle(line).stroke + getComputedStyle(line).strokeDasharray)""")
        self.assertEqual(len(set(keys)), len(keys))
        self.assertTrue(self.browser.ask("Page.printToPDF")["data"])
        self.assertEqual(self.browser.complaints(), [])
        # What a trace could smuggle in does nothing.
        self.browser.run("""(() => {
            const script = document.createElement("script");
            script.textContent = "window.smuggled = 1";
            document.body.append(script);
            const box = document.createElement("div");
            box.innerHTML = '<img src="data:," onerror="window.smuggled = 2"><p style="color: red" id="red">x</p>';
            document.body.append(box);
        })()""")
        self.assertIsNone(self.browser.run("new Promise((done) => setTimeout(() => done(window.smuggled), 200))"))
        self.assertNotEqual(self.browser.run("getComputedStyle(document.getElementById('red')).color"),
                            "rgb(255, 0, 0)")
        self.assertTrue(any("Content Security Policy" in json.dumps(c) for c in self.browser.complaints()))

    # ---- what is said ----------------------------------------------------------------------------

    def test_the_bound_is_one_for_those_that_store_every_page(self):
        self.check(self.report(SHIPPED / "dataset1/History", "--policy", "lru,opt"), ALWAYS)
        self.assertIn("no policy that stores every page it misses has a lower miss ratio",
                      self.said("curve-urls"))

    def test_what_is_said_of_opt_and_the_anomaly_holds_with_sizes_too(self):
        self.check(self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv"),
                   ALWAYS + SIZED)
        self.assertIn("with capacities in pages, no policy that stores", self.said("curve-urls"))
        self.assertIn("OPT ignores sizes; with variable sizes it is not an upper bound. PFOO-L is a bound",
                      self.said("curve-bytes"))
        for name, bounds in (("curve-bytes", 1), ("curve-byte-misses", 1), ("curve-urls", 0)):
            self.assertEqual(self.figure(name, """figure.querySelectorAll(
                "[aria-label=line][aria-description=bound] path").length"""), bounds, name)
        self.assertIn("In pages LRU and OPT cannot show the anomaly", self.said("anomaly"))
        self.assertIn("In bytes, with variable sizes, that is not so", self.said("anomaly"))
        self.assertIn("Points on the line are first requests: compulsory misses.", self.said("pattern"))
        self.assertIn("Moving-average hit ratio (window: 1/12 of the trace)", self.said("time"))

    def test_policies_that_tie_are_named_as_ties(self):
        self.check(self.report(self.trace([f"http://h/{n}" for n in range(30)]), "--policy", "lru,fifo,lfu"), ALWAYS)
        self.assertIn("all policies tie (0 %)", self.said("hits"))
        self.assertIn("Ties at every size: LRU, FIFO and LFU", self.said("hits"))
        self.assertIn("No cache: no URL is requested twice.", self.recommendation())
        urls = [f"http://h/{n}" for _ in range(3) for n in range(10)]
        self.check(self.report(self.trace(urls), "--policy", "lru,fifo"), ALWAYS)
        self.assertIn("LRU and FIFO (a tie) with 10 URLs: the smallest simulated cache that reaches 90 % of an "
                      "infinite cache’s hit ratio (66.7 % of 66.7 %)", self.recommendation())

    def test_a_recommendation_from_few_requests_is_called_a_guess(self):
        for rounds, guess in ((3, True), (60, False)):
            urls = [f"http://h/{n}" for _ in range(rounds) for n in range(10)]
            self.check(self.report(self.trace(urls), "--policy", "lru,fifo"), ALWAYS)
            # Two thirds of 30 requests: 1.96 standard errors are 16.9 points.
            said = "Too little data: the ratio is uncertain by ±17 points (95 %) or more, so this is a guess."
            self.assertEqual(said in self.recommendation(), guess, self.recommendation())
            self.assertEqual("Too little data" in self.recommendation(), guess)

    def recommendation(self):
        return self.browser.run("document.querySelector('.recommendation').textContent").replace("\xa0", " ")

    def test_the_recommendation_is_what_the_tables_say(self):
        page = self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv")
        self.check(page, ALWAYS + SIZED)
        data = json.loads(re.search(r'(?s)id="data">(.*?)</script>', page.read_text())[1])["traces"][0]
        enough = [r for r in self.table(data, "curve_bytes")
                  if r["policy"] != "opt" and 1 - r["miss_ratio"] >= 0.9 * data["infinite"]["hit_ratio"]]
        size = min(r["capacity_bytes"] for r in enough)
        best = min((r for r in enough if r["capacity_bytes"] == size), key=lambda r: r["miss_ratio"])
        said = self.recommendation()
        self.assertIn(best["policy"].upper(), said)
        self.assertIn(f"({100 * (1 - best['miss_ratio']):.1f} % of {100 * data['infinite']['hit_ratio']:.1f} %)", said)
        # Above the facts and the figures.
        self.assertTrue(self.browser.run("""document.querySelector(".recommendation").compareDocumentPosition(
            document.querySelector(".facts")) === Node.DOCUMENT_POSITION_FOLLOWING"""))

    def test_lines_are_labelled_at_their_ends_and_highlighted(self):
        self.check(self.report(SHIPPED / "dataset1/History"), ALWAYS)
        for name in ("hits", "curve-urls", "time"):
            with self.subTest(name):
                labels = self.figure(name, """[...figure.querySelectorAll("[aria-label='line label']")].map((g) =>
                    [g.dataset.policy, g.querySelector("text").getBoundingClientRect().top])""")
                keys = self.figure(name, "[...figure.querySelectorAll('.keys button')].map((k) => k.dataset.policy)")
                self.assertEqual(sorted(p for p, _ in labels), sorted(keys))
                tops = sorted(top for _, top in labels)
                self.assertGreater(min(b - a for a, b in zip(tops, tops[1:])), 10, "labels overlap")
                # Right of the lines, aligned at the left.
                lefts = self.figure(name, """[...figure.querySelectorAll("[aria-label='line label'] text")].map((e) =>
                    Math.round(e.getBoundingClientRect().left))""")
                self.assertLessEqual(max(lefts) - min(lefts), 2)
        dimmed = """[...document.querySelectorAll("[data-figure=hits] g[aria-label=line]")].filter((g) =>
            !g.hasAttribute("data-dim")).map((g) => g.getAttribute("aria-description"))"""
        self.browser.run("document.querySelector(\"[data-figure=hits] [data-policy=arc], \" + "
                         "\"[data-figure=hits] g[data-policy=lfu]\").focus()")
        focused = self.browser.run(dimmed)
        self.assertEqual(len(focused), 1)
        self.browser.run("document.activeElement.blur()")
        self.assertGreater(len(self.browser.run(dimmed)), 5)
        self.browser.run("""document.querySelector("[data-figure=hits] g[data-policy=lru]").dispatchEvent(
            new MouseEvent("mouseenter"))""")
        self.assertEqual(self.browser.run(dimmed), ["policy lru"])
    def test_on_a_phone_each_family_has_a_panel(self):
        self.check(self.report(SHIPPED / "dataset1/History"), ALWAYS, width=390)
        for name in ("hits", "curve-urls", "time"):
            panels = self.figure(name, """[...figure.querySelectorAll(".panels svg")].map((svg) => [
                [...svg.querySelectorAll("[aria-label='line label']")].map((g) => g.dataset.policy),
                [...svg.querySelectorAll("g[aria-label=line]:not([data-back])")].map((g) =>
                    g.getAttribute("aria-description").slice("policy ".length)),
                svg.querySelectorAll("g[aria-label=line]").length])""")
            keys = self.figure(name, "[...figure.querySelectorAll('.keys button')].map((k) => k.dataset.policy)")
            self.assertEqual(len(panels), 5)
            for labelled, shown, lines in panels:
                self.assertEqual(sorted(labelled), sorted(shown))
                self.assertIn("opt", labelled)
                self.assertLessEqual(len(labelled), 4)
                self.assertEqual(lines, len(keys))
            self.assertEqual({p for labelled, *_ in panels for p in labelled}, set(keys))
        # A few lines need none.
        self.check(self.report(SHIPPED / "dataset1/History", "--policy", "lru,fifo,opt"), ALWAYS, width=390)
        self.assertEqual(self.figure("hits", "figure.querySelectorAll('.panels').length"), 0)

    def labels(self, name, kind):
        return self.figure(name, f"""[...figure.querySelectorAll("[aria-description='{kind}'] text")].map((e) =>
            e.textContent)""")

    def ticks(self, name, axis):
        return self.figure(name, f"""[...figure.querySelectorAll(
            "g[aria-label^='{axis}-axis tick label'] text")].map((tick) => tick.textContent)""")

    def test_axes_of_time(self):
        self.check(self.report(SHIPPED / "dataset1/History"), ALWAYS)
        # 26 sittings, two a day from 4 March on.
        for name in ("pattern", "runtime"):
            self.assertTrue(self.labels(name, "date label"))
            for text in self.labels(name, "date label"):
                self.assertRegex(text, r"^([4-9]|1[0-7]) Mar$")
        said = "[...figure.querySelectorAll('svg text')].map((e) => e.textContent).join(' ')"
        self.assertIn("time (UTC)", self.figure("time", said))
        self.assertIn("request number", self.figure("pattern", said))
        # Times from the beginning of a trace are no dates.
        table = self.dir / "relative.csv"
        table.write_text("time,url\n" + "".join(f"{n * 60},http://h/{n % 50}\n" for n in range(600)))
        self.check(self.report(table), ALWAYS)
        self.assertIn("2 h", self.labels("pattern", "date label"))
        self.assertIn("hours since the beginning of the trace", self.figure("time", said))
        # Without times requests are numbered.
        self.check(self.report(self.trace([f"http://h/{n % 50}" for n in range(600)])), ALWAYS)
        self.assertEqual(self.labels("pattern", "date label"), [])
        self.assertIn("request number", self.figure("time", said))

    def test_shades_and_bands_have_keys(self):
        keys = "[...figure.querySelectorAll('.keys > span')].map((k) => k.textContent)"
        self.check(self.report(self.trace([f"http://h/{n * n % 4999}" for n in range(20000)])), ALWAYS)
        self.assertRegex(self.figure("pattern", keys)[0], r"^requests in a cell: 1 to [0-9]+, logarithmic$")
        shades = self.figure("pattern", """[...figure.querySelectorAll('.keys rect')].map((r) =>
            +getComputedStyle(r).fillOpacity)""")
        self.assertEqual((len(shades), shades), (4, sorted(shades)))
        for name in ("hits", "curve-urls"):
            self.assertIn("± 1 standard deviation over 5 seeds", self.figure(name, keys))
        self.check(self.report(SHIPPED / "dataset1/History", "--policy", "lru,opt"), ALWAYS)
        self.assertNotIn("± 1 standard deviation over 5 seeds", self.figure("hits", keys))

    def test_axes_do_not_exaggerate_a_few_requests(self):
        # 40 requests: their policies differ by a request or two, which is 2.5 points each.
        few = [f"http://h/{n * n % 7}" for n in range(40)]
        self.check(self.report(self.trace(few), "--policy", "lru,fifo,arc", "--capacity", "4"), ALWAYS)
        for name in ("hits", "time"):
            ticks = [float(t) for t in self.ticks(name, "y")]
            self.assertGreaterEqual(max(ticks) - min(ticks), 40, name)
        # Of 40,000 the same ratios may be distinguished.
        self.check(self.report(self.trace(few * 1000), "--policy", "lru,fifo,arc", "--capacity", "4"), ALWAYS)
        ticks = [float(t) for t in self.ticks("hits", "y")]
        self.assertLess(max(ticks) - min(ticks), 40)
        # Counts begin at 0.
        self.assertIn("0", self.ticks("anomaly", "y"))

    def test_the_capacity_at_which_a_large_page_first_fits_is_marked(self):
        self.check(self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv"), ALWAYS + SIZED)
        for name in ("curve-bytes", "curve-byte-misses"):
            pages = self.figure(name, "tables.large_pages.rows")
            self.assertGreater(len(pages), 1)
            marks = self.labels(name, "large page label")
            self.assertEqual(",".join(marks), ",".join(str(n + 1) for n in range(len(pages))))
            self.assertEqual(self.figure(name, "figure.querySelectorAll(\"[aria-description='large page'] line\").length"),
                             len(pages))
            self.assertIn("at which a large page first fits", self.said(name))
            for url, *_ in pages:
                self.assertIn(url.removeprefix("https://").removeprefix("http://")[:40], self.said(name))
        self.assertNotIn("large page", self.said("curve-urls"))

    def test_a_fall_where_a_large_page_first_fits_is_explained(self):
        # Small pages in turn, and every seventh request for a page that a cache of 60,000 bytes cannot store.
        urls = [f"http://h/large\t70000" if n % 7 == 0 else f"http://h/{n % 50}\t1000" for n in range(3000)]
        for sizes, falls in (("60000B,75000B", True), ("75000B,130000B", False), ("50,51", False)):
            self.check(self.report(self.trace(urls), "--policy", "lru,fifo", "--count-bytes", "body", "--capacity", sizes),
                       ALWAYS + SIZED)
            self.assertEqual("it falls under 2 of 2 policies: 1 large page (68 KiB) first fit" in self.said("hits"),
                             falls, self.said("hits"))

    def test_paper_is_compact(self):
        page = self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv")
        for width in (390, 1200):
            self.check(page, ALWAYS + SIZED, width=width)
            sheets = base64.b64decode(self.browser.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
            self.assertIn(len(re.findall(rb"/Type ?/Page\b", sheets)), (3, 4), width)
            # The screen has its own widths again.
            self.assertLessEqual(*self.browser.run("[document.documentElement.scrollWidth, innerWidth]"))

    def test_related_policies_have_the_colour_of_their_family(self):
        self.check(self.report(SHIPPED / "dataset1/History", "--policy", "all"), ALWAYS)
        strokes = dict(self.figure("hits", """[...figure.querySelectorAll(".keys button")].map((k) =>
            [k.dataset.policy, getComputedStyle(k.querySelector("line")).stroke])"""))
        for classic, others in (("lru", ("slru", "2q", "arc", "lirs")), ("lfu", ("tinylfu", "lhd")),
                                ("fifo", ("clock", "sieve", "s3-fifo")), ("maxs", ("gdsf", "gds"))):
            self.assertEqual({strokes[o] for o in others}, {strokes[classic]}, classic)
        self.assertEqual(len({strokes[c] for c in ("lru", "lfu", "fifo", "rand", "maxs")}), 5)
        # And no two lines look the same.
        looks = self.figure("hits", """[...figure.querySelectorAll(".keys svg line")].map((line) =>
            getComputedStyle(line).stroke + getComputedStyle(line).strokeDasharray)""")
        self.assertEqual(len(set(looks)), len(looks))

    def test_provenance(self):
        trace = self.dir / "log"
        trace.write_text("".join(f'h - - [01/Jan/2024:00:00:{n:02} +0000] "{m} /{n % 4} HTTP/1.1" 200 {5 + n % 4}\n'
                                 for n, m in enumerate(["GET"] * 12 + ["POST"] * 3)))
        self.check(self.report(trace, "--seed", "7", "--seeds", "3"), ALWAYS + SIZED)
        footer = dict(self.browser.run("""[...document.querySelectorAll(".provenance dt")].map((dt) =>
            [dt.textContent, dt.nextElementSibling.textContent])"""))
        footer = {k: v.replace("\xa0", " ") for k, v in footer.items()}
        self.assertIn("--seed 7 --seeds 3", footer["Command"])
        self.assertIn(str(trace), footer["Command"])
        self.assertRegex(footer["Command"], "^sunproxy report -o ")
        self.assertEqual(footer["Excluded requests"], "log: 3 method")
        self.assertEqual(footer["Randomised policies"], "3 runs with seeds from 7 on")
        self.assertRegex(footer["Versions"], r"^sunproxy [0-9.]+; Observable Plot [0-9.]+ and D3 [0-9.]+ ")
        self.assertRegex(footer["Machine"], r"^Linux .+, \w+, [0-9]+ processors?$")
        self.assertRegex(footer["Date"], r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$")

    def test_imputed_sizes_are_marked(self):
        urls = [f"http://h/{n % 10}" + (f"\t{100 + n % 10}" if n % 10 < 8 else "") for n in range(30)]
        self.check(self.report(self.trace(urls)), ALWAYS + SIZED)
        self.assertIn("Imputed sizes: 2 URLs of 10", self.browser.run(
            "document.querySelector('section > .soft').textContent").replace("\xa0", " "))
        self.assertIn("The sizes of 2 URLs of 10 are imputed", self.said("sizes"))

    def test_a_run_without_a_cache_has_no_size(self):
        lives = self.live("none", policy="none", capacity_bytes=256 << 20, mean={"mean_us": 9000, "hit_ratio": 0})
        lives += self.live("lru", policy="lru", capacity_urls=7, mean={"mean_us": 5000, "hit_ratio": 0.8})
        page = self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv", *lives)
        self.check(page, ALWAYS + SIZED + ["access"])
        self.assertIn("against 9.0 ms without a cache", self.said("access"))
        rows = self.browser.run('JSON.parse(document.getElementById("data").textContent).traces[0].tables.live.rows')
        self.assertEqual([r[:3] for r in rows], [["none", 0, 0], ["lru", 7, 0]])

    def test_the_seeds_of_a_policy_that_draws_are_a_band(self):
        urls = [f"http://h/{n * n % 7919 % 300}" for n in range(4000)]
        bands = """figure.querySelectorAll("[aria-label=area][aria-description='seeds of rand'] path").length"""
        for seeds, count in (("5", 1), ("1", 0)):
            self.check(self.report(self.trace(urls), "--policy", "rand,lru", "--points", "6", "--seeds", seeds),
                       ALWAYS)
            for name in ("hits", "curve-urls"):
                self.assertEqual(self.figure(name, bands), count, (name, seeds))
                self.assertEqual(self.figure(name, bands.replace("rand", "lru")), 0)

    def test_a_sample_is_one_page_of_one_mind(self):
        urls = [f"http://h/{n * n % 7919}\t{100 + n % 7}" for n in range(20000)]
        page = self.report(self.trace(urls), "--policy", "lru,sieve", "--points", "5", "--sample",
                           "40%", "--warmup", "20%", "--capacity", "1%,2%,5%,10%,20%,50%")
        self.check(page, ALWAYS + SIZED)
        at = self.figure("hits", """tables.hits.rows.filter((r) => r[0] === "lru").map((r) =>
            `${(100 * r[4]).toFixed(1)} % ± ${r[5] === null ? "?" : (196 * r[5]).toFixed(1)} hits`)""")
        # The error is reported for large caches only.
        self.assertEqual({a.split("± ")[1] == "? hits" for a in at}, {False, True})
        panels = self.figure("runtime", "[...figure.querySelectorAll('h4')].map((h) => h.textContent)")
        self.assertEqual([p.replace("\xa0", " ").split(": ")[1] for p in panels], at)
        # A line of errors for each dot that has one.
        self.assertEqual(self.figure("hits", """figure.querySelectorAll(
            "[aria-label=rule][aria-description^='policy '] line").length"""), 2 * sum("?" not in a for a in at))
        self.assertIn("±", self.said("hits"))
        for name in ("curve-urls", "curve-bytes", "curve-byte-misses"):
            self.assertRegex(self.said(name), r"From a sample(: off by up to [0-9.]+ points, and at [0-9]+ "
                             r"of [0-9]+ points it cannot| that cannot tell)")
        self.assertIn("the shares of hits leave the warm-up out", self.said("runtime"))
        self.assertIn("Estimated for the whole trace", self.said("time"))
        self.assertIn("those of the sample itself", self.said("anomaly"))
        self.assertIn("estimates for the whole trace", self.browser.run(
            "document.querySelector('section > .soft').textContent"))

    def test_bytes_come_first_where_they_count(self):
        trace, sizes = SHIPPED / "dataset1/History", SHIPPED / "dataset1/sizes.tsv"
        order = "[...document.querySelectorAll('figure')].map((f) => f.dataset.figure)"
        self.check(self.report(trace, "--sizes", sizes), ALWAYS + SIZED)
        self.assertEqual(self.browser.run(order)[4:7], ["curve-urls", "curve-bytes", "curve-byte-misses"])
        page = self.report(trace, "--sizes", sizes, "--by-bytes", "--capacity", "7,14,20")
        self.check(page, ALWAYS + SIZED)
        self.assertEqual(self.browser.run(order)[4:7], ["curve-byte-misses", "curve-bytes", "curve-urls"])
        self.assertEqual(self.figure("hits", "figure.querySelector('h3').textContent"),
                         "Byte hit ratio by cache size and policy")
        # Of 7 URLs SIEVE keeps those with the most bytes, LRU those that hit most.
        self.assertIn("the highest byte hit ratio is that of SIEVE: 84.2 %", self.said("hits"))
        self.assertIn("an infinite cache has a byte hit ratio of 93.2 %", self.said("hits"))

    def live(self, name, **more):
        path = self.dir / f"{name}.json"
        path.write_text(json.dumps({"trace": "one", "requests": 997, "capacity_urls": 0,
                                    "capacity_bytes": 0, **more}))
        return "--live", path

    def test_replays_with_a_capacity_in_bytes(self):
        lives = self.live("none", policy="none", mean={"mean_us": 9000, "hit_ratio": 0})
        for policy in ("lru", "rand"):
            for kib in (64, 128, 192):
                lives += self.live(f"{policy}{kib}", policy=policy, capacity_bytes=kib << 10, mean={
                    "mean_us": 9000 - 20 * kib, "hit_ratio": kib / 256})
        # RAND is not among those that are simulated, and drawn all the same.
        page = self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv",
                           "--policy", "lru", *lives)
        self.check(page, ALWAYS + SIZED + ["access-bytes"])
        self.assertEqual(self.figure("access-bytes", """[...figure.querySelectorAll(
            "g[aria-label^='x-axis tick label'] text")].map((tick) => tick.textContent)"""),
            ["64\xa0KiB", "128\xa0KiB", "192\xa0KiB"])
        dots = "figure.querySelectorAll('.drawing g[aria-label=dot] > *').length"
        self.assertEqual(self.figure("access-bytes", dots), 6)
        self.assertIn("from 5.2 ms (LRU, 192 KiB) to 7.7 ms (LRU, 64 KiB), against 9.0 ms",
                      self.said("access-bytes"))
        keys = "[...figure.querySelectorAll('.keys > *')].map((k) => k.textContent)"
        self.assertEqual(self.figure("access-bytes", keys), ["LRU", "RAND"])
        # Circles, and their key, stand where the sizes have a place.
        self.assertEqual(self.figure("curve-bytes", keys),
                         ["LRU", "RAND", "measured live", "PFOO-L: no policy has fewer misses",
                          "a large page first fits"])
        self.assertEqual(self.figure("curve-bytes", dots), 6)
        self.assertEqual(self.figure("curve-bytes", """figure.querySelectorAll(
            "g[aria-label=dot][aria-description='policy rand'] circle").length"""), 3)
        self.assertEqual(self.figure("hits", keys), ["LRU"])
        self.assertIsNone(self.browser.run("document.querySelector('[data-hint=live]')"))

    def test_replays_are_compared_with_their_simulations(self):
        exact = json.loads(self.sunproxy("simulate", "--json", SHIPPED / "dataset1/History", "--policy", "lru,rand",
                                         "--capacity", "14").stdout)["traces"][0]["results"]
        ratio = {r["policy"]: r["hit_ratio"] for r in exact}
        for off, sentence in ((0, "The hit ratios equal those of the simulations."), (0.01, "At most 1.00 points from")):
            lives = self.live("one", policy="lru", capacity_urls=14,
                              mean={"mean_us": 9000, "hit_ratio": ratio["lru"] - off})
            lives += self.live("two", policy="rand", capacity_urls=14,
                               mean={"mean_us": 9000, "hit_ratio": ratio["rand"] + 0.02})
            self.check(self.report(SHIPPED / "dataset1/History", "--policy", "lru,rand", "--capacity", "7,14", *lives),
                       ALWAYS + ["access"])
            self.assertIn(f"Circles are 2 replays through the server. {sentence}", self.said("hits"))
            self.assertIn("of one seed, up to 2.00 points from the mean of 5 simulated seeds", self.said("hits"))

    def test_what_is_said_of_how_to_read_it(self):
        self.check(self.report(SHIPPED / "dataset1/History"), ALWAYS)
        self.assertIn("Ties at every size: FIFO and MAXS (without sizes", self.said("hits"))
        self.assertIn("sunproxy replay --json", self.browser.run(
            "document.querySelector('[data-hint=live]').textContent"))
        # Symbols of the dots stand in the key, and only where there are dots.
        symbols = "[...figure.querySelectorAll('.keys svg')].filter((s) => s.children.length === 2).length"
        self.assertEqual(self.figure("hits", symbols), 12)
        self.assertEqual(self.figure("curve-urls", symbols), 0)
        # A number stays with its unit.
        self.assertEqual(self.browser.run(
            r"[...document.querySelectorAll('figcaption, h4, option, .facts')].filter((e) => "
            r"/[0-9] (%|(ms|[KM]iB|B)\b)/.test(e.textContent)).map((e) => e.textContent)"), [])
        # One scale for all run-time panels.
        scales = self.figure("runtime", """[...figure.querySelectorAll(".several svg")].map((svg) =>
            [...svg.querySelectorAll("g[aria-label^='y-axis tick label'] text")].map((tick) =>
                tick.textContent + tick.getAttribute("transform")).join())""")
        self.assertEqual((len(scales), len(set(scales))), (6, 1))
        # The bar of URL 1 stands on tick 1.
        self.check(self.report(self.trace(["http://h/a"] * 3 + ["http://h/b"] * 2)), ALWAYS)
        middles = self.figure("shares", """[...figure.querySelectorAll("g[aria-label=rect] rect")].map((r) =>
            +r.getAttribute("x") + r.getAttribute("width") / 2)""")
        ticks = self.figure("shares", """[...figure.querySelectorAll(
            "g[aria-label^='x-axis tick label'] text")].map((tick) => [tick.textContent,
                +tick.getAttribute("transform").match(/translate\\(([0-9.]+)/)[1]])""")
        at = dict(t for t in ticks if t[0])
        self.assertEqual(sorted(at), ["1", "2"])
        for number, middle in zip("12", middles):
            self.assertAlmostEqual(middle, at[number], delta=1)

    def test_tips(self):
        self.check(self.report(SHIPPED / "dataset1/History"), ALWAYS)
        for name, expected in (("time", r"about request \d+moving-average hit ratio \d"),
                               ("hits", r"\d+ URLshit ratio \d"), ("shares", r"requests, \d"),
                               ("runtime", r"by request \d+\d+ hits"), ("pattern", r"request \d+: URL"),
                               ("curve-urls", "miss ratio"), ("anomaly", r"\d+ hits")):
            at = self.figure(name, """(() => { figure.scrollIntoView({ block: "center" });
                const line = figure.querySelector(".drawing g[aria-label=line] path[stroke-dasharray], " +
                    ".drawing g[aria-label=line] path") ?? figure.querySelector(".drawing rect");
                const from = line.getPointAtLength(1).matrixTransform(line.getScreenCTM());
                return { x: from.x, y: from.y }; })()""")
            self.browser.ask("Input.dispatchMouseEvent", type="mouseMoved", **at)
            self.assertRegex(self.figure(name, """[...figure.querySelectorAll("g[aria-label=tip]")].map(
                (tip) => tip.textContent).join("")""").replace("\u200b", "").replace("\xa0", " "), expected, name)

    def test_an_interrupted_report_reports_what_was_finished(self):
        page = self.report(SHIPPED / "dataset1/History", "--policy", "lru,fifo")
        text = page.read_text()
        data = re.search(r'(?s)(id="data">)(.*?)(</script>)', text)
        whole = json.loads(data[2])
        tables = whole["traces"][0]["tables"]
        # As if the last of LRU's and all of FIFO's sizes, and all but RAND's first, were missing.
        tables["hits"]["rows"] = tables["hits"]["rows"][:5]
        tables["runtime"]["rows"] = [r for r in tables["runtime"]["rows"]
                                     if r[0] == "lru" and r[1] < 54]
        tables["anomaly"]["rows"] = [r for r in tables["anomaly"]["rows"]
                                     if r[0] == "fifo" or r[1] == 1]
        tables["curve_urls"]["rows"] = tables["curve_urls"]["rows"][:40]  # of 23 sizes each
        next(p for p in tables["planned"]["rows"] if p[0] == "anomaly")[3] = 5000
        whole["interrupted"] = True
        page.write_text(text[:data.start(2)] + json.dumps(whole).replace("<", "\\u003c")
                        + text[data.end(2):])
        self.check(page, ALWAYS)
        self.assertIn("interrupted", self.browser.run("document.querySelector('.trouble').textContent"))
        self.assertIn("Incomplete: 5 of 12 simulations were finished. No policy has all",
                      self.said("hits"))
        self.assertIn("Incomplete: 5 of 12", self.said("runtime"))
        self.assertIn("Incomplete: 40 of 64", self.said("curve-urls"))
        self.assertNotIn("lowest mean", self.said("curve-urls"))
        self.assertIn("RAND shows none at the 1 of 68 sizes that were finished", self.said("anomaly"))
        # Logarithmic, as with all 5000: there is a tick at 1.
        self.assertIn("1", self.figure("anomaly", """[...figure.querySelectorAll(
            "g[aria-label^='x-axis tick label'] text")].map((tick) => tick.textContent)"""))

    # ---- how it looks ----------------------------------------------------------------------------

    def test_dark_light_paper_and_phone(self):
        page = self.report("--separate", SHIPPED / "dataset1/History", SHIPPED / "dataset2/History",
                           "--policy", "all",
                           "--sizes", SHIPPED / "dataset1/sizes.tsv", "--sizes", SHIPPED / "dataset2/sizes.tsv")
        colours = """(() => { const of = (e, what) => getComputedStyle(document.querySelector(e))[what];
            return [of("body", "backgroundColor"), of("body", "color"),
                of("[data-figure=hits] [aria-description='policy lru'] path", "stroke"),
                of("[data-figure=hits] svg text", "fill")]; })()"""
        seen = {}
        for name, how in (("light", {}), ("dark", {"dark": True}), ("paper", {"media": "print", "dark": True}),
                          ("phone", {"width": 390}), ("dark phone", {"width": 390, "dark": True})):
            with self.subTest(name):
                self.check(page, (ALWAYS + SIZED) * 2, **how)
                seen[name] = self.browser.run(colours)
                width = self.browser.run("[document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(width[0], width[1])
                # Nor does anything that is drawn reach beyond its card.
                self.assertEqual(self.browser.run("""[...document.querySelectorAll("figure")].filter((f) =>
                    [...f.querySelectorAll("svg, select, .keys > *, text")].some((e) =>
                        e.getBoundingClientRect().right > f.getBoundingClientRect().right + 1)).map((f) => f.id)"""),
                    [])
                # Labels of ticks on one line do not overlap.
                self.assertEqual(self.browser.run("""[...document.querySelectorAll(
                    "g[aria-label^='x-axis tick label']")].filter((g) => {
                        const boxes = [...g.querySelectorAll("text")].filter((e) => e.textContent.trim())
                            .map((e) => e.getBoundingClientRect());
                        return boxes.some((a, i) => boxes.some((b, k) => k > i && a.top < b.bottom && b.top < a.bottom
                            && a.left < b.right && b.left < a.right));
                    }).map((g) => g.closest("[data-figure]").dataset.figure)"""), [])
        self.assertEqual(seen["light"], ["rgb(246, 245, 242)", "rgb(29, 33, 38)", "rgb(0, 114, 178)",
                                         "rgb(29, 33, 38)"])
        self.assertEqual(seen["dark"], ["rgb(20, 23, 26)", "rgb(232, 230, 225)", "rgb(74, 159, 224)",
                                        "rgb(232, 230, 225)"])
        self.assertEqual(seen["paper"], ["rgb(255, 255, 255)", "rgb(0, 0, 0)", "rgb(0, 114, 178)",
                                         "rgb(0, 0, 0)"])
        self.assertEqual((seen["phone"], seen["dark phone"]), (seen["light"], seen["dark"]))
        # Two figures to a page of paper, and nothing to click.
        self.browser.open(page, media="print")
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.data')).display"), "none")

    def test_each_csv_has_what_its_figure_draws(self):
        page = self.report(SHIPPED / "dataset1/History", "--sizes", SHIPPED / "dataset1/sizes.tsv",
                           *self.live("one", policy="lru", capacity_urls=7,
                                      mean={"mean_us": 5000.0, "hit_ratio": 0.85}))
        self.check(page, ALWAYS + SIZED + ["access"])
        # The click makes the file, which is read here and not saved.
        files = self.browser.run("""Promise.all([...document.querySelectorAll("a[data-csv]")].map(async (link) => {
            link.addEventListener("click", (event) => event.preventDefault());
            const made = new Promise((done) => { const make = URL.createObjectURL;
                URL.createObjectURL = (blob) => { URL.createObjectURL = make; done(blob); return make(blob); }; });
            link.click();
            return [link.closest("figure").dataset.figure, link.dataset.csv, link.download,
                link.href.startsWith("blob:"), await (await made).text()];
        }))""")
        data = json.loads(re.search(r'(?s)id="data">(.*?)</script>', page.read_text())[1])
        tables = data["traces"][0]["tables"]
        self.assertEqual({f for f, *_ in files}, set(ALWAYS + SIZED + ["access"]))
        for figure, name, download, is_made, text in files:
            with self.subTest(figure=figure, name=name):
                self.assertTrue(is_made)
                self.assertEqual(download, f"1-History-{name}.csv")
                rows = list(csv.reader(io.StringIO(text)))
                self.assertEqual(rows[0], tables[name]["columns"])
                self.assertEqual(len(rows) - 1, len(tables[name]["rows"]))
                self.assertEqual({len(r) for r in rows}, {len(rows[0])})
                self.assertEqual(rows[-1][0], str(tables[name]["rows"][-1][0]))

    def test_a_key_shows_its_policy_alone_on_the_whole_page(self):
        self.check(self.report(SHIPPED / "dataset1/History"), ALWAYS)
        press = "document.querySelector('[data-figure=hits] button[data-policy=lru]').click()"
        state = """[[...document.querySelectorAll("[aria-description='policy lru'][data-dim]")].length,
            [...document.querySelectorAll("[aria-description='policy opt']:not([data-dim])")].length,
            [...document.querySelectorAll("[aria-description='policy opt'][data-dim]")].length > 0,
            [...document.querySelectorAll("button[aria-pressed=true]")].map((b) => b.dataset.policy)]"""
        self.browser.run(press)
        self.assertEqual(self.browser.run(state), [0, 0, True, ["lru"] * 3])
        # Also in what is drawn anew for another choice.
        self.browser.run("""(() => { const select = document.querySelector("[data-figure=time] select");
            select.selectedIndex = 3; select.dispatchEvent(new Event("change")); })()""")
        self.assertEqual(self.browser.run(state), [0, 0, True, ["lru"] * 3])
        self.browser.run(press)
        self.assertEqual(self.browser.run("document.querySelectorAll('[data-dim], [aria-pressed=true]').length"), 0)
