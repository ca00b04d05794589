#!/usr/bin/env python3
"""Pulling models from a hub and from addresses, by the real program and a hub of our own: what is
fetched, what is kept, what goes on after a cut, and what is said where it fails."""
import fcntl
import hashlib
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

import harness
from fake_hub import COMMIT, FakeHub, Repo

SECRET = "hf_secrettoken"


def noise(size, seed):
    return hashlib.shake_128(str(seed).encode()).digest(size)


def gguf(size, seed=1):
    return b"GGUF" + noise(size - 4, seed)


def safetensors(size, seed=1):
    return (size - 8).to_bytes(8, "little") + b"{" + noise(size - 9, seed)


class HubTest(harness.HeadraceTest):
    def setUp(self):
        super().setUp()
        self.hub = FakeHub()
        self.addCleanup(self.hub.close)
        self.cache = self.folder / "hf" / "hub"
        self.hub.repos["org/quants"] = Repo({
            "README.md": b"# readme", "model-Q2_K.gguf": gguf(1000, 1),
            "model-Q4_K_M.gguf": gguf(300_000, 2), "model-Q8_0.gguf": gguf(2000, 3),
            "mmproj-model-f16.gguf": gguf(500, 4)}, license="apache-2.0")

    def environment(self, **more):
        env = super().environment()
        for name in list(env):
            if name.startswith(("HF_", "HUGGINGFACE")) or name.lower().endswith("_proxy") or \
                    name in ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
                del env[name]
        env.update(HF_ENDPOINT=self.hub.url, HF_HOME=str(self.folder / "hf"),
                   HF_HUB_DOWNLOAD_TIMEOUT="2")
        env.update(more)
        return env

    def repo_folder(self, repo="org/quants"):
        return self.cache / ("models--" + repo.replace("/", "--"))

    def snapshot(self, repo="org/quants"):
        return self.repo_folder(repo) / "snapshots" / COMMIT

    def incomplete(self, repo="org/quants"):
        return list((self.repo_folder(repo) / "blobs").glob("*.incomplete"))

    def refuse(self, *args, says=(), **more):
        done = self.run_headrace(*args, **more)
        message = done.err.decode()
        self.assertEqual(done.code, 1, message)
        self.assertEqual(done.out, b"")
        for word in says:
            self.assertIn(word, message)
        self.assertNotIn(SECRET, message)
        self.assertNotIn("signature", message)
        return message

    def begin(self, *args, **more):
        process = subprocess.Popen([harness.BINARY, *args], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(**more))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)


class PullTest(HubTest):
    def test_a_quantisation_lands_in_the_shared_cache(self):
        done = self.succeed("pull", "hf:org/quants", "--json").json()
        data = self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"]
        self.assertEqual(done["name"], "org/quants:Q4_K_M")
        self.assertEqual(done["sha256"], hashlib.sha256(data).hexdigest())
        self.assertEqual(done["license"], "apache-2.0")
        self.assertEqual((done["quantization"], done["downloaded"]), ("Q4_K_M", True))
        link = self.snapshot() / "model-Q4_K_M.gguf"
        self.assertEqual(pathlib.Path(done["path"]), link)
        self.assertEqual(os.readlink(link), "../../blobs/" + done["sha256"])
        self.assertEqual(link.read_bytes(), data)
        self.assertEqual((self.repo_folder() / "refs" / "main").read_text(), COMMIT)
        self.assertEqual(self.incomplete(), [])
        again = self.succeed("pull", "hf:org/quants:q4_k_m", "--json").json()
        self.assertFalse(again["downloaded"])
        self.assertEqual(len(self.hub.paths(containing="Q4_K_M.gguf")), 2)  # the hub, the other host

    def test_names_resolve_and_rm_removes(self):
        self.succeed("pull", "hf:org/quants:Q8_0")
        for name in ("org/quants:Q8_0", "org/quants:q8_0", "hf:org/quants:q8_0", "org/quants",
                     "hf:org/quants", "org/quants:model-Q8_0.gguf"):
            shown = self.succeed("show", name, "--json").json()
            self.assertEqual(shown["path"], str(self.snapshot() / "model-Q8_0.gguf"), name)
        self.refuse("inspect", "org/quants:Q2_K", says=["headrace pull hf:org/quants:Q2_K"])
        listed = self.succeed("list", "--json").json()
        self.assertEqual([model["name"] for model in listed["models"]], ["org/quants:Q8_0"])
        self.assertEqual(listed["hub_cache"], [])
        self.assertIn("org/quants:Q8_0", self.succeed("list").out.decode())
        self.succeed("rm", "org/quants:Q8_0", "--yes")
        self.assertFalse(self.repo_folder().exists())
        self.assertEqual(self.succeed("list", "--json").json()["models"], [])

    def test_a_path_that_exists_wins(self):
        self.succeed("pull", "hf:org/quants:Q8_0")
        mine = self.folder / "org" / "quants"
        mine.mkdir(parents=True)
        message = self.refuse("inspect", "org/quants")
        self.assertNotIn("snapshots", message)

    def test_a_name_of_ones_own(self):
        self.succeed("pull", "hf:org/quants:Q8_0", "--name", "mine")
        self.assertEqual(self.succeed("list", "--names").out, b"mine\n")
        self.assertIn("is already here", self.succeed("pull", "mine").out.decode())
        self.succeed("pull", "hf:org/quants:Q8_0")  # the same file under its usual name
        self.succeed("rm", "mine", "--yes")
        self.assertTrue((self.snapshot() / "model-Q8_0.gguf").exists())
        self.refuse("pull", "hf:org/quants", "--name", "a/b", says=["a/b"])

    def test_what_fits_several_or_none_is_listed(self):
        files = self.hub.repos["org/quants"].files
        self.refuse("pull", "hf:org/quants:Q5_K_M", says=["model-Q2_K.gguf (1.0 kB)", "Q8_0"])
        self.refuse("pull", "hf:org/quants:modle-Q8_0.gguf", says=["model-Q8_0.gguf"])
        files["other-Q4_K_M.gguf"] = gguf(700, 5)
        self.refuse("pull", "hf:org/quants:q4_k_m", says=["other-Q4_K_M.gguf (0.7 kB)"])
        self.refuse("pull", "hf:org/quants", says=["other-Q4_K_M.gguf", "model-Q4_K_M.gguf"])
        self.hub.repos["org/none"] = Repo({"pytorch_model.bin": b"x"})
        self.refuse("pull", "hf:org/none", says=["pytorch_model.bin", "GGUF"])
        self.assertEqual(self.hub.paths(containing="/resolve/"), [])

    def test_all_parts_of_a_split_file(self):
        parts = {f"Q4_K_M/big-Q4_K_M-0000{i}-of-00003.gguf": gguf(900 + i, i) for i in (1, 2, 3)}
        self.hub.repos["org/split"] = Repo({**parts, "big-Q8_0.gguf": gguf(10, 9)})
        done = self.succeed("pull", "hf:org/split", "--json").json()
        self.assertTrue(done["path"].endswith("Q4_K_M/big-Q4_K_M-00001-of-00003.gguf"))
        for path, data in parts.items():
            self.assertEqual((self.snapshot("org/split") / path).read_bytes(), data)
        self.assertEqual(done["size_bytes"], sum(map(len, parts.values())))
        self.succeed("rm", "org/split", "--yes")
        self.assertFalse(self.repo_folder("org/split").exists())

    def test_a_directory_of_safetensors(self):
        wanted = {
            "config.json": b"{}", "generation_config.json": b"{}", "tokenizer.json": b"{}",
            "tokenizer_config.json": b"{ }", "vocab.json": b"{}", "merges.txt": b"a b\n",
            "chat_template.jinja": b"{{ messages }}",
            "additional_chat_templates/tool.jinja": b"{{ tools }}",
            "model-00001-of-00002.safetensors": safetensors(5000, 1),
            "model-00002-of-00002.safetensors": safetensors(6000, 2),
            "model.safetensors.index.json": b"{}"}
        others = {"pytorch_model.bin": b"x", "onnx/model.onnx": b"x", "README.md": b"x",
                  "original/model.safetensors": safetensors(50, 3),
                  "consolidated.safetensors": safetensors(60, 4)}
        self.hub.repos["org/dir"] = Repo({**others, **wanted}, license="other",
                                         license_name="my-licence")
        done = self.succeed("pull", "hf:org/dir", "--json").json()
        self.assertEqual((done["name"], done["format"]), ("org/dir", "safetensors"))
        self.assertEqual(done["license"], "my-licence")
        folder = self.snapshot("org/dir")
        self.assertEqual(done["path"], str(folder))
        found = {str(path.relative_to(folder)): path.read_bytes()
                 for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(found, wanted)
        self.assertEqual(os.readlink(folder / "additional_chat_templates/tool.jinja"),
                         "../../../blobs/" + self.hub.repos["org/dir"].etag(
                             "additional_chat_templates/tool.jinja"))
        self.assertIn("model-00002-of-00002.safetensors", self.succeed("show", "org/dir").out.decode())

    def test_revisions(self):
        repo = Repo({"a-Q8_0.gguf": gguf(100)}, commit="f" * 40)
        repo.branches = ("dev/two",)
        self.hub.repos["org/rev"] = repo
        done = self.succeed("pull", "hf:org/rev@dev/two", "--json").json()
        self.assertEqual(done["name"], "org/rev@dev/two:Q8_0")
        self.assertEqual((self.repo_folder("org/rev") / "refs/dev/two").read_text(), "f" * 40)
        self.assertTrue(any("dev%2Ftwo" in path for path in self.hub.paths()))
        self.refuse("pull", "hf:org/rev@nope", says=["no such revision"])

    def test_a_new_commit_takes_the_place_of_the_old_one(self):
        self.succeed("pull", "hf:org/quants:Q8_0")
        old = self.snapshot()
        repo = self.hub.repos["org/quants"]
        repo.commit, repo.files["model-Q8_0.gguf"] = "e" * 40, gguf(2500, 8)
        done = self.succeed("pull", "hf:org/quants:Q8_0", "--json").json()
        self.assertTrue(done["downloaded"])
        self.assertIn("e" * 40, done["path"])
        self.assertFalse(old.exists())
        self.assertEqual(len(list((self.repo_folder() / "blobs").iterdir())), 1)

    def test_a_hub_without_checksums_in_its_list(self):
        self.hub.without_sums = True
        done = self.succeed("pull", "hf:org/quants:Q8_0", "--json").json()
        data = self.hub.repos["org/quants"].files["model-Q8_0.gguf"]
        self.assertEqual(pathlib.Path(done["path"]).read_bytes(), data)
        self.assertEqual(os.path.basename(os.readlink(done["path"])),
                         hashlib.sha256(data).hexdigest())

    def test_hf_fetches_once_and_runs_offline_afterwards(self):
        self.hub.repos["org/tiny"] = Repo({"tiny-Q8_0.gguf": self.tiny().read_bytes()})
        args = ("run", "-hf", "org/tiny", "--raw", "-p", "Hello", "-n", "4", "--temp", "0",
                "--json")
        first = self.succeed(*args)
        self.assertIn("Download:", first.err.decode())
        num_requests = len(self.hub.requests)
        self.assertEqual(self.succeed(*args).json()["text"], first.json()["text"])
        self.assertEqual(len(self.hub.requests), num_requests, "it is here: nobody is asked")
        self.succeed("run", "-m", "org/tiny:q8_0", "--raw", "-p", "Hello", "-n", "1")
        both = self.run_headrace("run", "-hf", "org/tiny", "-m", "x", "-p", "Hello")
        self.assertIn("-hf", both.err.decode())


class TokenTest(HubTest):
    def setUp(self):
        super().setUp()
        repo = self.hub.repos["org/quants"]
        repo.token, repo.gated = SECRET, "manual"

    def tokens_seen(self, server):
        return [headers.get("Authorization") for name, _, _, headers in self.hub.requests
                if name == server]

    def test_no_token_does_not_follow_to_another_host(self):
        self.succeed("pull", "hf:org/quants", HF_TOKEN=SECRET)
        self.assertEqual(set(self.tokens_seen("hub")), {f"Bearer {SECRET}"})
        self.assertEqual(self.tokens_seen("other"), [None])
        for path in (self.folder / "store").rglob("*"):
            if path.is_file():
                self.assertNotIn(SECRET, path.read_text())

    def test_the_token_may_be_in_a_file(self):
        self.write("token", SECRET + "\n")
        self.succeed("pull", "hf:org/quants", HF_TOKEN_PATH=str(self.folder / "token"))
        (self.folder / "hf" / "token").write_text(SECRET)
        self.succeed("pull", "hf:org/quants:Q8_0")
        bad = self.run_headrace("pull", "hf:org/quants:Q2_K", HF_TOKEN="two words")
        self.assertEqual(bad.code, 1)
        self.assertIn("HF_TOKEN", bad.err.decode())

    def test_gated_and_unknown_repositories(self):
        self.refuse("pull", "hf:org/quants", says=["401", "HF_TOKEN", "/org/quants"])
        self.refuse("pull", "hf:org/quants", HF_TOKEN="hf_other",
                    says=["403", "restricted", "accept its terms"])
        self.refuse("pull", "hf:org/unknown", HF_TOKEN="hf_other", says=["no such repository"])
        self.refuse("pull", "hf:org/unknown", says=["401", "HF_TOKEN"])
        self.refuse("pull", "hf:../etc", says=["hf:ORG/REPO"])

    def test_addresses_get_no_token(self):
        self.hub.files["/f/model.gguf"] = gguf(100)
        self.succeed("pull", self.hub.url + "/f/model.gguf", HF_TOKEN=SECRET)
        self.assertEqual(self.tokens_seen("hub"), [None])


class FaultTest(HubTest):
    def pull_well(self, **more):
        done = self.succeed("pull", "hf:org/quants", "--json", **more)
        path = pathlib.Path(done.json()["path"])
        self.assertEqual(path.read_bytes(),
                         self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"])
        return done.err.decode()

    def ranges(self):
        return [headers.get("Range") for name, _, _, headers in self.hub.requests
                if name == "other"]

    def test_a_cut_is_gone_on_from(self):
        self.hub.fault("Q4_K_M.gguf?", cut=100_000)
        self.hub.fault("Q4_K_M.gguf?", cut=50_000)
        message = self.pull_well()
        self.assertEqual(self.ranges(), [None, "bytes=100000-", "bytes=150000-"])
        self.assertIn("trying again", message)

    def test_ranges_that_are_ignored(self):
        self.hub.ignores_ranges = True
        self.hub.fault("Q4_K_M.gguf?", cut=100_000)
        self.assertIn("begins anew", self.pull_well())

    def test_a_stalled_body_is_tried_again(self):
        self.hub.fault("Q4_K_M.gguf?", cut=70_000, size=300_000, hang=8)
        self.assertIn("trying again", self.pull_well())

    def test_busy_servers_are_tried_again(self):
        self.hub.fault("/api/", status=503)
        self.hub.fault("/resolve/", status=429, headers={"Retry-After": "2"})
        begin = time.monotonic()
        message = self.pull_well()
        self.assertGreater(time.monotonic() - begin, 2.0)
        self.assertIn("429", message)
        self.assertIn("in 2 s", message)

    def test_one_that_stays_busy_is_an_error(self):
        self.hub.fault("/api/", times=99, status=429, headers={"Retry-After": "9999"})
        begin = time.monotonic()
        self.refuse("pull", "hf:org/quants", says=["429", "9999 s"])
        self.assertLess(time.monotonic() - begin, 5)
        self.hub.faults.clear()
        self.hub.fault("/api/", times=99, status=500)
        self.refuse("pull", "hf:org/quants", says=["500", "5 of 5"])

    def test_wrong_bytes_are_refused_and_not_kept(self):
        right = self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"]
        cases = {
            "checksum": dict(replace=gguf(300_000, 99)), "expected": dict(replace=right + b"more"),
            "web page": dict(replace=b"<!DOCTYPE html>" + b" " * 200, type="text/html"),
            "GGUF": dict(replace=b"x" * 300_000),
            "size": dict(replace=right[:1000])}
        for word, fault in cases.items():
            with self.subTest(word):
                self.hub.faults.clear()
                self.hub.fault("Q4_K_M.gguf?", times=9, **fault)
                self.refuse("pull", "hf:org/quants", says=[word, "model-Q4_K_M.gguf"])
                self.assertEqual(self.incomplete(), [])
                self.assertFalse((self.snapshot() / "model-Q4_K_M.gguf").exists())
        self.hub.faults.clear()
        self.pull_well()

    def test_a_pointer_instead_of_the_file(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
        self.hub.repos["org/lfs"] = Repo({"a.gguf": pointer})
        self.refuse("pull", "hf:org/lfs", says=["Git LFS"])

    def test_small_files_are_checked_too(self):
        self.hub.repos["org/dir"] = Repo({"config.json": b'{"a": 1}',
                                          "model.safetensors": safetensors(100)})
        self.hub.fault("config.json", times=9, replace=b'{"a": 2}')
        self.refuse("pull", "hf:org/dir", says=["config.json", "checksum"])

    def test_redirects_that_are_not_followed(self):
        self.hub.redirect_to = "file:///etc/passwd"
        self.refuse("pull", "hf:org/quants", says=["sends elsewhere"])
        self.hub.redirect_to = "/org/quants/resolve/main/model-Q4_K_M.gguf"
        self.refuse("pull", "hf:org/quants", says=["more than ten times"])

    def test_names_that_lead_out_of_the_cache(self):
        for name in ("../../../evil.gguf", "/evil.gguf", "a/../evil.gguf", "evil\x1b[31m.gguf",
                     "a\\b.gguf", "a//b.gguf"):
            self.hub.repos["org/evil"] = Repo({name: gguf(100)})
            message = self.refuse("pull", "hf:org/evil", says=["name"])
            self.assertNotIn("\x1b", message)
        self.assertEqual([path for path in self.folder.rglob("*evil*")], [])
        outside = self.folder / "outside"
        outside.mkdir()
        self.repo_folder().mkdir(parents=True)
        (self.repo_folder() / "snapshots").symlink_to(outside)
        self.refuse("pull", "hf:org/quants", says=["link"])
        self.assertEqual(list(outside.iterdir()), [])

    def test_answers_that_are_not_understood(self):
        for body in (b"<html>", b"[]", b'{"sha": "x"}', b'{"sha": "' + COMMIT.encode() + b'"}',
                     b"[" * 100_000):
            self.hub.faults.clear()
            self.hub.fault("/api/", status=200, body=body)
            self.refuse("pull", "hf:org/quants", says=["HF_ENDPOINT"])

    def test_nobody_there(self):
        self.refuse("pull", "hf:org/quants", HF_ENDPOINT="http://127.0.0.1:9",
                    says=["cannot be reached"])
        self.refuse("pull", "hf:org/quants", HF_ENDPOINT="ftp://x", says=["HF_ENDPOINT"])

    def test_a_server_without_a_trusted_certificate(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl")
        key, certificate = self.folder / "key.pem", self.folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        import ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.hub.main.socket = context.wrap_socket(self.hub.main.socket, server_side=True)
        address = self.hub.url.replace("http://127.0.0.1", "https://localhost")
        self.refuse("pull", "hf:org/quants", HF_ENDPOINT=address,
                    says=["cannot be trusted", "SSL_CERT_FILE"])
        # https does not go on to http.
        self.refuse("pull", "hf:org/quants", HF_ENDPOINT=address, SSL_CERT_FILE=str(certificate),
                    says=["sends elsewhere"])
        self.hub.sends_elsewhere = False
        self.pull_well(HF_ENDPOINT=address, SSL_CERT_FILE=str(certificate))


class ProcessTest(HubTest):
    def slow_pull(self, seconds=0.05):
        """A pull under way, of which some has come."""
        self.hub.delay = seconds
        self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"] = gguf(4_000_000, 7)
        process = self.begin("pull", "hf:org/quants", "--json")
        self.wait_until(lambda: any(path.stat().st_size > 200_000 for path in self.incomplete()),
                        "nothing comes")
        return process

    def check_resumes(self):
        had = self.incomplete()[0].stat().st_size
        self.assertGreater(had, 0)
        self.hub.delay, before = 0, len(self.hub.requests)
        done = self.succeed("pull", "hf:org/quants", "--json")
        self.assertIn("are here already", done.err.decode())
        begins = [headers.get("Range") for name, _, _, headers in self.hub.requests[before:]
                  if name == "other"]
        self.assertEqual(begins, [f"bytes={had}-"])
        self.assertEqual(pathlib.Path(done.json()["path"]).read_bytes(),
                         self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"])
        self.assertEqual(self.incomplete(), [])

    def test_a_killed_pull_is_gone_on_from(self):
        process = self.slow_pull()
        process.kill()
        process.wait()
        self.assertEqual(self.succeed("list", "--json").json()["models"], [])
        self.check_resumes()

    def test_an_interrupted_pull_is_gone_on_from(self):
        process = self.slow_pull()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertIn(b"interrupted", err)
        self.assertEqual(process.returncode, 1)
        self.assertNotIn(b"%", err)
        self.check_resumes()

    def test_an_unfinished_file_that_was_damaged(self):
        process = self.slow_pull()
        process.kill()
        process.wait()
        partial = self.incomplete()[0]
        partial.write_bytes(b"GGUF" + b"0" * (partial.stat().st_size - 4))
        self.hub.delay = 0
        done = self.succeed("pull", "hf:org/quants", "--json")
        self.assertIn("begins anew", done.err.decode())
        self.assertEqual(pathlib.Path(done.json()["path"]).read_bytes(),
                         self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"])

    def test_two_processes_download_once(self):
        first = self.slow_pull(0.02)
        second = self.begin("pull", "hf:org/quants", "--json")
        first_out, first_err = first.communicate(timeout=60)
        second_out, second_err = second.communicate(timeout=60)
        self.assertEqual((first.returncode, second.returncode), (0, 0), first_err + second_err)
        self.assertIn(b"waiting for it", second_err)
        self.assertIn(b'"downloaded":false', second_out)
        self.assertEqual(len([1 for name, *_ in self.hub.requests if name == "other"]), 1)

    def test_a_terminal_shows_a_bar(self):
        self.hub.delay = 0.1
        main, side = pty.openpty()
        process = subprocess.Popen([harness.BINARY, "pull", "hf:org/quants"], stdout=side,
                                   stderr=side, env=self.environment())
        os.close(side)
        text = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(main)
        self.assertEqual(process.wait(), 0, text)
        self.assertRegex(text.decode(), r"downloading \[=+>? *\] +\d+ % .* of 300.0 kB.*/s, \d+ s left")


class RoomTest(HubTest):
    def test_too_little_room_is_found_beforehand(self):
        disk = self.folder / "hf"
        disk.mkdir()
        if os.geteuid() != 0 or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", disk]).returncode != 0:
            self.skipTest("cannot mount a small file system here (needs root)")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"] = gguf(8_000_000, 7)
        self.refuse("pull", "hf:org/quants", says=["not enough room", "MB needed", "MB free",
                                                   "HF_HOME"])
        self.assertEqual(self.hub.paths(containing="/resolve/"), [])
        self.hub.repos["org/quants"].files["model-Q4_K_M.gguf"] = gguf(2_000_000, 7)
        self.succeed("pull", "hf:org/quants")

    def test_a_disk_that_fills_up_keeps_what_came(self):
        data = gguf(300_000, 2)
        limited = ["bash", "-c", 'ulimit -f 100; trap "" XFSZ; exec "$0" "$@"', harness.BINARY]
        done = subprocess.run([*limited, "pull", "hf:org/quants"], env=self.environment(),
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"free some space", done.stderr)
        self.assertGreater(self.incomplete()[0].stat().st_size, 50_000)
        path = self.succeed("pull", "hf:org/quants", "--json").json()["path"]
        self.assertEqual(pathlib.Path(path).read_bytes(), data)
        self.assertIn("bytes=", str([headers.get("Range") for *_, headers in self.hub.requests]))


class AddressTest(HubTest):
    def setUp(self):
        super().setUp()
        self.data = gguf(300_000, 11)
        self.hub.files["/f/My Model-Q4_0.gguf"] = self.data
        self.address = self.hub.url + "/f/My%20Model-Q4_0.gguf"
        self.stored = self.folder / "store" / "models" / "My-Model-Q4_0.gguf"

    def test_a_file_gets_a_name(self):
        done = self.succeed("pull", self.address + "?key=hush", "--json").json()
        self.assertEqual(done["name"], "My-Model-Q4_0")
        self.assertEqual(done["quantization"], "Q4_0")
        self.assertEqual(self.stored.read_bytes(), self.data)
        self.assertEqual(done["sha256"], hashlib.sha256(self.data).hexdigest())
        self.assertNotIn("hush", self.succeed("list", "--json").out.decode())
        self.assertFalse(self.succeed("pull", self.address, "--json").json()["downloaded"])
        self.assertEqual(self.succeed("show", self.address, "--json").json()["path"],
                         str(self.stored))
        self.succeed("pull", self.address, "--name", "second")
        self.refuse("pull", self.hub.url + "/g/second.gguf", says=["--name", "another model"])
        self.succeed("rm", "second", "--yes")
        self.assertEqual(self.succeed("list", "--names").out, b"My-Model-Q4_0\n")

    def test_checksums(self):
        self.refuse("pull", self.address, "--sha256", "0" * 64, says=["checksum"])
        self.assertFalse(self.stored.exists())
        self.succeed("pull", self.address, "--sha256",
                     hashlib.sha256(self.data).hexdigest().upper())
        wrong = self.run_headrace("pull", self.address, "--sha256", "abc")
        self.assertEqual(wrong.code, 2)

    def test_a_cut_and_a_kill(self):
        self.hub.fault("/f/", cut=100_000)
        self.hub.delay = 0.1
        process = self.begin("pull", self.address)
        partial = self.folder / "store/models/.pull/My-Model-Q4_0.incomplete"
        self.wait_until(lambda: partial.exists() and partial.stat().st_size > 150_000, "no bytes")
        process.kill()
        process.wait()
        had = partial.stat().st_size
        self.hub.delay = 0
        self.succeed("pull", self.address)
        self.assertEqual(self.stored.read_bytes(), self.data)
        ranges = [headers.get("Range") for *_, headers in self.hub.requests]
        self.assertEqual(ranges[-1], f"bytes={had}-")
        self.assertEqual(sorted(path.name for path in partial.parent.iterdir()),
                         ["My-Model-Q4_0.lock"])

    def test_a_file_that_changed_meanwhile_begins_anew(self):
        self.hub.fault("/f/", times=5, cut=100_000)
        self.hub.fault("/f/", times=99, status=500)
        self.hub.faults[0].times = 1
        self.refuse("pull", self.address, says=["500"])
        self.hub.faults.clear()
        self.hub.files["/f/My Model-Q4_0.gguf"] = gguf(280_000, 12)
        self.succeed("pull", self.address)
        self.assertEqual(self.stored.read_bytes(), gguf(280_000, 12))

    def test_an_unknown_length(self):
        self.hub.fault("/f/", unknown_length=True)
        self.succeed("pull", self.address)
        self.assertEqual(self.stored.read_bytes(), self.data)

    def test_addresses_that_are_not_used(self):
        self.refuse("pull", self.hub.url + "/f/nothing.gguf", says=["404", "check the address"])
        for address, word in ((self.hub.url + "/f/x.bin", ".gguf"),
                              ("ftp://x/y.gguf", "https://"),
                              ("http://example.com/y.gguf", "https://"),
                              ("https://user:pass@example.com/y.gguf", "password"),
                              (self.hub.url + "/x-00001-of-00002.gguf", "one part of 2")):
            message = self.refuse("pull", address, says=[word])
            self.assertNotIn("pass@", message)


def main():
    harness.main()


if __name__ == "__main__":
    main()
