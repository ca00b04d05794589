#!/usr/bin/env python3
"""LoRA adapters: by the command line and by the server, several at once, chosen per request."""
import json
import pathlib

import harness
from tiny_adapter import write_adapter


class Lora(harness.HeadraceTest):
    def setUp(self):
        super().setUp()
        self.model = pathlib.Path(self.tiny())
        self.first = write_adapter(self.model.with_name("first"), 1)
        self.second = write_adapter(self.model.with_name("second"), 2)

    def answer(self, *more):
        return self.succeed("run", "-m", self.model, "--raw", "-p", "hello there", "-n", "12", "--temp", "0",
                            "--ignore-eos", "--json", *more).json()["token_ids"]

    def refused(self, *more):
        done = self.run_headrace("run", "-m", self.model, "--raw", "-p", "a", *more)
        self.assertNotEqual(done.code, 0)
        self.assertEqual(len(done.err.decode().strip().splitlines()), 1, done.err)
        return done.err.decode()

    def test_the_command_line_applies_what_it_is_given(self):
        plain = self.answer()
        first = self.answer("--lora", self.first)
        self.assertNotEqual(first, plain)
        self.assertEqual(self.answer("--lora", f"named={self.first}/adapter_config.json"), first)
        self.assertEqual(self.answer("--lora-scaled", f"{self.first}:0"), plain)
        self.assertEqual(self.answer("--lora-scaled", f"{self.first}:1.0"), first)
        both = self.answer("--lora", self.first, "--lora", self.second)
        self.assertNotIn(both, (plain, first, self.answer("--lora", self.second)))
        ids = self.model.with_name("ids.json")
        ids.write_text(str(plain))
        score = lambda *more: self.succeed("score", "-m", self.model, "--ids-file", ids, "--json",
                                           *more).json()["nll"]
        self.assertNotEqual(score("--lora", self.first), score())
        self.assertEqual(score("--lora-scaled", f"{self.first}:0"), score())

    def test_sessions_are_of_their_adapters(self):
        kept = self.model.with_name("kept.session")
        self.answer("--lora", self.first, "--session", kept)
        again = self.run_headrace("run", "-m", self.model, "--raw", "-p", "hello there", "--session", kept)
        self.assertEqual(again.code, 1)
        self.assertIn("kept.session", again.err.decode())
        self.answer("--lora", self.first, "--session", kept)

    def test_a_batch_goes_on_with_its_adapters_alone(self):
        lines = self.model.with_name("lines.jsonl")
        body = {"prompt": "hello", "max_tokens": 4}
        lines.write_text("".join(json.dumps({"custom_id": name, "method": "POST", "url": "/v1/completions",
                                             "body": body | {"model": name}}) + "\n"
                                 for name in ("tiny", "first")))
        out = self.model.with_name("answers.jsonl")
        run = lambda adapter: self.run_headrace("batch", "-m", self.model, "--lora", f"first={adapter}", lines, out)
        self.assertEqual(run(self.first).code, 0)
        models = [json.loads(line)["response"]["body"]["model"] for line in out.read_text().splitlines()]
        self.assertEqual(sorted(models), ["first", "tiny"])
        self.assertEqual(run(self.first).code, 0)
        other = run(self.second)
        self.assertNotEqual(other.code, 0)
        self.assertIn("another file", other.err.decode())

    def test_what_does_not_fit_is_refused(self):
        wide = write_adapter(self.model.with_name("wide"), 1, embedding=72)
        self.assertIn("org/tiny", self.refused("--lora", wide))
        dora = write_adapter(self.model.with_name("dora"), 1, more={"use_dora": True})
        self.assertIn("use_dora", self.refused("--lora", dora))
        self.assertIn("no adapter", self.refused("--lora", self.model))
        self.assertIn("absent", self.refused("--lora", "absent"))
        self.assertIn("NAME=FILE", self.refused("--lora", self.first, "--lora", self.first))
        self.assertIn("--lora-scaled", self.refused("--lora-scaled", f"{self.first}:much"))


if __name__ == "__main__":
    harness.main()
