#!/usr/bin/env python3
"""Runs page_test.py against `headrace serve` itself, with two models of the store: one that chats and one
that only goes on with a text. HEADRACE_BINARY names the program; what is needed besides is in page_test.py."""
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

MODELS = ["-m", "smollm2-135m", "-m", "base=gemma3-270m"]
PATIENCE = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(url, server):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(url + "health", timeout=5):
                return
        except OSError:
            time.sleep(.1)
    raise SystemExit("the server did not become ready")


def main():
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    command = [os.environ["HEADRACE_BINARY"], "serve", *MODELS, "-n", "64", "--port", str(port), "--quiet"]
    with subprocess.Popen(command) as server:
        try:
            wait_until_ready(url, server)
            tests = [sys.executable, str(pathlib.Path(__file__).parent / "page_test.py"), *sys.argv[1:]]
            code = subprocess.run(tests, env={**os.environ, "HEADRACE_PAGE_URL": url}, check=False).returncode
        finally:
            server.terminate()
        if server.wait(PATIENCE) != 0:
            raise SystemExit(f"the server ended with {server.returncode}")
    sys.exit(code)


if __name__ == "__main__":
    main()
