"""Headless Chromium for the tests and screenshots of the page."""
import importlib.util
import json
import pathlib
import time
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

WAIT_SECONDS = 60


class Browser:
    """One browser; `driver` is Selenium's."""

    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):  # root needs --no-sandbox
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.set_script_timeout(WAIT_SECONDS)
        self.view()

    def view(self, width=1280, height=860, dark=False, scale=1):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def open(self, url, fresh=False):
        """Opens `url`; `fresh`: nothing is kept from an earlier visit."""
        if fresh:
            parts = urllib.parse.urlsplit(url)
            self.driver.get(url)
            self.run("sessionStorage.clear()")
            self.driver.get("about:blank")
            self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {
                "origin": f"{parts.scheme}://{parts.netloc}", "storageTypes": "all"})
        self.driver.get(url)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, condition, what, seconds=WAIT_SECONDS):
        return WebDriverWait(self.driver, seconds, poll_frequency=.03,
                             ignored_exceptions=(StaleElementReferenceException,)).until(lambda _: condition(), what)

    def until_there(self, selector):
        return self.until(lambda: next(iter(self.all(selector)), None), f"no {selector}")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def click(self, selector):
        """As a mouse does, but also where the button only shows under the pointer."""
        self.run("arguments[0].click()", self.until_there(selector))

    def until_ready(self):
        """Until the chat page knows its model."""
        self.until_there("[data-state=ready]")

    def send(self, text):
        self.find("#composer-text").send_keys(text.replace("\n", Keys.SHIFT + Keys.ENTER + Keys.NULL), Keys.ENTER)

    def until_answered(self, count=None):
        """Until no answer is being written (and `count` messages show)."""
        if count is not None:
            self.until(lambda: len(self.all(".message")) == count, f"not {count} messages")
        self.until(lambda: not self.all("[data-status=streaming]"), "still being answered")

    def ask(self, text):
        before = len(self.all(".message"))
        self.send(text)
        self.until_answered(before + 2)
        return self.all(".answer")[-1]

    def console(self):
        """What the console got since it was last asked: (level, message)."""
        return [(entry["level"], entry["message"]) for entry in self.driver.get_log("browser")]

    def hosts(self):
        """Hosts that were asked for anything since this was last called."""
        hosts = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                parts = urllib.parse.urlsplit(message["params"]["request"]["url"])
                if parts.scheme not in ("data", "about", "blob", "chrome"):
                    hosts.add(parts.netloc)
        return hosts

    def axe(self):
        """Serious findings of axe-core, as readable lines."""
        self.run(axe_source())
        findings = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then((result) => done(result.violations))")
        return [f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}"
                for each in findings if each["impact"] in ("serious", "critical") for node in each["nodes"]]

    def close(self):
        self.driver.quit()


def axe_source():
    package = pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).parent
    return next(package.rglob("axe.min.js")).read_text()


def until_still(seconds):
    """For animations and frames that nothing reports the end of."""
    time.sleep(seconds)
