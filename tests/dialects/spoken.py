"""Calls of every dialect over a sample workspace, with their answers as transcripts.

`python tests/dialects/spoken.py --write` plays them and writes the transcripts anew. Compare the difference with the
schema of the system before you commit it.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from handrail import Handrail
from handrail.protocol.calls import Done
from handrail.protocol.permissions import Reply
from handrail.protocol.results import ToolResult
from handrail.settings import Settings

TRANSCRIPTS = Path(__file__).parent / "transcripts"
_PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6260000002000001e221bc330000"
    "000049454e44ae426082"
)
_FILES = {
    "a.py": b"x = 1\ny = 2\nx = 3\n",
    "src/b.ts": b"// TODO one\nfoo\n// TODO two\n",
    "src/c.py": b"class App:\n    pass\n",
    "n.ipynb": b'{"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "source": ["1 + 1\\n"], "outputs": []}],'
    b' "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n',
    "p.png": _PICTURE,
    "bin.dat": b"\0\1\2",
    ".minds/note.md": b"# Note\n",
    ".handrail/skills/tidy/SKILL.md": b"---\nname: tidy\ndescription: Tidies up.\n---\nTidy the code.\n",
}
_PROCESS = re.compile(r"p-[a-z0-9]{20}")
_STABLE: tuple[tuple[str, str], ...] = (
    (r"call-[0-9a-f-]+", "$CALL"),
    (r"s_[0-9a-f]{32}", "$SESSION"),
    (r"ask_[0-9a-f]{32}", "$REQUEST"),
    (r"Wall time: [0-9.]+", "Wall time: 0.0000"),
    (r'"wall_time_seconds":[0-9.]+', '"wall_time_seconds":0'),
    (r'"(duration_ms|durationMs|pid)(\\*)":[0-9.]+', r'"\1\2":0'),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "$TIME"),
    (r"m-[a-z0-9]{5,8}", "$NOTE"),
    (r"running for \d\d:\d\d", "running for 00:00"),
    (r"session ID \d+", "session ID $N"),
    (r'"(start|end)":\d{13}', r'"\1":0'),
    (r'"session_id":\d+', '"session_id":0'),
)


def build_workspace(folder: Path) -> Path:
    """The sample workspace. Later files are newer."""
    workspace = folder / "ws"
    for age, (name, data) in enumerate(_FILES.items()):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
    return workspace


def open_rail(folder: Path, dialect: str, **options: Any) -> Handrail:
    enabled = Settings.from_values({"tools.enable": ("question",)}) if dialect in {"codex", "devminds"} else Settings()
    workspace = folder / "ws" if (folder / "ws").exists() else build_workspace(folder)
    return Handrail(
        workspace,
        dialect=dialect,
        **{"mode": "auto", "on_permission": "park", "state_dir": folder / "state", "settings": enabled, **options},
    )


def play(rail: Handrail, calls: tuple[tuple[str, Any], ...]) -> list[dict[str, Any]]:
    """The answers. A question gets its first option, or a text. A request is approved."""
    answers: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for name, given in calls:
        args = fill_in(given, rail.workspace, names)
        result = finish_call(rail, rail.call(name, args))
        note_names(result, names)
        answers.append(_describe(rail, name, args, result))
    return answers


def fill_in(given: Any, workspace: str, names: dict[str, str]) -> Any:
    """The arguments for this workspace, with the process that an earlier call started."""
    return _fill(_point_at(given, workspace), names)


def note_names(result: ToolResult[Any], names: dict[str, str]) -> None:
    """Notes the first process that a result names."""
    text = msgspec.json.encode(result.data).decode()
    for found in _PROCESS.findall(text):
        names.setdefault("process", found)
    if found := re.search(r'"session_id":(\d+)', text):
        names.setdefault("number", found[1])


def _point_at(args: Any, workspace: str) -> Any:
    """The arguments with absolute paths of this workspace."""
    text = msgspec.json.encode(args).decode().replace('"/ws/', f'"{workspace}/')
    return msgspec.json.decode(text)


def _fill(args: Any, names: dict[str, str]) -> Any:
    """The arguments with the process that an earlier call started."""
    if not isinstance(args, dict):
        return args
    known = {"$PROCESS": names.get("process"), "$NUMBER": int(names.get("number", 0))}
    return {key: known.get(own, own) if isinstance(own, str) else own for key, own in args.items()}


def finish_call(rail: Handrail, result: ToolResult[Any]) -> ToolResult[Any]:
    for question in rail.waiting_questions():
        firsts = {option.partition(". ")[0]: option for option in reversed(question.options)}  # one a numbered question
        chosen = tuple(reversed(firsts.values())) if "1" in firsts else question.options[:1]
        outcome = rail.reply(question, Reply(chosen=chosen, text=None if chosen else "1. yes\n2. no"))
        return outcome.results[0]
    for request in rail.waiting():
        outcome = rail.answer(request, "once")
        assert isinstance(outcome, Done)
        return outcome.results[0]
    return result


def _describe(rail: Handrail, name: str, args: Any, result: ToolResult[Any]) -> dict[str, Any]:
    row = {
        "name": name,
        "args": args,
        "text": _stabilize_text(result.content),
        "answer": msgspec.to_builtins(_drop_sandbox(msgspec.to_builtins(result.data))),
        "error": None if result.error is None else result.error.code,
    }
    text = msgspec.json.encode(row).decode().replace(rail.workspace, "/ws")
    text = _PROCESS.sub("$PROCESS", text)
    for pattern, stable in _STABLE:
        text = re.sub(pattern, stable, text)
    return msgspec.json.decode(text)


def _stabilize_text(text: str) -> str:
    """A text that is JSON, without what depends on the machine."""
    if not text.startswith("{"):
        return text
    return msgspec.json.encode(_drop_sandbox(msgspec.json.decode(text))).decode()


def _drop_sandbox(value: Any) -> Any:
    """The answer without the sandbox, which depends on the machine."""
    if isinstance(value, list):
        return [_drop_sandbox(item) for item in value]
    if isinstance(value, dict):
        unstable = {
            "sandbox",
            "protected",
            *(("size", "lastLine", "started", "ended", "pid") if "state" in value else ()),
        }
        return {key: _drop_sandbox(item) for key, item in value.items() if key not in unstable}
    return value


def read_transcript(dialect: str) -> list[dict[str, Any]]:
    return msgspec.json.decode((TRANSCRIPTS / f"{dialect}.json").read_bytes())


def list_calls(dialect: str) -> tuple[tuple[str, Any], ...]:
    from calls import CALLS  # pyright: ignore[reportMissingImports]

    return CALLS[dialect]


def write(dialect: str) -> None:
    with tempfile.TemporaryDirectory() as folder, open_rail(Path(folder), dialect) as rail:
        rows = play(rail, list_calls(dialect))
    text = ",\n".join(msgspec.json.encode(row).decode() for row in rows)
    (TRANSCRIPTS / f"{dialect}.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__" and "--write" in sys.argv:
    sys.path.insert(0, str(Path(__file__).parent))
    for one in sys.argv[2:] or list(__import__("calls").CALLS):
        write(one)
