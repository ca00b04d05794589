"""What the end-to-end tests share: the program under test, its environment, temporary folders and
real models where they are."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import tiny_model

BINARY = os.environ.get("HEADRACE_BINARY", "")
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CONFORMANCE = pathlib.Path(
    os.environ.get("HEADRACE_CONFORMANCE", SOURCE / ".." / "shared" / "conformance"))


def store():
    """The folder of the user's models, where tests look for real ones."""
    if os.environ.get("HEADRACE_HOME"):
        return pathlib.Path(os.environ["HEADRACE_HOME"]) / "models"
    data = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share"
    return pathlib.Path(data) / "headrace" / "models"


REAL_MODELS = store()


def real_model(name):
    path = REAL_MODELS / f"{name}.gguf"
    if not path.exists():
        raise unittest.SkipTest(f"{path} is not there: headrace pull {name}")
    return str(path)


def conformance(*parts):
    path = CONFORMANCE.joinpath(*parts)
    if not path.exists():
        raise unittest.SkipTest(f"reference data is not there: {path}")
    return path


class Outcome:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def error_lines(self):
        return self.err.decode().splitlines()


class HeadraceTest(unittest.TestCase):
    """Each test has a folder of its own (self.folder) and an empty home and store in it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self, **more):
        env = dict(os.environ)
        for name in ("HEADRACE_ISA", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            env.pop(name, None)
        env["HOME"] = str(self.folder / "home")
        env["HEADRACE_HOME"] = str(self.folder / "store")
        env["LC_ALL"] = "C.UTF-8"
        env.update(more)
        return env

    def run_headrace(self, *args, stdin=b"", timeout=120, **more):
        done = subprocess.run([BINARY, *map(str, args)], input=stdin, capture_output=True,
                              timeout=timeout, env=self.environment(**more), cwd=self.folder)
        return Outcome(done.returncode, done.stdout, done.stderr)

    def succeed(self, *args, **more):
        done = self.run_headrace(*args, **more)
        self.assertEqual(done.code, 0, f"{args}: {done.err.decode(errors='replace')}")
        return done

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def tiny(self, name="tiny.gguf", **options):
        path = self.folder / name
        if not path.exists():
            tiny_model.write(path, **options)
        return path


def main():
    if not BINARY:
        raise SystemExit("set HEADRACE_BINARY to the program under test")
    unittest.main(verbosity=2)
