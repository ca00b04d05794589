"""A model hub in one process, for tests: the parts of the hub's API that downloads use, and the ways
in which they fail. A second server on another port is "another host", where large files are."""
import hashlib
import http.server
import json
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Repo:
    def __init__(self, files, commit=COMMIT, **card):
        self.files = files  # path: bytes
        self.commit = commit
        self.card = card
        self.token = None  # needed to read it
        self.gated = False

    def is_large(self, path):
        return path.endswith((".gguf", ".safetensors"))

    def etag(self, path):
        data = self.files[path]
        if self.is_large(path):
            return hashlib.sha256(data).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()

    def siblings(self, without_sums):
        listed = []
        for path, data in self.files.items():
            entry = {"rfilename": path}
            if not without_sums:
                entry["size"] = len(data)
                entry["blobId"] = hashlib.sha1(data).hexdigest()
                if self.is_large(path):
                    entry["lfs"] = {"sha256": self.etag(path), "size": len(data),
                                    "pointerSize": 130}
                else:
                    entry["blobId"] = self.etag(path)
            listed.append(entry)
        return listed


class Fault:
    """What goes wrong with requests whose path has `match` in it, `times` times."""

    def __init__(self, match, times=1, **what):
        self.match, self.times, self.what = match, times, what


class FakeHub:
    """`hub.url` is the hub; `hub.requests` has (server, method, path, headers) of all requests."""

    def __init__(self):
        self.repos = {}
        self.files = {}  # plain files of no repository: path: bytes
        self.faults = []
        self.requests = []
        self.sends_elsewhere = True  # large files lie on the other host
        self.ignores_ranges = False
        self.without_sums = False
        self.redirect_to = None  # instead of the other host
        self.delay = 0.0  # seconds before each 64 kB of a body
        self.lock = threading.Lock()
        self.main = self._start("hub")
        self.other = self._start("other")
        self.url = f"http://127.0.0.1:{self.main.server_address[1]}"
        # Another name of this machine: a token for the one must not reach the other.
        self.other_url = f"http://localhost:{self.other.server_address[1]}"

    def _start(self, name):
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub, Handler.name = hub, name
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self):
        for server in (self.main, self.other):
            server.shutdown()
            server.server_close()

    def fault(self, match, times=1, **what):
        self.faults.append(Fault(match, times, **what))

    def take_fault(self, path):
        with self.lock:
            for fault in self.faults:
                if fault.match in path and fault.times > 0:
                    fault.times -= 1
                    return fault.what
        return {}

    def paths(self, method="GET", containing=""):
        return [path for _, how, path, _ in self.requests if how == method and containing in path]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # the program went away, as it may

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def say(self, status, headers=(), body=b"", with_body=True):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def answer(self, with_body):
        hub = self.hub
        with hub.lock:
            hub.requests.append((self.name, self.command, self.path, dict(self.headers)))
        fault = hub.take_fault(self.path)
        if "status" in fault:
            self.say(fault["status"], fault.get("headers", {}), fault.get("body", b"{}"), with_body)
            return
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        if self.name == "other" or path in hub.files:
            self.plain_file(path, fault, with_body)
        elif path.startswith("/api/models/") and "/tree/" in path:
            self.tree(path, with_body)
        elif path.startswith("/api/models/"):
            self.listing(path, with_body)
        else:
            self.resolve(path, fault, with_body)

    def repo_of(self, name, with_body):
        repo = self.hub.repos.get(name)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repo is None:
            self.say(404 if token else 401, {"X-Error-Code": "RepoNotFound",
                                             "X-Error-Message": "Repository not found"}, b"{}",
                     with_body)
        elif repo.token and token != repo.token:
            self.say(403 if token else 401, {
                "X-Error-Code": "GatedRepo",
                "X-Error-Message": f"Access to model {name} is restricted"}, b"{}", with_body)
        else:
            return repo
        return None

    def listing(self, path, with_body):
        name, _, revision = path.removeprefix("/api/models/").partition("/revision/")
        repo = self.repo_of(name, with_body)
        if repo is None:
            return
        if revision not in ("main", repo.commit, *getattr(repo, "branches", ())):
            self.say(404, {"X-Error-Code": "RevisionNotFound"}, b"{}", with_body)
            return
        answer = {"id": name, "sha": repo.commit, "gated": repo.gated, "cardData": repo.card,
                  "siblings": repo.siblings(self.hub.without_sums)}
        self.say(200, {"Content-Type": "application/json"}, json.dumps(answer).encode(), with_body)

    def tree(self, path, with_body):
        """The list of files that newer versions of huggingface_hub ask for."""
        repo = self.repo_of(path.removeprefix("/api/models/").partition("/tree/")[0], with_body)
        if repo is None:
            return
        entries = []
        for file, data in repo.files.items():
            entry = {"type": "file", "path": file, "size": len(data), "oid": "0" * 40}
            if repo.is_large(file):
                entry["lfs"] = {"oid": repo.etag(file), "size": len(data), "pointerSize": 130}
            else:
                entry["oid"] = repo.etag(file)
            entries.append(entry)
        self.say(200, {"Content-Type": "application/json"}, json.dumps(entries).encode(), with_body)

    def resolve(self, path, fault, with_body):
        name, _, rest = path.lstrip("/").partition("/resolve/")
        if not rest:
            self.say(404, {}, b"no such file", with_body)
            return
        repo = self.repo_of(name, with_body)
        if repo is None:
            return
        file = rest.partition("/")[2]
        if file not in repo.files:
            self.say(404, {"X-Error-Code": "EntryNotFound"}, b"{}", with_body)
            return
        about = {"X-Repo-Commit": repo.commit}
        if repo.is_large(file) and (self.hub.sends_elsewhere or self.hub.redirect_to):
            about.update({"X-Linked-Etag": f'"{repo.etag(file)}"',
                          "X-Linked-Size": str(len(repo.files[file])),
                          "Location": self.hub.redirect_to or
                          f"{self.hub.other_url}/{urllib.parse.quote(name)}/"
                          f"{urllib.parse.quote(file)}?signature=secret"})
            self.say(302, about, b"", with_body)
            return
        self.body(repo.files[file], f'"{repo.etag(file)}"', fault, with_body, about)

    def plain_file(self, path, fault, with_body):
        data = self.hub.files.get(path)
        if data is None:
            for name, repo in self.hub.repos.items():
                if path.startswith(f"/{name}/"):
                    data = repo.files.get(path.removeprefix(f"/{name}/"))
        if data is None:
            self.say(404, {}, b"no such file", with_body)
            return
        self.body(data, f'"{hashlib.md5(data).hexdigest()}"', fault, with_body)

    def body(self, data, etag, fault, with_body, headers=()):
        """fault: cut (bytes after which the connection ends), replace (other bytes), size (what is
        announced), type (Content-Type), unknown_length."""
        data = fault.get("replace", data)
        begin, status = 0, 200
        wanted = self.headers.get("Range", "")
        may = self.headers.get("If-Range", etag) == etag
        if wanted.startswith("bytes=") and may and not self.hub.ignores_ranges:
            begin, status = int(wanted[6:].split("-")[0]), 206
            if begin >= len(data):
                self.say(416, {"Content-Range": f"bytes */{len(data)}"}, b"", with_body)
                return
        part = data[begin:]
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("ETag", etag)
        self.send_header("Content-Type", fault.get("type", "application/octet-stream"))
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        if fault.get("unknown_length"):
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(fault.get("size", len(part))))
        self.end_headers()
        if not with_body:
            return
        if "cut" in fault or "size" in fault:
            part = part[:fault.get("cut", len(part))]
            self.close_connection = True
        try:
            for at in range(0, len(part), 65536):
                if self.hub.delay:
                    time.sleep(self.hub.delay)
                self.wfile.write(part[at:at + 65536])
                self.wfile.flush()
            if fault.get("hang"):
                time.sleep(fault["hang"])
        except OSError:
            self.close_connection = True
