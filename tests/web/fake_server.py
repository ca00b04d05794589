#!/usr/bin/env python3
"""Serves the page as `headrace serve` does, with made-up models: for working on the page, and its tests.

What a model answers is in the message: `say: TEXT` is answered with TEXT, `fail: 500` (or another status)
with that error, `fail: mid` fails in mid-stream, `fail: cut` ends without [DONE], `slow` writes slowly
until the handler's `is_hurried` is set, `long` writes much. Anything else is answered with a sample of Markdown.

Usage: fake_server.py [--port N] [--key KEY]
"""
import argparse
import http.server
import json
import math
import mimetypes
import pathlib
import random
import re
import sys
import threading
import time
import urllib.parse

WEB = pathlib.Path(__file__).resolve().parents[2] / "src" / "web"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
MODELS = ("smollm2-135m", "gemma3-270m", "tinyriver-base")

SAMPLE = """Because attention reads **every earlier token**, a model would compute the same keys and values again \
for each new one. A cache keeps them, so a step costs the work of *one* token.

1. The prompt is computed once, in large pieces that keep the cores busy.
2. Each step then reads the cache and adds a single row to it.
3. Requests that begin alike share the blocks of their common prefix.

```python
def attend(query, cache):
    \"\"\"One query against all keys so far.\"\"\"
    scores = [dot(query, key) / sqrt(len(query)) for key in cache.keys]
    weights = softmax(scores)
    return sum(w * v for w, v in zip(weights, cache.values))
```

| Phase | Bound by | Tokens a step |
|:--|:--|--:|
| Prefill | arithmetic | 512 |
| Decode | memory bandwidth | 16 |

The price is memory: `2 · layers · heads · width` numbers for each token."""


def read_assets():
    """{url path: file}, of the list that CMake reads too."""
    assets = {}
    for line in (WEB / "assets.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            url, file = line.split()[:2]
            assets[url] = WEB / "page" / file  # an absolute file stays what it is
    return assets


class Load:
    """Made-up figures for the dashboard that move as those of a busy server do."""

    LE = [.002, .004, .008, .016, .032, .064, .128, .256, .512, 1.024, 2.048]

    def __init__(self):
        self.begin = time.time() - 4000
        self.random = random.Random(7)
        self.blocks = ["f"] * 1536
        self.counts = {name: [0.0] * (len(self.LE) + 1) for name in ("ttft", "itl", "step")}
        self.totals = dict.fromkeys(("prompt", "generated", "steps", "query", "hit"), 0.0)
        self.rungs = dict.fromkeys(("evict_prefixes", "drop_caches", "stop_admitting", "shrink_chunks", "lower_batch",
                                    "preempt", "lighter_model", "fail_request"), 0)
        self.last = self.begin
        self.lock = threading.Lock()
        self.steps = 0
        for _ in range(600):
            self.advance(1)

    def observe(self, name, median, times):
        for _ in range(times):
            value = median * math.exp(self.random.gauss(0, .45))
            bucket = next((i for i, le in enumerate(self.LE) if value <= le), len(self.LE))
            for i in range(bucket, len(self.LE) + 1):
                self.counts[name][i] += 1

    def advance(self, seconds):
        self.steps += 1
        wave = .6 + .3 * math.sin(self.steps / 37) + .1 * self.random.random()
        self.running = round(16 * wave)
        generated = 310 * wave * seconds
        prompt = 900 * wave * self.random.random() * seconds
        for name, amount in (("generated", generated), ("prompt", prompt), ("steps", 20 * seconds),
                             ("query", prompt * 2.4), ("hit", prompt * 1.4)):
            self.totals[name] += amount
        self.observe("ttft", .09, 2)
        self.observe("itl", .045, 12)
        self.observe("step", .04, 8)
        self.rungs["evict_prefixes"] += self.random.random() < .3
        self.rungs["shrink_chunks"] += self.random.random() < .01
        for _ in range(14):
            at = self.random.randrange(len(self.blocks) - 24)
            kind = self.random.choices("hcf", (wave, .45, 1.0 - wave + .15))[0]
            length = self.random.randrange(4, 24)
            self.blocks[at:at + length] = kind * length

    def data(self):
        with self.lock:
            now = time.time()
            if now - self.last >= .2:
                self.advance(min(now - max(self.last, now - 5), 5))
                self.last = now
            return {"now_ms": int(now * 1000), "uptime_s": now - self.begin, "version": "0.1.0",
                    "models": [self.model("smollm2-135m", 1), self.model("gemma3-270m", .5)]}

    def model(self, name, share):
        runs = "".join(f"{match[1]}{len(match[0])}" for match in re.finditer(r"(.)\1*", "".join(self.blocks)))
        group = {"window": 0, "block_tokens": 16, "num_blocks": len(self.blocks), "held": self.blocks.count("h"),
                 "cached": self.blocks.count("c"), "map": runs}
        groups = [group] if share == 1 else [{**group, "window": 512}, group]
        totals = {key: int(value * share) for key, value in self.totals.items()}
        histogram = lambda key: {"le": self.LE, "count": [int(n * share) for n in self.counts[key]]}
        return {"name": name, "running": self.running, "paused": 0, "waiting": max(0, self.running - 11),
                "waiting_tokens": max(0, self.running - 11) * 210, "batch_limit": 16, "prompt_tokens": totals["prompt"],
                "computed_prompt_tokens": totals["prompt"] // 2,
                "generated_tokens": totals["generated"], "steps": totals["steps"], "prefix_query_tokens": totals["query"],
                "prefix_hit_tokens": totals["hit"], "errors": 0, "cancelled": 3,
                "kv": {"usage": group["held"] / len(self.blocks), "token_slot_utilisation": .93, "groups": groups},
                "rungs": self.rungs, "step_seconds": histogram("step"), "ttft_seconds": histogram("ttft"),
                "itl_seconds": histogram("itl"),
                "bound": {"decode_tokens_per_second": 412.0 if share == 1 else None,
                          "prefill_tokens_per_second": 1630.0 if share == 1 else None,
                          "fraction_of_bandwidth": .71 if share == 1 else None}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    assets = read_assets()
    load = Load()
    key = ""
    is_loading = False
    is_hurried = False
    requests = []  # bodies of what was asked, for tests

    def log_message(self, *_):
        pass

    def send_body(self, status, body, content_type="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", POLICY)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def send_json(self, value, status=200, **headers):
        self.send_body(status, json.dumps(value).encode(), **headers)

    def fail(self, status, message, kind="invalid_request_error", code=None, **headers):
        self.send_json({"error": {"message": message, "type": kind, "code": code, "param": None}}, status, **headers)

    def is_allowed(self):
        if not self.key or self.headers.get("Authorization") == f"Bearer {self.key}":
            return True
        self.fail(401, "This server wants an API key that it knows.", "authentication_error", "invalid_api_key")
        return False

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path in self.assets:
            file = self.assets[url.path]
            kind = "text/javascript" if file.suffix == ".js" else mimetypes.guess_type(file.name)[0] or "text/plain"
            return self.send_body(200, file.read_bytes(), f"{kind}; charset=utf-8", Cache_Control="no-store")
        if not self.is_allowed():
            return None
        if self.is_loading:
            return self.fail(503, "Loading model", "unavailable_error", Retry_After="2")
        if url.path == "/v1/models":
            return self.send_json({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
        if url.path == "/props":
            name = urllib.parse.parse_qs(url.query).get("model", MODELS)[0]
            template = None if name.endswith("-base") else "{{ messages }}"
            return self.send_json({"chat_template": template, "default_generation_settings": {
                "n_ctx": 8192, "params": {"temperature": .8, "top_p": .95, "top_k": 40, "min_p": .05}}})
        if url.path == "/dashboard/data":
            return self.send_json(self.load.data())
        return self.fail(404, f"There is nothing at {url.path}.")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if not self.is_allowed():
            return None
        type(self).requests.append(body)
        is_chat = self.path == "/v1/chat/completions"
        asked = body["messages"][-1]["content"] if is_chat else body["prompt"]
        failure = re.match(r"fail: (\d+)", asked)
        if failure:
            status = int(failure[1])
            headers = {"Retry_After": "7"} if status in (429, 503) else {}
            return self.fail(status, f"Made to fail with {status}.", "server_error", "made_up", **headers)
        try:
            self.answer(body, is_chat, asked)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return None

    def answer(self, body, is_chat, asked):
        text = asked[5:] if asked.startswith("say: ") else SAMPLE if is_chat else " the ice went out, and the mill turned."
        if asked.startswith("long"):
            text = "\n\n".join(f"Paragraph {i}: " + "water runs to the mill and turns it. " * 9 for i in range(1, 80))
        pause = .12 if asked.startswith("slow") else .004
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        begin = time.time()
        self.write(": keep-alive\n\n")
        time.sleep(.05)
        words_a_piece = 8 if asked.startswith("long") else 1
        pieces = re.findall(rf"(?:\s*\S+){{1,{words_a_piece}}}|\s+$", text)
        limit = body.get("max_tokens", len(pieces))
        prompt = sum(len(message["content"].split()) for message in body.get("messages", ())) or len(asked.split())
        for i, piece in enumerate(pieces[:limit]):
            if asked.startswith("fail: mid") and i == 1:
                error = {"message": "The model failed in mid-stream.", "type": "server_error", "code": "internal", "param": None}
                self.write(f"event: error\ndata: {json.dumps({'error': error})}\n\n")
                return self.write_end()
            if asked.startswith("fail: cut") and i == 3:
                return self.write_end()
            self.chunk(body, is_chat, piece)
            if not self.is_hurried:
                time.sleep(pause)
        took = (time.time() - begin) * 1000
        count = min(limit, len(pieces))
        timings = {"queue_ms": 11.4, "tokenize_ms": .6, "prompt_n": prompt, "prompt_ms": 84.1, "prompt_per_second": prompt / .0841,
                   "cache_n": 384, "predicted_n": count, "predicted_ms": took, "predicted_per_second": count * 1000 / took, "sample_ms": 2.2}
        warnings = ["seed was taken modulo 2^32"] if body.get("seed", 0) > 2**32 else []
        self.chunk(body, is_chat, "", finish_reason="length" if limit < len(pieces) else "stop",
                   extra={"timings": timings, "warnings": warnings})
        if body.get("stream_options", {}).get("include_usage"):
            usage = {"prompt_tokens": prompt + 384, "completion_tokens": count, "total_tokens": prompt + 384 + count,
                     "prompt_tokens_details": {"cached_tokens": 384}}
            self.write("data: " + json.dumps({"model": body["model"], "choices": [], "usage": usage}) + "\n\n")
        self.write("data: [DONE]\n\n")
        return self.write_end()

    def chunk(self, body, is_chat, text, finish_reason=None, extra=None):
        part = {"delta": {"content": text} if text else {}} if is_chat else {"text": text}
        choice = {"index": 0, **part, "finish_reason": finish_reason}
        self.write("data: " + json.dumps({"model": body["model"], "choices": [choice], **(extra or {})}) + "\n\n")

    def write(self, text):
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def write_end(self):
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a browser that leaves is no fault
            super().handle_error(request, client_address)


def start(port=0, key=""):
    """A server in threads of its own; (server, address). Its handler class, with `key` and `requests`, is its own."""
    handler = type("FakeHandler", (Handler,), {"key": key, "requests": [], "is_loading": False, "is_hurried": False})
    server = Server(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument("--key", default="")
    arguments = parser.parse_args()
    _, address = start(arguments.port, arguments.key)
    print(f"{address} (Ctrl-C ends it)")
    threading.Event().wait()


if __name__ == "__main__":
    main()
