#!/usr/bin/env python3
"""LoRA adapters over HTTP: each request chooses, by the model's name or as llama-server has it. HEADRACE_BINARY
names the program under test."""
import pathlib
import tempfile

import harness
from harness import ServerTest
from tiny_adapter import write_adapter

GREEDY = {"max_tokens": 12, "temperature": 0, "ignore_eos": True}


class Lora(ServerTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="headrace-lora-")
        cls.addClassCleanup(folder.cleanup)
        cls.files = [write_adapter(pathlib.Path(folder.name) / name, seed) for seed, name in enumerate(("one", "two"))]
        cls.options = ("--lora", f"{cls.files[0]}", "--lora", f"second={cls.files[1]}")
        super().setUpClass()

    def completion(self, **more):
        reply = self.server.post("/v1/completions", {"prompt": "hello there", **GREEDY, **more})
        self.assertEqual(reply.status, 200, reply)
        return reply.json()

    def text(self, **more):
        return self.completion(**more)["choices"][0]["text"]

    def test_models_are_listed_with_their_parent(self):
        listed = self.server.get("/v1/models").json()["data"]
        self.assertEqual([each["id"] for each in listed], ["tiny", "one", "second"])
        self.assertEqual([each.get("parent") for each in listed], [None, "tiny", "tiny"])
        self.assertEqual(self.server.get("/v1/models/second").json()["root"], str(self.files[1]))
        adapters = self.server.get("/lora-adapters").json()
        self.assertEqual([(each["id"], each["name"], each["scale"]) for each in adapters],
                         [(0, "one", 0), (1, "second", 0)])

    def test_the_models_name_chooses(self):
        answers = [self.completion(model=name) for name in ("tiny", "one", "second")]
        self.assertEqual([each["model"] for each in answers], ["tiny", "one", "second"])
        self.assertEqual(len({each["choices"][0]["text"] for each in answers}), 3)
        self.assertEqual(answers[1]["warnings"], [])
        chat = self.server.post("/v1/chat/completions", {
            "model": "second", "messages": [{"role": "user", "content": "hi"}], **GREEDY}).json()
        self.assertEqual(chat["model"], "second")

    def test_lists_of_adapters(self):
        plain, one, second = (self.text(model=name) for name in ("tiny", "one", "second"))
        self.assertEqual(self.text(lora=[{"id": 0}]), one)
        self.assertEqual(self.text(lora=[{"id": "second", "scale": 1.0}]), second)
        self.assertEqual(self.text(lora=[{"id": 1, "scale": 0}]), plain)
        self.assertEqual(self.text(lora=[]), plain)
        self.assertEqual(self.text(model="one", lora=[]), plain)
        self.assertNotIn(self.text(lora=[{"id": 0}, {"id": 1, "scale": 0.7}]), (plain, one, second))
        llama = self.server.post("/completion", {"prompt": "hello there", "n_predict": 12, "temperature": 0,
                                                 "ignore_eos": True, "lora": [{"id": 0, "scale": 1}]}).json()
        self.assertEqual(llama["content"], one)

    def test_a_salt_is_no_adapter(self):
        digest = self.completion(model="one")  # what it computed is in the cache
        self.assertEqual(digest["model"], "one")
        plain = self.text(model="tiny")
        self.assertEqual(self.text(model="tiny", cache_salt="\0" + "0" * 32 + " 1065353216"), plain)

    def test_the_strength_of_the_command_line(self):
        server = self.start("tiny", "--lora-scaled", f"half={self.files[0]}:0.5")
        post = lambda **body: server.post("/v1/completions", {"prompt": "hello there", **GREEDY, **body}).json()
        half = self.text(lora=[{"id": 0, "scale": 0.5}])
        self.assertEqual(post(model="half")["choices"][0]["text"], half)
        self.assertEqual(post(lora=[{"id": "half"}])["choices"][0]["text"], half)
        both = post(model="half", lora=[])
        self.assertTrue(any(each.startswith("lora") for each in both["warnings"]), both)

    def test_company_changes_nothing(self):
        bodies = [{"model": "tiny"}, {"model": "one"}, {"model": "second"}, {"lora": [{"id": 0}, {"id": 1}]}]
        alone = [self.text(**body) for body in bodies]
        together = [harness.in_thread(lambda body: self.text(**body), bodies[i % 4]) for i in range(24)]
        for i, result in enumerate(together):
            self.assertEqual(result(), alone[i % 4])

    def test_what_is_refused(self):
        def refused(status, **body):
            return self.assert_error(self.server.post("/v1/completions", {"prompt": "a", **body}), status)["param"]

        self.assertEqual(refused(404, model="third"), "model")
        self.assertEqual(refused(400, lora=[{"id": 2}]), "lora[0].id")
        self.assertEqual(refused(400, lora=[{"id": "third"}]), "lora[0].id")
        self.assertEqual(refused(400, lora=[{"id": 0}, {"id": "one"}]), "lora[1].id")
        self.assertEqual(refused(400, lora=[{"id": 0, "scale": "much"}]), "lora[0].scale")
        self.assertEqual(refused(400, lora=[{"scale": 1}]), "lora[0].id")
        self.assertEqual(refused(400, lora={"id": 0}), "lora")
        self.assertEqual(refused(400, lora=[{"id": 0}] * 17), "lora")

    def test_embeddings_use_them_too(self):
        def vector(model):
            return self.server.post("/v1/embeddings", {"model": model, "input": "hi"}).json()["data"][0]["embedding"]
        self.assertNotEqual(vector("tiny"), vector("one"))


if __name__ == "__main__":
    harness.main()
