"""A denied permission: whatever needs it has no effect, by any tool and in any way, and nobody is asked.

Every row is computed: each denied permission × each attempt × a call, a batch, or a call that narrows itself. What an
attempt needs stands beside it, and with nothing denied every attempt has its effect.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.runtime.other_server import OtherServer, listed
from tests.sandbox.namespaces import PROGRAM
from tests.sandbox.proxied import Server, serving

from handrail import Done, Handrail
from handrail.protocol.calls import ToolCall
from handrail.protocol.permissions import PERMISSIONS, Permission
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings, Tools
from handrail.tools.custom import tool

needs_bubblewrap = pytest.mark.skipif(PROGRAM is None, reason="bubblewrap is not installed")
REFUSED = {"UNKNOWN_TOOL", "POLICY_DENIED"}
FILES = {"fs.write", "fs.delete", "git.write"}
OWN = tuple(sorted(build_tool_set(Settings()).registered))
"""Every tool that there is: one that is new has to be among the attempts."""
FETCH = "import urllib.request\n\nprint(urllib.request.urlopen('{}').status)\n"
SKILL = "---\nname: notes\ndescription: Takes notes.\n---\nTake notes.\n"


def custom_name(permission: str) -> str:
    return f"custom_{permission.replace('.', '_')}"


class Attempt(NamedTuple):
    """A call, and what it needs."""

    tool: str
    args: dict[str, Any]
    needs: frozenset[str]
    hidden: bool = False
    """Whether policy cannot see that it needs the network: it runs, and reaches nothing."""


class World:
    """A workspace, and everything in it and around it that a call could change."""

    def __init__(self, folder: Path, web: Server) -> None:
        self.folder, self.web, self.asked = folder, web, 0
        self.done: list[str] = []
        self.url = f"http://127.0.0.1:{web.port}/"
        self._numbers = count()
        subprocess.run(["git", "init", "-q", "--template=", folder], check=True)
        for setting in ("user.name", "user.email"):
            subprocess.run(["git", "-C", folder, "config", setting, "a@b.c"], check=True)
        (folder / "kept.txt").write_text("one\n")
        (folder / "fetch.py").write_text(FETCH.format(self.url))
        (folder / ".agents/skills/notes").mkdir(parents=True)
        (folder / ".agents/skills/notes/SKILL.md").write_text(SKILL)

    def state(self) -> object:
        """Changes with every effect."""
        found = {}
        for place, _, names in os.walk(self.folder):
            found[place] = len(names)
            for name in names:
                looked = os.lstat(os.path.join(place, name))
                found[os.path.join(place, name)] = (looked.st_ino, looked.st_mtime_ns, looked.st_size)
        return found, self.web.visits, list(self.done)

    def attempts(self) -> Iterator[Attempt]:
        """All of them, on files of their own."""
        yield from self._with_tools()
        yield from (Attempt("exec", {"command": text}, frozenset(needs)) for text, needs in self._commands())
        yield Attempt("exec", {"command": "python3 fetch.py"}, frozenset({"proc.exec", "fs.read", *FILES}), hidden=True)
        for permission in PERMISSIONS:
            yield Attempt(custom_name(permission), {}, frozenset({permission}))
            yield Attempt(f"mcp__{permission.replace('.', '-')}__x", {}, frozenset({permission}))

    def _with_tools(self) -> Iterator[Attempt]:
        def attempt(used: str, needs: str, **args: Any) -> Attempt:
            return Attempt(used, args, frozenset(needs.split()))

        patch = "*** Begin Patch\n*** Update File: {}\n@@\n-one\n+two\n*** Delete File: {}\n*** End Patch"
        edit = {"oldText": "one", "newText": "two"}
        yield attempt("read", "fs.read", path="kept.txt")
        yield attempt("grep", "fs.read", pattern="one", path="kept.txt")
        yield attempt("find", "fs.read", pattern="*.txt")
        yield attempt("ls", "fs.read", path=".")
        yield attempt("skill_list", "fs.read")
        yield attempt("skill_control", "fs.read", name="notes", action="activate")
        yield attempt("write", "fs.write", path=self._new(), content="x")
        yield attempt("write", "fs.write git.write", path=f".git/{self._new()}", content="x")
        yield attempt("edit", "fs.read fs.write", path=self._there(), **edit)
        yield attempt("multi_edit", "fs.read fs.write", path=self._there(), edits=[edit])
        yield attempt("apply_patch", "fs.read fs.write fs.delete", patch=patch.format(self._there(), self._there()))
        yield attempt("delete", "fs.delete", path=self._there())
        for used in ("code_outline", "code_analyze", "code_symbols", "lsp_symbols"):
            yield attempt(used, "fs.read", path="fetch.py")
        yield attempt("codebase_search", "fs.read", query="urlopen")
        yield attempt("lsp_diagnostics", "fs.read", paths=["fetch.py"])
        for used in ("lsp_definition", "lsp_references", "lsp_hover"):
            yield attempt(used, "fs.read", path="fetch.py", line=1, character=0)
        yield attempt("lsp_rename", "fs.read fs.write", **self._name(), newName="later")
        (self.folder / "main.c").write_text(f"int  main( ){{return {next(self._numbers)};}}\n")
        yield attempt("lsp_format", "fs.read fs.write", path="main.c")
        yield attempt("code_lint", "proc.exec fs.read", paths=["fetch.py"])
        yield attempt("code_format", "proc.exec fs.read fs.write", path=self._name()["path"], write=True)
        yield attempt("process", "proc.exec fs.read fs.write fs.delete git.write", action="list")

    def _commands(self) -> Iterator[tuple[str, set[str]]]:
        run, reach = {"proc.exec", "fs.read"}, {"net.connect"}
        yield "cat kept.txt", run
        yield f"touch {self._new()}", {*run, "fs.write"}
        yield f"echo x > {self._new()}", {*run, "fs.write"}
        yield f"cp kept.txt {self._new()}", {*run, "fs.write"}
        yield f"rm {self._there()}", {*run, "fs.delete"}
        yield f"mv {self._there()} {self._new()}", {*run, "fs.write", "fs.delete"}
        yield f"touch .git/{self._new()}", {*run, "fs.write", "git.write"}
        yield "git commit -q --allow-empty -m x", {*run, *FILES}
        yield f"env touch {self._new()}", {*run, *FILES}
        yield f"bash -c 'rm {self._there()}'", {*run, *FILES}
        yield f"for f in {self._new()}; do touch $f; done", {*run, *FILES}
        yield f'python3 -c \'open("{self._new()}", "w")\'', {*run, *FILES}
        yield f"curl -sS --fail {self.url}", {*run, *FILES, *reach}
        yield f"timeout 20 curl -sS --fail {self.url} | cat", {*run, *FILES, *reach}
        yield f"bash -c 'curl -sS --fail {self.url}'", {*run, *FILES, *reach}
        yield f"if true; then curl -sS --fail {self.url}; fi", {*run, *FILES, *reach}

    def _new(self) -> str:
        return f"new-{next(self._numbers)}"

    def _there(self) -> str:
        name = f"there-{next(self._numbers)}.txt"
        (self.folder / name).write_text("one\n")
        return name

    def _name(self) -> dict[str, Any]:
        """A Python file that is not formatted, and the place of a name in it."""
        path = f"name_{next(self._numbers)}.py"
        (self.folder / path).write_text("first   = 1\nprint( first )\n")
        return {"path": path, "line": 0, "character": 0}

    @contextmanager
    def opened(self, mode: str, denied: tuple[Permission, ...], state: Path) -> Iterator[Handrail]:
        """A session that lists the host, in which somebody says yes to everything."""

        def yes(_: object) -> str:
            self.asked += 1
            return "once"

        def custom(permission: Permission) -> Any:
            @tool(name=custom_name(permission), description="Does it.", permissions=(permission,))
            def one() -> str:
                self.done.append(permission)
                return "done"

            return one

        servers = [OtherServer(permission.replace(".", "-"), listed("x")) for permission in PERMISSIONS]
        for server, permission in zip(servers, PERMISSIONS, strict=True):
            server.reach = (permission,)
            server.calls = self.done  # type: ignore[assignment]  all effects are in one list
        settings = Settings(tools=Tools(enable=OWN), network=NetworkSettings(allow=(f"127.0.0.1:{self.web.port}",)))
        options: dict[str, Any] = {"tools": [*map(custom, PERMISSIONS)], "sources": servers, "on_permission": yes}
        with Handrail(self.folder, mode=mode, deny=denied, settings=settings, state_dir=state, **options) as rail:
            yield rail


def answer(connection: Any) -> None:
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


@pytest.fixture
def world(workspace: Path) -> Iterator[World]:
    with serving(answer) as web:
        yield World(workspace, web)


def called(rail: Handrail, attempts: list[Attempt], **more: Any) -> list[Any]:
    return [rail.call(one.tool, one.args, **more) for one in attempts]


def in_a_batch(rail: Handrail, attempts: list[Attempt]) -> list[Any]:
    now = datetime.now(UTC)
    outcome = rail.batch(ToolCall(f"b{n}", one.tool, one.args, f"b{n}", now) for n, one in enumerate(attempts))
    assert isinstance(outcome, Done)
    return list(outcome.results)


def check_refused(
    world: World, denied: str, attempts: list[Attempt], work: Callable[[list[Attempt]], list[Any]]
) -> None:
    """Each of them was refused, and neither the world nor a person was touched."""
    before, asked = world.state(), world.asked
    for one, result in zip(attempts, work(attempts), strict=True):
        assert result.error is not None, (denied, one)
        assert result.error.code in REFUSED, (denied, one, result.error)
        if result.error.code == "POLICY_DENIED":
            assert denied in result.error.message, (denied, one, result.error)
    assert (world.state(), world.asked) == (before, asked), denied


@needs_bubblewrap
@pytest.mark.parametrize("mode", ["ask", "full"])
def test_nothing_that_needs_a_denied_permission_has_an_effect_or_asks(
    world: World, tmp_path: Path, mode: str, note: Callable[[str], None]
) -> None:
    rows = 0
    for number, denied in enumerate(PERMISSIONS):
        with world.opened(mode, (denied,), tmp_path / f"state{number}") as rail:
            attempts = [one for one in world.attempts() if denied in one.needs]
            check_refused(world, denied, attempts, partial(called, rail))
            check_refused(world, denied, attempts, partial(in_a_batch, rail))
            rows += 2 * len(attempts)
            for one in (one for one in world.attempts() if one.hidden and denied == "net.connect"):
                visits = world.web.visits
                assert rail.call(one.tool, one.args).data.exit_code == 1
                assert world.web.visits == visits
    note(f"{rows} rows in mode {mode}: {len(PERMISSIONS)} permissions, by calls and in batches")
    assert rows > 200


@needs_bubblewrap
def test_with_nothing_denied_every_attempt_has_its_effect(world: World, tmp_path: Path) -> None:
    with world.opened("full", (), tmp_path / "state") as rail:
        attempts = list(world.attempts())
        assert {spec.name for spec in rail.specs() if spec.permissions} <= {one.tool for one in attempts}
        for one in attempts:
            before = world.state()
            result = rail.call(one.tool, one.args)
            assert result.ok, (one, result.error)
            assert getattr(result.data, "exit_code", 0) == 0, (one, result.content)
            if one.needs & {*FILES, "net.connect"} and one.tool != "process":
                assert world.state() != before, one
            if "net.connect" in one.needs or one.hidden:
                assert world.state()[1:] != before[1:], one  # type: ignore[index]


@needs_bubblewrap
def test_nothing_that_a_call_leaves_out_of_its_permissions_has_an_effect_or_asks(world: World, tmp_path: Path) -> None:
    """But reading: a command may always read the workspace."""
    with world.opened("full", (), tmp_path / "state") as rail:
        for left_out in PERMISSIONS:
            narrow = tuple(one for one in PERMISSIONS if one != left_out)
            attempts = [one for one in world.attempts() if left_out in one.needs and one.tool != "process"]
            if left_out == "fs.read":
                attempts = [one for one in attempts if one.tool != "exec"]
            check_refused(world, left_out, attempts, partial(called, rail, requested_permissions=narrow))
        [hidden] = [one for one in world.attempts() if one.hidden]
        visits = world.web.visits
        without = tuple(one for one in PERMISSIONS if one != "net.connect")
        assert rail.call(hidden.tool, hidden.args, requested_permissions=without).data.exit_code == 1
        assert world.web.visits == visits
