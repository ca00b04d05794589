#!/usr/bin/env python3
"""Time from process start to the first byte of an answer, warm file cache.

Usage: bench/first_token.py PROGRAM [MODEL] [--limit SECONDS] [--runs N]
Prints the best and the median of N runs; exit code 1 if the best is above the limit.
"""
import argparse
import statistics
import subprocess
import time


def first_byte_seconds(command):
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    first = process.stdout.read(1)
    seconds = time.monotonic() - start
    process.stdout.read()
    if process.wait() != 0 or not first:
        raise SystemExit(f"failed: {' '.join(command)}")
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--limit", type=float, default=0.3)
    parser.add_argument("--runs", type=int, default=11)
    args = parser.parse_args()
    command = [args.program, "run", "-m", args.model, "-p", "Why is the sky blue?", "-n", "4",
               "--temp", "0"]
    times = [first_byte_seconds(command) for _ in range(args.runs + 1)][1:]  # the first one warms
    best, median = min(times), statistics.median(times)
    print(f"{args.model}: first token after {best:.3f} s (best), {median:.3f} s (median) of "
          f"{len(times)} runs; limit {args.limit} s")
    return 0 if best <= args.limit else 1


if __name__ == "__main__":
    raise SystemExit(main())
