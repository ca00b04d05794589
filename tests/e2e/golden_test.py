#!/usr/bin/env python3
"""The commands against reference data on real models: greedy tokens, perplexity, and how far the
fast paths are from the reference path. Skipped where models or data are absent."""
import json

import harness

# Mean KL divergence and top-1 agreement that a fast path must better.
LIMITS = {"smollm2": (0.0028, 0.972), "gemma3": (0.0050, 0.965)}
STORED = {"smollm2": "smollm2-135m", "gemma3": "gemma3-270m"}
# Below this margin between the two best logits, rounding may decide.
SAFE_MARGIN = 0.15


def golden(name):
    return json.loads(harness.conformance("golden", f"{name}.json").read_text())


class Golden(harness.HeadraceTest):
    def fast_isas(self):
        """The instruction sets of this machine but the reference path."""
        args = ["run", "-m", self.tiny(), "-p", "x", "-n", 1, "--isa"]
        return [isa for isa in ("avx2", "avx512", "amx") if self.run_headrace(*args, isa).code == 0]

    def run_case(self, model, case, isa):
        prompt = self.write("prompt.txt", case["prompt"])
        args = ["run", "-m", model, "--raw", "-f", prompt, "--temp", 0, "-n", len(case["greedy"]),
                "--ignore-eos", "--json", "--isa", isa]
        if "<|im_start|>" in case["prompt"]:
            args.append("--parse-special")
        result = self.succeed(*args, timeout=600).json()
        self.assertEqual(result["prompt_tokens"], len(case["input_ids"]), case["id"])
        return result["token_ids"]

    def greedy(self, name):
        model = harness.real_model(STORED[name])
        cases = golden(name)["cases"]
        isas = self.fast_isas()
        for case in cases:
            self.assertEqual(self.run_case(model, case, "reference"), case["greedy"], case["id"])
            safe = [margin >= SAFE_MARGIN for margin in case["greedy_margin"]]
            until = safe.index(False) if False in safe else len(safe)
            for isa in isas:
                self.assertEqual(self.run_case(model, case, isa)[:until], case["greedy"][:until],
                                 f"{case['id']} on {isa}")
        print(f"{name}: {len(cases)} cases")

    def perplexity(self, name):
        model = harness.real_model(STORED[name])
        expected = golden(name)["perplexity"]
        text = self.folder / "text.txt"
        text.write_bytes(b"".join(
            path.read_bytes() for path in sorted(harness.conformance("text").glob("*.txt"))))
        base = self.folder / "base.kl"
        args = ["perplexity", "-m", model, "-f", text, "--chunk", expected["chunk_tokens"],
                "--chunks", expected["chunks"], "--json"]
        exact = self.succeed(*args, "--isa", "reference", "--save-base", base, timeout=1800).json()
        self.assertAlmostEqual(exact["mean_nll"], expected["mean_nll"], delta=1e-4)
        for got, right in zip(exact["per_chunk_nll"], expected["per_chunk_nll"], strict=True):
            self.assertAlmostEqual(got, right, delta=1e-3)
        kl_limit, top1_limit = LIMITS[name]
        for isa in self.fast_isas():
            fast = self.succeed(*args, "--isa", isa, "--kl-base", base, timeout=1800).json()
            print(f"{name} {isa}: mean KL {fast['mean_kl']:.3g}, top-1 "
                  f"{fast['top1_agreement']:.4f}, mean NLL {fast['mean_nll']:.6f}")
            self.assertLess(fast["mean_kl"], kl_limit)
            self.assertGreater(fast["top1_agreement"], top1_limit)

    def test_smollm2_greedy(self):
        self.greedy("smollm2")

    def test_gemma3_greedy(self):
        self.greedy("gemma3")

    def test_smollm2_perplexity(self):
        self.perplexity("smollm2")

    def test_gemma3_perplexity(self):
        self.perplexity("gemma3")


if __name__ == "__main__":
    harness.main()
