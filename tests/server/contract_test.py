#!/usr/bin/env python3
"""The server against its own description: schemathesis makes requests from /openapi.json, right ones and
wrong ones. Each answer must be one that is described: its status, content type and schema. A wrong request
is refused. No answer is a 5xx, but the 504 of a timeout_ms that was sent. HEADRACE_BINARY names the program
under test.

  HEADRACE_CONTRACT_CASES  requests an endpoint (default: 40; 2000 under HEADRACE_LONG_TESTS=1)
  HEADRACE_CONTRACT_SEED   what they are drawn from (default: 1)
  HEADRACE_CONTRACT_ONLY   paths with commas between: only these endpoints
  HEADRACE_CONTRACT_MODEL  a file or name of a model: that one instead of a tiny one"""
import collections
import copy
import functools
import json
import os
import re
import time
import unittest

import harness
from harness import ServerTest
import tiny_bert

try:
    import hypothesis
    import hypothesis.configuration
    import requests
    import schemathesis
    from hypothesis import strategies
    from schemathesis import GenerationMode, checks
    from schemathesis.core.failures import FailureGroup
except ImportError as fault:
    raise SystemExit(f"{fault}: pip install -r requirements.txt") from fault

CASES = int(os.environ.get("HEADRACE_CONTRACT_CASES")
            or (2000 if os.environ.get("HEADRACE_LONG_TESTS") == "1" else 40))
SEED = int(os.environ.get("HEADRACE_CONTRACT_SEED") or 1)
ONLY = list(filter(None, os.environ.get("HEADRACE_CONTRACT_ONLY", "").split(",")))
MODEL = os.environ.get("HEADRACE_CONTRACT_MODEL")
CHECKS = [checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
          checks.response_schema_conformance, checks.negative_data_rejection]
# Drawn from all of int64, of which hardly any fits the context; fitted() brings them down.
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "min_tokens")
LONGEST, MOST_CHOICES = 8, 4
MOST_LOST = 3  # requests without an answer, after which an endpoint is asked no more
IDS = ("prompt", "input", "tokens", "stop_token_ids")
MOST_DIMENSIONS = 16
# What says that a stream is whole: the data or the event of its last one.
ENDS = ("[DONE]", "error", "message_stop", "response.completed", "response.incomplete", "response.failed")


def is_whole(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1


def with_known_ids(value, vocab_size):
    if isinstance(value, list):
        return [with_known_ids(each, vocab_size) for each in value]
    return int(value % vocab_size) if is_whole(value) else value


def fitted(case, vocab_size, streams):
    """The same request with ids that the model has and for a short answer: what a description cannot say.
    So most are answered, and none takes long. `streams`: None where an endpoint does not."""
    body = case.body
    if not isinstance(body, dict):
        return case
    for name in LENGTHS:
        if is_whole(body.get(name)) and body[name] > LONGEST:
            body[name] = int(body[name] % LONGEST) + 1
    if is_whole(body.get("n")):
        body["n"] = int((body["n"] - 1) % MOST_CHOICES) + 1
    for name in IDS:
        if name in body:
            body[name] = with_known_ids(body[name], vocab_size)
    bias = body.get("logit_bias")
    if isinstance(bias, dict):
        body["logit_bias"] = {str(int(id) % vocab_size): value for id, value in bias.items()}
    elif isinstance(bias, list):
        body["logit_bias"] = [[with_known_ids(id, vocab_size), value] for id, value in bias]
    for name in ("prompt", "input"):
        if body.get(name) == "":
            body[name] = "hello"
    if isinstance(body.get("input"), list):
        body["input"] = ["hello" if each == "" else each for each in body["input"]]
    if is_whole(body.get("dimensions")):
        body["dimensions"] = int(body["dimensions"] % MOST_DIMENSIONS) + 1
    if streams is not None:
        body["stream"] = streams
        if not streams:
            body.pop("stream_options", None)
    return case


# Of every request, whatever its endpoint: what a server must not stumble over.
SURROUNDINGS = strategies.fixed_dictionaries({}, optional={
    "Accept": strategies.sampled_from(["*/*", "application/json", "text/event-stream", "image/png"]),
    "Accept-Encoding": strategies.sampled_from(["identity", "gzip", "br, gzip;q=0.5", "*;q=0"]),
    "If-None-Match": strategies.from_regex(r'\A(\*|"[0-9a-f]{1,16}")\Z'),
    "User-Agent": strategies.from_regex(r"\A[!-~]{1,40}\Z"),
    "X-Filler": strategies.sampled_from([0, 1, 10, 100, 1000, 10_000, 20_000]).map("x".__mul__),
})


def can_stream(operation):
    return "text/event-stream" in operation.definition.raw["responses"]["200"]["content"]


def what_there_is(server, path):
    """For a path with a name in it: one that exists."""
    if path == "/v1/models/{model}":
        return {"model": server.get("/v1/models").json()["data"][0]["id"]}
    if path == "/explain/{id}":
        return {"id": server.post("/v1/completions", {"prompt": "hello", "max_tokens": 2}).json()["id"]}
    if path == "/assets/{file}":
        return {"file": re.search(r'assets/([^"?]+)', server.get("/").body.decode()).group(1)}
    return None


def requests_of(operation, vocab_size, names):
    """Of six, four are as described and fit the model, one is as described, and one is not. `names`: what of
    what_there_is() those four ask for."""
    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    fit = operation.as_strategy(generation_mode=GenerationMode.POSITIVE, path_parameters=names)
    ways = [True, False, True, False] if can_stream(operation) else [None] * 4
    choices = [fit.map(functools.partial(fitted, vocab_size=vocab_size, streams=way)) for way in ways] + [right]
    if operation.body or len(operation.query) or len(operation.path_parameters):
        choices.append(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    return strategies.tuples(strategies.one_of(choices), SURROUNDINGS)


def timeout_was_sent(case):
    return isinstance(case.body, dict) and is_whole(case.body.get("timeout_ms")) and case.body["timeout_ms"] > 0


def check_stream(text):
    """A streamed answer is events only, whose data is JSON, and can be seen to be whole."""
    events = [each for each in text.split("\n\n") if each]
    for event in events:
        for line in event.split("\n"):
            assert line.startswith(("data: ", "event: ", ":")), f"not a line of an event: {line!r}"
            if line.startswith("data: ") and line != "data: [DONE]":
                json.loads(line[6:])
    last = [line.split(": ", 1)[1] for line in events[-1].split("\n") if not line.startswith(":")]
    assert any(each in ENDS for each in last) or '"stop":true' in last[-1] or '"error":' in last[-1], f"cut: {last}"


class Endpoint:
    """An endpoint's requests, one after the other, and what was wrong with the answers."""

    def __init__(self, server, operation, vocab_size):
        self.server, self.operation, self.vocab_size = server, operation, vocab_size
        self.statuses = collections.Counter()
        self.num_asked, self.num_lost, self.num_streamed = 0, 0, 0
        self.faults = {}  # by what is wrong: the first of them
        self.num_faults = collections.Counter()
        self.session = requests.Session()

    def ask(self, case, headers):
        reply = None
        if self.num_lost >= MOST_LOST:
            return
        self.num_asked += 1
        try:
            reply = case.call(base_url=f"http://127.0.0.1:{self.server.port}", session=self.session, headers=headers,
                              timeout=harness.PATIENCE)
            self.statuses[reply.status_code] += 1
            is_late = reply.status_code == 504 and timeout_was_sent(case)
            case.validate_response(reply, checks=CHECKS[1:] if is_late else CHECKS)
            if "text/event-stream" in str(reply.headers.get("content-type")):
                self.num_streamed += 1
                check_stream(reply.content.decode())
        except FailureGroup as group:
            for fault in group.exceptions:
                self.note(fault, case, headers, reply)
        except (AssertionError, ValueError, requests.RequestException) as fault:
            self.note(fault, case, headers, reply)

    def note(self, fault, case, headers, reply):
        self.num_lost += reply is None
        status = "no answer" if reply is None else reply.status_code
        kind = f"{getattr(fault, 'title', type(fault).__name__)}, {status}"
        self.num_faults[kind] += 1
        if kind not in self.faults:
            answer = b"" if reply is None else reply.content[:1000]
            self.faults[kind] = f"{fault}\n{case.as_curl_command(headers=headers)}\n{answer}"

    def run(self, num_cases):
        """Draws until there are `num_cases`: hypothesis ends early where it has seen all there is."""
        kinds = requests_of(self.operation, self.vocab_size, what_there_is(self.server, self.operation.path))
        turn = 0
        while self.num_asked < num_cases and self.num_lost < MOST_LOST:
            run = hypothesis.given(kinds)(lambda drawn: self.ask(*drawn))
            run = hypothesis.settings(
                max_examples=num_cases - self.num_asked, deadline=None, database=None, derandomize=False,
                phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck))(run)
            hypothesis.seed(SEED + turn)(run)()
            turn += 1
        self.session.close()

    def line(self):
        statuses = ", ".join(f"{count} x {status}" for status, count in sorted(self.statuses.items()))
        streamed = f", {self.num_streamed} streamed" if self.num_streamed else ""
        return f"{self.operation.label:32} {self.statuses.total():5}: {statuses}{streamed}"

    def report(self):
        return [f"{self.operation.label}: {count} x {kind}; the first:\n{self.faults[kind]}\n"
                for kind, count in self.num_faults.items()]


class ContractTest(ServerTest):
    model = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        hypothesis.configuration.set_hypothesis_home_dir(cls.folder)  # else it writes where it is started
        options = ("-c", "256", "-n", str(LONGEST))
        if MODEL:
            cls.server = harness.Server([harness.BINARY, "serve", "-m", MODEL], *options)
        else:
            cls.server = harness.start(cls.folder, "tiny", *options)
        cls.addClassCleanup(cls.server.kill)
        ranker = tiny_bert.write(cls.folder / "ranker.gguf", labels=1)
        cls.ranker = harness.Server([harness.BINARY, "serve", "-m", str(ranker)], "-t", "1")
        cls.addClassCleanup(cls.ranker.kill)
        cls.vocab_size = cls.server.get("/v1/models").json()["data"][0]["meta"]["n_vocab"]
        cls.description = cls.server.get("/openapi.json").json()

    def endpoints(self, description):
        settings = {"max-stream-events": 1_000_000,  # a stream is read to its end
                    "output": {"sanitization": {"enabled": False}},
                    "checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
        schema = schemathesis.openapi.from_dict(description, config=schemathesis.Config.from_dict(settings))
        for result in schema.get_all_operations():
            operation = result.ok()
            ranks = operation.path.endswith("/rerank")
            yield Endpoint(self.ranker if ranks else self.server, operation, self.vocab_size)

    def test_answers_are_as_described(self):
        print(f"{CASES} requests an endpoint, seed {SEED}", flush=True)
        found = []
        for endpoint in self.endpoints(self.description):
            if ONLY and endpoint.operation.path not in ONLY:
                continue
            begun = time.monotonic()
            endpoint.run(CASES)
            print(f"{endpoint.line()}, {time.monotonic() - begun:.1f} s", flush=True)
            found += endpoint.report()
            with self.subTest(endpoint.operation.label):
                self.assertGreaterEqual(endpoint.statuses.total(), CASES)
                self.assertGreater(endpoint.statuses[200], CASES / 8, "it would show little")
                self.assertTrue(endpoint.num_streamed > 0 or not can_stream(endpoint.operation))
        self.assertEqual(self.server.get("/readyz").status, 200)
        self.server.wait_until_idle()
        if found:
            self.fail(f"{len(found)} kinds of answers are not as described\n\n" + "\n".join(found))

    def test_other_methods_are_told_the_right_one(self):
        for path, methods in self.description["paths"].items():
            for method in ("GET", "POST", "PUT", "DELETE", "TRACE"):
                if method.lower() not in methods:
                    reply = self.server.ask(method, path.replace("{", "").replace("}", ""))
                    self.assert_error(reply, 405, path.startswith("/v1/messages"))
                    allowed = {each.strip().lower() for each in reply.headers["allow"].split(",")}
                    self.assertEqual(allowed - {"head", "options"}, set(methods), (method, path))

    def test_what_is_not_described_is_noticed(self):
        """So that the test above is known to look."""
        for change in (lambda answers: answers.pop("400"),
                       lambda answers: answers["200"].update(content={"text/plain": {}}),
                       lambda answers: answers["200"]["content"]["application/json"].update(
                           schema={"type": "object", "required": ["nothing"]})):
            description = copy.deepcopy(self.description)
            description["paths"] = {"/detokenize": description["paths"]["/detokenize"]}
            change(description["paths"]["/detokenize"]["post"]["responses"])
            endpoint = next(self.endpoints(description))
            endpoint.run(20)
            self.assertTrue(endpoint.report(), change)


if __name__ == "__main__":
    harness.main()
