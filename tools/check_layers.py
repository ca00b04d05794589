#!/usr/bin/env python3
"""Checks that every include in src/ and bindings/ follows tools/layers.txt.

A folder may include its own headers, those of base/ and include/headrace/, and those of the folders
that layers.txt grants it, directly or through them; a test may also include tests/. Also checks
that only base/os includes POSIX headers. Prints each wrong include as file:line and exits 1 if there
is one.

Usage: tools/check_layers.py [SOURCE_ROOT]
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
POSIX = re.compile(
    r"^(unistd|fcntl|sched|dirent|pwd|poll|signal|spawn|termios|dlfcn|sys/\w+|netinet/\w+|arpa/\w+)\.h$")


def read_rules(path):
    rules = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, uses = line.partition(":")
            rules[folder.strip()] = uses.split()
    return rules


def reachable(folder, rules):
    seen, todo = set(), [folder]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(rules.get(name, []))
    return seen | {"base", "headrace"}


def check(root):
    rules = read_rules(root / "tools" / "layers.txt")
    faults, num_files = [], 0
    unknown = {use for uses in rules.values() for use in uses} - set(rules)
    faults += [f"tools/layers.txt: unknown folder '{name}'" for name in sorted(unknown)]
    files = [*(root / "src").rglob("*"), *(root / "bindings").rglob("*")]
    for path in sorted(files):
        if path.suffix not in {".cc", ".h", ".inl", ".def", ".cu", ".cuh"}:
            continue
        num_files += 1
        relative = path.relative_to(root)
        folder = relative.parts[1] if relative.parts[0] == "src" else "bindings"
        if folder not in rules:
            faults.append(f"{relative}: folder '{folder}' is not in tools/layers.txt")
            continue
        allowed = reachable(folder, rules)
        is_test = path.name.endswith("_test.cc")
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, target = match.groups()
            if quote == "<":
                if POSIX.match(target) and not is_test and relative.parts[1:3] != ("base", "os"):
                    faults.append(f"{relative}:{number}: <{target}> belongs in src/base/os")
                continue
            first = target.split("/")[0]
            if "/" not in target:
                faults.append(f"{relative}:{number}: write \"{folder}/...\", not \"{target}\"")
            elif first not in allowed and not (is_test and first == "tests"):
                faults.append(f"{relative}:{number}: {folder}/ may not use {first}/ (\"{target}\")")
    return faults, num_files


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    faults, num_files = check(root.resolve())
    for fault in faults:
        print(fault)
    print(f"check_layers: {num_files} files, {len(faults)} wrong includes")
    return 1 if faults or num_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
