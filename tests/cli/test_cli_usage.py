"""Help, wrong commands, defects, and what a start costs."""

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from handrail.cli.main import run as run_here
from handrail.cli.parser import COMMANDS, Command, add_json_option, load_command, parse_plain
from handrail.cli.usage import parse_arguments
from handrail.protocol.version import VERSION

DEFECT = "an internal error stopped the command"

CANARY = "the words of a file"
SLOW = ("asyncio", "click", "dataclasses", "json", "logging", "pathlib", "shutil", "subprocess", "tempfile", "tomllib")


def imported(words: list[str], environment: dict[str, str], workspace: Path) -> set[str]:
    """The modules that a command imports, beyond those that any Python has."""
    ended = "import sys; {}; sys.stderr.write('\\n'.join(sys.modules))"
    loaded: list[set[str]] = []
    for code in ("pass", f"from handrail.cli.main import run; assert run({words!r}) == 0"):
        words_of_python = [sys.executable, "-c", ended.format(code)]
        done = subprocess.run(
            words_of_python,
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        loaded.append(set(done.stderr.splitlines()))
    return loaded[1] - loaded[0]


def test_a_read_imports_nothing_that_is_slow_to_start(environment: dict[str, str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    modules = imported(["call", "read", '{"path": "a.txt"}', "-q"], environment, workspace)
    assert "handrail.api" in modules
    assert modules.isdisjoint((*SLOW, "argparse", "base64", "select", "socket"))
    rooms = ("process", "sandbox", "terminal", "policy.network", "changes.overlay", "changes.snapshot")
    later = ("changes.stored_previews", "policy.commands", "runtime.preview", "settings.toml_file")
    of_commands = tuple(f"handrail.{name}" for name in (*rooms, *later))
    styles = {
        "handrail.terminal",
        "handrail.terminal.style",
        "handrail.terminal.tables",
    }  # small, and every command may have colour
    assert not [name for name in modules - styles if name.startswith(of_commands)]


def test_a_client_of_mcp_waits_neither_for_argparse_nor_for_openssl(
    environment: dict[str, str], workspace: Path
) -> None:
    modules = imported(["mcp", "--mode", "plan"], environment, workspace)
    assert "handrail.mcp.stdio.server" in modules
    assert modules.isdisjoint((*SLOW, "argparse", "hashlib", "secrets", "handrail.api"))


PLAIN = (
    ["read", "{}"],
    ["--mode", "plan", "read", "--json", "", "-v", "--verbose", "--workspace", "a b"],
    ["read", "--session", "", "{}", "--plain", "-q", "--session", "other"],
)
NOT_PLAIN = (
    ["read", "-"],
    ["read", "{}", "more"],
    ["read"],
    ["read", "{}", "--mode", "none"],
    ["read", "{}", "--mode"],
    ["read", "{}", "--session", "--json"],
    ["read", "{}", "--session=a"],
    ["read", "{}", "-qv"],
    ["read", "--", "{}"],
    ["read", "{}", "--jso"],
)


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_plain_words_are_parsed_as_argparse_would(words: list[str]) -> None:
    parsed = parse_plain(load_command("call"), words)
    assert parsed is not None
    assert parsed == parse_arguments("call", words)


@pytest.mark.parametrize("name", [name for name in COMMANDS if parse_plain(load_command(name), [])])
def test_a_command_without_words_has_the_defaults_of_argparse(name: str) -> None:
    assert parse_plain(load_command(name), []) == parse_arguments(name, [])


@pytest.mark.parametrize("words", [["--session", "a"], ["--http", "127.0.0.1:0"], ["--config", "codex", "--http", "x"]])
def test_options_with_a_type_or_in_a_group_are_left_to_argparse(words: list[str]) -> None:
    assert parse_plain(load_command("mcp"), words) is None


@pytest.mark.parametrize("words", NOT_PLAIN, ids=" ".join)
def test_other_words_are_left_to_argparse(words: list[str]) -> None:
    assert parse_plain(load_command("call"), words) is None


@pytest.mark.parametrize("words", [["read", "--mode=plan", "{}"], ["read", "-qv", "{}"], ["--plain", "read", "{}"]])
def test_the_last_word_may_stand_behind_an_option(words: list[str]) -> None:
    options = parse_arguments("call", words)
    assert options is not None
    assert (options.tool, options.arguments) == ("read", "{}")


@pytest.mark.parametrize("name", ["config", "sessions remove", "policy explain", "run", "acp"])
def test_a_command_with_other_arguments_is_left_to_argparse(name: str) -> None:
    assert parse_plain(load_command(name), []) is None


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["policy", "--help"], ["help"], ["help", "policy"], ["version"]], ids=" ".join
)
def test_help_and_version_import_next_to_nothing(words, environment: dict[str, str], workspace: Path) -> None:
    modules = imported(words, environment, workspace)
    assert modules.isdisjoint((*SLOW, "msgspec", "sqlite3"))
    assert not [name for name in modules if name.startswith("handrail.cli.commands")]


def test_only_the_module_of_the_command_is_imported(environment: dict[str, str], workspace: Path) -> None:
    modules = imported(["config", "-q"], environment, workspace)
    assert {name for name in modules if name.startswith("handrail.cli.commands.")} == {"handrail.cli.commands.config"}


NEEDED = {
    **dict.fromkeys(("code outline", "code symbols", "code analyze", "code lint", "code format"), ("a.py",)),
    "run": ["hello", "--model", "scripted:script.json"],
    "mcp": ["--config", "codex"],
    "serve tokens": ("add", "ann"),
    "replay": ("cli",),
    "audit receipt": ["cli"],
    "audit check-receipt": ["receipt.json"],
    "log export": ["cli"],
    "completion": ["bash"],
    "exec": ["--", "echo", "hello"],
    "read": ["a.txt"],
    "edit": ["a.txt", "hello", "bye", "--mode", "auto"],
    "write": ["new.txt", "--mode", "auto"],
    "grep": ["hello"],
    "find": ["*.txt"],
    "code search": ["hello"],
    "skills show": ["tidy"],
    "policy explain": ["--tool", "read", "--args", '{"path": "a.txt"}'],
    "sessions remove": ["cli"],
    "processes log": ["p-", "--follow"],
    "processes write": ["p-", "hello"],
    "processes stop": ["p-"],
    "processes remove": ["p-"],
}


HELLO = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n'
"""What an editor says first to `acp`, which says nothing by itself."""
GOES_ON = frozenset(("processes forward", "serve"))
"""Until somebody ends them: test_cli_forward.py, tests/server."""
NEEDS_A_TERMINAL = "chat"
"""It has one in tests/chat."""
NEEDS_A_DATABASE = ("worker", "fleet ")
"""It has one in tests/fleet."""


@pytest.mark.parametrize(
    "name",
    [name for name in COMMANDS if name not in {*GOES_ON, NEEDS_A_TERMINAL} and not name.startswith(NEEDS_A_DATABASE)],
)
def test_every_command_runs_as_a_process_of_its_own(name: str, run, workspace: Path, config) -> None:
    config('[tools]\nenable = ["question", "memory"]\n')
    (workspace / "a.txt").write_text("hello\n")
    first = run("call", "read", '{"path": "a.txt"}', "-q")
    if name in {"diff", "undo", "redo"}:
        run("call", "write", '{"path": "b.txt", "content": "hello\\n"}', "--mode", "auto")
    if name == "run":
        (workspace / "script.json").write_text('[{"text": "Hello."}]')
    if name == "redo":
        run("undo")
    if name == "audit check-receipt":
        run("audit", "receipt", "cli", "--out", "receipt.json")
    if name.startswith("code "):
        (workspace / "a.py").write_text("import os\n")
        ruff = workspace / ".venv/bin/ruff"
        ruff.parent.mkdir(parents=True)
        ruff.write_text("#!/bin/bash\n[ $1 = check ] && echo '[]' || cat\n")
        ruff.chmod(0o755)
    if name == "skills show":
        (workspace / ".claude/skills/tidy").mkdir(parents=True)
        (workspace / ".claude/skills/tidy/SKILL.md").write_text("---\ndescription: Tidies up.\n---\n")
    if name.startswith("processes"):
        command = "echo hello" if name == "processes log" else "cat"
        assert run("call", "exec", f'{{"command": "{command}", "background": true}}', "--mode", "full").code == 0
    needed = [*NEEDED.get(name, ()), *(what_waits(run, name) if name.startswith("approvals") else ())]
    needed += [*(what_is_noted(run, name) if name.startswith("memory") else ())]
    said = HELLO if name == "acp" else b""
    done = run(*name.split(), "-q", *needed, stdin=said) if name != "call" else first
    assert (done.code, done.err) == (3 if name == "approvals retry" else 0, "")
    assert done.out
    if name.startswith("processes"):
        run("processes", "stop", "--all")


def what_is_noted(run, name: str) -> list[str]:
    """The id of a note, for a command that is about one."""
    args = '{"action": "create", "title": "Tests", "content": "make test"}'
    (note,) = run("call", "memory", args, "--mode", "full", "--json").json["data"]["notes"]
    return [] if name == "memory" else [note["id"]]


def what_waits(run, name: str) -> list[str]:
    """The id that a command of `approvals` is about: a request that waits, a question with its reply, or a grant."""
    if name == "approvals reply":
        asked = run("call", "question", '{"question": "Which?", "options": ["left", "right"]}', "--json")
        return [asked.json["tool_call_id"], "left"]
    run("call", "exec", '{"command": "touch made && ls"}')
    [waiting] = run("approvals", "--json").json["waiting"]
    if name == "approvals revoke":
        run("approvals", "allow", waiting["id"], "--scope", "session")
        return [run("approvals", "--json").json["granted"][0]["id"]]
    return [] if name in {"approvals", "approvals clear"} else [waiting["id"]]


@pytest.mark.parametrize("word", ["--version", "version"])
def test_version_names_the_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here([word]) == 0
    assert capsys.readouterr().out == f"handrail {VERSION}\n"


def test_help_names_every_first_word_in_a_group_and_nothing_at_all_is_wrong_usage(
    capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_here(["--help"]) == 0
    text, said = capsys.readouterr()
    assert re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE) == ["Use", "Review", "Set up", "Inspect"]
    listed = [line.split()[0] for line in text.splitlines() if re.match("  [a-z]", line)]
    assert listed[-2:] == ["handrail", "handrail"], "the examples"
    assert sorted(listed[:-2]) == sorted({"help", "version", *(name.split()[0] for name in COMMANDS)})
    assert max(map(len, text.splitlines())) <= 80
    assert said == ""
    assert run_here([]) == 2
    nothing, said = capsys.readouterr()
    assert (nothing, said) == ("", text)


@pytest.mark.parametrize("words", [[], ["policy"], ["approvals"], ["approvals", "allow"], ["--help"]], ids=" ".join)
def test_help_as_a_command_prints_what_the_option_prints(words: list[str], capsys) -> None:
    assert run_here(["help", *words]) == 0
    text = capsys.readouterr().out
    assert run_here([*words, "--help"]) == 0
    assert text == capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_a_misspelt_command_is_recognized(name: str, capsys) -> None:
    first, _, second = name.partition(" ")
    if len(first) > 4:
        assert run_here([first[0] + first[2:]]) == 2
        assert f" Did you mean {first}?" in capsys.readouterr().err
    if second and second not in {"log", "write", "replay", "run", "approvals"}:  # these are commands themselves
        assert run_here([second]) == 2
        assert re.search(rf" Did you mean [a-z]+ {second}\?", capsys.readouterr().err)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_a_sentence_two_examples_options_and_exit_codes(
    name: str, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_here([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    parts = re.fullmatch(
        rf"usage: handrail {name} .*?\n\n((?:[^\n]+\n)+)\nexamples:\n((?:  handrail [^\n]+\n){{2}})\n"
        r".*options:\n.*--quiet.*exit codes:\n((?:  [\d ][^\n]+\n)+)",
        text,
        re.DOTALL,
    )
    assert parts is not None
    assert " ".join(parts[1].split()) == COMMANDS[name][1]
    assert {int(line.split()[0]) for line in parts[3].splitlines() if line[2] != " "} >= {0, 2, 4, 130}
    laid_out = text.partition("\n\n")[2].splitlines()  # argparse breaks its usage as it can
    assert max(len(line) for line in laid_out if not line.startswith("  handrail ")) <= 80
    assert not [line for line in text.splitlines() if re.search(r"[a-z]-$", line)], "a name is broken at its hyphen"


@pytest.mark.parametrize("name", ["approvals", "processes", "log", "audit"])
def test_the_help_of_a_command_names_those_that_begin_with_it(name: str, capsys) -> None:
    run_here([name, "--help"])
    text = capsys.readouterr().out
    assert all(f"  {other} " in text for other in COMMANDS if other.startswith(f"{name} "))


MISTAKES = [
    (["aprovals"], "there is no command 'aprovals'. Did you mean approvals?\nnext: handrail help"),
    (["help", "aprovals"], "there is no command 'aprovals'. Did you mean approvals?\nnext: handrail help"),
    (["cal"], "there is no command 'cal'. Did you mean call?\nnext: handrail help"),
    (["Doctor"], "there is no command 'Doctor'. Did you mean doctor?\nnext: handrail help"),
    (["xyzzy"], "there is no command 'xyzzy'.\nnext: handrail help"),
    (["--json", "tools"], "there is no option '--json'.\nnext: handrail help"),
    (["tools", "--wrong"], "unrecognized arguments: --wrong.\nnext: handrail help tools"),
    (["audit", "verfy"], "there is no command 'audit verfy'. Did you mean audit verify?\nnext: handrail help audit"),
    (["processes", "kill", "p-7fq"], "there is no command 'processes kill'.\nnext: handrail help processes"),
    (["log", "export"], "the following arguments are required: TASK.\nnext: handrail help log export"),
    (["undo", "abc"], "argument N: must be a whole number from 1 on, got 'abc'.\nnext: handrail help undo"),
    (["diff", "0"], "argument N: must be a whole number from 1 on, got '0'.\nnext: handrail help diff"),
    (
        ["log", "--after", "-1"],
        "argument --after: must be a whole number from 0 on, got '-1'.\nnext: handrail help log",
    ),
    (
        ["log", "--limit", "x" * 90],
        f"argument --limit: must be a whole number from 1 on, got '{'x' * 37}...{'x' * 38}'.\nnext: handrail help log",
    ),
    (["call" * 50], f"there is no command '{'call' * 9 + 'c'}...{'ll' + 'call' * 9}'.\nnext: handrail help"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_is_exit_2_with_the_way_out(words: list[str], sentence: str, capsys) -> None:
    assert run_here(words) == 2
    assert capsys.readouterr() == ("", f"error: {sentence}\n")


def burst(_: SimpleNamespace) -> int:
    raise ValueError(CANARY)


@pytest.mark.parametrize("verbose", [[], ["-vv"]])
def test_a_defect_is_one_line_and_a_report_without_any_data(
    verbose: list[str], tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("handrail.cli.commands.burst")
    module.COMMANDS = {"burst": Command(burst, add_json_option, ("", ""))}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "handrail.cli.commands.burst", module)
    monkeypatch.setitem(COMMANDS, "burst", ("burst", "Fail."))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    assert run_here(["burst", *verbose]) == 4
    out, err = capsys.readouterr()
    [report] = (tmp_path / "state" / "crashes").iterdir()
    *traceback, last, step = err.splitlines()
    assert out == ""
    assert re.fullmatch(rf"error: {DEFECT} \(ValueError at test_cli_usage.py:\d+ burst\)\. .*", last)
    assert last.endswith(f"Report: {report}")
    assert step == "next: handrail doctor"
    assert bool(traceback) is bool(verbose)
    assert report.read_text().startswith("ValueError\nmain.py:")
    assert CANARY not in err + report.read_text()


def test_a_defect_without_a_place_for_the_report_is_told_all_the_same(tmp_path: Path, capsys, monkeypatch) -> None:
    module = ModuleType("handrail.cli.commands.burst")
    module.COMMANDS = {"burst": Command(burst, add_json_option, ("", ""))}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "handrail.cli.commands.burst", module)
    monkeypatch.setitem(COMMANDS, "burst", ("burst", "Fail."))
    (tmp_path / "state").write_text("")
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    assert run_here(["burst"]) == 4
    assert "No report could be written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["tools", "config"])
def test_a_folder_that_is_not_there_is_nothing_to_look_at(name: str, capsys) -> None:
    assert run_here([name, "--workspace", "/nowhere"]) == 2
    assert "the workspace /nowhere is not a folder. Nothing was done." in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_short(name: str) -> None:
    assert all(len(text) <= 60 for text in COMMANDS[name] if isinstance(text, str))
