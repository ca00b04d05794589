#!/usr/bin/env python3
"""headrace embed: vectors of a tiny model that generates, and what is refused."""
import json
import math

import harness


def length(vector):
    return math.sqrt(sum(value * value for value in vector))


class Embed(harness.HeadraceTest):
    def embed(self, *args, **more):
        done = self.succeed("embed", "-m", self.tiny(), "--json", *args, **more)
        return [json.loads(line) for line in done.out.splitlines()]

    def test_arguments_file_and_standard_input_are_the_same(self):
        texts = ["a cat", "", "the dog \u00e4"]
        path = self.write("texts.txt", "a cat\nx\nthe dog \u00e4\n")
        by_file = self.embed("-f", path)
        self.assertEqual([each["index"] for each in by_file], [0, 1, 2])
        self.assertEqual(self.embed(stdin=path.read_bytes()), by_file)
        self.assertEqual(self.embed("-f", "-", stdin=path.read_bytes().replace(b"\n", b"\r\n")), by_file)
        texts[1] = "x"
        self.assertEqual(self.embed(*texts), by_file)
        for each in by_file:
            self.assertEqual(len(each["embedding"]), 64)
            self.assertAlmostEqual(length(each["embedding"]), 1, places=5)
        self.assertEqual([each["tokens"] for each in by_file], [5, 1, 9])

    def test_company_changes_nothing(self):
        texts = [f"text number {i} " * (i % 7 + 1) for i in range(60)]
        together = self.embed("-f", self.write("many.txt", "\n".join(texts)))
        for i in (0, 5, 41, 59):
            self.assertEqual(self.embed(texts[i])[0]["embedding"], together[i]["embedding"])
            self.assertEqual(self.embed(texts[i], "-t", 1, "-ub", 7)[0]["embedding"], together[i]["embedding"])

    def test_options_shape_the_vector(self):
        whole = self.embed("a cat", "--no-normalize")[0]["embedding"]
        scale = length(whole)
        for ours, plain in zip(self.embed("a cat")[0]["embedding"], whole):
            self.assertAlmostEqual(ours, plain / scale, places=5)
        short = self.embed("a cat", "--dimensions", 8)[0]["embedding"]
        self.assertAlmostEqual(length(short), 1, places=5)
        self.assertAlmostEqual(short[3], whole[3] / length(whole[:8]), places=5)
        poolings = [self.embed("a cat", "--pooling", each)[0]["embedding"] for each in ("last", "mean", "cls")]
        self.assertEqual(poolings[0], self.embed("a cat")[0]["embedding"])
        self.assertNotEqual(poolings[1], poolings[0])
        self.assertEqual(poolings[2], self.embed("a", "--pooling", "last")[0]["embedding"])

    def test_plain_lines_are_the_numbers(self):
        numbers = self.succeed("embed", "-m", self.tiny(), "a cat").out.split()
        for ours, exact in zip(numbers, self.embed("a cat")[0]["embedding"], strict=True):
            self.assertAlmostEqual(float(ours), exact, places=5)

    def test_similarity(self):
        done = self.succeed("embed", "-m", self.tiny(), "--similarity", "--json", "a cat", "a dog", "a cat")
        rows = done.json()["similarity"]
        self.assertAlmostEqual(rows[0][2], 1, places=6)
        self.assertAlmostEqual(rows[0][1], rows[1][0], places=6)
        self.assertLess(rows[0][1], 1)
        table = self.succeed("embed", "-m", self.tiny(), "--similarity", "a cat", "a dog").out.decode()
        self.assertEqual(len(table.splitlines()), 2)
        self.assertEqual(table.split()[0], "1.0000")

    def test_long_texts(self):
        long = "x" * 600  # a token a letter, and a context of 256
        done = self.run_headrace("embed", "-m", self.tiny(), "--json", "fits", long)
        self.assertEqual(done.code, 1)
        error = json.loads(done.out.splitlines()[-1])["error"]
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertEqual(error["where"], "text 2")
        self.assertIn("600", error["message"])
        self.assertIn("256", error["message"])
        cut = self.embed(long, "--long", "truncate")[0]
        self.assertEqual(cut["tokens"], 256)
        self.assertEqual(cut["embedding"], self.embed("x" * 256)[0]["embedding"])
        split = self.embed("y" * 256 + "x" * 100, "--long", "chunk")[0]
        self.assertEqual(split["tokens"], 356)
        parts = [each["embedding"] for each in self.embed("y" * 256, "x" * 100)]
        mean = [(256 * a + 100 * b) / 356 for a, b in zip(*parts)]
        for ours, expected in zip(split["embedding"], mean):
            self.assertAlmostEqual(ours, expected / length(mean), places=5)

    def test_wrong_use(self):
        for args in (["--pooling", "max", "a"], ["--dimensions", 0, "a"], ["--long", "no", "a"], ["-f", "x", "a"]):
            self.assertEqual(self.run_headrace("embed", "-m", self.tiny(), *args).code, 2, args)
        self.assertEqual(self.run_headrace("embed", "-m", self.tiny(), "--dimensions", 65, "a").code, 1)
        self.assertEqual(self.run_headrace("embed", "-m", self.tiny(), stdin=b"").code, 1)
        self.assertEqual(self.run_headrace("embed", "-m", self.tiny(), "").code, 1)

    def test_a_batch_file(self):
        lines = [{"custom_id": str(i), "method": "POST", "url": "/v1/embeddings", "body": {"input": text}}
                 for i, text in enumerate(["a cat", "", "a dog"])]
        self.write("in.jsonl", "\n".join(map(json.dumps, lines)))
        self.run_headrace("batch", "in.jsonl", "out.jsonl", "-m", self.tiny())
        answers = {each["custom_id"]: each["response"]
                   for each in map(json.loads, (self.folder / "out.jsonl").read_text().splitlines())}
        self.assertEqual([answers[name]["status_code"] for name in "012"], [200, 400, 200])
        self.assertEqual(answers["0"]["body"]["data"][0]["embedding"], self.embed("a cat")[0]["embedding"])

    def test_no_numbers_are_an_error(self):
        done = self.run_headrace("embed", "-m", self.tiny("nan.gguf", norm=float("nan")), "--json", "a", "b")
        self.assertEqual(done.code, 1)
        self.assertNotIn(b'"embedding":[', done.out)
        self.assertIn("no numbers", done.out.decode())


if __name__ == "__main__":
    harness.main()
