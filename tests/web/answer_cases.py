"""What a server may answer, right and wrong, as only the fake one can be told to."""
from browser import Keys
from page_case import PageTest, only_fake


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
        self.server.RequestHandlerClass.is_hurried = True
        try:
            self.browser.until_answered(2)
        finally:
            self.server.RequestHandlerClass.is_hurried = False
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
