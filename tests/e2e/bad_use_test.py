#!/usr/bin/env python3
"""Bad use: each gives one clear message with the way out and the right exit code, prints nothing
on standard output and leaves nothing behind."""
import harness
import json
import os
import subprocess


class BadUse(harness.HeadraceTest):
    def refused(self, code, *args, words=(), stdin=b"", **more):
        before = sorted(self.folder.rglob("*"))
        done = self.run_headrace(*args, stdin=stdin, **more)
        text = done.err.decode()
        self.assertEqual(done.code, code, f"{args}: {text}")
        self.assertEqual(done.out, b"", args)
        for word in words:
            self.assertIn(word, text, args)
        lines = done.error_lines()
        self.assertEqual(len(lines), 1, f"{args}: {text}")
        self.assertTrue(lines[0].startswith("headrace"), text)
        self.assertNotIn("terminate", text)
        after = sorted(path for path in self.folder.rglob("*") if path.name != "home")
        self.assertEqual(before, after, f"{args}: left something behind")
        return text

    def with_streams(self, redirection, *args):
        """Runs the program with its standard streams as a shell redirects them."""
        done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', harness.BINARY,
                               *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, env=self.environment(), cwd=self.folder, check=False)
        return harness.Outcome(done.returncode, done.stdout, done.stderr)

    def test_standard_input_that_cannot_be_read(self):
        path = self.tiny()
        commands = (["tokenize", "-m", path], ["chat", "-m", path],
                    ["run", "-m", path, "-p", "-"], ["run", "-m", path, "-f", "-"],
                    ["score", "-m", path, "--ids-file", "-"])
        for command in commands:
            for redirection, word in (("< .", "directory"), ("<&-", "closed")):
                done = self.with_streams(redirection, *command)
                self.assertEqual((done.code, done.out), (1, b""), (command, redirection))
                self.assertEqual(len(done.error_lines()), 1, done.err)
                self.assertIn(b"standard input", done.err)
                self.assertIn(word.encode(), done.err)
#Only who reads it minds.
        done = self.with_streams("<&-", "run", "-m", path, "-p", "Hi", "-n", 2)
        self.assertEqual(done.code, 0, done.err)

    def test_standard_input_that_breaks_off(self):
        # This process' own memory, from a little before the end of a mapped region: the first read
        # gives a few bytes, the next one fails.
        if not os.access("/proc/self/mem", os.R_OK):
            self.skipTest("/proc/self/mem is not there")
        with open("/proc/self/maps", encoding="utf-8") as maps:
            regions = [line.split()[:2] for line in maps]
        ends = [[int(number, 16) for number in addresses.split("-")] for addresses, _ in regions]
        last = next(end for (_, end), (begin, _), (_, access) in zip(ends, ends[1:], regions)
                    if access.startswith("rw") and begin > end)
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            for command in (["run", "--raw", "-p", "-"], ["tokenize"], ["chat"]):
                memory.seek(last - 8)
                done = subprocess.run([harness.BINARY, *command, "-m", self.tiny()], stdin=memory,
                                      capture_output=True, timeout=120, check=False,
                                      env=self.environment())
                self.assertEqual((done.returncode, done.stdout), (1, b""), command)
                self.assertIn(b"standard input: cannot be read: Input/output error", done.stderr)

    def test_closed_standard_output(self):
        for redirection in (">&-", "<&- >&-"):
            done = self.with_streams(redirection, "run", "-m", self.tiny(), "-p", "Hi", "-n", 3)
            self.assertEqual(done.code, 1, redirection)
            self.assertIn(b"standard output", done.err)
        done = self.with_streams("<&- >&- 2>&-", "run", "-m", self.tiny(), "-p", "Hi", "-n", 3)
        self.assertEqual(done.code, 1)

    def test_files_that_are_no_models(self):
        folder = self.folder / "folder"
        folder.mkdir()
        text = self.write("notes.txt", "Dear diary,\n" * 100)
        empty = self.write("empty.gguf", b"")
        os.mkfifo(self.folder / "pipe")
        for command in (["run", "-p", "Hi"], ["chat"], ["tokenize"], ["inspect"]):
            self.refused(1, *command, "-m", "pipe", words=["pipe: is a pipe", "into a file"])
            for path, words in (("missing.gguf", ["missing.gguf"]), (folder, ["folder"]),
                                (text, ["notes.txt"]), (empty, ["empty.gguf", "empty"])):
                self.refused(1, *command, "-m", path, words=words)

    def test_a_name_that_is_none(self):
        self.refused(1, "run", "-m", "no-such-model", "-p", "Hi",
                     words=["no-such-model", "headrace list"])
        self.refused(1, "run", "-m", "gemma3-270m", "-p", "Hi",
                     words=["headrace pull gemma3-270m"])

    def test_unknown_architecture(self):
        path = self.tiny("strange.gguf", architecture="stranger")
        self.refused(1, "run", "-m", path, "-p", "Hi", words=["stranger", "llama"])

    def test_vocabulary_only(self):
        path = self.tiny("vocab.gguf", with_weights=False)
        self.refused(1, "run", "-m", path, "-p", "Hi", words=["vocabulary", "tokenize"])

    def test_truncated(self):
        whole = self.tiny().read_bytes()
        for size in (3, 4, 10, 20, 500, 600, 1000, 3000, 5000, len(whole) // 2, len(whole) - 1):
            path = self.write("cut.gguf", whole[:size])
            text = self.refused(1, "run", "-m", path, "-p", "Hi", words=["cut.gguf"])
            self.assertRegex(text, r"\(.+\)\n$", size)  # the way out
            if size > 3:  # with fewer bytes it is a file of any kind
                self.assertIn("cut short", text, size)

    def test_wrong_flags(self):
        path = self.tiny()
        text = self.refused(2, "run", "-m", path, "-p", "Hi", "--temperatur", "1")
        self.assertIn("--temperature", text)
        self.refused(2, "run", "-m", path, "-p", "Hi", "--temp", "warm", words=["--temp", "warm"])
        for flag, value in (("--temp", "-1"), ("--top-p", "1.5"), ("--top-k", "-1"), ("-n", "-5"),
                            ("--min-p", "2"), ("--typical-p", "0"), ("--repeat-penalty", "0"),
                            ("--repeat-last-n", "-2"), ("--presence-penalty", "1e10"),
                            ("--frequency-penalty", "-1e10"), ("--logit-bias", "-1=0"),
                            ("--logit-bias", "999999=1")):
            for command in (["run", "-p", "Hi"], ["chat"]):
                self.refused(2, *command, "-m", path, flag, value, words=[f" {flag}: expected"])
        self.refused(2, "run", "-m", path, "-p", "Hi", "--isa", "mmx", words=["mmx"])
        self.refused(2, "run", "-m", path, "-p", "Hi", "--kv-type", "q1", words=["q1"])
        self.refused(2, "run", "-m", path, "-p", "Hi", "-t", "0")
        self.refused(2, "run", "-m", path, "-p", "Hi", "-t", "1025", words=["-t", "1024"])
        for bias in ("x", "5", "5=", "=5", "5=x", "a=1", "5=1x"):
            self.refused(2, "run", "-m", path, "-p", "Hi", "--logit-bias", bias, words=[bias])

    def test_isa_of_the_environment(self):
        text = self.refused(1, "run", "-m", self.tiny(), "-p", "Hi", words=["HEADRACE_ISA", "mmx"],
                            HEADRACE_ISA="mmx")
        self.assertEqual(text.count("HEADRACE_ISA"), 1)

    def path_without_downloads(self):
        """A PATH where a download fails and leaves a file behind, which refused() finds."""
        (self.folder / "bin").mkdir()
        script = self.folder / "bin" / "python3"
        script.write_text(f"#!/bin/sh\ntouch {self.folder}/called\nexit 1\n")
        script.chmod(0o755)
        return f"{self.folder / 'bin'}:{os.environ['PATH']}"

    def test_an_empty_name_is_wrong_usage(self):
        messages = self.write("m.json", "[]")
        path = self.path_without_downloads()
        for command in (["run", "-p", "Hi"], ["chat"], ["tokenize"], ["inspect"], ["selftest"]):
            self.refused(2, *command, "-m", "", PATH=path,
                         words=[" -m: expected a file or a model's name"])
        self.refused(2, "inspect", "", words=["MODEL"])
        self.refused(2, "run", "-f", "", words=[" -f: expected"])
        self.refused(2, "run", "-p", "Hi", "--chat-template", "", words=["--chat-template"])
        self.refused(2, "run", "-p", "Hi", "--pre-tokenizer", "", words=["--pre-tokenizer"])
        self.refused(2, "perplexity", "-f", messages, "--save-base", "", words=["--save-base"])
        self.refused(2, "render", "--messages", "", words=["--messages"])
        self.refused(2, "render", "--messages", messages, "--now", "", words=["--now"])

    def test_what_is_wrong_is_said_before_a_model_is_looked_for_or_fetched(self):
        path = self.path_without_downloads()
        good = self.write("good.json", "[]")
        broken = self.write("broken.json", "[1,")
        template = self.write("broken.jinja", "{% for %}")
        for code, words, *args in (
                (2, ["--temp"], "run", "-p", "Hi", "--temp=-1"),
                (2, ["--logit-bias"], "run", "-p", "Hi", "--logit-bias", "x"),
                (2, ["bogus", "gpt-2"], "run", "-p", "Hi", "--pre-tokenizer", "bogus"),
                (2, ["bogus", "gpt-2"], "tokenize", "--pre-tokenizer", "bogus"),
                (1, ["nofile"], "run", "-f", "nofile"),
                (1, ["broken.jinja"], "run", "-p", "Hi", "--chat-template", template),
                (2, ["--top-k"], "chat", "--top-k=-1"),
                (1, ["broken.jinja"], "chat", "--chat-template", template),
                (2, ["--now", "garbage"], "render", "--messages", good, "--now", "garbage"),
                (1, ["nofile"], "render", "--messages", "nofile"),
                (1, ["broken.json"], "render", "--messages", broken),
                (1, ["nofile"], "render", "--messages", good, "--tools", "nofile"),
                (1, ["nofile"], "render", "--messages", good, "--variables", "nofile"),
                (1, ["nofile"], "tokenize", "-f", "nofile"),
                (1, ["nofile"], "detokenize", "--ids-file", "nofile"),
                (1, ["broken.json"], "detokenize", "--ids-file", broken),
                (1, ["broken.json"], "score", "--ids-file", broken),
                (1, ["nofile"], "perplexity", "-f", "nofile")):
            self.refused(code, *args, words=words, PATH=path)
            self.refused(code, *args, "-m", "no-such-model", words=words, PATH=path)
        self.refused(1, "run", "-p", "Hi", words=["HEADRACE_ISA"], PATH=path, HEADRACE_ISA="mmx")

    def test_prompts(self):
        path = self.tiny()
        self.refused(2, "run", "-m", path, words=["prompt", "-p"])
        self.refused(2, "run", "-m", path, "-p", "", words=["empty"])
        self.refused(1, "run", "-m", path, "-p", "-", words=["empty", "standard input"])
        nothing = self.write("nothing.txt", "")
        self.refused(1, "run", "-m", path, "-f", nothing, words=["empty", "nothing.txt"])
        self.refused(2, "run", "-m", path, "-p", "a", "-f", "b", words=["-p", "-f"])
        self.refused(1, "run", "-m", path, "-f", "nowhere.txt",
                     words=["nowhere.txt", "check the path"])
        for more in ([], ["-c", "256"]):
            long = self.refused(1, "run", "-m", path, "--raw", "-p", "x" * 1000, *more,
                                words=["1000", "256", "shorten the prompt", "made for no larger"])
            self.assertNotIn("-c", long)
        self.refused(1, "run", "-m", path, "--raw", "-p", "x" * 200, "-c", "64",
                     words=["200", "64", "larger context with -c"])
        self.refused(1, "run", "-m", path, "-f", self.folder, words=["directory", "name a file"])

    def test_chat_without_a_template(self):
        path = self.tiny("base.gguf", template=None)
        self.refused(1, "chat", "-m", path, words=["chat template", "--chat-template FILE"])

    def test_chat_template_of_the_user(self):
        path = self.tiny("base.gguf", template=None)
        broken = self.write("broken.jinja", "{% for %}")
        self.refused(1, "chat", "-m", path, "--chat-template", "none.jinja", words=["none.jinja"])
        self.refused(1, "chat", "-m", path, "--chat-template", broken, words=["template"])
        self.refused(1, "chat", "-m", path, "--chat-template", self.write("empty.jinja", ""),
                     words=["empty.jinja"])

    def test_templates_that_fail_when_used(self):
        path = self.tiny()
        messages = self.write("m.json", '[{"role": "user", "content": "Hi"}]')
        refuses = self.write("refuses.jinja", "{{ raise_exception('only cats may ask') }}")
        lacks = self.write("lacks.jinja", "{{ messages[0].name.first }}")
        for template, words in ((refuses, ["only cats may ask", "refused the conversation"]),
                                (lacks, ["chat template line 1"])):
            self.refused(1, "render", "--template", template, "--messages", messages,
                         words=[template.name, *words])
            self.refused(1, "run", "-m", path, "--chat-template", template, "-p", "Hi",
                         words=words)
            self.refused(1, "chat", "-m", path, "--chat-template", template, stdin=b"Hi\n",
                         words=words)
        self.refused(1, "render", "--template", self.write("broken.jinja", "{% for %}"),
                     "--messages", messages, words=["broken.jinja", "line 1"])

    def test_ids(self):
        path = self.tiny()
        for text in ("[1,", "[\"a\"]", "{}", "1 x", "[999999]", "[-1]", "[18446744073709551615]"):
            ids = self.write("ids.json", text)
            self.refused(1, "detokenize", "-m", path, "--ids-file", ids, words=["ids.json"])
            self.refused(1, "score", "-m", path, "--ids-file", ids, words=["ids.json"])
        self.refused(1, "score", "-m", path, "--ids-file", self.write("none.json", "[]"))
        one = self.write("one.json", "[1]")
        self.refused(2, "score", "-m", path, "--ids-file", one, "--top", "1001",
                     words=["--top", "1000"])
        self.refused(2, "score", "-m", path, "--ids-file", one, "--top", "9000000000000000000",
                     words=["--top", "1000"])
        many = self.write("many.json", json.dumps([1] * 300))
        self.refused(1, "score", "-m", path, "--ids-file", many,
                     words=["300", "256", "made for no larger"])
        self.refused(1, "score", "-m", path, "--ids-file", many, "-c", "64",
                     words=["300", "64", "with -c"])
        self.refused(2, "detokenize", "-m", path, words=["--ids-file"])

    def test_messages(self):
        path = self.tiny()
        for text in ("{", "3", "[" * 1000):
            messages = self.write("messages.json", text)
            self.refused(1, "render", "-m", path, "--messages", messages, words=["messages.json"])
        good = self.write("good.json", '[{"role": "user", "content": "Hi"}]')
        self.refused(2, "render", "-m", path, "--messages", good, "--now", "yesterday",
                     words=["--now", "yesterday"])
        base = self.tiny("base.gguf", template=None)
        self.refused(1, "render", "-m", base, "--messages", good, words=["--template"])

    def test_perplexity(self):
        path = self.tiny()
        text = self.write("text.txt", "abcdefgh" * 40)
        self.refused(1, "perplexity", "-m", path, "-f", self.write("none.txt", ""),
                     words=["none.txt"])
        self.refused(1, "perplexity", "-m", path, "-f", self.write("short.txt", "abc"),
                     "--chunk", "64", words=["3", "64"])
        self.refused(2, "perplexity", "-m", path, "-f", text, "--chunk", "7", words=["--chunk", "7"])
        self.refused(1, "perplexity", "-m", path, "-f", text,
                     words=["512", "256", "made for no larger"])
        self.refused(1, "perplexity", "-m", path, "-f", text, "--chunk", "64", "--kl-base", text,
                     words=["text.txt"])
        self.refused(1, "perplexity", "-m", path, "-f", text, "--chunk", "64", "--save-base",
                     "nowhere/base", words=["nowhere/base"])

    def test_save_base_replaces_nothing_else(self):
        model = self.tiny()
        text = self.write("text.txt", "abcdefgh" * 40)
        (self.folder / "folder").mkdir()
        (self.folder / "link").symlink_to("text.txt")
        os.mkfifo(self.folder / "pipe")  # stands for any device
        kept = {path: path.read_bytes() for path in (model, text)}
        for target in (model, text, "folder", "link", "pipe"):
            # Found before the model is opened: this one is not there.
            self.refused(1, "perplexity", "-m", "missing.gguf", "-f", text, "--save-base", target,
                         words=[str(target), "give another name"])
        for path, data in kept.items():
            self.assertEqual(path.read_bytes(), data)
        self.refused(1, "perplexity", "-m", "missing.gguf", "-f", text, "--save-base",
                     "nowhere/base", words=["nowhere/base"])
        self.write("base.partial", "mine")
        for _ in range(2):
            self.succeed("perplexity", "-m", model, "-f", text, "--chunk", 64, "--save-base",
                         "base")
        self.assertEqual((self.folder / "base.partial").read_bytes(), b"mine")
        self.assertEqual(sorted(path.name for path in self.folder.glob("base*")),
                         ["base", "base.partial"])

    def test_errors_as_json(self):
        done = self.run_headrace("run", "-m", "missing.gguf", "-p", "Hi", "--json")
        self.assertEqual(done.code, 1)
        self.assertEqual(done.json()["error"]["code"], "not_found")


if __name__ == "__main__":
    harness.main()
