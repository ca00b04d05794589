#!/usr/bin/env python3
"""Makes the pictures of the page in docs/images/, of the fake server's answers. Needs what page_test.py needs.

They look as they should where Debian's fonts-inter and fonts-jetbrains-mono are installed, and are a third
of the size where its pngquant is.

Usage: screenshots.py [FOLDER]
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import fake_server
from browser import Browser, until_still

ROOT = pathlib.Path(__file__).resolve().parents[2]
EARLIER = ("Plan a week of reading on memory models", "Why is my benchmark noisy?", "Names for a build cache",
           "Regular expression for ISO dates", "Explain false sharing with an example")
QUESTION = "How does a KV cache make a language model faster?"


def shoot(browser, folder, name):
    until_still(.5)
    file = folder / f"page-{name}.png"
    browser.driver.save_screenshot(str(file))
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--skip-if-larger", "--output", str(file), "128", str(file)], check=False)
    print(f"{file} {file.stat().st_size} bytes")


def fill(browser, url):
    """A conversation worth a picture, with others in the list."""
    browser.open(url, fresh=True)
    browser.until_ready()
    for title in EARLIER:
        browser.click("#new-chat")
        browser.until(lambda: not browser.all(".message"), "not a new chat")
        browser.ask(title)
    browser.click("#new-chat")
    browser.until(lambda: not browser.all(".message"), "not a new chat")


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    _, url = fake_server.start()
    browser = Browser()
    try:
        browser.view(1280, 820)
        fill(browser, url)
        shoot(browser, folder, "empty")
        browser.ask(QUESTION)
        browser.until_there(".hljs-keyword")
        shoot(browser, folder, "light")
        browser.view(1280, 820, dark=True)
        shoot(browser, folder, "dark")
        browser.view(390, 844, scale=1.5)
        shoot(browser, folder, "phone")
        browser.view(1280, 1180)
        browser.open(url + "dashboard")
        browser.until_there("#tile-kv")
        until_still(70)  # for the charts to have a minute to show
        shoot(browser, folder, "dashboard")
        browser.view(1280, 1180, dark=True)
        shoot(browser, folder, "dashboard-dark")
    finally:
        browser.close()


if __name__ == "__main__":
    main()
