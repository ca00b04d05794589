#!/usr/bin/env python3
"""The files of deploy/, by the linters of those who read them, and against what the server has.

    HEADRACE_BINARY=build/release/bin/headrace build/clients-venv/bin/python tests/deploy/deploy_test.py

Debian: prometheus (promtool), systemd (systemd-analyze); PyPI: requirements.txt.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
sys.path.insert(0, str(ROOT / "tests" / "server"))
import harness  # noqa: E402

# promtool is no friend of names that others chose.
BORROWED = re.compile(r"metric names should not contain ':'|vllm:iteration_tokens_total|^$")
NAME = re.compile(r"\b(?:vllm|headrace):[a-z0-9_]+")


def tool(name):
    """Beside this Python, or on the path."""
    beside = pathlib.Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


class DeployTest(harness.ServerTest):
    def run_tool(self, name, *arguments, folder=DEPLOY, text=None):
        """What it says, which must be that all is well."""
        path = tool(name)
        if path is None:
            self.skipTest(f"needs {name}")
        done = subprocess.run([path, *map(str, arguments)], cwd=folder, input=text, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def metrics(self):
        self.assertEqual(self.server.post("/v1/completions", {"prompt": "Hi", "max_tokens": 3}).status, 200)
        self.assertEqual(self.server.get("/nothing").status, 404)
        self.server.wait_until(lambda: self.server.metric("vllm:request_success_total") > 0, "that it is counted")
        return self.server.get("/metrics").body.decode()

    def test_alert_rules(self):
        self.run_tool("promtool", "check", "rules", "alerts.yaml", folder=DEPLOY / "prometheus")
        self.run_tool("promtool", "test", "rules", "alerts_test.yaml", folder=DEPLOY / "prometheus")

    def test_metrics(self):
        promtool = tool("promtool")
        if promtool is None:
            self.skipTest("needs promtool")
        done = subprocess.run([promtool, "check", "metrics"], input=self.metrics(), capture_output=True, text=True,
                              check=False)
        said = [line for line in (done.stdout + done.stderr).splitlines() if not BORROWED.search(line)]
        self.assertEqual(said, [])

    def test_what_is_watched_exists(self):
        there = set(re.findall(r"^# TYPE (\S+)", self.metrics(), re.M))
        for name in ("prometheus/alerts.yaml", "grafana/headrace.json"):
            with self.subTest(name):
                watched = {re.sub(r"_(bucket|sum|count)$", "", each) for each in NAME.findall((DEPLOY / name).read_text())}
                self.assertGreater(len(watched), 5)
                # A machine without sensors has no temperature.
                self.assertEqual(watched - there - {"headrace:temperature_celsius"}, set())

    def test_dockerfile(self):
        self.run_tool("hadolint", "Dockerfile")

    def test_kubernetes(self):
        self.assertIn("deployment/headrace", self.run_tool("kubernetes-validate", "--strict", "kubernetes/headrace.yaml"))

    def test_service(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "headrace.service"
            text = (DEPLOY / "headrace.service").read_text()
            unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", text, flags=re.M))
            self.assertEqual(self.run_tool("systemd-analyze", "--man=no", "verify", unit), "")

    def test_settings(self):
        said = self.run_tool(harness.BINARY, "serve", "--config", DEPLOY / "headrace.toml", "--print-config")
        self.assertIn('host = "0.0.0.0"', said)


if __name__ == "__main__":
    if not harness.BINARY:
        raise SystemExit("set HEADRACE_BINARY to the program")
    harness.BINARY = str(pathlib.Path(harness.BINARY).resolve())
    unittest.main(verbosity=2)
