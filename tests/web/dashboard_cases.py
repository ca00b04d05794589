"""The dashboard."""
from browser import until_still
from page_case import PageTest, only_fake


class DashboardTest(PageTest):
    def setUp(self):
        super().setUp()
        self.browser.open(self.url + "dashboard")
        self.browser.until_there("#tile-kv")

    def test_renders(self):
        self.browser.until(lambda: self.browser.find("#live").text == "Live", "not live")
        for tile in ("running", "waiting", "generated", "prompt", "prefix", "kv"):
            self.assertTrue(self.browser.find(f"#tile-{tile} strong").text)
        for canvas in self.browser.all("canvas"):
            self.assertTrue(canvas.get_attribute("aria-label"))
            self.assertGreater(int(canvas.get_attribute("width")), 100)
        self.assertRegex(self.browser.find("#kv-groups canvas").get_attribute("aria-label"), r"[\d,]+ held, [\d,]+ cached, [\d,]+ free")
        painted = self.browser.run("""const canvas = document.querySelector("#kv-groups canvas");
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, 3).data;
            return new Set(pixels.filter((_, i) => i % 4 === 3)).size > 0 && pixels.some((value) => value > 0)""")
        self.assertTrue(painted)
        self.assertEqual(len(self.browser.all("#ladder li")), 8)

    @only_fake
    def test_moves_and_switches_model(self):
        before = self.browser.find("#totals").text
        self.browser.until(lambda: self.browser.find("#totals").text != before, "does not move", 10)
        self.browser.until(lambda: self.browser.find("#tile-generated strong").text not in ("–", "0"), "no speed", 10)
        self.browser.run("""const select = document.getElementById("model"); select.value = "gemma3-270m";
                            select.dispatchEvent(new Event("change"))""")
        self.browser.until(lambda: len(self.browser.all(".kv-group")) == 2, "not two groups")
        self.browser.click("#windows button:last-child")
        self.assertEqual(self.browser.find("#windows button:last-child").get_attribute("aria-pressed"), "true")

    @only_fake
    def test_speeds_stand_beside_their_bounds(self):
        self.browser.until(lambda: "of the bound" in self.browser.find("#tile-prompt .tile-detail").text, "no bound", 10)
        self.assertRegex(self.browser.find("#tile-generated .tile-detail").text, r"^tokens/s, [\d.]+ % of the bound$")
        note = self.browser.find("#throughput-note").text
        self.assertRegex(note, r"generating 412 tokens/s, prompts 1,630 tokens/s, decoding uses [\d.]+ % of the memory")
        self.assertIn("bound 1,630", self.browser.find("#prompt-plot").get_attribute("aria-label"))
        # Of the other model nobody has measured them.
        self.browser.run("""const select = document.getElementById("model"); select.value = "gemma3-270m";
                            select.dispatchEvent(new Event("change"))""")
        self.browser.until(lambda: self.browser.find("#throughput-note").text == "last five minutes", "bounds of another")
        self.assertEqual(self.browser.find("#tile-prompt .tile-detail").text, "tokens/s")

    def test_pure_functions(self):
        found = self.browser.driver.execute_async_script("""
            const done = arguments[0];
            Promise.all([import("/assets/histogram.js"), import("/assets/kv_map.js"), import("/assets/format.js")])
              .then(([histogram, map, format]) => {
                const now = { le: [1, 2, 4], count: [10, 20, 30, 40] };
                const before = { le: [1, 2, 4], count: [10, 10, 10, 10] };
                done({
                  since: histogram.since(now, before).count, again: histogram.since(before, now).count,
                  buckets: histogram.perBucket(now), median: histogram.quantile(now, .5),
                  beyond: histogram.quantile(now, .99), none: String(histogram.quantile({ le: [1], count: [0, 0] }, .5)),
                  map: [...map.decodeMap("f2h3c1", 6)], cut: [...map.decodeMap("f2h99999999999", 4)], bad: [...map.decodeMap("zz", 4)],
                  texts: [0, .5, 84.2, 1240, 61000, 7300000].map(format.duration),
                });
              });""")
        self.assertEqual(found, {
            "since": [0, 10, 20, 30], "again": [10, 10, 10, 10], "buckets": [10, 10, 10, 10], "median": 2, "beyond": 4,
            "none": "NaN", "map": [0, 0, 2, 2, 2, 1], "cut": [0, 0, 2, 2], "bad": [],
            "texts": ["0 ms", "500 µs", "84 ms", "1.24 s", "1 min 1 s", "2 h 1 min"]})

    def test_axe(self):
        for name, view in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 390, "height": 844})):
            with self.subTest(name):
                self.browser.view(**view)
                until_still(.3)
                self.assertEqual(self.browser.axe(), [])
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
