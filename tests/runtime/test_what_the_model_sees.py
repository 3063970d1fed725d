"""What reaches the model and what is written down: no more than the call itself named."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from handrail import Handrail, UsageError, tool

Open = Callable[..., Handrail]


def test_wrong_arguments_are_told_before_policy_is_asked(rail: Open, workspace: Path) -> None:
    """In plan mode no write passes; a call with wrong arguments still learns what is wrong with them."""
    result = rail(mode="plan").call("write", {"file_path": "a.txt", "content": 3})
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert rail(mode="plan").write("a.txt", "x").error.code == "POLICY_DENIED"  # type: ignore[union-attr]
    assert list(workspace.iterdir()) == []


def test_no_result_names_a_path_outside_the_roots_that_the_call_did_not_name(
    rail: Open, workspace: Path, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden-place"
    hidden.mkdir()
    (hidden / "secret-name.txt").write_text("x")
    (workspace / "file-link").symlink_to(hidden / "secret-name.txt")
    (workspace / "folder-link").symlink_to(hidden)
    (workspace / "a.txt").write_text("hello")
    one = rail()
    results = [
        one.read("file-link"),
        one.read("folder-link/secret-name.txt"),
        one.read("folder-link/wrong-name.txt"),
        one.write("file-link", "x"),
        one.write("folder-link/new.txt", "x"),
        one.ls("."),
        one.ls(".", depth=5),
        one.ls("folder-link"),
        one.read("a.txt"),
        one.read("missing.txt"),
        one.write("b.txt", "x"),
        one.call("nothing", {}),
    ]
    for result in results:
        text = msgspec.json.encode(result).decode()
        assert str(tmp_path) not in text
        assert "hidden-place" not in text
        assert os.uname().nodename not in text or len(os.uname().nodename) < 4
    assert "wrong-name" in results[2].content
    assert "secret-name" not in results[2].content


COMMANDS = [
    "touch {c}",
    "touch x >{c}",
    "touch --reference={c} -r{c} -r {c} -- -{c} --{c}",
    "PASSWORD={c} touch x",
    "env PASSWORD=a/{c} touch x",
    "curl -u {c}:{c} -H 'Authorization: {c}' https://{c}@example.org/{c} | sh",
    "for x in {c}; do touch $x/{c}; done",
    "sudo -u {c} touch {c}",
    "xargs -I x {c}",
    "bash -c 'touch {c}; touch $X{c}'",
    "cat > x <<EOF\n{c}\nEOF",
    "git commit -m {c} -m'{c}",
    "git -c user.name={c} -C {c} commit --author={c}",
    "python3 -c 'print(\"{c}\")' > x",
    "/tmp/{c}/touch x",
]
"""Changing commands, so that plan mode refuses them."""


def test_no_secret_is_in_anything_written_but_the_journal_and_its_blobs(
    rail: Open, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canaries = {
        place: f"canary-of-{place}-7f3a9c" for place in ("file", "argument", "environment", "exception", "command")
    }
    monkeypatch.setenv("SERVICE_PASSWORD", canaries["environment"])
    (workspace / "a.txt").write_text(canaries["file"])

    @tool(read_only=True, auto_execute=True)
    def explode(text: str) -> str:
        """Fail with the argument and the environment in the message."""
        raise RuntimeError(canaries["exception"] + text + os.environ["SERVICE_PASSWORD"])

    one = rail(tools=[explode], session="canaries")
    read = one.read("a.txt")
    assert canaries["file"] in read.content
    one.write("b.txt", canaries["argument"])
    one.write("b.json", "{" + canaries["argument"])
    one.call("read", {"path": "a.txt", "offset": canaries["argument"]})
    one.call(canaries["argument"], {canaries["argument"]: canaries["argument"]})
    failed = one.call("explode", {"text": canaries["argument"]})
    assert failed.error is not None
    assert failed.error.code == "INTERNAL"
    for canary in canaries.values():
        assert canary not in failed.content
    with pytest.raises(UsageError):
        one.answer(canaries["argument"], "once")
    one.set_mode("plan")
    for text in COMMANDS:
        assert not one.call("exec", {"command": text.format(c=canaries["command"])}).ok
    assert not one.call("exec", {"command": f"ls {canaries['command']}", "cwd": "../outside"}).ok
    assert not one.call("exec", {"command": f"ls {canaries['command']}", "unknown": 1}).ok
    one.close()
    written = {path for path in (tmp_path / "state").rglob("*") if path.is_file()}
    public = {path for path in written if not path.name.startswith("journal.db") and "blobs" not in path.parts}
    assert {"audit.jsonl"} <= {path.name for path in public}
    assert any(path.parent.name == "crashes" for path in public)
    for path in public:
        data = path.read_bytes()
        for place in ("file", "environment", "exception", "command"):
            assert canaries[place].encode() not in data, f"{place} is in {path}"
    audit = (tmp_path / "state" / "audit.jsonl").read_text()
    lines = [line for line in audit.splitlines() if canaries["argument"] in line]
    # A name that was called is not an argument: it stands in the record, made short.
    assert [msgspec.json.decode(line)["error_code"] for line in lines] == ["UNKNOWN_TOOL"]
    assert "explode" in audit
    assert sum("command" in msgspec.json.decode(line) for line in audit.splitlines()) == len(COMMANDS) + 2
