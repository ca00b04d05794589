#!/usr/bin/env python3
"""Vectors of all-MiniLM-L6-v2 against those of the original implementation (tests/golden/minilm_vectors.json
says which). Skipped where the model is absent: headrace pull minilm, or HEADRACE_MINILM names a file or folder."""
import json
import math
import os
import unittest

import harness

REFERENCE = harness.SOURCE / "tests" / "golden" / "minilm_vectors.json"


def minilm():
    given = os.environ.get("HEADRACE_MINILM")
    for path in [given] if given else [harness.REAL_MODELS / "minilm", harness.REAL_MODELS / "minilm.gguf"]:
        if os.path.exists(path):
            return str(path)
    raise unittest.SkipTest("MiniLM is not there: headrace pull minilm")


def cosine(a, b):
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class Golden(harness.HeadraceTest):
    @classmethod
    def setUpClass(cls):
        cls.model = minilm()
        cls.texts = json.loads(REFERENCE.read_text())["texts"]

    def embed(self, *args):
        path = self.write("texts.txt", "\n".join(each["text"] for each in self.texts))
        done = self.succeed("embed", "-m", self.model, "-f", path, "--json", *args)
        return [json.loads(line) for line in done.out.splitlines()]

    def test_vectors_are_those_of_the_original(self):
        for isa, tolerance in (("reference", 1e-6), (None, 1e-4)):
            for ours, theirs in zip(self.embed(*(["--isa", isa] if isa else [])), self.texts, strict=True):
                self.assertEqual(ours["tokens"], len(theirs["ids"]), theirs["text"])
                self.assertGreater(cosine(ours["embedding"], theirs["embedding"]), 1 - tolerance,
                                   (isa, theirs["text"]))

    def test_lengths_before_normalising(self):
        for ours, theirs in zip(self.embed("--isa", "reference", "--no-normalize"), self.texts, strict=True):
            length = math.sqrt(sum(value * value for value in ours["embedding"]))
            self.assertAlmostEqual(length, theirs["norm"], places=3)

    def test_tokens_are_those_of_the_original(self):
        for each in self.texts:
            ids = self.succeed("tokenize", "-m", self.model, "--json", stdin=each["text"].encode()).json()["ids"]
            self.assertEqual(ids, each["ids"], each["text"])

    def test_company_changes_nothing(self):
        together = self.embed()
        for i in (0, 6, 7):
            done = self.succeed("embed", "-m", self.model, "--json", "-t", 1, self.texts[i]["text"])
            self.assertEqual(json.loads(done.out)["embedding"], together[i]["embedding"])


if __name__ == "__main__":
    harness.main()
