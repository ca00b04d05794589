"""The server with the checksum model, and what it must say."""
import threading
import subprocess

import harness

FIRST = 0x4E00  # the character of token 0


def text_of(ids):
    return "".join(chr(FIRST + each) for each in ids)


class ChecksumServer(harness.Server):
    def __init__(self, *options, **more):
        self.lock = threading.Lock()
        super().__init__([harness.CHECKSUM_SERVER], *options, stdout=subprocess.PIPE, **more)

    def command(self, line):
        with self.lock:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().decode().rstrip("\n")

    def expected(self, prompt, count, seed=1, choice=0):
        return self.command(f"expect {seed} {choice} {count} {prompt}")

    def held_blocks(self):
        """Blocks that requests hold, once the engine is idle."""
        self.wait_until_idle()
        groups = self.get("/dashboard/data").json()["models"][0]["kv"]["groups"]
        return sum(each["held"] for each in groups)

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    def kill(self):
        super().kill()
        self.process.stdout.close()
