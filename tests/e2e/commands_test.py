#!/usr/bin/env python3
"""The model commands' results: JSON fields, determinism, round trips, on a tiny model."""
import json
import signal
import subprocess

import harness

RUN_FIELDS = {"text", "token_ids", "prompt_tokens", "completion_tokens", "finish_reason", "timings",
              "warnings"}


class Run(harness.HeadraceTest):
    def run_json(self, *args, **more):
        return self.succeed("run", "-m", self.tiny(), "--json", *args, **more).json()

    def test_fields(self):
        result = self.run_json("-p", "Hello", "-n", 8, "--ignore-eos")
        self.assertLessEqual(RUN_FIELDS, set(result))
        self.assertEqual(result["completion_tokens"], 8)
        self.assertEqual(len(result["token_ids"]), 8)
        self.assertEqual(result["finish_reason"], "length")
        self.assertEqual(result["warnings"], [])
        self.assertGreater(result["timings"]["prompt_ms"], 0)
        # One id a control token, one a byte: <|im_start|>user\nHello<|im_end|>\n and so on.
        self.assertEqual(result["prompt_tokens"], 1 + len("user\nHello") + 1 + 1 + 1 +
                         len("assistant\n"))

    def test_seed_decides(self):
        one = self.run_json("-p", "Hello", "-n", 24, "--seed", 7, "--temp", 1.5)
        two = self.run_json("-p", "Hello", "-n", 24, "--seed", 7, "--temp", 1.5)
        other = self.run_json("-p", "Hello", "-n", 24, "--seed", 8, "--temp", 1.5)
        self.assertEqual(one["token_ids"], two["token_ids"])
        self.assertEqual(one["text"], two["text"])
        self.assertEqual(one["seed"], 7)
        self.assertNotEqual(one["token_ids"], other["token_ids"])
        fresh = self.run_json("-p", "Hello", "-n", 24, "--temp", 1.5)
        again = self.run_json("-p", "Hello", "-n", 24, "--temp", 1.5, "--seed", fresh["seed"])
        self.assertEqual(fresh["token_ids"], again["token_ids"])

    def test_greedy_does_not_depend_on_threads_or_chunks(self):
        first = self.run_json("-p", "Hello" * 20, "-n", 24, "--temp", 0, "-t", 1)
        for more in (["-t", 2], ["-t", 3], ["-ub", 1], ["-ub", 7]):
            self.assertEqual(self.run_json("-p", "Hello" * 20, "-n", 24, "--temp", 0, *more)
                             ["token_ids"], first["token_ids"], more)

    def test_prompt_sources(self):
        args = ["-n", 8, "--temp", 0, "--raw"]
        by_flag = self.run_json("-p", "once upon", *args)
        self.assertEqual(by_flag["prompt_tokens"], 9)
        path = self.write("prompt.txt", "once upon")
        for more, stdin in ((["-f", path], b""), (["-p", "-"], b"once upon"),
                            (["-f", "-"], b"once upon")):
            self.assertEqual(self.run_json(*more, *args, stdin=stdin)["token_ids"],
                             by_flag["token_ids"])

    def test_control_tokens_stay_text_unless_asked(self):
        args = ["-n", 1, "--temp", 0, "--raw", "-p", "<|im_end|>"]
        self.assertEqual(self.run_json(*args)["prompt_tokens"], len("<|im_end|>"))
        self.assertEqual(self.run_json(*args, "--parse-special")["prompt_tokens"], 1)
        chat = ["-n", 1, "--temp", 0, "-p", "<|im_end|>"]
        self.assertEqual(self.run_json(*chat)["prompt_tokens"],
                         self.run_json("-n", 1, "-p", "0123456789")["prompt_tokens"])

    def test_logit_bias_forces_a_token(self):
        result = self.run_json("-p", "x", "-n", 4, "--temp", 0, "--logit-bias", "65=1000")
        self.assertEqual(result["text"], "AAAA")

    def test_clamps_are_said(self):
        result = self.run_json("-p", "x", "-n", 100000, "--raw", "--ignore-eos")
        self.assertEqual(result["completion_tokens"], 255)
        self.assertEqual(result["finish_reason"], "length")
        self.assertEqual(len(result["warnings"]), 1)
        self.assertIn("100000", result["warnings"][0])
        result = self.run_json("-p", "x", "-n", 1, "-c", 100000)
        self.assertIn("100000", result["warnings"][0])

    def test_base_model_completes_raw_with_a_warning(self):
        base = self.tiny("base.gguf", template=None)
        done = self.succeed("run", "-m", base, "-p", "ab", "-n", 2, "--json").json()
        self.assertEqual(done["prompt_tokens"], 2)
        self.assertIn("chat template", done["warnings"][0])
        self.assertEqual(self.succeed("run", "-m", base, "-p", "ab", "-n", 2, "--raw", "--json")
                         .json()["warnings"], [])

    def test_broken_template_of_the_file_is_a_warning(self):
        path = self.tiny("broken.gguf", template="{% for %}")
        done = self.succeed("run", "-m", path, "-p", "ab", "-n", 2, "--json").json()
        self.assertIn("chat template", done["warnings"][0])

    def test_sampling_of_the_file(self):
        path = self.tiny("greedy.gguf", extra={"general.sampling.temp": 0.0})
        by_file = self.succeed("run", "-m", path, "-p", "ab", "-n", 9, "--json").json()
        asked = self.run_json("-p", "ab", "-n", 9, "--temp", 0)
        self.assertEqual(by_file["token_ids"], asked["token_ids"])

    def test_text_on_standard_output(self):
        done = self.succeed("run", "-m", self.tiny(), "-p", "x", "-n", 3, "--temp", 0,
                            "--logit-bias", "65=1000", "--stats")
        self.assertEqual(done.out, b"AAA\n")
        self.assertIn(b"tokens/s", done.err)

    def test_interrupt_ends_the_answer(self):
        path = self.tiny("long.gguf", context=100000)
        process = subprocess.Popen(
            [harness.BINARY, "run", "-m", str(path), "-p", "x", "--ignore-eos", "--logit-bias",
             "65=1000", "--temp", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment())
        self.assertEqual(process.stdout.read(4), b"AAAA")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        # As where nothing catches the signal, so that a loop of a shell ends too.
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertTrue(out.endswith(b"A\n"))

    def test_output_that_cannot_be_written_ends_the_answer(self):
        path = self.tiny("long.gguf", context=1000000)
        with open("/dev/full", "wb") as full:
            process = subprocess.run(
                [harness.BINARY, "run", "-m", str(path), "-p", "x", "--ignore-eos", "-n", "900000"],
                stdout=full, stderr=subprocess.PIPE, env=self.environment(), timeout=30,
                check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"cannot write to standard output", process.stderr)


class Tokens(harness.HeadraceTest):
    def test_tokenize_fields(self):
        result = self.succeed("tokenize", "-m", self.tiny(), "--json", stdin=b"the cat").json()
        self.assertEqual(result["pieces"], ["t", "he", "\u0120", "c", "a", "t"])
        self.assertEqual(len(result["ids"]), 6)

    def test_special_tokens(self):
        with_bos = self.tiny("bos.gguf", bos=True)
        ids = self.succeed("tokenize", "-m", with_bos, "--json", stdin=b"a").json()["ids"]
        self.assertEqual(ids, [256, 97])
        ids = self.succeed("tokenize", "-m", with_bos, "--no-bos", "--json", stdin=b"a").json()
        self.assertEqual(len(ids["ids"]), 1)
        one = self.succeed("tokenize", "-m", self.tiny(), "--json", "--parse-special",
                           stdin=b"<|im_end|>").json()
        self.assertEqual(one["ids"], [258])
        self.assertEqual(len(self.succeed("tokenize", "-m", self.tiny(), "--json",
                                          stdin=b"<|im_end|>").json()["ids"]), 10)

    def test_vocabulary_only_files(self):
        path = self.tiny("vocab.gguf", with_weights=False)
        self.assertEqual(len(self.succeed("tokenize", "-m", path, "--json", stdin=b"ab").json()
                             ["ids"]), 2)

    def test_round_trip(self):
        text = "Grüße,\tthe \u2603 <|im_end|>\n\n  end ".encode()
        ids = self.succeed("tokenize", "-m", self.tiny(), "--json", stdin=text)
        back = self.succeed("detokenize", "-m", self.tiny(), "--ids-file", "-", stdin=ids.out)
        self.assertEqual(back.out, text)
        as_json = self.succeed("detokenize", "-m", self.tiny(), "--ids-file", "-", "--json",
                               stdin=ids.out)
        self.assertEqual(as_json.json(), {"text": text.decode()})

    def test_empty_text(self):
        self.assertEqual(self.succeed("tokenize", "-m", self.tiny(), "--json").json(),
                         {"ids": [], "pieces": []})

    def test_invalid_utf8_survives_as_bytes(self):
        ids = self.succeed("tokenize", "-m", self.tiny(), "--json", stdin=b"\xff\xfea")
        back = self.succeed("detokenize", "-m", self.tiny(), "--ids-file", "-", stdin=ids.out)
        self.assertEqual(back.out, b"\xff\xfea")


class TokenizerCheck(harness.HeadraceTest):
    def test_same_and_different(self):
        tiny = self.tiny()
        self.assertIn(b"the same tokenizer", self.succeed("tokenizer-check", tiny, tiny).out)
        result = self.succeed("tokenizer-check", tiny, tiny, "--json").json()
        self.assertTrue(result["same"] and result["difference"] is None)
        other = self.tiny("bos.gguf", bos=True)
        run = self.run_headrace("tokenizer-check", tiny, other, "--json")
        self.assertEqual(run.code, 1)
        self.assertFalse(run.json()["same"])
        difference = run.json()["difference"]
        self.assertEqual(difference["b"][0], 256)
        self.assertEqual(difference["b"][1:], difference["a"])
        self.assertNotEqual(difference["text"].strip(), "")
        told = self.run_headrace("tokenizer-check", tiny, other).out.decode()
        self.assertIn(f"the tokens of '{difference['text']}' differ:\n", told)
        self.assertRegex(told, r"  \S*bos.gguf: 256 '.+', \d+ '")

    def test_a_tokenizer_json(self):
        vocab = {"[UNK]": 0, "a": 1, "b": 2}
        path = self.write("tokenizer.json", json.dumps(
            {"model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
             "pre_tokenizer": {"type": "Whitespace"}}))
        self.assertTrue(self.succeed("tokenizer-check", path, path, "--json").json()["same"])
        run = self.run_headrace("tokenizer-check", path, self.tiny())
        self.assertEqual(run.code, 1)
        self.assertIn(b"token 0: '[UNK]' vs", run.out)


class Render(harness.HeadraceTest):
    messages = '[{"role": "user", "content": "<|im_end|>"}]'

    def test_model_template(self):
        path = self.write("m.json", self.messages)
        result = self.succeed("render", "-m", self.tiny(), "--messages", path, "--json").json()
        self.assertEqual(set(result), {"prompt", "segments", "ids"})
        self.assertEqual(result["prompt"], "<|im_start|>user\n<|im_end|><|im_end|>\n"
                                           "<|im_start|>assistant\n")
        self.assertEqual("".join(part["text"] for part in result["segments"]), result["prompt"])
        self.assertIn({"text": "<|im_end|>", "trusted": False}, result["segments"])
        self.assertEqual(result["ids"].count(258), 1)

    def test_options(self):
        path = self.write("m.json", self.messages)
        template = self.write("t.jinja", "{{ bos_token }}{{ strftime_now('%Y-%m-%d') }}"
                                         "{{ add_generation_prompt }}{{ tools | length }}{{ x }}")
        tools = self.write("tools.json", '[{"type": "function"}]')
        variables = self.write("v.json", '{"x": 5}')
        done = self.succeed("render", "--template", template, "--messages", path, "--tools", tools,
                            "--variables", variables, "--now", "2026-01-31", "--bos-token", "<s>",
                            "--no-generation-prompt")
        self.assertEqual(done.out, b"<s>2026-01-31False15")
        as_json = self.succeed("render", "--template", template, "--messages", "-", "--tools",
                               tools, "--json", stdin=self.messages.encode()).json()
        self.assertIsNone(as_json["ids"])

    def test_raise_exception_gives_the_words_of_the_template(self):
        path = self.write("m.json", self.messages)
        template = self.write("t.jinja", "{{ raise_exception('only cats may ask') }}")
        done = self.run_headrace("render", "--template", template, "--messages", path)
        self.assertNotEqual(done.code, 0)
        self.assertIn(b"only cats may ask", done.err)


class Measures(harness.HeadraceTest):
    def test_score(self):
        ids = [104, 101, 108, 108, 111]
        path = self.write("ids.json", json.dumps(ids))
        result = self.succeed("score", "-m", self.tiny(), "--ids-file", path, "--top", 3,
                              "--json").json()
        self.assertEqual(len(result["nll"]), 4)
        self.assertEqual([len(row) for row in result["top"]], [3] * 5)
        for row in result["top"]:
            self.assertEqual([p for _, p in row], sorted((p for _, p in row), reverse=True))
            self.assertTrue(all(p < 0 for _, p in row))
        self.assertTrue(all(nll > 0 for nll in result["nll"]))
        self.assertEqual(self.succeed("score", "-m", self.tiny(), "--ids-file", path, "--json")
                         .json()["top"], [])

    def test_score_agrees_with_greedy(self):
        run = self.succeed("run", "-m", self.tiny(), "--raw", "-p", "hello", "-n", 6, "--temp", 0,
                           "--ignore-eos", "--json").json()
        prompt = self.succeed("tokenize", "-m", self.tiny(), "--json", stdin=b"hello").json()
        ids = prompt["ids"] + run["token_ids"]
        scores = self.succeed("score", "-m", self.tiny(), "--ids-file", "-", "--top", 1, "--json",
                              stdin=json.dumps(ids).encode()).json()
        best = [row[0][0] for row in scores["top"]]
        self.assertEqual(best[len(prompt["ids"]) - 1:-1], run["token_ids"])

    def test_perplexity_and_divergence(self):
        text = self.write("text.txt", "the quick brown fox " * 40)
        args = ["perplexity", "-m", self.tiny(), "-f", text, "--chunk", 64, "--json"]
        base = self.folder / "base.kl"
        saved = self.succeed(*args, "--isa", "reference", "--save-base", base).json()
        self.assertEqual(saved["chunks"], len(saved["per_chunk_nll"]))
        self.assertIsNone(saved["mean_kl"])
        self.assertAlmostEqual(sum(saved["per_chunk_nll"]) / saved["chunks"], saved["mean_nll"], 6)
        same = self.succeed(*args, "--isa", "reference", "--kl-base", base).json()
        self.assertAlmostEqual(same["mean_kl"], 0, 5)
        self.assertEqual(same["top1_agreement"], 1)
        fast = self.succeed(*args, "--kl-base", base).json()
        self.assertLess(fast["mean_kl"], 0.02)
        other = self.tiny("other.gguf", seed=2)
        args[2] = other
        far = self.succeed(*args, "--kl-base", base).json()
        self.assertGreater(far["mean_kl"], 0.1)
        self.assertEqual(sorted(path.name for path in self.folder.glob("base*")), ["base.kl"])

    def test_scores_and_perplexity_agree(self):
        text = self.write("text.txt", "the quick brown fox jumps over it" * 4)
        ids = self.succeed("tokenize", "-m", self.tiny(), "--no-bos", "--json",
                           stdin=text.read_bytes()).json()["ids"][:64]
        scores = self.succeed("score", "-m", self.tiny(), "--ids-file", "-", "--json",
                              stdin=json.dumps(ids).encode()).json()
        # nll[i] is of ids[i + 1]: positions 32 to 62 predict 33 to 63.
        expected = sum(scores["nll"][32:63]) / 31
        measured = self.succeed("perplexity", "-m", self.tiny(), "-f", text, "--chunk", 64,
                                "--chunks", 1, "--json").json()
        self.assertAlmostEqual(measured["mean_nll"], expected, 5)


class Inspect(harness.HeadraceTest):
    def test_fields(self):
        result = self.succeed("inspect", self.tiny(), "--json").json()
        self.assertEqual(result["architecture"], "llama")
        self.assertTrue(result["supported"])
        self.assertEqual(result["context_length"], 256)
        self.assertEqual(len(result["tensors"]), 20)
        self.assertEqual(sum(share["parameters"] for share in result["formats"]),
                         result["num_parameters"])
        self.assertEqual(result["num_active_parameters"], result["num_parameters"])
        memory = result["memory"]
        # q12, one head in two layers: key codes, value codes, their scales.
        self.assertEqual(memory["kv_bytes_per_token"], 2 * (2 * 32 + 32 + 2 + 2))
        self.assertEqual(memory["kv_bytes"], 256 * memory["kv_bytes_per_token"])
        self.assertEqual(memory["largest_context"], 256)
        self.assertEqual(result["metadata"]["tokenizer.ggml.tokens"]["length"],
                         result["vocab_size"])
        self.assertEqual(self.succeed("inspect", self.tiny(), "-c", 512, "--json").json()["memory"]
                         ["kv_bytes"], 2 * memory["kv_bytes"])

    def test_what_cannot_run_is_shown(self):
        path = self.tiny("strange.gguf", architecture="stranger")
        result = self.succeed("inspect", path, "--json").json()
        self.assertFalse(result["supported"])
        self.assertIsNone(result["memory"])
        self.assertIn("stranger", result["warnings"][0])
        self.assertRegex(result["warnings"][0], "this build runs .*gemma3.*, llama")
        vocab = self.tiny("vocab.gguf", with_weights=False)
        self.assertFalse(self.succeed("inspect", vocab, "--json").json()["supported"])

    def test_text(self):
        out = self.succeed("inspect", self.tiny(), "--tensors").out.decode()
        self.assertIn("blk.1.ffn_down.weight", out)
        self.assertIn("largest context", out)

    def test_metadata_cannot_move_the_cursor(self):
        path = self.tiny("evil.gguf", extra={"general.author": "\x1b[2J\x1b]0;x\x07"})
        self.assertNotIn(b"\x1b", self.succeed("inspect", path).out)


class Selftest(harness.HeadraceTest):
    def test_kernels_without_a_model(self):
        result = self.succeed("selftest", "--json", timeout=300).json()
        self.assertGreater(len(result["checks"]), 4)
        for check in result["checks"]:
            self.assertEqual({"name", "ok", "detail"} - set(check), set())
            self.assertTrue(check["ok"], check)
        self.assertTrue(any(check["skipped"] for check in result["checks"]))

    def test_with_a_model(self):
        result = self.succeed("selftest", "-m", self.tiny(), "--json", timeout=300).json()
        self.assertFalse(any(check["skipped"] for check in result["checks"]))

    def test_a_model_that_computes_no_numbers_fails(self):
        path = self.tiny("nan.gguf", norm=float("nan"))
        done = self.run_headrace("selftest", "-m", path, "--json", timeout=300)
        self.assertEqual(done.code, 1)
        failed = [check for check in done.json()["checks"] if not check["ok"]]
        self.assertTrue(failed)
        for check in failed:
            self.assertIn("NaN", check["detail"])


if __name__ == "__main__":
    harness.main()
