#!/usr/bin/env python3
"""The program from outside: wrong usage, exit codes, streams, and what needs no model.

Usage: usage_test.py PROGRAM [unittest arguments]
"""
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""


def run(*arguments, environment=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE):
    env = dict(os.environ, **(environment or {}))
    return subprocess.run([PROGRAM, *arguments], stdin=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, env=env, timeout=60, check=False)


def on_terminal(*arguments, environment=None, answer=b"", wait_for=b""):
    """Runs the program with a terminal for all three streams; returns (exit code, output).

    Types `answer` once `wait_for` is on the screen.
    """
    env = dict(os.environ, TERM="xterm", **(environment or {}))
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.execve(PROGRAM, [PROGRAM, *arguments], env)
    output = b""
    while True:
        if answer and wait_for in output:
            os.write(terminal, answer)
            answer = b""
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        output += piece
    _, status = os.waitpid(process_id, 0)
    return os.waitstatus_to_exitcode(status), output.decode()


class Usage(unittest.TestCase):
    def check_usage_fault(self, *arguments, says):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, result)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"^headrace.*; see headrace.* --help$")
        for part in says:
            self.assertIn(part, lines[0])

    def test_wrong_usage_is_one_line_and_the_way_out(self):
        self.check_usage_fault(says=["expected a command"])
        self.check_usage_fault("lst", says=["unknown command 'lst'", "did you mean list?"])
        self.check_usage_fault("--versoin", says=["did you mean --version?"])
        self.check_usage_fault("list", "--jsno", says=["headrace list: --jsno", "--json"])
        self.check_usage_fault("list", "extra", says=["unexpected argument 'extra'"])
        self.check_usage_fault("rm", says=["NAME: missing argument"])
        self.check_usage_fault("rm", "smollm2-135m", "--yse", says=["--yes"])
        self.check_usage_fault("completion", "tcsh", says=["bash, zsh or fish", "'tcsh'"])
        self.check_usage_fault("help", "pul", says=["did you mean pull?"])
        self.check_usage_fault("lis\x1b[31mt\n", says=["\\x1b[31m", "\\n"])

    def test_json_errors_are_objects(self):
        for arguments, code, exit_code in [(["list", "--jsno", "--json"], "invalid_argument", 2),
                                           (["pull", "no-such-model", "--json"], "not_found", 1),
                                           (["show", "no-such-model", "--json"], "not_found", 1)]:
            result = run(*arguments)
            self.assertEqual(result.returncode, exit_code, result)
            error = json.loads(result.stdout)["error"]
            self.assertEqual(sorted(error), ["code", "hint", "message", "where"])
            self.assertEqual(error["code"], code)
            self.assertTrue(result.stderr.startswith("headrace"))

    def test_version_and_help(self):
        self.assertRegex(run("--version").stdout, r"^headrace \d+\.\d+\.\d+\n$")
        for arguments in (["--version", "--json"], ["--json", "--version"]):
            self.assertEqual(json.loads(run(*arguments).stdout)["name"], "headrace")
        overview = run("--help")
        self.assertEqual((overview.returncode, overview.stderr), (0, ""))
        self.assertEqual(run("help").stdout, overview.stdout)
        commands = [line.split()[0] for line in
                    overview.stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        self.assertIn("pull", commands)
        for command in commands:
            page = run(command, "--help")
            self.assertEqual((page.returncode, page.stderr), (0, ""), command)
            self.assertIn("Examples:", page.stdout, command)
            self.assertEqual(run("help", command).stdout, page.stdout)

    def test_a_full_disk_under_standard_output_is_a_fault(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = run("--help", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write to standard output", result.stderr)


class Terminal(unittest.TestCase):
    def test_colours_on_a_terminal_only(self):
        self.assertNotIn("\x1b", run("--help").stdout)
        self.assertIn("\x1b[1m", on_terminal("--help")[1])
        self.assertNotIn("\x1b", on_terminal("--help", environment={"NO_COLOR": "1"})[1])


class Store(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = {"HEADRACE_HOME": self.folder.name,
                            "HF_HOME": str(pathlib.Path(self.folder.name, "hf"))}
        self.models = pathlib.Path(self.folder.name, "models")

    def add(self, name):
        self.models.mkdir(exist_ok=True)
        path = self.models / f"{name}.gguf"
        path.write_text("not really a model")
        return path

    def call(self, *arguments):
        return run(*arguments, environment=self.environment)

    def test_list_and_show(self):
        self.assertIn("no models", self.call("list").stdout)
        path = self.add("mine")
        listed = json.loads(self.call("list", "--json").stdout)
        self.assertEqual([(each["name"], each["path"], each["size_bytes"], each["format"])
                          for each in listed["models"]], [("mine", str(path), 18, "gguf")])
        self.assertIn("smollm2-135m", [entry["name"] for entry in listed["catalog"]])
        self.assertEqual(self.call("list", "--names").stdout, "mine\n")
        shown = json.loads(self.call("show", "mine", "--json").stdout)
        self.assertEqual((shown["stored"], shown["path"]), (True, str(path)))
        licence = json.loads(self.call("show", "gemma3-270m", "--json").stdout)
        self.assertFalse(licence["stored"])
        self.assertIn("Gemma Terms", licence["license_note"])

    def test_rm_asks_on_a_terminal_and_needs_yes_elsewhere(self):
        path = self.add("mine")
        self.assertEqual(self.call("rm", "mine").returncode, 2)
        code, output = on_terminal("rm", "mine", environment=self.environment, answer=b"n\n")
        self.assertEqual(code, 1)
        self.assertIn("[y/N]", output)
        self.assertTrue(path.exists())
        code, _ = on_terminal("rm", "mine", environment=self.environment, answer=b"y\n")
        self.assertEqual(code, 0)
        self.assertFalse(path.exists())
        self.add("mine")
        self.assertEqual(self.call("rm", "mine", "--yes").returncode, 0)
        self.assertEqual(self.call("rm", "mine", "--yes").returncode, 1)

    def slow_python(self):
        """A python3 that downloads for ever, and shows it."""
        folder = pathlib.Path(self.folder.name, "bin")
        folder.mkdir()
        script = folder / "python3"
        script.write_text("#!/bin/sh\nhead -c 30000000 /dev/zero > \"$TMPDIR/part\"\n"
                          "exec sleep 60\n")
        script.chmod(0o755)
        return dict(self.environment, PATH=f"{folder}:{os.environ['PATH']}")

    def left_behind(self):
        return [path for path in self.models.rglob("*")
                if path.is_file() and path.suffix != ".lock"]

    def test_pull_shows_progress_on_a_terminal_and_ends_at_ctrl_c(self):
        code, output = on_terminal("pull", environment=self.slow_python(),
                                   wait_for=b"30.0 MB of 92.9 MB", answer=b"\x03")
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"downloading \[=+> *\]  32 %")
        self.assertIn("interrupted", output)
        self.assertIn("Apache-2.0", output)
        self.assertEqual(self.left_behind(), [])

    def test_pull_ends_at_sigterm_and_draws_nothing_when_piped(self):
        with subprocess.Popen([PROGRAM, "pull"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ, **self.slow_python())) as process:
            while not any(path.stat().st_size for path in self.models.rglob("part")):
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            output, messages = process.communicate(timeout=60)
        self.assertEqual((process.returncode, output), (1, ""))
        self.assertNotIn("%", messages)
        self.assertNotIn("\r", messages)
        self.assertEqual(self.left_behind(), [])

    def test_a_killed_pull_takes_pip_along_and_rm_clears_its_folder(self):
        environment = self.slow_python()
        note = pathlib.Path(self.folder.name, "pid")
        script = pathlib.Path(self.folder.name, "bin", "python3")
        script.write_text(script.read_text().replace("#!/bin/sh\n",
                                                     f"#!/bin/sh\necho $$ > {note}\n"))
        with subprocess.Popen([PROGRAM, "pull"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              env=dict(os.environ, **environment)) as process:
            while not any(path.stat().st_size for path in self.models.rglob("part")):
                time.sleep(0.05)
            process.kill()
        child = pathlib.Path("/proc", note.read_text().strip(), "stat")
        deadline = time.monotonic() + 30
        while child.exists() and child.read_text().split()[2] not in "ZX":
            self.assertLess(time.monotonic(), deadline, "pip lives on")
            time.sleep(0.05)
        self.assertNotEqual(self.left_behind(), [])
        self.add("mine")
        self.assertEqual(self.call("rm", "mine", "--yes").returncode, 0)
        self.assertEqual(self.left_behind(), [])

    def test_pull_leaves_a_file_of_the_user_alone(self):
        path = self.add("smollm2-135m")
        result = run("pull", environment=self.slow_python())
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(str(path), result.stderr)
        self.assertIn("headrace rm smollm2-135m", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(path.read_text(), "not really a model")
        self.assertEqual(self.left_behind(), [path])

    def test_pull_onto_a_full_disk_leaves_nothing(self):
        environment = self.slow_python()
        pathlib.Path(self.folder.name, "bin", "python3").write_text(
            "#!/bin/sh\necho part > \"$TMPDIR/part\"\n"
            "echo 'ERROR: [Errno 28] No space left on device' >&2\nexit 1\n")
        result = run("pull", environment=environment)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("the disk became full", result.stderr)
        self.assertIn("HEADRACE_HOME", result.stderr)
        self.assertEqual(self.left_behind(), [])

    def test_help_names_the_directories_that_tokenize_takes(self):
        for command in ("tokenize", "detokenize"):
            self.assertIn("Hugging Face directory", run(command, "--help").stdout)

    def test_pull_without_a_network_leaves_nothing(self):
        self.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
        result = self.call("pull", "smollm2-135m")
        self.assertEqual(result.returncode, 1)
        self.assertIn("headrace: error:", result.stderr)
        self.assertIn("(check the network", result.stderr)
        self.assertNotIn("\x1b", result.stderr)
        self.assertEqual(self.left_behind(), [])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
