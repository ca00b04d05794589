"""What the tests share: tiny models, the real ones where they are, the command line to compare
with."""
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import headrace

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import tiny_model  # noqa: E402

GREEDY = headrace.SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)


def store():
    """The folder of the user's models."""
    if os.environ.get("HEADRACE_HOME"):
        return pathlib.Path(os.environ["HEADRACE_HOME"]) / "models"
    data = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share"
    return pathlib.Path(data) / "headrace" / "models"


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """make(name, **options of tiny_model.write) -> path."""
    folder = tmp_path_factory.mktemp("models")

    def make(name="tiny", **options):
        path = folder / f"{name}.gguf"
        if not path.exists():
            tiny_model.write(path, **options)
        return path

    return make


@pytest.fixture(scope="session")
def tiny_path(models):
    return models()


@pytest.fixture(scope="module")
def llm(tiny_path):
    """A tiny model, and after the tests the proof that nothing left it broken."""
    with headrace.LLM(tiny_path) as model:
        before = model.generate("hello", GREEDY)
        yield model
        assert model.generate("hello", GREEDY).token_ids == before.token_ids


@pytest.fixture(scope="module")
def endless(models):
    """A tiny model whose context takes long to fill."""
    with headrace.LLM(models("endless", context=1_000_000), context=200_000) as model:
        yield model


ENDLESS = headrace.SamplingParams(temperature=0, ignore_eos=True)


@pytest.fixture(scope="session")
def real_path():
    path = store() / "smollm2-135m.gguf"
    if not path.exists():
        pytest.skip(f"{path} is not there: headrace pull smollm2-135m")
    return path


@pytest.fixture(scope="session")
def command():
    """run(*args, stdin=b"") -> what `headrace ... --json` prints."""
    binary = os.environ.get("HEADRACE_BINARY", str(ROOT / "build" / "release" / "bin" / "headrace"))
    if not os.path.exists(binary):
        pytest.skip(f"{binary} is not there: the command line to compare with")

    def run(*args, stdin=b""):
        done = subprocess.run([binary, *map(str, args), "--json"], input=stdin, check=True,
                              stdout=subprocess.PIPE, timeout=300)
        return json.loads(done.stdout)

    return run


@pytest.fixture
def batch(command, tmp_path):
    """run(model, messages) -> the response to it of `headrace batch`, of 12 greedy tokens."""

    def run(model, messages):
        body = {"messages": messages, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        line = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body}
        (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
        command("batch", tmp_path / "in.jsonl", tmp_path / "out.jsonl", "-m", model, "--overwrite")
        return json.loads((tmp_path / "out.jsonl").read_text())["response"]

    return run


@pytest.fixture
def script(tmp_path):
    """start(code, *args, **environment) -> a Python process that runs it."""
    started = []

    def start(code, *args, **environment):
        path = tmp_path / f"script{len(started)}.py"
        path.write_text(textwrap.dedent(code))
        process = subprocess.Popen([sys.executable, path, *map(str, args)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                                   env={**os.environ, **environment})
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
