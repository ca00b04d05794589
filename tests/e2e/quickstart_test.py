#!/usr/bin/env python3
"""scripts/quickstart with a build that is there already: what it asks, and of whom."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
DEFAULT = ["run", "-p", "Why is the sky blue?"]


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="headrace-quickstart-"))
        self.addCleanup(shutil.rmtree, self.root)
        build = self.root / "build" / "release"
        self.calls = self.root / "calls"
        (self.root / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts" / "quickstart", self.root / "scripts")
        self.stub(build / "bin" / "headrace",
                  "import json, sys\n"
                  f"print(json.dumps(sys.argv[1:]), file=open({str(self.calls)!r}, 'a'))\n")
        (build / "build.ninja").touch()
        self.stub(self.root / "bin" / "ninja", "")

    def stub(self, path, script):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/usr/bin/env python3\n" + script)
        path.chmod(0o755)

    def asked(self, *arguments):
        """The arguments of each call of headrace."""
        self.calls.unlink(missing_ok=True)
        subprocess.run([self.root / "scripts" / "quickstart", *arguments], check=True, timeout=60,
                       env=dict(os.environ, PATH=f"{self.root / 'bin'}:{os.environ['PATH']}"))
        return [json.loads(line) for line in self.calls.read_text().splitlines()]

    def test_a_second_run_only_asks(self):
        self.assertEqual(self.asked("Why?"), [["run", "-p", "Why?"]])
        self.assertEqual(self.asked("q", "-m", "my.gguf"), [["run", "-p", "q", "-m", "my.gguf"]])

    def test_the_default_question(self):
        self.assertEqual(self.asked(), [DEFAULT])
        self.assertEqual(self.asked(""), [DEFAULT])
        self.assertEqual(self.asked("", "-n", "5"), [DEFAULT + ["-n", "5"]])
        self.assertEqual(self.asked("-n", "5"), [DEFAULT + ["-n", "5"]])


if __name__ == "__main__":
    unittest.main()
