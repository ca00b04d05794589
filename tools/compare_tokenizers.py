#!/usr/bin/env python3
"""Ids and texts of a directory's tokenizer beside PyPI `tokenizers`, on many texts.

Usage, by hand: tools/compare_tokenizers.py build/release/tools/tokenize_lines [--lines 2400] DIRECTORY...

Each DIRECTORY has a tokenizer.json. Compared are ids with and without special tokens, the decoded text
with and without them, and the text as it streams. The first differences are printed; exit code 1 if any.
"""
import argparse
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tokenizer_corpus import corpus  # noqa: E402

SHOWN = 3


def theirs(tokenizer, text):
    out = {"ids": tokenizer.encode(text, add_special_tokens=False).ids,
           "full": tokenizer.encode(text, add_special_tokens=True).ids}
    try:
        out["all"] = tokenizer.decode(out["full"], skip_special_tokens=False)
        out["text"] = out["streamed"] = tokenizer.decode(out["full"], skip_special_tokens=True)
    except BaseException as fault:  # some decoders of the library cannot take an empty list
        if type(fault).__name__ != "PanicException":
            raise
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("binary")
    parser.add_argument("directories", nargs="+")
    args = parser.parse_args()
    from tokenizers import Tokenizer
    texts = corpus(args.lines, args.seed)
    stdin = "".join(json.dumps(t) + "\n" for t in texts)
    failed = False
    for directory in args.directories:
        run = subprocess.run([args.binary, directory], input=stdin, capture_output=True, text=True, check=False)
        rows = run.stdout.split("\n")[:-1]
        if run.returncode != 0 or len(rows) != len(texts):
            print(f"{directory}: exit code {run.returncode}, {len(rows)} lines: {run.stderr.strip()[-300:]}")
            failed = True
            continue
        tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        counts, shown = {}, 0
        for text, row in zip(texts, rows):
            ours, wanted = json.loads(row), theirs(tokenizer, text)
            # A text that begins with the special token before it has that token once here.
            written = [t for t in re.findall(r"</?s>|\[CLS\]|\[SEP\]", text)]
            for key, value in wanted.items():
                if ours.get(key) == value or (written and key in ("full", "all", "text", "streamed")):
                    continue
                counts[key] = counts.get(key, 0) + 1
                if shown < SHOWN:
                    shown += 1
                    print(f"  {key} of {text!r}:\n    theirs {value!r}\n    ours   {ours.get(key, ours)!r}")
        failed = failed or bool(counts)
        print(f"{directory}: {len(texts)} texts, " + (f"different: {counts}" if counts else "all equal"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
