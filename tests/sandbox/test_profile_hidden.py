"""Very many hidden files."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.sandbox.profile import SandboxProfile, collapse_hidden
from handrail.workspace.roots import is_inside

NAMES = st.sampled_from(["a", "b", "c"])
FILES = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), unique=True, max_size=30)


def confinement(files: list[str], **more: object) -> SandboxProfile:
    return SandboxProfile(origin="proven", cwd="/ws", read_only=("/ws",), hidden_files=tuple(files), **more)


def test_few_stay_as_they_are() -> None:
    few = confinement(["/ws/a/1.pem", "/ws/2.pem"])
    assert collapse_hidden(few) is few


def test_the_folders_that_hold_most_are_hidden_as_a_whole() -> None:
    many = [f"/ws/certs/{n}.pem" for n in range(300)] + ["/ws/.env", "/ws/src/key.pem"]
    found = collapse_hidden(confinement(many))
    assert found.hidden_files == ("/ws/.env", "/ws/src/key.pem")
    assert found.hidden_folders == ("/ws/certs",)


def test_what_the_command_needs_is_never_hidden() -> None:
    many = [f"/ws/{n}.pem" for n in range(300)] + [f"/ws/sub/{n}.pem" for n in range(200)]
    found = collapse_hidden(confinement(many, writable=("/ws/sub/inner",)))
    assert found.hidden_folders == ()
    assert len(found.hidden_files) == 500


@given(FILES, st.integers(0, 5))
def test_everything_that_was_hidden_still_is(files: list[str], most: int) -> None:
    paths = [f"/ws/{file}" for file in files]
    found = collapse_hidden(confinement(paths), most)
    for path in paths:
        assert path in found.hidden_files or any(is_inside(path, folder) for folder in found.hidden_folders)
    assert not any(is_inside("/ws", folder) for folder in found.hidden_folders)
