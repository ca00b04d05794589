#!/usr/bin/env python3
"""The page in headless Chromium, against the fake server or, with HEADRACE_PAGE_URL, against a real one.

    python3 -m venv build/web-venv
    build/web-venv/bin/pip install $(grep selenium tests/web/requirements.txt)
    build/web-venv/bin/pip install --no-deps $(grep axe tests/web/requirements.txt)
    build/web-venv/bin/python tests/web/page_test.py
    HEADRACE_PAGE_URL=http://127.0.0.1:8080/ build/web-venv/bin/python tests/web/page_test.py

Debian: chromium chromium-driver fonts-dejavu-core (scripts/packages test), and the page's own libraries.
"""
import json
import os
import pathlib
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import fake_server
from browser import Browser, Keys, until_still

REAL_URL = os.environ.get("HEADRACE_PAGE_URL", "")
only_fake = unittest.skipIf(REAL_URL, "needs the fake server's answers")


class PageTest(unittest.TestCase):
    key = ""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.server, cls.url = (None, REAL_URL) if REAL_URL else fake_server.start(key=cls.key)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        if cls.server:
            cls.server.shutdown()
            cls.server.server_close()

    def setUp(self):
        self.expected_console = []  # parts of messages that a test causes on purpose
        self.browser.view()
        self.browser.console()
        self.browser.hosts()
        self.browser.open(self.url, fresh=True)

    def tearDown(self):
        allowed = ["Content Security Policy directive 'script-src", *self.expected_console]
        errors = [message for level, message in self.browser.console()
                  if level in ("SEVERE", "WARNING") and not any(part in message for part in allowed)]
        self.assertEqual(errors, [])
        self.assertLessEqual(self.browser.hosts(), {urllib.parse.urlsplit(self.url).netloc})

    @property
    def bodies(self):
        """What the fake server was asked."""
        return self.server.RequestHandlerClass.requests

    def text(self, element):
        return self.browser.run("return arguments[0].textContent", element)


class ChatTest(PageTest):
    def setUp(self):
        super().setUp()
        self.browser.until_ready()

    def test_empty_state_says_which_model_runs(self):
        model = self.browser.find("#model").get_attribute("value")
        self.assertTrue(model)
        self.assertIn(model, self.browser.find(".welcome").text)
        self.browser.click(".suggestion")
        self.assertNotEqual(self.browser.find("#composer-text").get_attribute("value"), "")

    def test_ask(self):
        answer = self.browser.ask("Say hello in one short sentence.")
        self.assertEqual(answer.get_attribute("data-status"), "done")
        self.assertTrue(answer.find_element("css selector", ".prose, .continuation").text.strip())
        facts = {each.get_attribute("data-fact") for each in self.browser.all(".fact")}
        self.assertLessEqual({"model", "speed", "written", "ttft", "prompt"}, facts)
        label = self.browser.find(".timing-bar").get_attribute("aria-label")
        for phase in ("queue", "prefill", "decode"):
            self.assertIn(phase, label)

    def test_streams_and_stops(self):
        self.browser.send("slow" if not REAL_URL else "Write a long story about a river, with all details.")
        self.browser.until(lambda: len(self.text(self.browser.until_there(".answer .body")).split()) > 3, "no text")
        self.assertEqual(self.browser.find(".answer").get_attribute("data-status"), "streaming")
        self.assertEqual(self.browser.find(".answer").get_attribute("aria-busy"), "true")
        self.browser.find("body").send_keys(Keys.ESCAPE)
        self.browser.until_answered()
        self.assertEqual(self.browser.find(".answer").get_attribute("data-status"), "stopped")
        self.assertIn("You stopped", self.browser.find(".answer").text)
        self.browser.until(lambda: self.browser.find("#send").is_displayed(), "no way to send")

    def test_stop_button(self):
        self.browser.send("slow" if not REAL_URL else "Write a long story about a mill, with all details.")
        self.browser.until(lambda: self.browser.find("#stop").is_displayed(), "no stop button")
        self.browser.click("#stop")
        self.browser.until_answered()
        self.assertEqual(self.browser.find(".answer").get_attribute("data-status"), "stopped")

    def test_retry_makes_a_branch(self):
        self.browser.ask("Name a river.")
        self.browser.click(".answer button[aria-label='Ask again']")
        self.browser.until(lambda: self.browser.find(".answer .message-foot").text, "no foot")
        self.browser.until_answered(2)
        self.assertIn("2 / 2", self.browser.find(".answer").text)
        second = self.browser.find(".answer").get_attribute("data-node")
        self.browser.click("button[aria-label='Earlier version']")
        self.assertIn("1 / 2", self.browser.find(".answer").text)
        self.assertNotEqual(self.browser.find(".answer").get_attribute("data-node"), second)

    def test_edit_makes_a_branch(self):
        first, second = ("say: apple", "say: pear") if not REAL_URL else ("Say apple.", "Say pear.")
        self.browser.ask(first)
        self.browser.click(".question button[aria-label='Edit']")
        box = self.browser.find(".edit-text")
        box.send_keys(Keys.CONTROL, "a")
        box.send_keys(second, Keys.ENTER)
        self.browser.until(lambda: self.browser.find(".bubble").text == second, "not edited")
        self.browser.until_answered(2)
        self.assertIn("2 / 2", self.browser.find(".question").text)
        if not REAL_URL:
            self.assertIn("pear", self.browser.find(".answer .prose").text)
            self.assertEqual([each["content"] for each in self.bodies[-1]["messages"]], [second])
        self.browser.click(".question button[aria-label='Earlier version']")
        self.assertEqual(self.browser.find(".bubble").text, first)
        self.browser.driver.refresh()
        self.browser.until_there(".message")
        self.assertEqual(self.browser.find(".bubble").text, first)

    def test_escape_leaves_an_edit_alone(self):
        self.browser.ask("Name a river.")
        self.browser.click(".question button[aria-label='Edit']")
        self.browser.find(".edit-text").send_keys(" Or two.", Keys.ESCAPE)
        self.assertEqual(self.browser.find(".bubble").text, "Name a river.")
        self.assertEqual(len(self.browser.all(".message")), 2)

    def test_reload_keeps_history(self):
        self.browser.ask("Name a river.")
        self.browser.ask("Name another.")
        before = [each.text for each in self.browser.all(".body")]
        self.browser.driver.refresh()
        self.browser.until(lambda: len(self.browser.all(".message")) == 4, "history is gone")
        self.browser.until(lambda: [each.text for each in self.browser.all(".body")] == before, "other text")
        self.assertIn("Name a river", self.browser.find("#conversations .current").text)

    def test_conversations_are_listed_renamed_found_and_deleted(self):
        self.browser.ask("Name a river.")
        self.browser.click("#new-chat")
        self.browser.until(lambda: not self.browser.all(".message"), "not a new chat")
        self.browser.ask("Name a mountain.")
        self.browser.until(lambda: len(self.browser.all("#conversations li")) == 2, "not two")
        self.browser.click("#conversations .current .more")
        self.browser.click("#item-menu .menu-item:nth-child(1)")
        field = self.browser.until_there(".rename")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys("Heights", Keys.ENTER)
        self.browser.until(lambda: self.browser.find("#conversations .current").text == "Heights", "not renamed")
        self.browser.find("#search").send_keys("river")
        self.browser.until(lambda: len(self.browser.all("#conversations li")) == 1, "not found")
        self.browser.find("#search").send_keys(Keys.CONTROL, "a")
        self.browser.find("#search").send_keys(Keys.DELETE)
        self.browser.until(lambda: len(self.browser.all("#conversations li")) == 2, "not two again")
        self.browser.click("#conversations .current .more")
        self.browser.click("#item-menu .menu-item:nth-child(3)")
        self.browser.until(lambda: len(self.browser.all("#conversations li")) == 1, "not deleted")
        self.browser.click(".toast button")
        self.browser.until(lambda: len(self.browser.all("#conversations li")) == 2, "not undone")

    def test_export(self):
        self.browser.ask("Name a river.")
        with tempfile.TemporaryDirectory() as folder:
            self.browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
            self.browser.click("#conversations .current .more")
            self.browser.click("#item-menu .menu-item:nth-child(2)")
            self.browser.until(lambda: list(pathlib.Path(folder).glob("*.json")), "no file")
            exported = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text())
        self.assertEqual({node["role"] for node in exported["nodes"].values()}, {"user", "assistant"})

    def test_switch_model(self):
        names = [each.get_attribute("value") for each in self.browser.all("#model option")]
        if len(names) < 2:
            self.skipTest("the server has one model")
        self.browser.ask("Name a river.")
        self.browser.run("""const select = document.getElementById("model"); select.value = arguments[0];
                            select.dispatchEvent(new Event("change"))""", names[1])
        answer = self.browser.ask("Name another.")
        self.assertIn(names[1], answer.text)
        self.browser.driver.refresh()
        self.browser.until_ready()
        self.assertEqual(self.browser.find("#model").get_attribute("value"), names[1])

    def test_settings_are_sent(self):
        self.browser.click("#settings-button")
        for name, value in (("temperature", "0.3"), ("top_p", "0.9"), ("top_k", "20"), ("min_p", "0.1"),
                            ("max_tokens", "5"), ("seed", "7"), ("system", "You are brief.")):
            self.browser.until_there(f"#set-{name}").send_keys(value)
        self.browser.find("#settings").send_keys(Keys.ESCAPE)
        answer = self.browser.ask("Tell me of rivers.")
        self.assertIn("token limit", answer.text)
        if not REAL_URL:
            body = self.bodies[-1]
            self.assertEqual({name: body[name] for name in ("temperature", "top_p", "top_k", "min_p", "max_tokens", "seed")},
                             {"temperature": .3, "top_p": .9, "top_k": 20, "min_p": .1, "max_tokens": 5, "seed": 7})
            self.assertEqual(body["messages"][0], {"role": "system", "content": "You are brief."})

    def test_a_wrong_setting_is_not_sent(self):
        self.browser.click("#settings-button")
        field = self.browser.until_there("#set-top_p")
        field.send_keys("1.5")
        self.assertEqual(field.get_attribute("aria-invalid"), "true")
        self.browser.find("#settings").send_keys(Keys.ESCAPE)
        if not REAL_URL:
            self.browser.ask("say: x")
            self.assertNotIn("top_p", self.bodies[-1])

    def test_shift_enter_and_shortcuts(self):
        self.browser.find("#composer-text").send_keys("one", Keys.SHIFT + Keys.ENTER + Keys.NULL, "two")
        self.assertEqual(self.browser.find("#composer-text").get_attribute("value"), "one\ntwo")
        self.browser.find("body").send_keys(Keys.CONTROL, "/")
        self.assertTrue(self.browser.until_there("#shortcuts[open]"))
        self.browser.find("#shortcuts").send_keys(Keys.ESCAPE)
        self.browser.until(lambda: not self.browser.all("#shortcuts[open]"), "still open")

    def test_markup_of_a_model_does_nothing(self):
        found = self.browser.driver.execute_async_script("""
            const done = arguments[2];
            window.harm = 0;
            import("/assets/markdown.js").then(({ MarkdownView }) => {
              const box = document.getElementById("scroller").appendChild(document.createElement("div"));
              const view = new MarkdownView(box);
              for (let i = 1; i <= arguments[0].length; ++i) view.update(arguments[0].slice(0, i), i === arguments[0].length);
              const bad = () => [...box.querySelectorAll("*")].filter((each) =>
                each.matches(arguments[1]) || each.getAttributeNames().some((name) => name.startsWith("on") || name === "style"));
              requestAnimationFrame(() => setTimeout(() => done(bad().map((each) => each.outerHTML)), 100));
            });""", HARM, "script, img, iframe, svg:not(.icon), form, input, style, [href^='javascript' i], [href^='data' i]")
        self.assertEqual(found, [])
        self.assertEqual(self.browser.run("return window.harm"), 0)
        self.assertIn("window.harm = 11", self.browser.find("#scroller").text)

    def test_markdown_that_no_parser_takes_shows_as_it_is(self):
        for name, text in (("quotes", ">" * 20000), ("lists", "- " * 20000), ("brackets", "[" * 20000), ("stars", "*a" * 20000),
                           ("fence", "```\n" + "x" * 200000), ("table", "|a" * 3000 + "|\n" + "|-" * 3000 + "|\n")):
            with self.subTest(name):
                length, took = self.browser.driver.execute_async_script("""
                    const done = arguments[1];
                    import("/assets/markdown.js").then(({ MarkdownView }) => {
                      const box = document.getElementById("scroller").appendChild(document.createElement("div"));
                      const begin = performance.now();
                      new MarkdownView(box).update(arguments[0], true);
                      done([box.textContent.length, performance.now() - begin]);
                      box.remove();
                    });""", text)
                self.assertGreater(length, 0)
                self.assertLess(took, 5000)

    def test_theme_button(self):
        before = self.browser.run("return getComputedStyle(document.body).backgroundColor")
        self.browser.click("#theme-button")
        after = self.browser.run("return getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(before, after)
        self.browser.driver.refresh()
        self.assertEqual(self.browser.run("return getComputedStyle(document.body).backgroundColor"), after)

    def test_phone_has_a_drawer(self):
        self.browser.view(390, 844)
        self.browser.ask("Name a river.")
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.assertTrue(self.browser.run("return document.getElementById('sidebar').inert"))
        self.browser.click("#open-drawer")
        self.assertFalse(self.browser.run("return document.getElementById('sidebar').inert"))
        self.browser.find("body").send_keys(Keys.ESCAPE)
        self.assertTrue(self.browser.run("return document.getElementById('sidebar').inert"))

    def test_axe(self):
        self.assertEqual(self.browser.axe(), [])
        self.browser.ask("Name a river.")
        for name, view in (("light", {}), ("dark", {"dark": True}), ("phone", {"width": 390, "height": 844})):
            with self.subTest(name):
                self.browser.view(**view)
                until_still(.2)
                self.assertEqual(self.browser.axe(), [])
        self.browser.click("#open-drawer")
        self.browser.click("#conversations .more")
        self.assertEqual(self.browser.axe(), [])
        self.browser.find("#item-menu .menu-item").send_keys(Keys.ESCAPE)
        self.browser.click("#close-drawer")
        self.browser.view()
        for button in ("#settings-button", "#shortcuts-button"):
            with self.subTest(button):
                self.browser.click(button)
                until_still(.4)
                self.assertEqual(self.browser.axe(), [])
                self.browser.find("dialog[open]").send_keys(Keys.ESCAPE)


HARM = """Before <script>window.harm = 1</script> after.

<script>window.harm = 2</script>

<img src=x onerror="window.harm = 3"> ![x](x" onerror="window.harm=4) ![far](https://example.org/a.png)

<svg onload="window.harm = 5"></svg><iframe srcdoc="<script>parent.harm = 6</script>"></iframe>

[link](javascript:window.harm=7) [data](data:text/html,<script>window.harm=8</script>) <https://example.org/?"onclick="harm=9>

<style>body { display: none }</style><form action="https://example.org"><input name=a></form>

```js" onmouseover="window.harm=10
</code></pre><script>window.harm = 11</script>
```
"""


@only_fake
class FakeServerTest(PageTest):
    def setUp(self):
        super().setUp()
        self.browser.until_ready()

    def test_markdown_and_code(self):
        self.browser.ask("Explain.")
        self.browser.until_there(".hljs-keyword")
        self.assertTrue(self.browser.all(".prose table") and self.browser.all(".prose ol li"))
        self.assertEqual(self.browser.run("return getComputedStyle(document.querySelector('.prose td:last-child')).textAlign"), "right")
        self.browser.driver.execute_cdp_cmd("Browser.grantPermissions", {
            "origin": self.url, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.browser.click("button[aria-label='Copy code']")
        self.browser.until(lambda: self.browser.find("#announcer").get_attribute("textContent") == "Copied", "not copied")
        copied = self.browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        self.assertTrue(copied.startswith("def attend(query, cache):\n    "), copied)

    def test_errors_show_the_servers_words(self):
        for status in (400, 429, 500, 503):
            with self.subTest(status):
                self.expected_console.append(f"status of {status}")
                self.browser.click("#new-chat")
                self.browser.until(lambda: not self.browser.all(".message"), "not a new chat")
                answer = self.browser.ask(f"fail: {status}")
                self.assertEqual(answer.get_attribute("data-status"), "error")
                self.assertIn(f"Made to fail with {status}.", answer.text)
                self.assertEqual("wait 7 s" in answer.text, status in (429, 503))
        self.browser.run("document.querySelector('.error-buttons button').click()")
        self.browser.until(lambda: "2 / 2" in self.browser.find(".answer").text, "not tried again")

    def test_waits_for_a_server_that_loads(self):
        self.expected_console.append("status of 503")
        self.server.RequestHandlerClass.is_loading = True
        try:
            self.browser.open(self.url, fresh=True)
            self.browser.until(lambda: "Loading model" in self.browser.find(".welcome").text, "does not say so")
            self.assertEqual(self.browser.axe(), [])
            self.browser.send("say: x")
            self.assertEqual(self.browser.find("#composer-text").get_attribute("value"), "say: x")
        finally:
            self.server.RequestHandlerClass.is_loading = False
        self.browser.until_ready()
        self.assertNotIn("Loading model", self.browser.find(".welcome").text)

    def test_error_in_mid_stream_keeps_the_text(self):
        answer = self.browser.ask("fail: mid")
        self.assertEqual(answer.get_attribute("data-status"), "error")
        self.assertIn("Because", answer.text)
        self.assertIn("The model failed in mid-stream.", answer.text)

    def test_cut_stream_is_marked(self):
        answer = self.browser.ask("fail: cut")
        self.assertEqual(answer.get_attribute("data-status"), "cut")
        self.assertIn("This is not all of it", answer.text)

    def test_unreachable_server(self):
        self.browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions",
                                            {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
        self.expected_console.append("ERR_INTERNET_DISCONNECTED")
        try:
            answer = self.browser.ask("say: x")
        finally:
            self.browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions",
                                                {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
        self.assertIn("cannot be reached", answer.text)

    def test_reload_while_writing_marks_the_answer_as_cut(self):
        self.browser.send("slow")
        self.browser.until(lambda: len(self.text(self.browser.until_there(".answer .body")).split()) > 12, "no text")
        self.browser.driver.refresh()
        self.browser.until_there(".answer[data-status=cut]")

    def test_an_answer_goes_on_in_the_background(self):
        self.browser.send("slow")
        self.browser.until_there(".answer[data-status=streaming]")
        self.browser.click("#new-chat")
        self.browser.until_there(".welcome")
        self.assertTrue(self.browser.find("#send").is_displayed())
        self.browser.until_there("#conversations .busy")
        self.browser.click("#conversations .open")
        self.browser.until_there(".answer[data-status=streaming]")
        self.browser.until_answered(2)
        self.assertEqual(self.browser.find(".answer").get_attribute("data-status"), "done")

    def test_markup_in_an_answer(self):
        answer = self.browser.ask("say: " + "<img src=x onerror=alert(1)> <script>alert(2)</script> text")
        self.assertIn("<img src=x onerror=alert(1)>", answer.text)
        self.assertEqual(len(answer.find_elements("css selector", "img, script")), 0)

    def test_thoughts_fold(self):
        answer = self.browser.ask("say: <think>Let me see.</think>Four.")
        self.assertEqual(answer.find_element("css selector", ".prose").text, "Four.")
        self.assertIn("Let me see.", self.text(answer.find_element("css selector", ".thought")))

    def test_failed_answers_are_left_out_of_the_next_question(self):
        self.expected_console.append("status of 500")
        self.browser.ask("fail: 500")
        self.browser.ask("say: x")
        self.assertEqual([each["role"] for each in self.bodies[-1]["messages"]], ["user"])

    def test_warnings_show(self):
        self.browser.click("#settings-button")
        self.browser.until_there("#set-seed").send_keys("99999999999")
        self.browser.find("#settings").send_keys(Keys.ESCAPE)
        self.assertIn("seed was taken modulo 2^32", self.browser.ask("say: x").text)

    def test_base_model_goes_on_with_a_text(self):
        self.browser.run("""const select = document.getElementById("model"); select.value = "tinyriver-base";
                            select.dispatchEvent(new Event("change"))""")
        self.browser.until(lambda: self.browser.find("#mode-note").is_displayed(), "does not say so")
        self.assertIn("base model", self.browser.find(".welcome").text)
        self.browser.ask("The river froze until")
        self.assertEqual(self.bodies[-1]["prompt"], "The river froze until")
        self.browser.send("")
        self.browser.until_answered(3)
        self.assertEqual(self.bodies[-1]["prompt"], "The river froze until the ice went out, and the mill turned.")

    def test_long_answers_stay_in_view(self):
        self.browser.send("long")
        self.browser.until_answered(2)
        self.browser.until(lambda: self.browser.run(
            "const s = document.getElementById('scroller'); return s.scrollHeight - s.scrollTop - s.clientHeight < 5"), "not at the end")
        self.browser.run("document.getElementById('scroller').scrollTop = 0")
        self.browser.until(lambda: self.browser.find("#to-end").is_displayed(), "no way back")


@only_fake
class KeyTest(PageTest):
    key = "secret-key"

    def test_key_is_asked_for_and_kept_in_the_tab(self):
        self.expected_console.append("status of 401")
        self.browser.until_there("#key").send_keys("wrong", Keys.ENTER)
        self.browser.until(lambda: self.browser.find("#key").get_attribute("value") == "wrong"
                           and self.browser.all("#key-dialog[open]"), "not asked again")
        self.assertIn("API key", self.browser.find("#key-dialog").text)
        self.browser.find("#key").send_keys(Keys.ESCAPE)
        self.browser.click(".welcome .button")
        self.browser.until_there("#key-dialog[open] #key")
        self.assertEqual(self.browser.axe(), [])
        self.browser.find("#key").send_keys(Keys.CONTROL, "a")
        self.browser.find("#key").send_keys("secret-key", Keys.ENTER)
        self.browser.until_ready()
        self.assertEqual(self.browser.ask("say: let in").get_attribute("data-status"), "done")
        self.assertIsNone(self.browser.run("return Object.values(localStorage).find((each) => each.includes('secret')) ?? null"))
        self.browser.open(self.url + "dashboard")
        self.browser.until_there(".tile")

    def test_a_key_that_stops_counting(self):
        self.expected_console.append("status of 401")
        self.browser.until_there("#key").send_keys("secret-key", Keys.ENTER)
        self.browser.until_ready()
        self.browser.run("sessionStorage.setItem('headrace.key', 'old')")
        self.browser.send("say: x")
        field = self.browser.until_there("#key-dialog[open] #key")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys("secret-key", Keys.ENTER)
        self.browser.until(lambda: self.browser.all(".answer[data-status=done]"), "not asked again")


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
        self.assertRegex(self.browser.find("#kv-groups canvas").get_attribute("aria-label"), r"\d+ held, \d+ cached, \d+ free")
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
