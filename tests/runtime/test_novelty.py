"""What a request says to be unusual: true of the history that was compared, and silent while there is little of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.acp.permissions import build_card
from handrail.cli.permission import render_request_text
from handrail.code.shell import find_shell_commands
from handrail.mcp.elicitation import _build_message as build_message
from handrail.protocol.decisions import CommandFact
from handrail.protocol.novelty import Novelty
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.wire import decode_json, encode
from handrail.runtime import novelty as compared
from handrail.settings import Settings
from handrail.terminal.request_text import render_request

Ask = Callable[..., PermissionRequest]
LEAST = 4


@pytest.fixture(autouse=True)
def little_history_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer commands to run than people run before something is unusual."""
    assert compared._LEAST > LEAST
    monkeypatch.setattr(compared, "_LEAST", LEAST)


class Person:
    """Allows everything but the words it refuses, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[PermissionRequest] = []
        self.refuses = ""

    def __call__(self, request: PermissionRequest) -> Answer:
        self.asked.append(request)
        refused = self.refuses and self.refuses in (request.command or request.description)
        return Answer(kind="deny" if refused else "once", revision=request.revision)


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def open_rail(rail: Callable[..., Handrail], person: Person) -> Callable[..., Handrail]:
    return lambda **options: rail(mode="ask", on_permission=person, **options)


@pytest.fixture
def ask(open_rail: Callable[..., Handrail], person: Person) -> Ask:
    """Runs a command, and returns the request about it."""
    opened = open_rail(session="own")

    def run(command: str, using: Handrail | None = None) -> PermissionRequest:
        before = len(person.asked)
        (using or opened).call("exec", {"command": command})
        assert len(person.asked) == before + 1
        return person.asked[-1]

    return run


def touch(ask: Ask, count: int = LEAST) -> list[Novelty | None]:
    return [ask(f"touch made-{number}").unusual for number in range(count)]


def test_nothing_is_unusual_while_there_is_little_history(ask: Ask, workspace: Path) -> None:
    (workspace / "old").mkdir()
    assert touch(ask, LEAST - 1) == [None] * (LEAST - 1)
    assert ask("mkdir old/inner; rm made-0").unusual is None


def test_a_program_that_no_approval_ran_is_unusual_once(ask: Ask) -> None:
    touch(ask)
    assert ask("touch again").unusual is None
    assert ask("touch b && install -d c").unusual == Novelty(approvals=LEAST + 1, programs=("install",))
    assert ask("install -d d").unusual is None


def test_a_program_inside_a_wrapper_or_an_unparsed_command_is_found(ask: Ask, person: Person) -> None:
    touch(ask)
    person.refuses = "install"
    for command in ("nice install -d c", "for x in a b; do install -d $x; done", "bash -c 'install -d c'"):
        found = ask(command).unusual
        assert found is not None, command
        assert "install" in found.programs, command


def test_programs_that_only_read_are_not_unusual(ask: Ask) -> None:
    touch(ask)
    assert ask("ls && cat made-0 && touch one").unusual is None


def test_a_refused_command_is_no_approval(ask: Ask, person: Person) -> None:
    touch(ask)
    person.refuses = "install"
    assert ask("install -d c").unusual == ask("install -d c").unusual == Novelty(approvals=LEAST, programs=("install",))


def test_a_host_that_no_approval_opened_is_unusual(ask: Ask, person: Person) -> None:
    touch(ask)
    person.refuses = "curl"
    request = ask("curl -o page https://example.org/")
    assert request.unusual == Novelty(approvals=LEAST, hosts=("example.org:443",), programs=("curl",))


def test_the_first_deletion_is_unusual_and_the_second_is_not(ask: Ask) -> None:
    touch(ask)
    ask("install -d kept")
    first = ask("install made-0 made-3 && rm made-0").unusual
    assert first == Novelty(approvals=LEAST + 1, changes=LEAST + 1, deletes=True, programs=("rm",))
    assert ask("rm made-1").unusual is None


def test_a_deletion_by_a_tool_is_unusual_without_any_command(open_rail, person: Person) -> None:
    settings = Settings(tools=Settings().tools.__class__(enable=("delete",)))
    rail = open_rail(session="tools", settings=settings)
    for number in range(LEAST):
        rail.call("write", {"path": f"{number}.txt", "content": "x"})
    rail.call("delete", {"path": "0.txt"})
    assert person.asked[-1].unusual == Novelty(changes=LEAST, deletes=True)
    rail.call("delete", {"path": "1.txt"})
    assert person.asked[-1].unusual is None


def test_a_folder_in_which_nothing_changed_is_unusual(open_rail, person: Person, workspace: Path) -> None:
    for name in ("src/deep", "src-2", "infra"):
        (workspace / name).mkdir(parents=True)
    rail = open_rail(session="own")
    for number in range(LEAST):
        rail.call("write", {"path": f"src/{number}.txt", "content": "x"})
    assert person.asked[-1].unusual is None
    rail.call("write", {"path": "src/deep/a.txt", "content": "x"})
    assert person.asked[-1].unusual is None
    rail.call("write", {"path": "README.md", "content": "x"})
    assert person.asked[-1].unusual is None
    rail.call("write", {"path": "src-2/a.txt", "content": "x"})
    assert person.asked[-1].unusual == Novelty(changes=LEAST + 2, folders=("src-2/",))
    rail.call("exec", {"command": "touch infra/a src/b"})
    assert person.asked[-1].unusual == Novelty(changes=LEAST + 3, folders=("infra/",))


def test_other_sessions_of_the_workspace_count_and_other_workspaces_do_not(ask: Ask, open_rail, tmp_path: Path) -> None:
    touch(ask)
    assert ask("install -d c", open_rail(session="next")).unusual == Novelty(approvals=LEAST, programs=("install",))
    (tmp_path / "elsewhere").mkdir()
    assert ask("install -d c", open_rail(session="own", workspace=tmp_path / "elsewhere")).unusual is None


def test_a_damaged_session_is_left_out(ask: Ask, open_rail, tmp_path: Path) -> None:
    touch(ask)
    other = open_rail(session="other")
    folder = next(tmp_path.glob("state/workspaces/*/other"))
    other.close()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "journal.db").write_bytes(b"garbage" * 1000)
    assert ask("install -d c").unusual == Novelty(approvals=LEAST, programs=("install",))


def test_a_request_that_is_tried_again_keeps_what_is_unusual(ask: Ask, rail: Callable[..., Handrail]) -> None:
    touch(ask)
    parked = rail(session="parked", mode="ask", on_permission="park")
    outcome = parked.call("exec", {"command": "install -d c"})
    assert outcome.error is not None
    (request,) = parked.waiting()
    assert request.unusual == Novelty(approvals=LEAST, programs=("install",))
    assert parked.retry(request.id).unusual == request.unusual
    assert parked.retry(request.id, "touch c").unusual is None


def test_a_request_of_an_older_version_has_nothing_unusual(ask: Ask) -> None:
    request = ask("touch made")
    assert b"unusual" not in encode(request)
    assert decode_json(encode(request), PermissionRequest).unusual is None


def test_the_line_says_what_it_was_compared_with_and_hides_no_character(ask: Ask) -> None:
    novelty = Novelty(
        approvals=41, changes=200, deletes=True, hosts=("example.org:443",), programs=tuple("abcdefg"),
        folders=("in\x1b[31mfra\u202e/",),
    )  # fmt: skip
    request = decode_json(encode(ask("touch made")), PermissionRequest)
    lines = render_request(PermissionRequest(**{**_fields(request), "unusual": novelty}), width=None)
    assert (
        "! Unusual here, compared with the last 41 approvals and 200 changes: first deletion; "
        "new host example.org:443; new programs a, b, c, d, e and 2 more; new folder in\\u001b[31mfra\\u202e/."
    ) in lines


def _fields(request: PermissionRequest) -> dict[str, object]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


ORDINARY = st.sampled_from(
    ("make fmt", "./scripts/gen.sh --all", "npm install 'left pad'", 'python3 -c "print(1)"', "git -C src commit -m x")
)
WRAPPED = st.sampled_from(
    ("{}", "env A=1 {}", "nice -n 5 {}", "timeout 5 {}", "for f in *; do {}; done", "if true; then {}; fi", "x=$({})")
)


@given(
    st.lists(st.tuples(ORDINARY, WRAPPED), min_size=1, max_size=4), st.sampled_from((" && ", "; ", " | ", "\n", "&"))
)
def test_no_command_is_new_after_it_was_approved(parts: list[tuple[str, str]], join: str) -> None:
    text = join.join(wrapped.format(command) for command, wrapped in parts)
    fact = CommandFact(text=text, seen=find_shell_commands(text))
    assert compared._compare_commands(fact, [("true", ())] * LEAST).programs, text
    assert compared._compare_commands(fact, [(text, ())] * LEAST).programs == (), text


def test_every_face_shows_the_same_line(ask: Ask) -> None:
    touch(ask)
    request = ask("install -d c")
    line = f"! Unusual here, compared with the last {LEAST} approvals: new program install.\n"
    assert line in render_request_text(request)
    assert line in build_message(request)[0]
    assert line in encode(build_card(request, "/work").model_dump(mode="json")).decode().replace("\\n", "\n")


def test_the_wire_has_only_the_facts_that_differ(ask: Ask) -> None:
    touch(ask)
    assert b'"unusual":{"approvals":%d,"programs":["install"]}}' % LEAST in encode(ask("install -d c"))
