"""Servers that do everything wrong that one can think of: `hostile.py WAY`."""

import itertools
import json
import os
import subprocess
import sys
import time

from plain import Server, answer, refuse, send, text, tool


class HangsAtStart(Server):
    def initialize(self, request):
        time.sleep(1000)

    def handle(self, request):
        time.sleep(1000)


class HangsInCall(Server):
    """And tells on stderr what it is told meanwhile."""

    def call(self, request, name, arguments):
        if name != "echo":
            Server.call(self, request, name, arguments)
        else:
            sys.stderr.write("called\n")
            sys.stderr.flush()

    def told(self, notification):
        sys.stderr.write(f"told {notification['method']} {json.dumps(notification.get('params'))}\n")
        sys.stderr.flush()


class EndlessLine(Server):
    def call(self, request, name, arguments):
        while True:
            os.write(1, b"x" * 65536)


class EndlessGarbage(Server):
    def call(self, request, name, arguments):
        while True:
            os.write(1, b"not a message\n" * 100)


class EndlessMessages(Server):
    def call(self, request, name, arguments):
        while True:
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}})


class EndlessErrors(Server):
    def call(self, request, name, arguments):
        if name == "echo":
            os.write(2, b"e" * (1 << 20))
        Server.call(self, request, name, arguments)


class AsksForEver(Server):
    """Requests of its own, and it reads none of the answers."""

    def call(self, request, name, arguments):
        for number in itertools.count():
            send({"jsonrpc": "2.0", "id": f"own-{number}", "method": "roots/list"})


class DiesInCall(Server):
    def call(self, request, name, arguments):
        if name == "write":
            sys.stderr.write("cannot go on\n")
            sys.stderr.flush()
            os._exit(7)
        Server.call(self, request, name, arguments)


class DiesAtStart(Server):
    def run(self):
        sys.stderr.write(f"the key {os.environ.get('API_KEY')} is wrong\n")
        sys.exit(3)


class OldFashioned(Server):
    """Ends when it is asked anything before it was greeted."""

    greeted = False

    def handle(self, request):
        self.greeted = self.greeted or request["method"] == "initialize"
        if not self.greeted:
            sys.exit(9)
        Server.handle(self, request)


class WrongIds(Server):
    def call(self, request, name, arguments):
        for wrong in (request["id"] + 1_000_000, "x", None):
            send({"jsonrpc": "2.0", "id": wrong, "result": text("for somebody else")})


class Misspeaks(Server):
    """Answers that are no answers, by the text of the call."""

    def call(self, request, name, arguments):
        results = {
            "content": {"content": "a text"},
            "nothing": {},
            "list": {"content": [{"type": "nonsense"}]},
            "many": {"content": [{"type": "nonsense"}] * 300_000},
        }
        if arguments["text"] == "error":
            refuse(request, -32603, "it went wrong \x1b[31m" + "x" * 100_000)
        elif arguments["text"] == "null":
            send({"jsonrpc": "2.0", "id": request["id"], "result": None})
        elif arguments["text"] == "deep":
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{"[" * 9999}1{"]" * 9999}}}\n')
            sys.stdout.flush()
        else:
            answer(request, results[arguments["text"]])


class Huge(Server):
    def call(self, request, name, arguments):
        answer(request, text("h" * int(arguments["text"])))


class Lies(Server):
    def tools(self):
        count = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
        slow = {"type": "object", "properties": {"word": {"type": "string", "pattern": "^(a+)+$"}}}
        return [tool("count", ["text"], outputSchema=count), tool("slow", ["text"], outputSchema=slow)]

    def call(self, request, name, arguments):
        given = {
            "right": {"structuredContent": {"count": 3}},
            "wrong": {"structuredContent": {"count": "three"}},
            "none": {},
            "slow": {"structuredContent": {"word": "a" * 60 + "!"}},
        }
        answer(request, text("three", **given[arguments["text"]]))


class ManyTools(Server):
    def list(self, request):
        answer(request, {"tools": [tool(f"tool_{number}", ["text"]) for number in range(10_000)]})


class ManyPages(Server):
    def list(self, request):
        page = int(request["params"].get("cursor", 0)) if request.get("params") else 0
        answer(request, {"tools": [tool(f"tool_{page}", ["text"])], "nextCursor": str(page + 1)})


class SameNames(Server):
    def tools(self):
        return [tool("echo", ["text"]), tool("echo", ["other"]), tool(""), tool("n" * 500), tool("bell\x07")]


class Changes(Server):
    """Another list after every call."""

    calls = 0

    def tools(self):
        return [*Server.tools(self), tool(f"call_{self.calls}", ["text"])]

    def call(self, request, name, arguments):
        self.calls += 1
        for _ in range(50):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        Server.call(self, request, name, arguments)


class Progresses(Server):
    def call(self, request, name, arguments):
        token = request["params"].get("_meta", {}).get("progressToken")
        for number in range(1, 4):
            params = {"progressToken": token, "progress": number, "total": 3, "message": f"step {number}"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            time.sleep(0.3)
        Server.call(self, request, name, arguments)


class Shows(Server):
    """Everything but text."""

    def call(self, request, name, arguments):
        dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        blocks = [
            {"type": "text", "text": "first"},
            {"type": "image", "data": dot, "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "name": "link", "uri": "file:///a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA", "mimeType": "application/zip"}},
        ]
        answer(request, {"content": blocks})


class Fails(Server):
    """And tells its key wherever it can."""

    def call(self, request, name, arguments):
        key = os.environ.get("API_KEY")
        told = {"progressToken": request["params"].get("_meta", {}).get("progressToken"), "progress": 1}
        send(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {**told, "message": f"\x1b[1mwith {key}"}}
        )
        time.sleep(0.3)
        answer(request, text(f"no such file; the key is {key}", isError=True))


class StartsOthers(Server):
    """Children that outlive it, if nobody ends them."""

    def call(self, request, name, arguments):
        subprocess.Popen(["sleep", arguments["text"]], start_new_session=True)
        answer(request, text("started"))


class StaysOn(Server):
    """When there is nobody any more who talks to it, too."""

    def run(self):
        Server.run(self)
        time.sleep(1000)


WAYS = {one.__name__: one for one in list(globals().values()) if isinstance(one, type) and issubclass(one, Server)}

if __name__ == "__main__":
    WAYS[sys.argv[1]]().run()
