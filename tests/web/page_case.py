"""What all tests of the page share: a browser, a server, and what must hold after each test."""
import os
import sys
import unittest
import urllib.parse

import fake_server
from browser import Browser

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

    def run(self, result=None):
        """Once more where the browser failed, not the page: an element that was redrawn between two looks, say."""
        result = result if result is not None else self.defaultTestResult()
        before = len(result.errors), len(result.failures)
        super().run(result)
        errors = result.errors[before[0]:]
        if errors and len(result.failures) == before[1] and all("selenium.common" in text for _, text in errors):
            del result.errors[before[0]:]
            print("Again, since the browser failed:", *(text for _, text in errors), sep="\n", file=sys.stderr)
            super().run(result)
            result.testsRun -= 1
        return result

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
