#!/usr/bin/env python3
"""Compares `headrace bench` with a program like llama-bench, and one like llama-batched-bench, on the
same model file: the programs take turns, test by test, so that whatever the machine does meanwhile
meets both.

Usage:
  bench/compare/compare_bench.py -m model.gguf --peer PATH/llama-bench
      [--peer-batched PATH/llama-batched-bench] [-p 512] [-n 128] [-d 0,4096] [-npl 1,8]
      [-t 2] [--rounds 5] [--peer-args "-fa 1"] [--headrace build/release/bin/headrace] [--json]

Prints, for each test, the median tokens a second of both over the rounds, and their ratio: the
median of the rounds' own ratios, with the least and the largest. Exit code 1 if a program fails.

Of the peer these are used: -m -p -n -t -r -o json, -d (or -gp where it has no -d) of the first, and
-m -c -t -npp -ntg -npl of the second, whose table is read. A peer's batch begins behind a prompt of
at least one token.
"""
import argparse
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    pass


def output_of(command, with_errors=False):
    """What it prints. It runs in a folder of its own: some programs leave a log where they run."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              cwd=folder)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
        raise Failed(f"{shlex.join(map(str, command))} ended with {done.returncode}:\n  " +
                     "\n  ".join(lines))
    return (done.stdout + (done.stderr if with_errors else b"")).decode(errors="replace")


def numbers(text):
    return [int(part) for part in text.split(",")]


class Test:
    """One row: a prompt (n_gen 0), or decoding by `parallel` sequences behind `depth` tokens."""

    def __init__(self, n_prompt, n_gen, parallel=1, depth=0):
        self.n_prompt, self.n_gen, self.parallel, self.depth = n_prompt, n_gen, parallel, depth

    def name(self):
        if self.n_prompt:
            return f"pp{self.n_prompt}"
        return (f"tg{self.n_gen}" + (f" x{self.parallel}" if self.parallel > 1 else "") +
                (f" @ d{self.depth}" if self.depth else ""))


def tests_of(args):
    tests = [Test(n, 0) for n in numbers(args.n_prompt) if n]
    for depth in sorted(numbers(args.n_depth)):
        for n_gen in filter(None, numbers(args.n_gen)):
            tests += [Test(0, n_gen, parallel, depth) for parallel in numbers(args.parallel)]
    return tests


class Headrace:
    def __init__(self, args):
        self.command = [args.headrace, "bench", "-m", args.model, "-t", str(args.threads), "-r", "1",
                        "--json", *shlex.split(args.headrace_args)]
        self.last = {}

    def rate(self, test):
        rows = json.loads(output_of([
            *self.command, "-p", str(test.n_prompt), "-n", str(test.n_gen), "-npl",
            str(test.parallel), "-d", str(test.depth)]))
        self.last = rows[0]
        return rows[0]["median_ts"]


class Peer:
    def __init__(self, args):
        self.bench, self.batched = args.peer, args.peer_batched
        self.common = ["-m", args.model, "-t", str(args.threads), *shlex.split(args.peer_args)]
        help_text = subprocess.run([self.bench, "--help"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, check=False).stdout if self.bench else b""
        self.has_depth = b"--n-depth" in help_text

    def can(self, test):
        return bool(self.batched if test.parallel > 1 else self.bench)

    def rate(self, test):
        return self.batched_rate(test) if test.parallel > 1 else self.single_rate(test)

    def single_rate(self, test):
        asked = ["-p", str(test.n_prompt), "-n", str(test.n_gen)]
        if test.depth and self.has_depth:
            asked += ["-d", str(test.depth)]
        elif test.depth:
            asked = ["-p", "0", "-n", "0", "-gp", f"{test.depth},{test.n_gen}"]
        text = output_of([self.bench, *self.common, *asked, "-r", "1", "-o", "json"])
        rows = json.loads(text[text.index("["):])
        fitting = [row for row in rows if row["n_gen"] == test.n_gen]
        if not fitting:
            raise Failed(f"{self.bench} gave no row for {test.name()}: {text[:500]}")
        return fitting[-1]["avg_ts"]

    def batched_rate(self, test):
        """The table's row: PP, TG, B, N_KV, T_PP, S_PP, T_TG, S_TG, T, S."""
        prompt = max(test.depth, 1)
        context = test.parallel * (prompt + test.n_gen)
        text = output_of([self.batched, *self.common, "-c", str(context), "-npp", str(prompt),
                          "-ntg", str(test.n_gen), "-npl", str(test.parallel)],
                         with_errors=True)  # where ik_llama.cpp prints its table
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 10 and cells[0] == str(prompt) and cells[2] == str(test.parallel):
                return float(cells[7])
        raise Failed(f"{self.batched} printed no row for {test.name()}:\n{text[-500:]}")


def measure(tests, rounds, headrace, peer):
    """One result a test; within a round the two run one right after the other, and who comes first
    changes from round to round."""
    results = [{"test": test.name(), "headrace_ts": [], "peer_ts": []} for test in tests]
    for round_number in range(rounds):
        for test, result in zip(tests, results):
            turns = [("headrace_ts", headrace), ("peer_ts", peer)]
            for key, program in turns if round_number % 2 == 0 else reversed(turns):
                if sys.stderr.isatty():
                    print(f"\r\x1b[Kround {round_number + 1} of {rounds}: {test.name()}, {key[:-3]}",
                          end="", file=sys.stderr, flush=True)
                result[key].append(program.rate(test))
            row = headrace.last
            result["fraction_of_bound"] = max(result.get("fraction_of_bound", 0),
                                              row["fraction_of_bound"])
            result.setdefault("notes", []).extend(row["notes"])
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    for result in results:
        ratios = [a / b for a, b in zip(result["headrace_ts"], result["peer_ts"])]
        result["ratio"] = statistics.median(ratios)
        result["ratio_min"], result["ratio_max"] = min(ratios), max(ratios)
        result["ratio_of_best"] = max(result["headrace_ts"]) / max(result["peer_ts"])
    return results


def machine(args, row):
    return {"cpu": row.get("cpu", platform.processor()), "isa": row.get("isa"),
            "threads": args.threads, "processors": os.cpu_count(), "model": str(args.model),
            "model_file_bytes": os.path.getsize(args.model), "kv_type": row.get("kv_type"),
            "rounds": args.rounds, "peer": args.peer, "peer_batched": args.peer_batched,
            "peer_args": args.peer_args, "headrace_args": args.headrace_args}


def show(about, results):
    print(f"{about['cpu']}, {about['isa']}, {about['threads']} threads of {about['processors']}, "
          f"KV {about['kv_type']}; {about['model']} ({about['model_file_bytes'] / 1e6:.1f} MB); "
          f"{about['rounds']} rounds")
    print(f"peer: {about['peer'] or about['peer_batched']} {about['peer_args']}\n")
    table = [["test", "headrace", "peer", "ratio", "least", "most", "of bests", "of bound"]]
    for result in results:
        table.append([result["test"], f"{statistics.median(result['headrace_ts']):.1f}",
                      f"{statistics.median(result['peer_ts']):.1f}", f"{result['ratio']:.2f}",
                      f"{result['ratio_min']:.2f}", f"{result['ratio_max']:.2f}",
                      f"{result['ratio_of_best']:.2f}", f"{100 * result['fraction_of_bound']:.0f} %"])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for number, line in enumerate(table):
        cells = [line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:], widths[1:])]
        print("| " + " | ".join(cells) + " |")
        if number == 0:
            print("| " + "-" * widths[0] + " | " +
                  " | ".join("-" * (w - 1) + ":" for w in widths[1:]) + " |")
    disturbed = [result["test"] for result in results if result["notes"]]
    if disturbed:
        print(f"\nunsteady (headrace says why with -o md): {', '.join(disturbed)}")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], allow_abbrev=False)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--headrace", default=str(ROOT / "build" / "release" / "bin" / "headrace"))
    parser.add_argument("--headrace-args", default="", help='f.e. "--isa avx2 --kv-type f16"')
    parser.add_argument("--peer", default="", help="a program like llama-bench")
    parser.add_argument("--peer-batched", default="", help="a program like llama-batched-bench")
    parser.add_argument("--peer-args", default="-fa 1", help="for both peers (default: -fa 1)")
    parser.add_argument("-p", "--n-prompt", default="512")
    parser.add_argument("-n", "--n-gen", default="128")
    parser.add_argument("-d", "--n-depth", default="0")
    parser.add_argument("-npl", "--parallel", default="1")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    # Programs run in folders of their own; a model may also be a name of the store, a program one
    # of the PATH.
    for name in ("model", "headrace", "peer", "peer_batched"):
        if os.path.exists(getattr(args, name)):
            setattr(args, name, os.path.abspath(getattr(args, name)))
    return args


def main():
    args = parse_args()
    if not args.peer and not args.peer_batched:
        raise Failed("give --peer, --peer-batched or both")
    headrace, peer = Headrace(args), Peer(args)
    tests = tests_of(args)
    left_out = [test.name() for test in tests if not peer.can(test)]
    if left_out:
        print(f"left out, since no peer was given for them: {', '.join(left_out)}", file=sys.stderr)
    tests = [test for test in tests if peer.can(test)]
    if not tests:
        raise Failed("there is nothing to compare")
    results = measure(tests, args.rounds, headrace, peer)
    about = machine(args, headrace.last)
    if args.json:
        print(json.dumps({**about, "results": results}, indent=1))
    else:
        show(about, results)


if __name__ == "__main__":
    try:
        main()
    except (Failed, OSError, ValueError) as error:
        raise SystemExit(f"compare_bench: {error}") from None
