"""The examples and the documentation's snippets run."""
import re
import subprocess
import sys

import pytest

from conftest import ROOT

EXAMPLES = ROOT / "bindings" / "python" / "examples"


def run(*args):
    done = subprocess.run([sys.executable, *map(str, args)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_many_questions(tiny_path):
    out = run(EXAMPLES / "many_questions.py", "-m", tiny_path, "-n", 8, "Why?", "x" * 300, "How?")
    assert out.count("sure to") == 2 and "failed: " in out and out.startswith("Why?\n")


def test_async_race(tiny_path):
    out = run(EXAMPLES / "async_race.py", "-m", tiny_path, "Once")
    assert "seed 1: Once" in out and "seed 2: Once" in out


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "docs/python.md"])
def test_the_snippets_run(page, real_path):
    """Each page's Python blocks, one after the other, as one program."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    assert run("-c", "\n".join(blocks))
