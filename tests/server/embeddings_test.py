#!/usr/bin/env python3
"""Embeddings and rankings over HTTP: of a model that generates, of an encoder, of a cross-encoder. HEADRACE_BINARY
names the program under test."""
import base64
import math
import struct

import harness
from harness import ServerTest
import tiny_bert

TEXTS = ["the cat sat on the mat", "a red house in the road", "dog", "the tree was big, the cat was small!"]


def length(vector):
    return math.sqrt(sum(value * value for value in vector))


class GeneratingTest(ServerTest):
    """A model that generates has vectors too."""

    def test_a_vector_for_each_text(self):
        reply = self.server.post("/v1/embeddings", {"model": "tiny", "input": TEXTS})
        self.assertEqual(reply.status, 200, reply)
        answer = reply.json()
        self.assertEqual(answer["object"], "list")
        self.assertEqual([each["index"] for each in answer["data"]], [0, 1, 2, 3])
        self.assertEqual(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"])
        for each in answer["data"]:
            self.assertEqual(len(each["embedding"]), 64)
            self.assertAlmostEqual(length(each["embedding"]), 1, places=5)

    def test_beside_requests_that_generate(self):
        alone = [self.vectors(text)[0] for text in TEXTS]
        chat = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 60, "ignore_eos": True, "seed": 1}
        text = self.server.post("/v1/chat/completions", chat).json()["choices"][0]["message"]["content"]
        results = [harness.in_thread(self.vectors, TEXTS[i % 4]) for i in range(24)]
        talks = [harness.in_thread(self.server.post, "/v1/chat/completions", chat) for _ in range(4)]
        for i, result in enumerate(results):
            self.assertEqual(result()[0], alone[i % 4])
        for talk in talks:
            self.assertEqual(talk().json()["choices"][0]["message"]["content"], text)

    def vectors(self, texts, **more):
        reply = self.server.post("/v1/embeddings", {"input": texts, **more})
        self.assertEqual(reply.status, 200, reply)
        return [each["embedding"] for each in reply.json()["data"]]

    def test_base64_is_the_same_numbers(self):
        for plain, packed in zip(self.vectors(TEXTS), self.vectors(TEXTS, encoding_format="base64")):
            numbers = struct.unpack("<64f", base64.b64decode(packed, validate=True))
            self.assertEqual(list(numbers), [struct.unpack("<f", struct.pack("<f", each))[0] for each in plain])

    def test_what_is_refused(self):
        def refused(**body):
            return self.assert_error(self.server.post("/v1/embeddings", body), 400)

        self.assertEqual(refused()["param"], "input")
        self.assertEqual(refused(input=[])["param"], "input")
        self.assertEqual(refused(input="a", dimensions=65)["param"], "dimensions")
        long = refused(input=["a", "b" * 5000])
        self.assertEqual((long["code"], long["param"]), ("context_length_exceeded", "input[1]"))
        self.assertIn("5000", long["message"])
        self.assertIn(str(harness.CONTEXT), long["message"])
        self.assertEqual(len(self.vectors("b" * 5000, truncate=True)), 1)
        self.assertEqual(self.vectors("bcd" * 10, truncate_prompt_tokens=3), self.vectors("bcd"))
        self.assertEqual(refused(input="a", model=5)["param"], "model")
        ranked = self.assert_error(self.server.post("/v1/rerank", {"query": "a", "documents": ["b"]}), 400)
        self.assertIn("cross-encoder", ranked["message"])

    def test_metrics_and_explain(self):
        before = self.server.metrics()
        answer = self.server.post("/v1/embeddings", {"input": TEXTS}).json()
        self.server.wait_until_idle()
        after = self.server.metrics()
        name = "headrace:embeddings_total"
        self.assertEqual(after[name] - before[name], 4)
        told = self.server.get(f"/explain/{answer['id']}").json()
        self.assertEqual(told["id"], answer["id"])

    def test_time_that_passes(self):
        slow = self.start("slow")
        reply = slow.post("/v1/embeddings", {"input": ["a" * 4000] * 20, "timeout_ms": 1})
        self.assert_error(reply, 504)
        self.assertEqual(slow.post("/v1/embeddings", {"input": "a"}).status, 200)


class EncoderTest(ServerTest):
    model = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.serve("encoder.gguf")

    @classmethod
    def serve(cls, name, *options, **how):
        path = tiny_bert.write(cls.folder / name, **how)
        server = harness.Server([harness.BINARY, "serve", "-m", str(path)], "-t", "1", *options)
        cls.addClassCleanup(server.kill)
        return server

    def test_vectors(self):
        answer = self.server.post("/v1/embeddings", {"input": TEXTS}).json()
        for each, text in zip(answer["data"], TEXTS, strict=True):
            self.assertAlmostEqual(length(each["embedding"]), 1, places=5)
            alone = self.server.post("/v1/embeddings", {"input": text}).json()["data"][0]["embedding"]
            self.assertEqual(each["embedding"], alone)
        empty = self.server.post("/v1/embeddings", {"input": ""})  # the tokens around it are there
        self.assertEqual(empty.json()["usage"]["prompt_tokens"], 2)

    def test_it_generates_nothing_and_says_so(self):
        for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]}),
                           ("/v1/completions", {"prompt": "hello"}), ("/completion", {"prompt": "hello"}),
                           ("/v1/responses", {"input": "hello"})):
            self.assertIn("embedding model", self.assert_error(self.server.post(path, body), 400)["message"])
        reply = self.server.post("/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "a"}]})
        self.assertIn("embedding model", self.assert_error(reply, 400, True)["message"])

    def test_all_else_is_there(self):
        self.assertEqual(self.server.get("/v1/models").json()["data"][0]["id"], "encoder")
        self.assertEqual(self.server.get("/readyz").status, 200)
        for path in ("/metrics", "/props", "/slots", "/dashboard/data", "/v1/models/encoder"):
            self.assertEqual(self.server.get(path).status, 200, path)
        ids = self.server.post("/tokenize", {"content": "the cat", "add_special": True}).json()["tokens"]
        self.assertEqual((ids[0], ids[-1]), (2, 3))

    def test_long_texts(self):
        error = self.assert_error(self.server.post("/v1/embeddings", {"input": "cat " * 63}), 400)
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("65", error["message"])
        self.assertIn("64", error["message"])
        cut = self.server.post("/v1/embeddings", {"input": "cat " * 63, "truncate": True}).json()
        whole = self.server.post("/v1/embeddings", {"input": "cat " * 62}).json()
        self.assertEqual(cut["data"], whole["data"])

    def test_many_at_once(self):
        alone = {text: self.server.post("/v1/embeddings", {"input": text}).json()["data"] for text in TEXTS}
        results = [harness.in_thread(self.server.post, "/v1/embeddings", {"input": TEXTS[i % 4]}) for i in range(40)]
        for i, result in enumerate(results):
            self.assertEqual(result().json()["data"], alone[TEXTS[i % 4]])

    def test_no_numbers_are_an_error(self):
        server = self.serve("broken.gguf", broken=True)
        error = self.assert_error(server.post("/v1/embeddings", {"input": TEXTS}), 500)
        self.assertIn("no numbers", error["message"])
        self.assertGreater(server.metrics()["headrace:bad_logits_total"], 0)

    def test_two_models_by_name(self):
        encoder = self.folder / "encoder.gguf"
        tiny = harness.model_file(self.folder, "tiny")
        server = harness.Server([harness.BINARY, "serve", "-m", f"enc={encoder}", "-m", f"gen={tiny}"], "-t", "1")
        self.addCleanup(server.kill)
        sizes = {name: len(server.post("/v1/embeddings", {"model": name, "input": "a"}).json()["data"][0]["embedding"])
                 for name in ("enc", "gen")}
        self.assertEqual(sizes, {"enc": 32, "gen": 64})
        talk = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
        self.assertEqual(server.post("/v1/chat/completions", {**talk, "model": "gen"}).status, 200)
        self.assert_error(server.post("/v1/chat/completions", {**talk, "model": "enc"}), 400)


class RankingTest(ServerTest):
    model = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = tiny_bert.write(cls.folder / "ranker.gguf", labels=1)
        cls.server = harness.Server([harness.BINARY, "serve", "-m", str(path)], "-t", "1")
        cls.addClassCleanup(cls.server.kill)

    def rank(self, path="/v1/rerank", **more):
        reply = self.server.post(path, {"query": "where is the cat", "documents": TEXTS, **more})
        self.assertEqual(reply.status, 200, reply)
        return reply.json()

    def test_the_best_first(self):
        results = self.rank()["results"]
        self.assertEqual(sorted(each["index"] for each in results), [0, 1, 2, 3])
        scores = [each["relevance_score"] for each in results]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertTrue(all(0 < score < 1 for score in scores))
        self.assertGreater(len(set(scores)), 1)
        raw = self.rank(raw_scores=True)["results"]
        for one, other in zip(results, raw, strict=True):
            self.assertEqual(one["index"], other["index"])
            self.assertAlmostEqual(one["relevance_score"], 1 / (1 + math.exp(-other["relevance_score"])), places=5)

    def test_company_and_order_change_nothing(self):
        whole = {each["index"]: each["relevance_score"] for each in self.rank()["results"]}
        for i, text in enumerate(TEXTS):
            self.assertEqual(self.rank(documents=[text])["results"][0]["relevance_score"], whole[i])
        pair = self.rank(query=TEXTS[0], documents=[TEXTS[1]])["results"][0]["relevance_score"]
        self.assertNotEqual(pair, self.rank(query=TEXTS[1], documents=[TEXTS[0]])["results"][0]["relevance_score"])

    def test_how_much_is_told(self):
        answer = self.rank("/rerank", top_n=2, return_documents=True, documents=[{"text": each} for each in TEXTS])
        self.assertEqual(len(answer["results"]), 2)
        for each in answer["results"]:
            self.assertEqual(each["document"]["text"], TEXTS[each["index"]])
        self.assertGreater(answer["usage"]["total_tokens"], 0)

    def test_what_is_refused(self):
        for body in ({}, {"query": "a"}, {"query": "a", "documents": []}, {"query": 1, "documents": ["a"]},
                     {"query": "a", "documents": ["a"], "top_n": 0}):
            self.assert_error(self.server.post("/v1/rerank", body), 400)
        long = {"query": "cat", "documents": ["dog", "cat " * 70]}
        error = self.assert_error(self.server.post("/v1/rerank", long), 400)
        self.assertEqual(error["param"], "documents[1]")
        self.assertEqual(self.server.post("/v1/rerank", {**long, "truncate": True}).status, 200)


if __name__ == "__main__":
    harness.main()
