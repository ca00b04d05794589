#!/usr/bin/env python3
"""headrace chat: from a pipe, and with a person at a terminal (a pseudo-terminal)."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time

import harness


class Terminal:
    """The program at a pseudo-terminal. What it prints is collected; control sequences of the line
    editor are taken out."""

    def __init__(self, args, env, folder):
        self.master, slave = pty.openpty()
        env = dict(env, TERM="xterm")
        self.process = subprocess.Popen([harness.BINARY, *map(str, args)], stdin=slave,
                                        stdout=slave, stderr=slave, env=env, cwd=folder,
                                        start_new_session=True, preexec_fn=take_terminal)
        os.close(slave)
        self.seen = ""
        self.raw = b""

    def wait_for(self, pattern, seconds=60):
        """Waits until what came since the last wait matches; returns it up to the match's end."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen, re.DOTALL)
            if match:
                text, self.seen = self.seen[:match.end()], self.seen[match.end():]
                return text
            ready = select.select([self.master], [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                raise AssertionError(f"waited for {pattern!r}, saw {self.seen!r}")
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended; waited for {pattern!r}, saw {self.seen!r}")
            self.raw += data
            plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-B0]|\r|\x07", b"", data)
            self.seen += plain.decode(errors="replace")

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self, seconds=30):
        code = self.process.wait(timeout=seconds)
        os.close(self.master)
        return code


def take_terminal():
    """Makes the pseudo-terminal the controlling one, so that its Ctrl-C sends a signal."""
    import fcntl
    import termios
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


ALWAYS_A = ["--temp", "0", "--logit-bias", "65=1000"]


class Chat(harness.HeadraceTest):
    def start(self, *args, **options):
        model = self.tiny(options.pop("name", "tiny.gguf"), **options)
        terminal = Terminal(["chat", "-m", model, *args], self.environment(), self.folder)
        self.addCleanup(terminal.process.kill)
        terminal.wait_for("> ")
        return terminal

    def test_pipe(self):
        done = self.succeed("chat", "-m", self.tiny(), *ALWAYS_A, "-n", 3, stdin=b"hello\nagain\n")
        self.assertEqual(done.out, b"AAA\nAAA\n")
        self.assertEqual(done.err, b"")

    def test_interrupt_ends_a_chat_from_a_pipe(self):
        model = self.tiny("long.gguf", context=100000)
        for script in (b"go on\nand on\nand on\n", b"go on\n"):  # with more to come, and without
            process = subprocess.Popen([harness.BINARY, "chat", "-m", str(model), *ALWAYS_A],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=self.environment())
            self.addCleanup(process.kill)
            process.stdin.write(script)
            process.stdin.flush()
            self.assertEqual(process.stdout.read(4), b"AAAA")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=60), 1)  # its input is still open
            out, err = process.communicate()
            self.assertEqual(out.count(b"\n"), 1)
            self.assertIn(b"interrupted", err)

    def test_pipe_commands_and_messages_of_several_lines(self):
        script = ("/system Be brief.\n"
                  "one\\\ntwo\n"
                  "\"\"\"\nthree\n\nfour\n\"\"\"\n"
                  "//five\n"
                  "/save talk.json\n"
                  "/quit\n"
                  "never read\n")
        self.succeed("chat", "-m", self.tiny(), *ALWAYS_A, "-n", 2, stdin=script.encode())
        saved = json.loads((self.folder / "talk.json").read_text())
        self.assertEqual([message["role"] for message in saved],
                         ["system"] + ["user", "assistant"] * 3)
        self.assertEqual([message["content"] for message in saved if message["role"] == "user"],
                         ["one\ntwo", "three\n\nfour", "/five"])
        prompt = self.succeed("render", "-m", self.tiny(), "--messages", "talk.json").out
        self.assertTrue(prompt.startswith(b"<|im_start|>system\nBe brief.<|im_end|>\n"))

    def test_save_does_not_overwrite(self):
        self.write("there.json", "mine")
        done = self.run_headrace("chat", "-m", self.tiny(), stdin=b"/save there.json\n")
        self.assertIn(b"there.json", done.err)
        self.assertEqual((self.folder / "there.json").read_text(), "mine")

    def test_unknown_command(self):
        done = self.run_headrace("chat", "-m", self.tiny(), stdin=b"/dance\n")
        self.assertEqual(done.out, b"")
        self.assertIn(b"/dance", done.err)
        self.assertNotEqual(done.code, 0)

    def test_full_context_is_said_and_clear_helps(self):
        done = self.run_headrace("chat", "-m", self.tiny(), *ALWAYS_A, "-n", 2, "-c", 64,
                                 stdin=b"x" * 100 + b"\n/clear\nhi\n")
        self.assertEqual(done.out, b"AA\n")
        self.assertIn(b"64", done.err)
        self.assertIn(b"/clear", done.err)

    def test_conversation_at_a_terminal(self):
        terminal = self.start(*ALWAYS_A, "-n", 5)
        terminal.type("/help\r")
        self.assertIn("/retry", terminal.wait_for(r"/quit.*> $"))
        terminal.type("hello\r")
        terminal.wait_for(r"AAAAA\n.*> $")
        terminal.type("/retry\r")
        terminal.wait_for(r"AAAAA\n.*> $")
        terminal.type("/stats\r")
        terminal.wait_for(r"tokens/s.*2 messages\n.*> $")
        terminal.type("/quit\r")
        self.assertEqual(terminal.end(), 0)
        history = (self.folder / "home/.local/state/headrace/chat_history").read_text()
        self.assertIn("hello", history)

    def test_history_is_kept(self):
        for _ in range(2):
            terminal = self.start(*ALWAYS_A, "-n", 2)
            if _ == 0:
                terminal.type("remember me\r")
            else:
                terminal.type("\x1b[A\x1b[A\x1b[A\r")
                terminal.wait_for("remember me")
            terminal.wait_for(r"AA\n.*> $")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)

    def test_interrupt_stops_the_answer_only(self):
        terminal = self.start(*ALWAYS_A, name="long.gguf", context=100000)
        terminal.type("go on for ever\r")
        terminal.wait_for("AAAAAAAA")
        terminal.type("\x03")
        terminal.wait_for(r"\(stopped\).*> $")
        self.assertIsNone(terminal.process.poll())
        terminal.type("/stats\r")
        terminal.wait_for(r"2 messages\n.*> $")
        terminal.type("\x03")  # at the prompt: a hint
        terminal.wait_for(r"/quit leaves\n.*> $")
        terminal.type("half a line\x03")
        terminal.wait_for(r"/quit leaves\n.*> $")
        terminal.type("/quit\r")
        self.assertEqual(terminal.end(), 0)

    def test_interrupt_between_a_message_and_its_answer(self):
        terminal = self.start(*ALWAYS_A, "-n", 20, name="long.gguf", context=100000)
        for i in range(20):
            terminal.type("hello\r")
            time.sleep(0.0003 * i)
            terminal.type("\x03")
            time.sleep(0.02)
            self.assertIsNone(terminal.process.poll(), i)

    def test_stopped_and_continued(self):
        terminal = self.start(*ALWAYS_A, "-n", 2)
        for _ in range(2):
            os.kill(terminal.process.pid, signal.SIGSTOP)
            self.make_cooked(terminal.master)
            os.kill(terminal.process.pid, signal.SIGCONT)
            terminal.wait_for("> ")
            self.assertFalse(termios.tcgetattr(terminal.master)[3] & termios.ICANON)
        terminal.type("hello\r")
        terminal.wait_for(r"AA\n.*> $")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)

    @staticmethod
    def make_cooked(descriptor):
        """As a shell does that takes the terminal."""
        mode = termios.tcgetattr(descriptor)
        mode[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)

    def test_cut_character_swallows_nothing(self):
        terminal = self.start(*ALWAYS_A, "-n", 2)
        os.write(terminal.master, b"caf\xe9\r")
        terminal.wait_for(r"AA\n.*> $")
        os.write(terminal.master, b"\xc3a\r")
        terminal.wait_for(r"AA\n.*> $")
        terminal.type("/save talk.json\r")
        terminal.wait_for(r"saved talk.json\n.*> $")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        saved = json.loads((self.folder / "talk.json").read_text())
        self.assertEqual([m["content"] for m in saved if m["role"] == "user"],
                         ["caf\ufffd", "\ufffda"])

    def test_line_end_inside_a_message(self):
        terminal = self.start(*ALWAYS_A, "-n", 2)
        terminal.type("one\x1b\rtwo\r")
        terminal.wait_for(r"AA\n.*> $")
        terminal.type("/save talk.json\r")
        terminal.wait_for(r"saved talk.json\n.*> $")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        saved = json.loads((self.folder / "talk.json").read_text())
        self.assertEqual(saved[0]["content"], "one\ntwo")

    def test_escape_sequences_of_a_model_stay_text(self):
        terminal = self.start("--temp", "0", "-n", "4", "--logit-bias", "27=1000")
        terminal.type("hello\r")
        terminal.wait_for(re.escape(r"\x1b\x1b\x1b\x1b") + r"\n.*> $")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    harness.main()
