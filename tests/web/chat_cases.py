"""The chat page, with any server."""
import json
import pathlib
import tempfile

from browser import Keys, until_still
from page_case import REAL_URL, PageTest

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
            # The browser makes an empty file of that name before it has the content.
            exported = json.loads(self.browser.until(
                lambda: next((file.read_text() for file in pathlib.Path(folder).glob("*.json")), None), "no file"))
        self.assertEqual({node["role"] for node in exported["nodes"].values()}, {"user", "assistant"})

    def import_file(self, content):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
            file.flush()
            self.browser.find("#import-file").send_keys(file.name)
            self.browser.until(lambda: self.browser.find("#import-file").get_attribute("value") == "", "not taken")
            self.browser.until(lambda: self.browser.all(".toast") or self.browser.all(".message"), "not read")

    def test_import(self):
        markup = "<img src=x onerror='window.harm = 1'>**bold**"
        first, second, third = ({"id": name, "parent": parent, "role": role, "text": text, "time": time, **more}
                                for name, parent, role, text, time, more in (
                                    ("a", "root", "user", "Name a river.", 1, {}),
                                    ("b", "a", "assistant", "The Elbe.", 2, {"status": "done", "usage": "none"}),
                                    ("c", "a", "assistant", markup, 3, {"status": "streaming", "warnings": [1, "so"]})))
        file = {"format": 1, "id": "x", "title": "Rivers", "model": "gone", "updated": 5,
                "settings": {"system": "Be brief.", "temperature": 9, "top_k": 5, "other": 1},
                "nodes": {"a": first, "b": second, "c": third}, "chosen": {"a": "c", "root": "nothing"}}
        self.assertEqual(self.browser.find("#import-button").get_attribute("aria-label"), "Import a conversation")
        self.import_file(file)
        self.browser.until(lambda: len(self.browser.all(".message")) == 2, "not shown")
        self.assertEqual(self.browser.find(".bubble").text, "Name a river.")
        answer = self.browser.find(".answer")
        self.assertEqual(answer.get_attribute("data-status"), "cut")  # nobody writes it any more
        self.assertIn("2 / 2", answer.text)
        self.assertIn("so", answer.text)
        self.assertEqual(len(answer.find_elements("css selector", ".prose img")), 0)
        self.assertIsNone(self.browser.run("return window.harm"))
        self.assertNotIn(answer.get_attribute("data-node"), "abc")
        self.browser.click("#settings-button")
        values = {name: self.browser.until_there(f"#set-{name}").get_attribute("value")
                  for name in ("system", "temperature", "top_k")}
        self.assertEqual(values, {"system": "Be brief.", "temperature": "", "top_k": "5"})
        self.browser.find("#settings").send_keys(Keys.ESCAPE)
        # Again, it is another one; and it is kept.
        name = self.browser.run("return location.hash")
        self.import_file(file)
        self.browser.until(lambda: self.browser.run("return location.hash") != name, "not another")
        self.browser.until(lambda: len(self.browser.all("#conversations li")) == 2, "not two")
        self.browser.driver.refresh()
        self.browser.until(lambda: len(self.browser.all(".message")) == 2, "not kept")

    def test_import_of_what_is_none(self):
        node = {"id": "a", "parent": "root", "role": "user", "text": "x", "time": 1}
        whole = {"format": 1, "nodes": {"a": node}}
        for content, words in ((b"{", "not JSON"), (b"\xff\xfe", "not JSON"), ([], "no conversation"), ({}, "no conversation"),
                               ({**whole, "format": 2}, "another version"), ({**whole, "nodes": {}}, "no messages"),
                               ({**whole, "nodes": {"a": {**node, "text": 1}}}, "a message that is none"),
                               ({**whole, "nodes": {"a": {**node, "role": "system"}}}, "a message that is none"),
                               ({**whole, "nodes": {"b": node}}, "a message that is none"),
                               ({**whole, "nodes": {"a": {**node, "parent": "a"}}}, "no conversation, so"),
                               ({**whole, "nodes": {"a": {**node, "parent": "b"}}}, "no conversation, so"),
                               ({**whole, "nodes": {"root": {**node, "id": "root"}}}, "no conversation, so"),
                               (b" " * ((16 << 20) + 1), "more than 16 MiB")):
            with self.subTest(words=words, content=content[:60] if isinstance(content, bytes) else content):
                self.browser.run("document.getElementById('toasts').replaceChildren()")
                self.import_file(content)
                self.assertIn(words, self.browser.find(".toast").text)
        self.assertEqual(self.browser.all("#conversations li"), [])
        self.assertEqual(self.browser.all(".message"), [])

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
