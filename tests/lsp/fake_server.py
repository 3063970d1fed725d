"""A language server that does one thing wrong. It is a program of its own; its first argument says what it does."""

import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
INPUT, OUTPUT = sys.stdin.buffer, sys.stdout.buffer
QUESTIONS = itertools.count(1)
PLACE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}


def read() -> dict[str, Any] | None:
    length = 0
    while (line := INPUT.readline()).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(INPUT.read(length)) if length else None


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    OUTPUT.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    OUTPUT.flush()


def publish(uri: str, text: str, **more: Any) -> None:
    severity = 2 if MODE == "warns" else 1
    problem = {"range": PLACE, "severity": severity, "message": "it is bad\x1b[31m", "source": "fake"}
    bad = [problem] if "bad" in text else []
    send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": bad, **more}})


def flood() -> None:
    noise = {"method": "window/logMessage", "params": {"type": 3, "message": "x" * 2_000}}
    while True:
        send(noise)


def look_around() -> str:
    """What the sandbox lets a server do."""
    import socket

    found = []
    try:
        Path("written.txt").touch()
    except OSError as error:
        found.append(f"write: {error.strerror}")
    try:
        found.append(f"secret: {Path('.env').read_text().strip() or 'empty'}")
    except OSError as error:
        found.append(f"secret: {error.strerror}")
    with socket.socket() as one:
        one.settimeout(2)
        found.append(f"network: {os.strerror(one.connect_ex(('192.0.2.1', 80)))}")
    found.append(f"token: {os.environ.get('SOME_TOKEN', 'none')}")
    return "; ".join(found)


def answer(method: str, uri: str) -> Any:  # noqa: PLR0911  one a fault
    match MODE, method:
        case "look", "textDocument/hover":
            return {"contents": {"kind": "plaintext", "value": look_around()}}
        case "counts", "textDocument/hover":
            return {"contents": f"{os.getpid()} {next(QUESTIONS)}"}
        case "nonsense", _:
            return {"uri": 7, "range": [], "contents": {"value": 3}, "changes": "x", "items": {"a": 1}}
        case "far", "textDocument/definition":
            place = {"start": {"line": 4_000_000_000, "character": 9}, "end": {"line": 0, "character": 0}}
            return [{"uri": uri, "range": place}, {"uri": "jdt://elsewhere", "range": PLACE}, {"uri": "file:///%00"}]
        case "stale", "textDocument/rename":
            place = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}
            return {"changes": {uri: [{"range": place, "newText": "new"}]}}
        case "outside", "textDocument/rename":
            return {"changes": {"file:///etc/passwd": [{"range": PLACE, "newText": "new"}]}}
        case "moves", "textDocument/rename":
            return {"documentChanges": [{"kind": "delete", "uri": uri}]}
        case "overlap", "textDocument/rename":
            edit = {"range": PLACE, "newText": "new"}
            return {"changes": {uri: [edit, {**edit, "newText": "other"}]}}
        case _, "textDocument/definition":
            return [{"uri": uri, "range": PLACE}]
        case _:
            return None


def main() -> None:  # noqa: C901, PLR0912  one branch a fault
    if MODE == "silent":
        while read() is not None:
            pass
    if MODE == "garbage":
        OUTPUT.write(b"Welcome to the server!\r\n\r\n" * 100)
        OUTPUT.flush()
    while (message := read()) is not None:
        method, params = message.get("method"), message.get("params") or {}
        uri = params.get("textDocument", {}).get("uri", "") if isinstance(params, dict) else ""
        if method == "initialize":
            if MODE == "dies-at-start":
                sys.exit("cannot start: \x1b[2Jno licence")
            send({"id": message["id"], "result": {"capabilities": {"hoverProvider": True}}})
            if MODE == "deaf":
                time.sleep(3_600)
        elif method == "initialized" and MODE == "reads-on":
            send({"method": "$/progress", "params": {"token": 1, "value": {"kind": "begin", "title": "Reading"}}})
        elif method in {"textDocument/didOpen", "textDocument/didChange"}:
            document = params["textDocument"]
            text = document.get("text") or params.get("contentChanges", [{}])[0].get("text", "")
            if MODE == "slow":
                time.sleep(2.0)
            if MODE != "mute":
                publish(uri, text, version=document["version"])
        elif method == "exit":
            return
        elif "id" in message and method:
            if MODE == "dies":
                os._exit(3)
            if MODE == "hungry":
                _ = [bytearray(os.urandom(1 << 20)) for _ in range(400)]
                time.sleep(3_600)
            if MODE == "flood":
                flood()
            if MODE == "huge":
                OUTPUT.write(b"Content-Length: 99999999999\r\n\r\n")
                OUTPUT.flush()
            if MODE == "many-requests":
                for number in range(100_000):
                    send({"id": f"r{number}", "method": "workspace/configuration", "params": {"items": [{}] * 50}})
            if MODE == "deep":
                body = b'{"id":%d,"result":%b%b}' % (message["id"], b"[" * 200_000, b"]" * 200_000)
                OUTPUT.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                OUTPUT.flush()
            if MODE not in {"hangs", "deep", "huge"}:
                send({"id": message["id"], "result": answer(method, uri)})


main()
