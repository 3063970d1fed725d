"""A small honest server over stdio, of the standard library alone, for others to be made of."""

import json
import os
import socket
import sys
import urllib.request


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def refuse(request, code, message):
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def tool(name, properties=(), **more):
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in properties}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


class Server:
    """Handles what it is sent, one after the other; what is wrong with one is a method that another has."""

    name = "plain"

    def tools(self):
        return [tool("echo", ["text"]), tool("write", ["path"]), tool("variable", ["name"]), tool("reach", ["url"])]

    def run(self):
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message and "method" in message:
                self.handle(message)
            elif "method" in message:
                self.told(message)

    def handle(self, request):
        method = request["method"]
        if method == "initialize":
            self.initialize(request)
        elif method == "tools/list":
            self.list(request)
        elif method == "tools/call":
            self.call(request, request["params"]["name"], request["params"].get("arguments", {}))
        elif method == "ping":
            answer(request, {})
        else:
            refuse(request, -32601, f"no method {method}")

    def told(self, notification):
        pass

    def initialize(self, request):
        answer(
            request,
            {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                "serverInfo": {"name": self.name, "version": "1"},
            },
        )

    def list(self, request):
        answer(request, {"tools": self.tools()})

    def call(self, request, name, arguments):
        if name == "echo":
            answer(request, text(arguments["text"]))
        elif name == "write":
            answer(request, text(written(arguments["path"])))
        elif name == "variable":
            answer(request, text(os.environ.get(arguments["name"], "unset")))
        elif name == "reach":
            answer(request, text(reached(arguments["url"])))
        else:
            refuse(request, -32602, f"no tool {name}")


def written(path):
    try:
        with open(path, "w") as file:
            file.write("written")
    except OSError as error:
        return error.strerror
    return "written"


def reached(url):
    """By the proxy, where there is one; a name that cannot be looked up is none of the tests' business."""
    try:
        socket.create_connection(("127.0.0.1", 3128), 5).close()
    except OSError:
        return "no network"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"}))
    try:
        return opener.open(url, timeout=5).read().decode()
    except OSError as error:
        return str(error)


if __name__ == "__main__":
    Server().run()
