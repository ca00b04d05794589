#!/usr/bin/env python3
"""headrace batch: an answer for each line whatever is wrong with others, the same answers alone and
in company, nothing lost or repeated whenever it is killed, clear refusals."""
import collections
import json
import os
import pty
import random
import resource
import signal
import subprocess
import time

import harness


def completion(custom_id, prompt="Hello", **body):
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/completions",
            "body": {"prompt": prompt, **body}}


def chat(custom_id, *messages, **body):
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions",
            "body": {"messages": [{"role": "user", "content": text} for text in messages], **body}}


def text_of(line):
    return line if isinstance(line, str) else json.dumps(line)


class BatchTest(harness.HeadraceTest):
    def write_lines(self, lines, name="in.jsonl"):
        return self.write(name, "".join(text_of(line) + "\n" for line in lines))

    def command(self, *args, model=None):
        return [harness.BINARY, "batch", *map(str, args), "-m", str(model or self.tiny()), "-t", "1"]

    def batch(self, *args, code=0, model=None, stdin=b"", timeout=120, **more):
        done = self.run_headrace(*self.command(*args, model=model)[1:], stdin=stdin,
                                 timeout=timeout, **more)
        self.assertEqual(done.code, code, done.err.decode(errors="replace"))
        return done

    def answer_lines(self, name="out.jsonl"):
        text = (self.folder / name).read_bytes()
        self.assertTrue(text == b"" or text.endswith(b"\n"))
        return [json.loads(line) for line in text.decode().split("\n")[:-1]]

    def answers(self, name="out.jsonl"):
        found = {}
        for line in self.answer_lines(name):
            self.assertNotIn(line["custom_id"], found)
            found[line["custom_id"]] = line
        return found

    def answer_all(self, lines, *args, name="out.jsonl"):
        self.write_lines(lines)
        self.batch("in.jsonl", name, *args)
        return self.answers(name)

    def start(self, *args, **more):
        return subprocess.Popen(self.command(*args), env=self.environment(), cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def choices(answer):
    return answer["response"]["body"].get("choices")


def error(answer):
    return answer["response"]["body"]["error"]


class Answers(BatchTest):
    def test_both_endpoints(self):
        found = self.answer_all([
            completion("text", "Hello", max_tokens=4, temperature=0, ignore_eos=True),
            chat("chat", "Hello", max_tokens=3, seed=1, ignore_eos=True),
        ])
        text = found["text"]
        self.assertEqual((text["response"]["status_code"], text["error"]), (200, None))
        body = text["response"]["body"]
        self.assertEqual(body["object"], "text_completion")
        self.assertTrue(body["id"].startswith("cmpl-"))
        self.assertEqual(body["usage"]["completion_tokens"], 4)
        self.assertEqual(body["choices"][0]["finish_reason"], "length")
        self.assertRegex(body["system_fingerprint"], r"^hr-[0-9.]+-\w+-\w+-[0-9a-f]{12}$")
        for name in ("queue_ms", "tokenize_ms", "prompt_n", "prompt_ms", "prompt_per_second",
                     "cache_n", "predicted_n", "predicted_ms", "predicted_per_second", "sample_ms"):
            self.assertIn(name, body["timings"])
        body = found["chat"]["response"]["body"]
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["choices"][0]["message"]["role"], "assistant")

    def test_what_is_wrong_with_a_line_is_its_answer(self):
        lines = [
            completion("good", max_tokens=2),
            "{broken",
            {"url": "/v1/completions", "body": {"prompt": "no id"}},
            {"custom_id": "url", "method": "POST", "url": "/v1/images/generations", "body": {}},
            {"custom_id": "method", "method": "GET", "url": "/v1/completions", "body": {}},
            {"custom_id": "body", "method": "POST", "url": "/v1/completions"},
            completion("long", "x" * 1000),
            completion("many", max_tokens=1000),
            completion("field", temperature="hot"),
            completion("range", logit_bias={"191222": -100}),
            completion("empty", ""),
            completion("stream", stream=True),
            completion("constraint", response_format={"type": "json_object"}),
            completion("ids", [5, 99999]),
            chat("tools", "Hi", tools=[{"type": "function"}]),
            {"custom_id": "image", "method": "POST", "url": "/v1/chat/completions", "body": {
                "messages": [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:"}}]}]}},
            '{"custom_id": "nan", "url": "/v1/completions", "body": {"prompt": "a", "top_p": NaN}}',
            "",
            completion("good", "again"),
            completion("last", max_tokens=2),
        ]
        self.write_lines(lines)
        done = self.batch("in.jsonl", "out.jsonl", "--json")
        summary = done.json()
        self.assertEqual((summary["answered"], summary["failed"]), (19, 17))
        found = collections.defaultdict(list)
        for line in self.answer_lines():
            found[line["custom_id"]].append(line)
            if line["response"]["status_code"] != 200:
                self.assertEqual(set(error(line)), {"message", "type", "code", "param"})
                self.assertEqual(line["error"]["message"], error(line)["message"])
        status = {name: [line["response"]["status_code"] for line in of] for name, of in found.items()}
        self.assertEqual(status["last"], [200])
        self.assertEqual(sorted(status["good"]), [200, 400])
        self.assertEqual(status["url"], [404])
        self.assertEqual(status[None], [400, 400])
        numbered = sorted(error(line)["message"] for line in found[None])
        self.assertIn("line 2", numbered[1] if "line 2:" in numbered[1] else numbered[0])
        self.assertTrue(any("line 3:" in message for message in numbered), numbered)
        param = {name: error(of[0])["param"] for name, of in found.items()
                 if name not in (None, "good", "last")}
        self.assertEqual(param, {
            "url": "url", "method": "method", "body": None, "long": "prompt", "many": "max_tokens",
            "field": "temperature", "range": "logit_bias", "empty": "prompt", "stream": "stream",
            "constraint": "response_format", "ids": "prompt[1]", "tools": "tools",
            "image": "messages[0].content[0]", "nan": "top_p"})
        self.assertEqual(error(found["long"][0])["code"], "context_length_exceeded")
        self.assertRegex(error(found["long"][0])["message"], r"1000 tokens.*256")
        self.assertIn("191222", error(found["range"][0])["message"])

    def test_the_same_alone_and_in_company(self):
        numbers = random.Random(5)
        lines = []
        for i in range(60):
            words = "the same beginning of them all, " * numbers.randint(0, 3)
            body = {"max_tokens": numbers.randint(1, 24), "seed": i, "temperature": 1.2,
                    "ignore_eos": i % 3 == 0}
            if i % 4 == 0:
                body |= {"n": 3, "logprobs": 2}
            if i % 5 == 0:
                body |= {"stop": ["e", "th"]}
            if i % 7 == 0:
                body |= {"echo": True, "prompt_logprobs": 1}
            lines.append(completion(str(i), words + str(i), **body))
        first = self.answer_all(lines, "-np", 16)
        for name, args in (("one", ["-np", 1]), ("plain", ["-np", 5, "--no-prefix-cache", "-ub", 7]),
                           ("tight", ["-np", 16, "--kv-memory", "200K"])):
            other = self.answer_all(lines, *args, name=name)
            self.assertEqual(other.keys(), first.keys())
            for custom_id, answer in first.items():
                self.assertEqual(choices(answer), choices(other[custom_id]), (name, custom_id))

    def test_choices_stop_strings_and_logprobs(self):
        lines = [
            completion("n", n=4, temperature=1.5, seed=3, max_tokens=6, ignore_eos=True),
            completion("plain", max_tokens=40, temperature=0, ignore_eos=True),
            completion("prompts", ["a", "b"], n=2, max_tokens=1, temperature=0, ignore_eos=True),
            completion("ids", [72, 101], echo=True, max_tokens=0),
            completion("scored", "Hello", echo=True, logprobs=2, max_tokens=0),
            chat("chat", "Hi", logprobs=True, top_logprobs=3, max_tokens=5, ignore_eos=True),
        ]
        found = self.answer_all(lines)
        texts = [choice["text"] for choice in choices(found["n"])]
        self.assertEqual([choice["index"] for choice in choices(found["n"])], [0, 1, 2, 3])
        self.assertGreater(len(set(texts)), 1)
        self.assertEqual(found["n"]["response"]["body"]["usage"]["completion_tokens"], 24)
        self.assertEqual(len(choices(found["prompts"])), 4)
        self.assertEqual(choices(found["prompts"])[0]["text"], choices(found["prompts"])[1]["text"])
        self.assertEqual(choices(found["ids"])[0]["finish_reason"], "length")
        scored = choices(found["scored"])[0]
        self.assertEqual(scored["text"], "Hello")
        logprobs = scored["logprobs"]
        self.assertEqual("".join(logprobs["tokens"]), "Hello")
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertTrue(all(value < 0 for value in logprobs["token_logprobs"][1:]))
        self.assertTrue(all(2 <= len(top) <= 3 for top in logprobs["top_logprobs"][1:]))
        content = choices(found["chat"])[0]["logprobs"]["content"]
        self.assertEqual(len(content), 5)
        self.assertTrue(all(len(token["top_logprobs"]) == 3 for token in content))

        # Every part of the plain text as a stop string: nothing of it is ever shown.
        text = choices(found["plain"])[0]["text"]
        stops = [text[at:at + size] for at in range(4, len(text), 5) for size in (1, 3, 8)]
        stopped = self.answer_all(
            [completion(str(i), max_tokens=40, temperature=0, ignore_eos=True, stop=[stop])
             for i, stop in enumerate(stops)], name="stopped.jsonl")
        for i, stop in enumerate(stops):
            choice = choices(stopped[str(i)])[0]
            self.assertEqual(choice["text"], text[:text.index(stop)])
            self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", stop))

    def test_many_stop_ids(self):
        ids = [i % 264 for i in range(10_000)]
        found = self.answer_all([completion("most", stop_token_ids=ids[:1024], max_tokens=5),
                                 completion("more", stop_token_ids=ids, max_tokens=5)])
        self.assertEqual(choices(found["most"])[0]["finish_reason"], "stop")
        self.assertEqual(choices(found["most"])[0]["text"], "")
        self.assertEqual(found["more"]["response"]["status_code"], 400)
        self.assertEqual(error(found["more"])["param"], "stop_token_ids")
        self.assertRegex(error(found["more"])["message"], "at most 1024 .* found 10000")

    def test_no_tokens_at_all(self):
        found = self.answer_all([completion("plain", max_tokens=0), chat("chat", "Hi", max_tokens=0),
                                 completion("scored", echo=True, max_tokens=0, logprobs=0)])
        for answer in found.values():
            self.assertEqual(choices(answer)[0]["finish_reason"], "length")
            self.assertEqual(answer["response"]["body"]["usage"]["completion_tokens"], 0)
        self.assertEqual(choices(found["plain"])[0]["text"], "")
        self.assertEqual(len(choices(found["scored"])[0]["logprobs"]["token_logprobs"]), 5)

    def test_a_default_length_is_made_to_fit(self):
        self.write_lines([completion("silent", ignore_eos=True),
                          completion("own", max_tokens=100_000),
                          completion("huge", max_tokens=1 << 40), completion("long", "x" * 300)])
        summary = self.batch("in.jsonl", "out.jsonl", "-n", 100_000, "--json").json()
        self.assertEqual(summary["failed"], 3)
        self.assertEqual(len([text for text in summary["warnings"] if "100000" in text]), 1)
        found = self.answers()
        body = found["silent"]["response"]["body"]
        self.assertEqual(body["usage"]["total_tokens"], 256)
        self.assertRegex(body["warnings"][0], r"max_tokens: at most \d+, not the default 100000.*256")
        for name, number in (("own", "100000"), ("huge", str(1 << 40)), ("long", "300")):
            self.assertEqual(error(found[name])["code"], "context_length_exceeded")
            self.assertIn(number, error(found[name])["message"])
            self.assertIn("256", error(found[name])["message"])
        done = self.batch("in.jsonl", "text.jsonl", "-n", 100_000)
        self.assertEqual(done.err.decode().count("warning:"), 1, done.err)
        # One that may fit is nobody's concern until a prompt leaves less.
        done = self.batch("in.jsonl", "fits.jsonl", "-n", 254)
        self.assertNotIn("warning:", done.err.decode())
        warnings = self.answers("fits.jsonl")["silent"]["response"]["body"]["warnings"]
        self.assertEqual(len(warnings), 1, warnings)

    def test_options_hold_where_a_request_is_silent(self):
        lines = [completion("silent", ignore_eos=True), completion("own", max_tokens=2,
                                                                   ignore_eos=True)]
        found = self.answer_all(lines, "-n", 7, "--temp", 0)
        usage = {name: answer["response"]["body"]["usage"]["completion_tokens"]
                 for name, answer in found.items()}
        self.assertEqual(usage, {"silent": 7, "own": 2})

    def test_what_is_not_known_or_another_model_is_warned_of(self):
        found = self.answer_all([completion("a", model="gpt-4", temprature=1, max_tokens=1)])
        warnings = found["a"]["response"]["body"]["warnings"]
        self.assertTrue(any("gpt-4" in text for text in warnings), warnings)
        self.assertTrue(any("did you mean temperature?" in text for text in warnings), warnings)
        found = self.answer_all([dict(completion("a", max_tokens=1), metod="POST", tags=["x"])],
                                name="line.jsonl")
        warnings = found["a"]["response"]["body"]["warnings"]
        self.assertEqual(warnings, ['line: ignored: "metod" is not known here; did you mean method?',
                                    'line: ignored: "tags" is not known here'])

    def test_a_base_model_answers_completions_only(self):
        self.write_lines([completion("a", max_tokens=1), chat("b", "Hi")])
        self.batch("in.jsonl", "out.jsonl", model=self.tiny("base.gguf", template=None))
        found = self.answers()
        self.assertEqual(found["a"]["response"]["status_code"], 200)
        self.assertIn("--chat-template", error(found["b"])["message"])


class Files(BatchTest):
    def test_pipes(self):
        lines = "".join(text_of(completion(str(i), max_tokens=2)) + "\n" for i in range(20))
        done = self.batch("-", "-", stdin=lines.encode())
        self.assertEqual({json.loads(line)["custom_id"] for line in done.out.splitlines()},
                         {str(i) for i in range(20)})
        self.assertIn("answered    20", done.err.decode())
        self.assertEqual(self.batch("-", "-", "--quiet", stdin=lines.encode()).err, b"")
        self.batch("-", "/dev/null", "--quiet", stdin=lines.encode())

    def test_going_on_with_an_input_that_is_read_once(self):
        lines = [completion(str(i), max_tokens=1) for i in range(6)]
        self.answer_all(lines[:3])
        os.mkfifo(self.folder / "pipe")
        text = "".join(text_of(line) + "\n" for line in lines)
        with self.start("pipe", "out.jsonl", "--json") as process:
            (self.folder / "pipe").write_text(text)
            out = process.communicate(timeout=60)[0]
        self.assertEqual(json.loads(out)["answered"], 3)
        self.assertEqual(len(self.answers()), 6)

    def test_input_order(self):
        lines = [completion(str(i), max_tokens=1 + i * 7 % 30, ignore_eos=True) for i in range(80)]
        self.answer_all(lines, "--output-order", "input")
        self.assertEqual([line["custom_id"] for line in self.answer_lines()],
                         [str(i) for i in range(80)])

    def test_exit_codes(self):
        self.write_lines([completion("a", max_tokens=1), "{"])
        self.batch("in.jsonl", "out.jsonl")
        done = self.batch("in.jsonl", "out.jsonl", "--fail-on-error", code=1)
        self.assertIn("answered    0 (2 before, of these 1 with an error)", done.err.decode())
        self.assertIn("out.jsonl: 1 of 2 answers are errors, 1 of them from earlier runs",
                      done.err.decode())
        for more in (["--quiet"], ["--json"]):
            done = self.batch("in.jsonl", "out.jsonl", "--fail-on-error", *more, code=1)
            self.assertEqual(len(done.error_lines()), 1, done.err)
            self.assertIn("1 of 2 answers are errors", done.err.decode())
        self.assertEqual(done.json()["failed_before"], 1)
        folder = self.batch("in.jsonl", self.folder, code=1)
        self.assertIn(f"{self.folder}: a directory, not a file (name a file in it)",
                      folder.err.decode())
        for name in ("-np", "--parallel", "--max_num_seqs"):
            wrong = self.batch("in.jsonl", "out.jsonl", name, 0, code=2)
            self.assertIn(f"headrace batch: {name}: expected", wrong.err.decode())
        self.batch("none.jsonl", "out.jsonl", code=1)
        self.batch("in.jsonl", "no/such/folder", code=1)
        self.batch("in.jsonl", "in.jsonl", code=2)
        self.batch("in.jsonl", "-", "--json", code=2)
        self.batch("in.jsonl", "out.jsonl", "--resume", "--overwrite", code=2)
        self.batch("in.jsonl", "out.jsonl", "--kv-memory", "lots", code=2)
        self.batch("in.jsonl", "out.jsonl", "--temp", "-1", code=2)
        small = self.batch("in.jsonl", "new.jsonl", "--kv-memory", "1k", code=1)
        self.assertIn("--kv-memory", small.err.decode())
        self.batch("in.jsonl", code=2)
        self.assertEqual(len(self.answer_lines()), 2)

    def refused(self, *words, **more):
        before = (self.folder / "out.jsonl").read_bytes()
        done = self.batch("in.jsonl", "out.jsonl", code=1, **more)
        self.assertEqual((self.folder / "out.jsonl").read_bytes(), before)
        message = done.err.decode()
        for word in (*words, "--overwrite", "out.jsonl"):
            self.assertIn(word, message)

    def test_what_is_not_ours_is_not_touched(self):
        self.write_lines([completion("a", max_tokens=1), completion("b", max_tokens=1)])
        self.write("out.jsonl", "precious\n")
        self.refused("line 1")
        self.batch("in.jsonl", "out.jsonl", "--overwrite")
        self.refused("of another file", model=self.tiny("other/tiny.gguf", seed=2)
                     if (self.folder / "other").mkdir() is None else None)
        self.refused("not by \"third\"", model=self.tiny("third.gguf", seed=1))
        self.write_lines([completion("a", max_tokens=2), completion("b", max_tokens=1)])
        self.refused("1 of its 2 answers")
        self.batch("in.jsonl", "out.jsonl", "--overwrite")
        self.assertEqual(len(self.answer_lines()), 2)

    def test_a_run_that_cannot_start_overwrites_nothing(self):
        self.answer_all([completion("a", max_tokens=1)])
        before = (self.folder / "out.jsonl").read_bytes()
        for args, model in ((["--kv-memory", "1k"], None),
                            ([], self.write("broken.gguf", "no model"))):
            self.batch("in.jsonl", "out.jsonl", "--overwrite", *args, code=1, model=model)
            self.assertEqual((self.folder / "out.jsonl").read_bytes(), before, args)

    def test_one_run_at_a_time(self):
        self.write_lines([completion("a", max_tokens=1)])
        with self.start("-", "out.jsonl", stdin=subprocess.PIPE) as first:
            first.stdin.write(text_of(completion("b", max_tokens=1)).encode() + b"\n")
            first.stdin.flush()
            deadline = time.monotonic() + 30
            while b"b" not in (self.folder / "out.jsonl").read_bytes() if (
                    self.folder / "out.jsonl").exists() else True:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            done = self.batch("in.jsonl", "out.jsonl", code=1)
            self.assertIn("another batch run", done.err.decode())
            first.communicate()
        self.assertEqual(first.returncode, 0)

    def test_a_full_disk(self):
        self.write_lines([completion(str(i), max_tokens=1) for i in range(100)])
        done = subprocess.run(
            self.command("in.jsonl", "out.jsonl"), env=self.environment(), cwd=self.folder,
            capture_output=True, timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("run the same command again", done.stderr.decode())
        written = len(self.answer_lines())
        self.assertTrue(0 < written < 100, written)
        self.batch("in.jsonl", "out.jsonl")
        self.assertEqual(len(self.answers()), 100)

    def test_large_inputs_are_not_kept(self):
        def peak(num_lines):
            path = self.folder / "large.jsonl"
            with open(path, "w") as file:
                for i in range(num_lines):
                    filler = "x" * 100_000
                    file.write(f'{{"custom_id": "{i}", "url": "/v1/completions", "body": "{filler}"}}\n')
                file.write("y" * 20_000_000 + "\n")  # past what a line may have
                file.write(text_of(completion("last", max_tokens=1)) + "\n")
            out = self.folder / f"large{num_lines}.jsonl"
            process = subprocess.Popen(self.command(path, out, "--quiet", "--kv-memory", "1M"),
                                       env=self.environment())
            status, usage = os.wait4(process.pid, 0)[1:]
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            found = self.answers(out.name)
            self.assertEqual(len(found), num_lines + 2)
            self.assertEqual(found[None]["response"]["status_code"], 413)
            self.assertEqual(found["last"]["response"]["status_code"], 200)
            return usage.ru_maxrss

        small, large = peak(50), peak(1500)  # 5 MB and 150 MB
        self.assertLess(large, small + 30_000)

    def test_progress_on_a_terminal(self):
        self.write_lines([completion(str(i), max_tokens=100, ignore_eos=True) for i in range(300)])
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            command = self.command("in.jsonl", "out.jsonl")
            os.execve(command[0], command, self.environment(TERM="xterm"))
        output = b""
        try:
            while True:
                part = os.read(terminal, 4096)
                if not part:
                    break
                output += part
        except OSError:
            pass
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, output)
        self.assertRegex(output.decode(), r"batch \[[=> ]+\] +\d+ % \d+ done, \d+ tokens/s, \d+ s left")
        self.assertIn("answered    300", output.decode())


class Resume(BatchTest):
    def lines(self, count):
        numbers = random.Random(9)
        lines = []
        for i in range(count):
            lines.append(completion(f"id-{i}", f"number {i}", seed=i, ignore_eos=True,
                                    max_tokens=numbers.randint(1, 60)))
            if i % 97 == 5:
                lines.append("{broken, and more than once")
            if i % 89 == 7:
                lines.append(lines[numbers.randrange(len(lines))])
            if i % 61 == 3:
                lines.append(completion(f"bad-{i}", n=0))
        return lines

    def essence(self, name="out.jsonl"):
        """What must not depend on when a line was answered."""
        return collections.Counter(
            (line["id"], line["custom_id"], json.dumps(choices(line)),
             json.dumps(line["error"])) for line in self.answer_lines(name))

    def test_killed_at_random_moments(self):
        lines = self.lines(1200)
        self.write_lines(lines)
        self.batch("in.jsonl", "whole.jsonl")
        expected = self.essence("whole.jsonl")
        self.assertEqual(sum(expected.values()), len(lines))
        numbers = random.Random(1)
        kills = 0
        orders = ["done", "input"]
        while True:
            process = self.start("in.jsonl", "out.jsonl", "--output-order", orders[kills % 2],
                                 "-np", str(numbers.choice([1, 4, 16])), "--quiet")
            try:
                # Some kills come while the file is read, most while it is written.
                process.communicate(timeout=numbers.uniform(0.02, 0.12))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
            if process.returncode == 0:
                break
            self.assertEqual(process.returncode, -signal.SIGKILL)
            kills += 1
            self.assertLess(kills, 500)
            path = self.folder / "out.jsonl"
            if path.exists() and numbers.random() < 0.3:
                # What a power cut may leave: less than was written.
                os.truncate(path, max(0, path.stat().st_size - numbers.randrange(2000)))
        print(f"{kills} kills")
        self.assertGreater(kills, 4)
        self.assertEqual(self.essence(), expected)
        before = (self.folder / "out.jsonl").read_bytes()
        self.batch("in.jsonl", "out.jsonl")
        self.assertEqual((self.folder / "out.jsonl").read_bytes(), before)

    def interrupted(self, sent):
        self.write_lines([completion(str(i), max_tokens=200, ignore_eos=True) for i in range(400)])
        process = self.start("in.jsonl", "out.jsonl", "-np", "2")
        path = self.folder / "out.jsonl"
        deadline = time.monotonic() + 60
        while not path.exists() or path.stat().st_size < 5000:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(sent)
        begin = time.monotonic()
        messages = process.communicate(timeout=60)[1].decode()
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(process.returncode, 1, messages)
        self.assertIn("interrupted", messages)
        self.assertIn("run the same command again to go on", messages)
        written = len(self.answers())
        self.assertIn(f"{written} answers are written", messages)
        self.assertLess(written, 400)
        summary = self.batch("in.jsonl", "out.jsonl", "--json").json()
        self.assertEqual((summary["answered_before"], summary["answered"]), (written, 400 - written))
        self.assertEqual(len(self.answers()), 400)

    def test_ctrl_c(self):
        self.interrupted(signal.SIGINT)

    def test_terminate(self):
        self.interrupted(signal.SIGTERM)

    def test_ctrl_c_while_it_waits_for_input(self):
        process = self.start("-", "out.jsonl", stdin=subprocess.PIPE)
        process.stdin.write(text_of(completion("a", max_tokens=1)).encode() + b"\n")
        process.stdin.flush()
        path = self.folder / "out.jsonl"
        deadline = time.monotonic() + 30
        while not path.exists() or path.stat().st_size == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 1)
        process.communicate()
        self.assertEqual(list(self.answers()), ["a"])

    def test_lines_that_were_deleted_are_answered_again(self):
        lines = [completion(str(i), max_tokens=1) for i in range(10)]
        self.answer_all(lines)
        kept = [line for line in self.answer_lines() if line["custom_id"] not in ("3", "7")]
        self.write("out.jsonl", "".join(json.dumps(line) + "\n" for line in kept))
        summary = self.batch("in.jsonl", "out.jsonl", "--json").json()
        self.assertEqual((summary["answered"], summary["answered_before"]), (2, 8))
        self.assertEqual(len(self.answers()), 10)

    def test_more_lines_are_no_other_input(self):
        lines = [completion(str(i), max_tokens=1) for i in range(5)]
        self.answer_all(lines)
        self.write_lines([completion("new", max_tokens=1), *lines, completion("newer", max_tokens=1)])
        self.assertEqual(self.batch("in.jsonl", "out.jsonl", "--json").json()["answered"], 2)


if __name__ == "__main__":
    harness.main()
