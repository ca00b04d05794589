#!/usr/bin/env python3
"""The hub's cache, shared with huggingface_hub: what the one has downloaded, the other finds. Skipped
where that package is not installed (HEADRACE_HUB_PYTHON: a Python that has it)."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import harness
from fake_hub import Repo
from hub_test import HubTest, safetensors

PYTHON = os.environ.get("HEADRACE_HUB_PYTHON", sys.executable)


class SharedCacheTest(HubTest):
    def setUp(self):
        super().setUp()
        has = subprocess.run([PYTHON, "-c", "import huggingface_hub"], capture_output=True)
        if has.returncode != 0:
            self.skipTest("no huggingface_hub: pip install huggingface_hub, HEADRACE_HUB_PYTHON")
        self.hub.repos["org/dir"] = Repo({
            "config.json": b"{}", "tokenizer.json": b"{ }", "model.safetensors": safetensors(900),
            "additional_chat_templates/a.jinja": b"{{ x }}"}, license="mit")

    def python(self, code, **more):
        done = subprocess.run([PYTHON, "-c", "from huggingface_hub import *\n" + code],
                              env=self.environment(HF_HUB_DISABLE_XET="1", **more),
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode().strip()

    def test_what_we_pull_it_finds(self):
        ours = self.succeed("pull", "hf:org/quants:q8_0", "--json").json()["path"]
        theirs = self.python("print(hf_hub_download('org/quants', 'model-Q8_0.gguf'))",
                             HF_HUB_OFFLINE="1")
        self.assertEqual(theirs, ours)
        folder = self.succeed("pull", "hf:org/dir", "--json").json()["path"]
        self.assertEqual(self.python("print(snapshot_download('org/dir'))", HF_HUB_OFFLINE="1"),
                         folder)
        scanned = json.loads(self.python(
            "import json\nc = scan_cache_dir()\nassert not c.warnings, c.warnings\n"
            "print(json.dumps({r.repo_id: [r.nb_files, r.size_on_disk] for r in c.repos}))"))
        self.assertEqual(scanned, {"org/quants": [1, 2000], "org/dir": [4, 912]})
        # Online it asks, and fetches no file again.
        self.hub.requests.clear()
        self.python("hf_hub_download('org/quants', 'model-Q8_0.gguf')")
        self.assertEqual(self.hub.paths("GET", "Q8_0"), [])

    def test_what_it_downloaded_we_find(self):
        theirs = self.python("print(hf_hub_download('org/quants', 'model-Q8_0.gguf'))\n"
                             "snapshot_download('org/dir')")
        self.hub.requests.clear()
        listed = self.succeed("list", "--json").json()
        self.assertEqual([model["name"] for model in listed["hub_cache"]],
                         ["org/dir", "org/quants:Q8_0"])
        pulled = self.succeed("pull", "hf:org/quants:q8_0", "--json").json()
        self.assertEqual((pulled["path"], pulled["downloaded"]), (theirs, False))
        self.assertFalse(self.succeed("pull", "hf:org/dir", "--json").json()["downloaded"])
        self.assertEqual(self.hub.paths("GET", "/resolve/"), [])
        self.assertEqual(self.hub.paths("GET", "signature"), [])
        offline = self.succeed("pull", "hf:org/dir", "--json", HF_HUB_OFFLINE="1",
                               HF_ENDPOINT="http://127.0.0.1:9").json()
        self.assertEqual(offline["path"], str(self.snapshot("org/dir")))
        self.refuse("rm", "org/dir", "--yes", says=["another tool", "--cache"])
        self.assertTrue((self.snapshot("org/dir") / "config.json").exists())
        self.succeed("rm", "org/dir", "--yes", "--cache")
        self.assertFalse(self.repo_folder("org/dir").exists())

    def test_what_it_left_unfinished_we_go_on_from(self):
        """Files that it began have the names that we look for."""
        data = self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"]
        blobs = self.repo_folder() / "blobs"
        blobs.mkdir(parents=True)
        partial = blobs / (self.hub.repos["org/quants"].etag("model-Q4_K_M.gguf") + ".incomplete")
        partial.write_bytes(data[:123_456])
        path = self.succeed("pull", "hf:org/quants", "--json").json()["path"]
        self.assertEqual(pathlib.Path(path).read_bytes(), data)
        self.assertIn("bytes=123456-", str([headers.get("Range")
                                            for *_, headers in self.hub.requests]))


if __name__ == "__main__":
    harness.main()
