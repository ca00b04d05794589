#!/usr/bin/env python3
"""The page in headless Chromium, against the fake server or, with HEADRACE_PAGE_URL, against a real one.

    python3 -m venv build/web-venv
    build/web-venv/bin/pip install $(grep selenium tests/web/requirements.txt)
    build/web-venv/bin/pip install --no-deps $(grep axe tests/web/requirements.txt)
    build/web-venv/bin/python tests/web/page_test.py
    HEADRACE_PAGE_URL=http://127.0.0.1:8080/ build/web-venv/bin/python tests/web/page_test.py

Debian: chromium chromium-driver fonts-dejavu-core (scripts/packages test), and the page's own libraries.
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from answer_cases import FakeServerTest, KeyTest  # noqa: F401
from chat_cases import ChatTest  # noqa: F401
from dashboard_cases import DashboardTest  # noqa: F401

if __name__ == "__main__":
    unittest.main(verbosity=2)
