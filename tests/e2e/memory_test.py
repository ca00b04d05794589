#!/usr/bin/env python3
"""Peak memory of a run: at most 1.25 times the file, and the KV cache. Skipped without models."""
import os
import pathlib
import subprocess

import harness

CONTEXT = 512


class PeakMemory(harness.HeadraceTest):
    def peak(self, name):
        model = harness.real_model(name)
        memory = self.succeed("inspect", model, "-c", CONTEXT, "--json").json()["memory"]
        process = subprocess.Popen(
            [harness.BINARY, "run", "-m", model, "--raw", "-p", "The capital of France is", "-n",
             "8", "--temp", "0", "-c", str(CONTEXT), "--ignore-eos"],
            stdout=subprocess.DEVNULL, env=self.environment())
        status, usage = os.wait4(process.pid, 0)[1:]
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        peak = usage.ru_maxrss * 1024
        file_bytes = pathlib.Path(model).stat().st_size
        allowed = 1.25 * file_bytes + memory["kv_bytes"]
        print(f"{name}: peak {peak / 1e6:.1f} MB, file {file_bytes / 1e6:.1f} MB, KV "
              f"{memory['kv_bytes'] / 1e6:.1f} MB, {peak / allowed:.1%} of what is allowed")
        self.assertLess(peak, allowed)

    def test_smollm2(self):
        self.peak("smollm2-135m")

    def test_gemma3(self):
        self.peak("gemma3-270m")


if __name__ == "__main__":
    harness.main()
