#!/usr/bin/env python3
"""Tokenising speed beside PyPI `tokenizers`: same text, same vocabulary, one thread, in turn.

Each round runs tokenize_bench and then `tokenizers` on the same file, so that a machine that others
use too slows both alike; the ratio is that of the medians of CPU times. `tokenizers` keeps its own
cache of words from round to round, uses encode_fast (no offsets), and is given the text both whole
and paragraph by paragraph (it is faster so); the better of the two counts. The ids of the whole
text must be equal in number.

Usage: RAYON_NUM_THREADS=1 bench/compare_tokenizers.py TOKENIZE_BENCH MODEL TOKENIZER.json TEXT...

MODEL is a GGUF file or a Hugging Face directory.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"


def ours(binary, model, text):
    out = subprocess.run([binary, "--benchmark_format=json", "--benchmark_min_time=0.5", model, text],
                         check=True, capture_output=True, text=True).stdout
    result = json.loads(out)["benchmarks"][0]
    assert result["time_unit"] == "ms"
    return result["cpu_time"] / 1e3, int(result["tokens"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("tokenizer_json")
    parser.add_argument("texts", nargs="+")
    args = parser.parse_args()
    import tokenizers
    other = tokenizers.Tokenizer.from_file(args.tokenizer_json)
    encode = getattr(other, "encode_fast", other.encode)
    for path in args.texts:
        text = open(path, encoding="utf-8", newline="").read()
        size = len(text.encode("utf-8"))
        our_times, their_times = [], []
        for _ in range(args.rounds):
            seconds, our_count = ours(args.binary, args.model, path)
            our_times.append(seconds)
            begin = time.process_time()
            encoding = encode(text, add_special_tokens=False)
            their_times.append(time.process_time() - begin)
            their_count = len(encoding)
            del encoding
            parts = [part + "\n" for part in text.split("\n")]
            begin = time.process_time()
            for part in parts:
                encode(part, add_special_tokens=False)
            their_times[-1] = min(their_times[-1], time.process_time() - begin)
            if our_count != their_count:
                sys.exit(f"{path}: {our_count} tokens here, {their_count} there")
        a, b = statistics.median(our_times), statistics.median(their_times)
        print(f"{os.path.basename(path)}: {size / 1e6:.1f} MB, {our_count} tokens; "
              f"headrace {size / a / 1e6:.1f} MB/s, tokenizers {tokenizers.__version__} "
              f"{size / b / 1e6:.1f} MB/s, ratio {b / a:.1f} "
              f"(rounds {', '.join(f'{y / x:.1f}' for x, y in zip(our_times, their_times))})")


if __name__ == "__main__":
    main()
