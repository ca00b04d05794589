#!/usr/bin/env python3
"""Quantising, at load and into a file: the same answers either way, and clear refusals."""
import pathlib

import harness


class Convert(harness.HeadraceTest):
    def answer(self, model, *more):
        return self.succeed("run", "-m", model, "--raw", "-p", "hello there", "-n", "12", "--temp",
                            "0", "--ignore-eos", "--json", *more).json()["token_ids"]

    def test_a_file_and_load_give_the_same(self):
        model = self.tiny()
        out = pathlib.Path(model).with_name("out.gguf")
        for name in ("q8_0", "q4_k_m", "Q4_0", "bf16"):
            done = self.succeed("convert", model, out, name.lower(), "--json", "--force").json()
            self.assertEqual(done["file_bytes"], out.stat().st_size)
            self.assertGreater(done["tensors_changed"], 0)
            self.assertEqual(done["warnings"], [])
            self.assertEqual(self.answer(out), self.answer(model, "--quantize", name.lower()))

    def test_as_it_is(self):
        model = self.tiny()
        out = pathlib.Path(model).with_name("out.gguf")
        done = self.succeed("convert", model, out, "--json").json()
        self.assertEqual(done["tensors_changed"], 0)
        self.assertEqual(self.answer(out), self.answer(model))

    def test_nothing_is_overwritten_unasked(self):
        model = self.tiny()
        out = pathlib.Path(model).with_name("out.gguf")
        out.write_bytes(b"mine")
        refused = self.run_headrace("quantize", model, out, "q8_0")
        self.assertEqual(refused.code, 1)
        self.assertIn("--force", refused.err.decode())
        self.assertEqual(out.read_bytes(), b"mine")
        self.succeed("quantize", model, out, "q8_0", "--force")
        self.assertGreater(out.stat().st_size, 4)
        self.assertEqual(self.run_headrace("quantize", model, model, "q8_0", "--force").code, 1)

    def test_what_is_quantised_already_is_refused(self):
        model = self.tiny()
        out = pathlib.Path(model).with_name("out.gguf")
        self.succeed("quantize", model, out, "q4_0")
        for args in (("run", "-m", out, "-p", "a", "--quantize", "q4_0"),
                     ("quantize", out, out.with_name("again.gguf"), "q4_0")):
            refused = self.run_headrace(*args)
            self.assertEqual(refused.code, 1)
            self.assertIn("already", refused.err.decode())
        self.assertFalse(out.with_name("again.gguf").exists())

    def test_wrong_use(self):
        model = self.tiny()
        out = pathlib.Path(model).with_name("out.gguf")
        self.assertEqual(self.run_headrace("quantize", model, out).code, 2)
        self.assertEqual(self.run_headrace("quantize", model, out, "q9").code, 2)
        refused = self.run_headrace("run", "-m", model, "-p", "a", "--no-pack", "--quantize", "q8_0")
        self.assertNotEqual(refused.code, 0)
        self.assertIn("--no-pack", refused.err.decode())
        self.assertFalse(out.exists())

    def test_the_plan_knows(self):
        model = self.tiny()
        plan = lambda *more: self.succeed("inspect", model, "--json", *more).json()["memory"]
        self.assertLess(plan("--quantize", "q4_0")["weight_bytes"], plan()["weight_bytes"] / 4)


if __name__ == "__main__":
    harness.main()
