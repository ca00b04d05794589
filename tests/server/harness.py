"""What the server's tests share: a server in a process of its own, and a client that says on a socket
whatever a test wants. Models are written by the tests; none has to be fetched."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import tiny_model  # noqa: E402

BINARY = os.environ.get("HEADRACE_BINARY", "")
CHECKSUM_SERVER = os.environ.get("HEADRACE_CHECKSUM_SERVER", "")
PATIENCE = 120  # seconds, for what happens at once on a machine that is not loaded
MIB = 1 << 20

# What many tests ask, and where.
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
USER = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
SHORT = {"prompt": "hello", "max_tokens": 3, "ignore_eos": True, "temperature": 0}
LONG = {"prompt": "a", "max_tokens": 3000, "ignore_eos": True, "temperature": 0}

CONTEXT = 4096
MODELS = {
    "tiny": {"context": CONTEXT},  # fast
    "slow": {"context": CONTEXT, "hole_layers": 24, "feed_forward": 4096},  # some ms a token
}


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]!r}"


class Connection:
    """One connection. What it reads is taken apart strictly: a reply that is cut is an exception."""

    def __init__(self, server, receive_buffer=0, context=None):
        self.socket = socket.socket(socket.AF_UNIX if server.unix_path else socket.AF_INET)
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect(server.unix_path or ("127.0.0.1", server.port))
        except OSError:
            self.socket.close()
            raise
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def request(self, method, path, body=None, headers=None, version="1.1"):
        fields = {"Host": "localhost", **(headers or {})}
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            fields.setdefault("Content-Length", str(len(data)))
            fields.setdefault("Content-Type", "application/json")
        head = f"{method} {path} HTTP/{version}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
        self.send(head.encode() + b"\r\n" + data)

    def head(self):
        """The status and the headers of a reply."""
        line = self.file.readline()
        if not line:
            raise EOFError("the connection was closed instead of a reply")
        assert line.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")) and line.endswith(b"\r\n"), line
        status, headers = int(line.split()[1]), {}
        while True:
            line = self.file.readline()
            assert line.endswith(b"\r\n"), line
            if line == b"\r\n":
                return status, headers
            name, value = line.decode().split(":", 1)
            headers[name.strip().lower()] = value.strip()

    def exactly(self, size):
        data = self.file.read(size)
        if len(data) != size:
            raise EOFError(f"cut after {len(data)} of {size} bytes")
        return data

    def chunk(self):
        """The next chunk of a body; b"" is its end."""
        size = int(self.file.readline().strip() or b"-", 16)
        data = self.exactly(size)
        assert self.exactly(2) == b"\r\n"
        return data

    def reply(self, to_head=False):
        status, headers = self.head()
        while status == 100:
            status, headers = self.head()
        body = b""
        if to_head or status in (204, 304):
            pass
        elif headers.get("transfer-encoding") == "chunked":
            while True:
                data = self.chunk()
                if not data:
                    break
                body += data
        elif "content-length" in headers:
            body = self.exactly(int(headers["content-length"]))
        else:
            body = self.file.read()
        return Reply(status, headers, body)

    def events(self):
        """Of a streamed body: the data of each event, as it comes, until the stream ends."""
        text = b""
        while True:
            data = self.chunk()
            if not data:
                assert not text.strip(), text
                return
            text += data
            while b"\n\n" in text:
                event, text = text.split(b"\n\n", 1)
                lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
                if lines:
                    yield b"\n".join(lines).decode()

    def is_closed(self):
        """Whether the other end closed it; waits for that, or for bytes."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


class Server:
    """A server's process, ready to answer. `program` is the command up to its options,
    `before` is called in the new process before it."""

    def __init__(self, program, *args, unix_path="", wait=True, port=None, stdout=None,
                 before=None):
        self.unix_path = str(unix_path)
        self.port = port if port is not None else free_port()
        where = ["--unix-socket", self.unix_path] if unix_path else ["--port", str(self.port)]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*program, *where, *map(str, args)], stderr=self.log,
                                        stdin=subprocess.PIPE, stdout=stdout or self.log,
                                        preexec_fn=before)
        try:
            if wait:
                self.wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def wait_until(self, holds, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}: {self.text()}")
            try:
                if holds():
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"not in {PATIENCE} s: {what}; log: {self.text()}")

    def wait_until_ready(self):
        self.wait_until(lambda: b" serves " in self.text().encode(), "that it serves")

    def connect(self, **options):
        return Connection(self, **options)

    def ask(self, method, path, body=None, headers=None):
        """One request on a connection of its own."""
        with self.connect() as connection:
            connection.request(method, path, body, {"Connection": "close", **(headers or {})})
            return connection.reply(to_head=method == "HEAD")

    def post(self, path, body, headers=None):
        return self.ask("POST", path, body, headers)

    def get(self, path, headers=None):
        return self.ask("GET", path, None, headers)

    def stream(self, path, body):
        """The events of a streamed answer, and whether "[DONE]" was its last."""
        with self.connect() as connection:
            connection.request("POST", path, {**body, "stream": True})
            status, _ = connection.head()
            assert status == 200, status
            events = list(connection.events())
        is_done = bool(events) and events[-1] == "[DONE]"
        return [json.loads(each) for each in events if each != "[DONE]"], is_done

    def metrics(self, headers=None):
        """All values by name with labels, and summed by name alone."""
        values = {}
        for line in self.get("/metrics", headers).body.decode().splitlines():
            if not line or line.startswith("#"):
                continue
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
            bare = name.split("{")[0]
            if bare != name:
                values[bare] = values.get(bare, 0) + float(value)
        return values

    def metric(self, name, **labels):
        """The sum of those values of a metric that have all these labels."""
        total = 0
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        for line in self.get("/metrics").body.decode().splitlines():
            if line.split("{")[0].split(" ")[0] == name and all(each in line for each in wanted):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def num_running(self):
        return self.metric("vllm:num_requests_running")

    def wait_until_idle(self):
        self.wait_until(lambda: self.num_running() == 0
                        and self.metric("vllm:num_requests_waiting") == 0, "no request runs")

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=PATIENCE):
        return self.process.wait(seconds)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        self.log.close()


class ServerTest(unittest.TestCase):
    """Tests that share one server, made from `model` with `options`; self.start() starts another."""
    model = "tiny"
    options = ()
    server = None
    folder = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-server-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        if cls.model:
            cls.server = start(cls.folder, cls.model, *cls.options)
            cls.addClassCleanup(cls.server.kill)

    def tearDown(self):
        if self.server:
            self.assertIsNone(self.server.process.poll(), f"the server died: {self.server_text()}")

    def server_text(self):
        return self.server.text()

    def start(self, model, *options, **more):
        server = start(self.folder, model, *options, **more)
        self.addCleanup(server.kill)
        return server

    def assert_error(self, reply, status, is_anthropic=False, **parts):
        """An error in the form of OpenAI, or of Anthropic, with all of `parts`; returns it."""
        self.assertEqual(reply.status, status, reply)
        self.assertIn("application/json", reply.headers["content-type"])
        error = reply.error()
        if is_anthropic:
            self.assertEqual(reply.json()["type"], "error", reply)
            self.assertLessEqual({"message", "type"}, set(error), error)
        else:
            self.assertEqual(set(error), {"message", "type", "code", "param"}, error)
        self.assertTrue(error["message"])
        for name, value in parts.items():
            self.assertEqual(error[name], value, error)
        return error


def model_file(folder, name):
    path = folder / f"{name}.gguf"
    if not path.exists():
        tiny_model.write(path, **MODELS[name])
    return path


def start(folder, model, *options, **more):
    return Server([BINARY, "serve", "-m", str(model_file(folder, model))], "-t", "1", *options, **more)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_thread(work, *args):
    """Runs it beside the test; call what is returned for its result, or what it raised."""
    outcome = {}

    def run():
        try:
            outcome["value"] = work(*args)
        except BaseException as fault:  # given to who asks
            outcome["fault"] = fault

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result():
        thread.join(2 * PATIENCE)
        if thread.is_alive():
            raise AssertionError("still under way")
        if "fault" in outcome:
            raise outcome["fault"]
        return outcome["value"]

    return result


def main():
    if not BINARY:
        raise SystemExit("set HEADRACE_BINARY to the program under test")
    unittest.main(verbosity=2)
