"""No spelling, no link and no name leads a file tool out of the roots: with the kernel's resolver and with ours."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.protocol.errors import ToolError
from handrail.workspace.facts import build_path_fact
from handrail.workspace.workspace import Workspace

House = Callable[..., Workspace]
SECRET = "OUTSIDE"


@pytest.fixture
def outside(tmp_path: Path, workspace: Path) -> Path:
    """A folder beside the workspace with a secret in it, and a sibling whose name begins like the workspace's."""
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    (folder / "secret.txt").write_text(SECRET)
    (folder / "deep" / "secret.txt").write_text(SECRET)
    sibling = tmp_path / "workspace-evil"
    sibling.mkdir()
    (sibling / "secret.txt").write_text(SECRET)
    (workspace / "inner" / "deep").mkdir(parents=True)
    (workspace / "plain.txt").write_text("inside")
    (workspace / "inner" / "deep" / "plain.txt").write_text("deep inside")
    return folder


def text_at(house: Workspace, path: str) -> str:
    with house.open_file(path) as opened:
        return os.read(opened.descriptor, 100).decode()


def refusal(attempt: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        attempt()
    assert SECRET not in caught.value.message
    return caught.value.code


def refused_everywhere(house: Workspace, path: str) -> None:
    """Neither read, nor listed, nor written; and policy is told that it is outside."""
    assert refusal(lambda: house.open_file(path)) == "OUTSIDE_WORKSPACE"
    assert refusal(lambda: house.open_folder(path)) == "OUTSIDE_WORKSPACE"
    assert refusal(lambda: house.resolve_for_write(path)) == "OUTSIDE_WORKSPACE"
    assert build_path_fact(house, path, "read").real is None
    assert build_path_fact(house, path, "write").real is None


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "..",
        "inner/../../outside/secret.txt",
        "inner/deep/../../../outside/secret.txt",
        "./../outside/./secret.txt",
        "../workspace-evil/secret.txt",
        "../workspace/plain.txt",
        "/",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "//etc//passwd",
    ],
)
def test_a_spelling_that_leaves_the_workspace_is_refused(house: House, outside: Path, path: str) -> None:
    refused_everywhere(house(), path)


@pytest.mark.parametrize("end", ["-evil/secret.txt", "/../outside/secret.txt", "/../workspace-evil/secret.txt", "X"])
def test_an_absolute_path_counts_by_whole_names_never_by_its_beginning(
    house: House, workspace: Path, outside: Path, end: str
) -> None:
    refused_everywhere(house(), f"{workspace}{end}")


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("plain.txt", "plain.txt"),
        ("./plain.txt", "plain.txt"),
        ("inner/../plain.txt", "plain.txt"),
        ("inner//deep///plain.txt", "inner/deep/plain.txt"),
        ("inner/deep/../../inner/deep/plain.txt", "inner/deep/plain.txt"),
        ("plain.txt/.", "plain.txt"),
        ("{workspace}/plain.txt", "plain.txt"),
        ("{workspace}//inner/./deep/plain.txt", "inner/deep/plain.txt"),
    ],
)
def test_inside_every_spelling_of_a_file_is_the_same_file(
    house: House, workspace: Path, outside: Path, path: str, real: str
) -> None:
    spelled = path.format(workspace=workspace)
    with house().open_file(spelled) as opened:
        assert opened.real == real
        assert os.read(opened.descriptor, 100) == (workspace / real).read_bytes()
    assert build_path_fact(house(), spelled, "read").real == real


LINKS_OUT = {
    "file": "../outside/secret.txt",
    "folder": "../outside",
    "dangling": "../outside/not-there.txt",
    "dangling-deeper": "../outside/none/not-there.txt",
    "absolute": "{outside}/secret.txt",
    "absolute-folder": "{outside}",
    "absolute-missing": "/no/such/place",
    "root": "/",
    "process-root": "/proc/self/root",
    "process-folder": "/proc/self/cwd",
    "descriptor": "/proc/self/fd/0",
    "sibling": "../workspace-evil/secret.txt",
    "absolute-sibling": "{workspace}-evil/secret.txt",
    "inside-and-out": "inner/deep/../../../outside/secret.txt",
    "absolute-inside-and-out": "{workspace}/inner/../../outside/secret.txt",
    "device": "/dev/zero",
}


@pytest.mark.parametrize("name", LINKS_OUT)
def test_a_link_that_leads_outside_is_refused(house: House, workspace: Path, outside: Path, name: str) -> None:
    (workspace / "link").symlink_to(LINKS_OUT[name].format(outside=outside, workspace=workspace))
    refused_everywhere(house(), "link")


@pytest.mark.parametrize("name", ["folder", "absolute-folder"])
def test_nothing_behind_a_link_to_an_outside_folder_can_be_reached_or_made(
    house: House, workspace: Path, outside: Path, name: str
) -> None:
    (workspace / "link").symlink_to(LINKS_OUT[name].format(outside=outside))
    for path in (
        "link/secret.txt",
        "link/deep/secret.txt",
        "link/new.txt",
        "link/new/new.txt",
        "link/deep/../secret.txt",
    ):
        refused_everywhere(house(), path)


def test_the_root_of_the_process_gives_no_second_way_into_the_workspace(
    house: House, workspace: Path, outside: Path
) -> None:
    (workspace / "root").symlink_to("/proc/self/root")
    refused_everywhere(house(), f"root{outside}/secret.txt")
    refused_everywhere(house(), f"root{workspace}/plain.txt")


def test_a_magic_link_of_an_open_descriptor_leads_nowhere(house: House, workspace: Path, outside: Path) -> None:
    descriptor = os.open(outside / "secret.txt", os.O_RDONLY)
    try:
        (workspace / "link").symlink_to(f"/proc/self/fd/{descriptor}")
        refused_everywhere(house(), "link")
        refused_everywhere(house(), f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("target", "rest", "real"),
    [
        ("plain.txt", "", "plain.txt"),
        ("inner", "/deep/plain.txt", "inner/deep/plain.txt"),
        ("{workspace}/plain.txt", "", "plain.txt"),
        ("{workspace}/inner", "/deep/plain.txt", "inner/deep/plain.txt"),
        ("{workspace}", "/plain.txt", "plain.txt"),
        ("inner/deep", "/../deep/plain.txt", "inner/deep/plain.txt"),
        ("inner/deep", "/../../plain.txt", "plain.txt"),
        ("{workspace}/inner/deep", "/../../plain.txt", "plain.txt"),
        (".", "/plain.txt", "plain.txt"),
        ("./inner/.", "/deep/plain.txt", "inner/deep/plain.txt"),
    ],
)
def test_a_link_that_stays_inside_is_followed_and_the_real_file_is_named(
    house: House, workspace: Path, outside: Path, target: str, rest: str, real: str
) -> None:
    """`..` after a link goes up from where the link leads, as in every program."""
    (workspace / "link").symlink_to(target.format(workspace=workspace))
    one = house()
    with one.open_file(f"link{rest}") as opened:
        assert opened.real == real
        assert os.read(opened.descriptor, 100) == (workspace / real).read_bytes()
    landing, landed = one.resolve_for_write(f"link{rest}")
    with landing:
        assert (landed, landing.name) == (real, Path(real).name)


def test_up_from_a_link_to_the_top_is_outside(house: House, workspace: Path, outside: Path) -> None:
    (workspace / "inner" / "top").symlink_to("..")
    assert text_at(house(), "inner/top/plain.txt") == "inside"
    refused_everywhere(house(), "inner/top/../outside/secret.txt")


def test_a_chain_of_links_is_followed_and_its_last_target_counts(house: House, workspace: Path, outside: Path) -> None:
    for number in range(30):
        (workspace / f"chain{number}").symlink_to(f"chain{number + 1}")
    (workspace / "chain30").symlink_to("inner/deep/plain.txt")
    assert text_at(house(), "chain0") == "deep inside"
    (workspace / "chain30").unlink()
    (workspace / "chain30").symlink_to("../outside/secret.txt")
    refused_everywhere(house(), "chain0")


def test_links_through_links_with_dots_between_end_inside_or_nowhere(
    house: House, workspace: Path, outside: Path
) -> None:
    (workspace / "inner" / "up").symlink_to("deep/../..")
    (workspace / "jump").symlink_to("inner/up/inner/deep")
    assert text_at(house(), "jump/plain.txt") == "deep inside"
    assert text_at(house(), "jump/../up/plain.txt") == "inside"
    refused_everywhere(house(), "jump/../up/../outside/secret.txt")


@pytest.mark.parametrize("target", ["loop", "{workspace}/loop", "inner/../loop"])
def test_a_link_to_itself_is_an_error_and_not_a_hang(house: House, workspace: Path, outside: Path, target: str) -> None:
    (workspace / "loop").symlink_to(target.format(workspace=workspace))
    for path in ("loop", "loop/x"):
        assert refusal(lambda path=path: house().open_file(path)) == "IO_ERROR"
        assert refusal(lambda path=path: house().resolve_for_write(path)) == "IO_ERROR"


def test_a_dangling_link_inside_is_missing_and_lands_on_its_target(house: House, workspace: Path) -> None:
    (workspace / "link").symlink_to("later/file.txt")
    one = house()
    assert refusal(lambda: one.open_file("link")) == "NOT_FOUND"
    fact = build_path_fact(one, "link", "write")
    assert (fact.kind, fact.real) == ("missing", "later/file.txt")
    landing, real = one.resolve_for_write("link")
    with landing:
        assert (real, landing.name, landing.missing) == ("later/file.txt", "file.txt", ("later",))


def test_a_hard_link_to_an_outside_file_is_a_file_of_the_workspace(
    house: House, workspace: Path, outside: Path
) -> None:
    """The documented limit: it has no other name here to go by. Who can make one can read the file already."""
    os.link(outside / "secret.txt", workspace / "hard")
    assert text_at(house(), "hard") == SECRET


def test_a_dot_at_the_end_of_a_missing_path_is_not_a_file_name(house: House, workspace: Path) -> None:
    landing, real = house().resolve_for_write("new/folder/.")
    with landing:
        assert (landing.name, landing.missing, real) == ("folder", ("new",), "new/folder")


def test_up_from_a_folder_that_does_not_exist_leads_nowhere(house: House, workspace: Path, outside: Path) -> None:
    for path in ("none/../plain.txt", "none/../../outside/secret.txt", "none/.."):
        assert refusal(lambda path=path: house().open_file(path)) == "NOT_FOUND"
        assert refusal(lambda path=path: house().resolve_for_write(path)) == "NOT_FOUND"


def test_a_file_is_no_folder(house: House, workspace: Path, outside: Path) -> None:
    one = house()
    assert refusal(lambda: one.open_file("plain.txt/x")) == "NOT_A_DIRECTORY"
    assert refusal(lambda: one.resolve_for_write("plain.txt/x")) == "NOT_A_DIRECTORY"
    assert refusal(lambda: one.open_folder("plain.txt")) == "NOT_A_DIRECTORY"
    assert refusal(lambda: build_path_fact(one, "plain.txt/x", "write")) == "NOT_A_DIRECTORY"


def test_no_descriptor_is_left_open(house: House, workspace: Path, outside: Path) -> None:
    (workspace / "link").symlink_to("inner/deep")
    (workspace / "out").symlink_to("../outside")
    one = house()
    before = set(os.listdir("/proc/self/fd"))
    for path in ("plain.txt", "link/plain.txt", "out/secret.txt", "none/x", "plain.txt/x", "../x", "link"):
        for attempt in (one.open_file, one.open_folder, lambda path: one.resolve_for_write(path)[0]):
            try:
                with attempt(path):
                    pass
            except ToolError:
                pass
        for access in ("read", "write"):
            with contextlib.suppress(ToolError):
                build_path_fact(one, path, access)
    one.drop_cached()
    assert set(os.listdir("/proc/self/fd")) == before
