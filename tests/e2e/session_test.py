#!/usr/bin/env python3
"""Session files of run and chat: what is reused, what comes out, and every file that is refused."""
import json
import os
import resource
import signal
import stat
import subprocess

import chat_test
import harness
import tiny_model

ALWAYS_A = ["--temp", "0", "--logit-bias", "65=1000"]
GREEDY = ["--temp", "0", "-n", "8", "--ignore-eos"]
FILE = "talk.session"


class Session(harness.HeadraceTest):
    def run_json(self, *args, **more):
        return self.succeed("run", "-m", self.tiny(), "--raw", "--json", *GREEDY, *args,
                            **more).json()

    def refused(self, *args, words, model=None):
        """One line on standard error with these words, no answer, the file as it was."""
        path = self.folder / FILE
        before = path.read_bytes() if path.exists() else None
        done = self.run_headrace("run", "-m", model or self.tiny(), "--raw", "-p", "hello", *GREEDY,
                                 "--session", FILE, *args)
        text = done.err.decode()
        self.assertEqual((done.code, done.out), (1, b""), text)
        self.assertEqual(len(done.error_lines()), 1, text)
        for word in (FILE, *words):
            self.assertIn(word, text)
        self.assertEqual(path.read_bytes() if path.exists() else None, before)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".partial")],
                         [])


class Run(Session):
    PROMPT = "once upon a time a miller had a mill and it was old"

    def test_a_prompt_is_computed_once(self):
        without = self.run_json("-p", self.PROMPT)
        first = self.run_json("-p", self.PROMPT, "--session", FILE)
        self.assertEqual(first["timings"]["cache_n"], 0)
        tokens = len(self.PROMPT)  # one a byte; of the answer's the last is not computed
        self.assertEqual(first["session"],
                         {"file": FILE, "loaded_tokens": 0, "saved_tokens": tokens + 7})
        again = self.run_json("-p", self.PROMPT, "--session", FILE)
        self.assertEqual(again["timings"]["cache_n"], tokens - 1)
        self.assertEqual(again["timings"]["prompt_n"], 1)
        self.assertEqual(again["session"]["loaded_tokens"], tokens + 7)
        for result in (first, again):
            self.assertEqual(result["token_ids"], without["token_ids"])
        self.assertNotIn("session", without)
        self.assertEqual(stat.S_IMODE((self.folder / FILE).stat().st_mode), 0o600)

    def test_another_end_of_the_same_text(self):
        self.run_json("-p", self.PROMPT, "--prompt-cache", FILE)
        before = (self.folder / FILE).read_bytes()
        for end in (" and a mule", "", " and no mule at all"):
            prompt = self.PROMPT[:30] + end
            without = self.run_json("-p", prompt)
            result = self.run_json("-p", prompt, "--prompt-cache", FILE, "--prompt-cache-ro")
            self.assertEqual(result["timings"]["cache_n"], min(30, len(prompt) - 1))
            self.assertEqual(result["token_ids"], without["token_ids"])
            self.assertEqual((self.folder / FILE).read_bytes(), before)
        # What goes on is saved in its place.
        self.run_json("-p", self.PROMPT + " and a mule", "--session", FILE)
        result = self.run_json("-p", self.PROMPT + " and a mule that", "--session", FILE)
        self.assertEqual(result["timings"]["cache_n"], len(self.PROMPT + " and a mule"))

    def test_stats_tell_of_it(self):
        args = ["run", "-m", self.tiny(), "--raw", "-p", self.PROMPT, *GREEDY, "--stats",
                "--session", FILE]
        self.assertNotIn(b"cached", self.succeed(*args).err)
        self.assertRegex(self.succeed(*args).err.decode(),
                         rf"({len(self.PROMPT) - 1} more were cached)[\s\S]*session +"
                         rf"{len(self.PROMPT) + 7} tokens loaded in .* ms, "
                         rf"{len(self.PROMPT) + 7} saved")

    def test_threads_and_chunks_do_not_matter(self):
        self.run_json("-p", self.PROMPT, "--session", FILE)
        without = self.run_json("-p", self.PROMPT)
        for more in (["-t", 1], ["-ub", 7], ["--no-pack"], ["--full-head"], ["-c", 100]):
            result = self.run_json("-p", self.PROMPT, "--session", FILE, *more)
            self.assertEqual(result["timings"]["cache_n"], len(self.PROMPT) - 1, more)
            self.assertEqual(result["token_ids"], without["token_ids"], more)

    def test_damaged_files_are_refused(self):
        self.run_json("-p", self.PROMPT, "--session", FILE)
        path = self.folder / FILE
        whole = path.read_bytes()
        for wrong, word in ((whole[:-1], "cut"), (whole[:100], "cut"), (whole[:5], "no session"),
                            (whole + b"x", "damaged"),
                            (whole[:-2000] + b"x" + whole[-1999:], "checksum"),
                            (whole[:16] + b"\x02" + whole[17:], "version 2")):
            path.write_bytes(wrong)
            self.refused(words=[word, "give another name"])
        for wrong in (b"", b"Dear diary"):
            path.write_bytes(wrong)
            self.refused(words=["no session file", "give another name"])
        path.unlink()
        self.refused("--session-read-only", words=["no such session file"])
        path.mkdir()
        done = self.run_headrace("run", "-m", self.tiny(), "-p", "x", "--session", FILE)
        self.assertEqual(done.code, 1)
        self.assertIn(b"directory", done.err)

    def test_files_of_others_are_refused(self):
        self.run_json("-p", self.PROMPT, "--session", FILE)
        other = self.tiny("other.gguf", seed=2)
        self.refused(model=other, words=["another model", "'tiny', expected 'other'"])
        renamed = self.folder / "renamed.gguf"
        renamed.write_bytes(self.tiny().read_bytes())
        done = self.succeed("run", "-m", renamed, "--raw", "-p", self.PROMPT, *GREEDY, "--json",
                            "--session", FILE)
        self.assertEqual(done.json()["timings"]["cache_n"], len(self.PROMPT) - 1)
        words = self.tiny("words.gguf", extra=tiny_model.other_vocabulary())
        self.refused(model=words, words=["another tokenizer"])
        self.refused("--kv-type", "f16", words=["'q12'", "'f16'", "--kv-type q12"])
        self.refused("--isa", "reference", "--kv-type", "q12", words=["'cpu reference'", "--isa"])
        self.refused("-c", "32", words=[f"{len(self.PROMPT) + 7} tokens", "room for 32", "-c"])

    def test_where_nothing_can_be_written(self):
        done = self.run_headrace("run", "-m", self.tiny(), "-p", "x", "--session", "no/such/file")
        self.assertEqual((done.code, done.out), (1, b""))
        self.assertIn(b"no/such/file", done.err)
        usage = self.run_headrace("run", "-m", self.tiny(), "-p", "x", "--session-read-only")
        self.assertEqual(usage.code, 2)
        # A full disk: the answer is out, and no file is left.
        for more in ([], ["--json"]):
            done = subprocess.run(
                [harness.BINARY, "run", "-m", str(self.tiny()), "--raw", "-p", self.PROMPT, *GREEDY,
                 "--session", FILE, *more],
                capture_output=True, env=self.environment(), cwd=self.folder, check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(FILE.encode(), done.stderr)
            self.assertTrue(done.stdout)
            if more:
                self.assertIn(FILE, json.loads(done.stdout)["session"]["error"])
            self.assertEqual([name for name in os.listdir(self.folder) if FILE in name], [])

    def test_an_interrupted_answer_is_saved(self):
        model = self.tiny("long.gguf", context=100000)
        process = subprocess.Popen(
            [harness.BINARY, "run", "-m", model, "--raw", "-p", self.PROMPT, *ALWAYS_A,
             "--session", FILE], stdout=subprocess.PIPE, env=self.environment(), cwd=self.folder)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.read(4), b"AAAA")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT)
        done = self.succeed("run", "-m", model, "--raw", "-p", self.PROMPT + "AAAA", *ALWAYS_A,
                            "-n", 1, "--json", "--session", FILE)
        self.assertEqual(done.json()["timings"]["cache_n"], len(self.PROMPT) + 3)


class Chat(Session):
    def chat(self, script, *args, model=None):
        return self.succeed("chat", "-m", model or self.tiny(), *ALWAYS_A, "-n", 3, "--session",
                            FILE, *args, stdin=script.encode())

    def messages(self, *args):
        (self.folder / "messages.json").unlink(missing_ok=True)
        self.chat("/save messages.json\n", *args)
        return json.loads((self.folder / "messages.json").read_text())

    def test_two_at_once_lose_nothing(self):
        first = subprocess.Popen(
            [harness.BINARY, "chat", "-m", str(self.tiny()), *ALWAYS_A, "-n", "3", "--session", FILE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
            env=self.environment())
        try:
            first.stdin.write(b"from the first\n")
            first.stdin.flush()
            first.stdout.read(1)  # it has begun to answer
            self.chat("from the second\n")
            second = (self.folder / FILE).read_bytes()
            _, err = first.communicate(timeout=60)
        finally:
            first.kill()
            first.wait()
        self.assertEqual(first.returncode, 0, err)
        self.assertIn(FILE + ".2", err.decode())
        self.assertEqual((self.folder / FILE).read_bytes(), second)
        said = self.messages()
        self.assertEqual(said[0]["content"], "from the second")
        (self.folder / (FILE + ".2")).rename(self.folder / FILE)
        self.assertEqual(self.messages()[0]["content"], "from the first")

    def test_a_conversation_goes_on(self):
        self.chat("hello\n", "--system", "Be brief.")
        self.assertEqual(
            self.messages(),
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"},
             {"role": "assistant", "content": "AAA"}])
        done = self.chat("and now\n", "--stats")
        # All but the template's words behind the last answer and the new message.
        template = len("\n") + 1 + len("user\nand now") + 1 + 1 + 1 + len("assistant\n")
        self.assertRegex(done.err.decode(), rf"prompt +{template + 1 + 1} tokens.*more were cached")
        self.assertEqual(len(self.messages()), 5)
        before = (self.folder / FILE).read_bytes()
        self.chat("/retry\n", "--session-read-only")
        self.assertEqual((self.folder / FILE).read_bytes(), before)
        self.chat("/clear\n")
        self.assertEqual(self.messages(), [{"role": "system", "content": "Be brief."}])

    def test_nothing_said_leaves_nothing(self):
        self.chat("")
        self.assertFalse((self.folder / FILE).exists())
        self.chat("hello\n")
        before = (self.folder / FILE).stat().st_mtime_ns
        self.chat("/stats\n")
        self.assertEqual((self.folder / FILE).stat().st_mtime_ns, before)

    def test_of_run_and_of_chat(self):
        self.succeed("run", "-m", self.tiny(), "-p", "hello", *GREEDY, "--session", FILE)
        done = self.run_headrace("chat", "-m", self.tiny(), "--session", FILE, stdin=b"hello\n")
        self.assertEqual((done.code, done.out), (1, b""))
        self.assertIn(b"headrace run", done.err)
        done = self.chat("hello\n", "--session-read-only", "--stats")
        self.assertIn(b"more were cached", done.err)
        (self.folder / FILE).unlink()
        self.chat("hello\n")
        self.refused(words=["headrace chat"])
        self.succeed("run", "-m", self.tiny(), "-p", "hello", *GREEDY, "--session", FILE,
                     "--session-read-only")

    def test_interrupt_of_a_pipe_saves(self):
        model = self.tiny("long.gguf", context=100000)
        process = subprocess.Popen(
            [harness.BINARY, "chat", "-m", str(model), *ALWAYS_A, "--session", FILE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment(), cwd=self.folder)
        self.addCleanup(process.kill)
        process.stdin.write(b"go on\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.read(4), b"AAAA")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.chat("/save messages.json\n", model=model)
        saved = json.loads((self.folder / "messages.json").read_text())
        self.assertEqual(len(saved), 2)
        self.assertTrue(saved[1]["content"].startswith("AAAA"))

    def start(self, *args):
        terminal = chat_test.Terminal(
            ["chat", "-m", self.tiny(), *ALWAYS_A, "-n", 3, "--session", FILE, *args],
            self.environment(), self.folder)
        self.addCleanup(terminal.process.kill)
        return terminal

    def test_at_a_terminal(self):
        terminal = self.start()
        terminal.wait_for("> ")
        terminal.type("hello\r")
        terminal.wait_for(r"AAA\n.*> $")
        self.assertFalse((self.folder / FILE).exists())
        terminal.type("/save\r")
        terminal.wait_for(r"saved talk.session\n.*> $")
        self.assertTrue((self.folder / FILE).exists())
        terminal.type("again\r")
        terminal.wait_for(r"AAA\n.*> $")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        terminal = self.start()
        terminal.wait_for(r"Going on with talk.session: 4 messages, \d+ tokens.\n.*> $")
        terminal.type("/quit\r")
        self.assertEqual(terminal.end(), 0)

    def test_the_end_of_the_terminal_saves(self):
        for how in ("hang up", "terminate"):
            terminal = self.start()
            terminal.wait_for("> ")
            terminal.type("hello\r")
            terminal.wait_for(r"AAA\n.*> $")
            if how == "hang up":
                os.close(terminal.master)
            else:
                terminal.process.send_signal(signal.SIGTERM)
            terminal.process.wait(timeout=60)
            if how == "terminate":
                os.close(terminal.master)
            self.assertEqual(len(self.messages()), 2, how)
            (self.folder / FILE).unlink()

    def test_a_session_that_cannot_be_saved_can_be_kept(self):
        folder = self.folder / "folder"
        folder.mkdir()
        terminal = chat_test.Terminal(
            ["chat", "-m", self.tiny(), *ALWAYS_A, "-n", 3, "--session", "folder/talk"],
            self.environment(), self.folder)
        self.addCleanup(terminal.process.kill)
        terminal.wait_for("> ")
        terminal.type("hello\r")
        terminal.wait_for(r"AAA\n.*> $")
        folder.rmdir()
        terminal.type("/quit\r")
        terminal.wait_for(r"no such folder.*leave again to try again\n.*> $")
        terminal.type("/save kept.json\r")
        terminal.wait_for(r"saved kept.json\n.*> $")
        terminal.type("/quit\r")
        self.assertEqual(terminal.end(), 1)
        self.assertEqual(len(json.loads((self.folder / "kept.json").read_text())), 2)


if __name__ == "__main__":
    harness.main()
