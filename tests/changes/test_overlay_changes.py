"""What a command changed in its layer, as the lister finds it: as root, and as an ordinary user."""

import hashlib
import os
import socket

import pytest
from tests.changes.support import As, World, by_path, told

from handrail.changes.model import OverlayChanges, Placement
from handrail.changes.overlay.changes import examine
from handrail.changes.overlay.walk import OverlayWalk


def manners(examined: OverlayChanges) -> dict[str, Placement]:
    return {os.fsdecode(step.path): manner for step, manner in zip(examined.steps, examined.manners, strict=True)}


def test_nothing_changed_is_nothing_listed(user: As) -> None:
    found = user.examine("echo a >a; mkdir d", "cat a; ls d")
    assert (found.steps, found.unkept, found.outdated) == ((), (), ())


def test_files_are_created_modified_and_deleted(user: As) -> None:
    found = user.examine("echo a >a; echo b >b", "echo more >>a; rm b; echo c >c")
    assert told(found) == ["modified a", "deleted b", "created c"]
    step = found.steps[0]
    assert step.before is not None
    assert step.after is not None
    assert (step.before.hash, step.after.hash) == tuple(
        hashlib.sha256(data).hexdigest() for data in (b"a\n", b"a\nmore\n")
    )
    assert (step.before.size, step.after.size) == (2, 7)


@pytest.mark.parametrize(
    "script", ["touch a", "cat a >b; cat b >a; rm b", "cp a b; mv b a", "chmod 600 a; chmod 644 a"]
)
def test_touched_is_not_changed(user: As, script: str) -> None:
    assert user.examine("echo a >a; chmod 644 a", script).steps == ()


def test_bytes_of_one_size_are_compared(user: As) -> None:
    found = user.examine(
        "echo aa >small; head -c 1M /dev/zero >large",
        "echo ab >small; echo x | dd of=large bs=1 seek=9999 conv=notrunc",
    )
    assert told(found) == ["modified large", "modified small"]


def test_a_large_file_that_was_only_rewritten_is_not_changed(user: As) -> None:
    assert user.examine("head -c 3M /dev/zero >large", "head -c 3M /dev/zero >large").steps == ()


def test_permissions_alone(user: As) -> None:
    found = by_path(user.examine("echo a >a; chmod 644 a; mkdir -m 755 d", "chmod 755 a; chmod 700 d"))
    assert (found["a"].action, found["a"].mode, found["a"].executable) == ("mode", 0o755, True)
    assert (found["d"].action, found["d"].kind, found["d"].mode) == ("mode", "folder", 0o700)
    assert found["a"].before == found["a"].after


def test_what_could_be_run_before_is_not_made_executable(user: As) -> None:
    found = by_path(user.examine("echo a >a; chmod 755 a", "echo b >>a; echo n >n; chmod 755 n"))
    assert (found["a"].executable, found["n"].executable) == (False, True)


def test_a_folder_that_is_gone_is_gone_with_all_that_was_in_it(user: As) -> None:
    found = user.examine("mkdir -p d/e/f; echo a >d/a; echo b >d/e/b", "rm -rf d")
    assert sorted(told(found)) == ["deleted d", "deleted d/a", "deleted d/e", "deleted d/e/b", "deleted d/e/f"]


def test_a_folder_that_was_replaced_has_lost_what_is_not_in_the_new_one(user: As) -> None:
    before = "mkdir -p d/e; echo a >d/a; echo b >d/b; echo c >d/e/c; echo s >d/e/s"
    found = user.examine(before, "rm -rf d; mkdir -p d/e; echo a >d/a; echo other >d/b; echo n >d/n; echo s >d/e/s")
    assert sorted(told(found)) == ["created d/n", "deleted d/e/c", "modified d/b"]


def test_everything_in_a_new_folder_is_new(user: As) -> None:
    found = user.examine("true", "mkdir -p d/e/f; echo a >d/e/f/a")
    assert told(found) == ["created d", "created d/e", "created d/e/f", "created d/e/f/a"]


def test_a_file_becomes_a_folder_and_a_folder_a_file(user: As) -> None:
    found = by_path(user.examine("echo a >a; mkdir d; echo x >d/x", "rm a; mkdir a; echo in >a/in; rm -r d; echo d >d"))
    assert {path: change.action for path, change in found.items()} == {
        "a": "modified", "a/in": "created", "d": "modified", "d/x": "deleted",
    }  # fmt: skip
    assert (found["a"].kind, found["a"].replaces, found["d"].kind, found["d"].replaces) == (
        "folder", "file", "file", "folder",
    )  # fmt: skip


def test_made_and_removed_again_is_nothing(user: As) -> None:
    assert user.examine("echo a >a", "echo b >b; rm b; mkdir d; rmdir d; rm a; echo a >a").steps == ()


def test_links(user: As) -> None:
    before = "echo a >a; ln -s a same; ln -s a other; ln -s a gone; ln -s a plain; echo f >f"
    script = "ln -sfn a same; ln -sfn f other; rm gone; rm plain; echo p >plain; rm f; ln -s a f; ln -s none new"
    found = by_path(user.examine(before, script))
    assert {path: (change.action, change.target) for path, change in found.items()} == {
        "other": ("link", "f"), "gone": ("deleted", None), "plain": ("link", None), "f": ("link", "a"),
        "new": ("created", "none"),
    }  # fmt: skip
    assert (found["plain"].kind, found["plain"].replaces) == ("file", "link")
    assert (found["f"].kind, found["f"].replaces) == ("link", "file")


@pytest.mark.parametrize(
    ("target", "outside"),
    [("a", False), ("d/a", False), ("../a", True), ("d/../../ws/a", True), ("/etc", True), ("$PWD/a", False),
     ("$PWD", False), ("$PWD-x/a", True), (".", False)],
)  # fmt: skip
def test_links_that_lead_outside_are_told(user: As, target: str, outside: bool) -> None:
    found = by_path(user.examine("mkdir d", f'ln -s "{target}" l'))
    assert found["l"].outside == outside


@pytest.mark.parametrize("target", ["b/../secret", "./b//../secret", "$PWD/d/e/b/../secret"])
def test_a_link_that_goes_one_step_back_from_another_link_is_told_to_lead_outside(user: As, target: str) -> None:
    found = by_path(user.examine("mkdir -p d/e", f'ln -s ../.. d/e/b; ln -s "{target}" d/e/a'))
    assert (found["d/e/b"].outside, found["d/e/a"].outside) == (False, True)


def test_what_was_moved_is_told_as_renamed(user: As) -> None:
    found = by_path(user.examine("mkdir d; echo a >d/a; echo b >d/b; : >empty", "mv d e; mv empty empty2"))
    assert {path: (change.action, change.renamed_from) for path, change in found.items()} == {
        "d": ("deleted", None), "d/a": ("deleted", None), "d/b": ("deleted", None), "e": ("created", None),
        "e/a": ("renamed", "d/a"), "e/b": ("renamed", "d/b"), "empty": ("deleted", None), "empty2": ("created", None),
    }  # fmt: skip


def test_of_equal_files_that_were_moved_each_has_one_source_the_same_name_first(user: As) -> None:
    found = by_path(user.examine("mkdir d; echo a >d/x; echo a >d/y", "mv d e; cp e/x e/z"))
    assert {path: change.renamed_from for path, change in found.items() if path.startswith("e/")} == {
        "e/x": "d/x", "e/y": "d/y", "e/z": None,
    }  # fmt: skip


def test_files_with_several_names_in_the_layer_are_told_together(user: As) -> None:
    found = manners(user.examine("echo old >old", "echo n >n; ln n n2; mkdir d; ln n d/n3; ln old link"))
    assert {path: manner.linked_to for path, manner in found.items()} == {
        "n": b"d/n3", "n2": b"d/n3", "d": None, "d/n3": None, "link": b"old",
    }  # fmt: skip


def test_a_file_that_has_other_names_is_written_through(user: As) -> None:
    found = manners(user.examine("echo a >a; ln a b; echo c >c", "echo x >>a; echo x >>c"))
    assert found["a"].in_place
    assert not found["c"].in_place


def test_root_tells_a_file_that_was_put_in_the_place_of_one_with_other_names(user: As) -> None:
    found = manners(user.examine("echo a >a; ln a b", "echo other >t; mv t a"))
    assert found["a"].in_place == (user.user != "root"), "an ordinary user's layer does not tell; through is the guess"


def test_a_file_from_elsewhere_in_the_tree_is_not_taken_for_the_one_with_other_names(user: As) -> None:
    """It came up from beneath too, but not from there."""
    found = manners(user.examine("echo a >a; ln a b; echo other >c", "mv c a"))
    assert not found["a"].in_place


def test_files_with_other_names_that_were_swapped_are_told_apart(user: As) -> None:
    found = manners(user.examine("echo a >a; ln a b; echo c >c; ln c d", "mv a t; mv c a; mv t c"))
    assert [found["a"].in_place, found["c"].in_place] == [user.user != "root"] * 2, "as above"


def test_what_is_in_a_folder_that_was_replaced_is_never_written_through(user: As) -> None:
    found = manners(user.examine("mkdir d; echo a >d/a; ln d/a b", "rm -r d; mkdir d; echo x >d/a"))
    assert not found["d/a"].in_place


def test_names_of_one_file_that_got_different_contents_are_taken_apart(user: As) -> None:
    found = user.examine("echo a >a; ln a b", "echo x >>a; echo y >>b")
    if user.user == "root":  # the layer keeps them together
        assert len({step.after.hash for step in found.steps if step.after}) == 1
        assert all(manner.in_place and manner.linked_to is None for manner in found.manners)
    else:
        assert [manner.in_place for manner in found.manners] == [False, False]


def test_a_file_that_was_changed_under_a_name_that_is_gone_is_not_kept_and_that_is_said(user: As) -> None:
    found = user.examine("echo a >a; ln a b", "echo x >>a; rm a; echo new >a")
    # An ordinary user's layer cannot tell: it is taken for one that was written to, under both of its names.
    assert told(found) == (["modified a"] if user.user == "root" else ["modified a", "modified b"])
    said = "a hard-linked file was changed under a name that is gone; its other names stay unchanged"
    assert found.unkept == ((said,) if user.user == "root" else ())


def test_to_remove_a_name_of_a_file_changes_nothing_under_the_others(user: As) -> None:
    found = user.examine("echo a >a; ln a b; echo c >c; ln c d", "rm a; mv c e")
    assert (sorted(told(found)), found.unkept) == (["deleted a", "deleted c", "renamed e"], ())


def test_times_and_attributes_of_the_users_own(user: As) -> None:
    script = "touch -d @1000000000 n; setfattr -n user.mine -v x n; setfattr -n user.overlay.opaque -v y n; chmod 644 n"
    found = manners(user.examine("echo b >b; setfattr -n user.kept -v k b", f"{script}; echo more >>b"))
    assert found["n"] == Placement(
        in_place=False, mtime_ns=1_000_000_000 * 10**9, attributes={"user.mine": b"x", "user.overlay.opaque": b"y"}
    )
    assert found["b"].attributes == {"user.kept": b"k"}


def test_attributes_alone_are_not_kept_and_that_is_said(user: As) -> None:
    found = user.examine("echo a >a; setfattr -n user.x -v 1 a", "setfattr -n user.x -v 2 a")
    assert found.steps == ()
    assert found.unkept == ("a: only its extended attributes changed, and changes to them alone are not kept",)


def test_pipes_and_sockets_are_not_kept_and_that_is_said(user: As) -> None:
    found = user.examine("echo f >f; mkfifo old", "mkfifo p; rm f; mkfifo f; rm old; echo o >old")
    assert told(found) == ["deleted f"]
    assert found.unkept == (
        "f: it is a named pipe, and those are not kept",
        "old: it was a named pipe before, which stays as it is",
        "p: it is a named pipe, and those are not kept",
    )


def test_of_very_many_that_are_not_kept_it_is_said_how_many(user: As) -> None:
    found = user.examine("true", "for n in $(seq 70); do mkfifo p$n; done")
    assert len(found.unkept) == 51
    assert found.unkept[-1] == "and 20 more"


def test_a_socket_beneath_stays(user: As) -> None:
    def work(world: World) -> tuple[str, ...]:
        os.chdir(world.root)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("s")
            return world.examine("rm s").unkept

    assert user(work) == ("s: it was a socket before, which stays as it is",)


def test_what_a_command_closed_to_itself_is_read_and_stays_closed(user: As) -> None:
    def work(world: World) -> tuple[OverlayChanges, list[int]]:
        layer = world.layer(
            "echo s >s; chmod 000 s; mkdir -p z/y; echo x >z/y/x; chmod 000 z/y z; chmod 300 .; chmod 755 ."
        )
        examined = examine(world.workspace(), layer)
        upper = layer.overlaid[0].upper
        return examined, [os.stat(f"{upper}/{name}").st_mode & 0o777 for name in ("s", "z")]

    found, modes = user(work)
    assert told(found) == ["created s", "created z", "created z/y", "created z/y/x"]
    assert [step.after.mode for step in found.steps[:3]] == [0, 0, 0]
    assert modes == [0, 0]


def test_what_could_not_be_read_before_cannot_be_kept(user: As) -> None:
    if user.user == "root":
        pytest.skip("root can read everything")
    found = user.examine("echo a >a; chmod 000 a; mkdir d; echo x >d/x; chmod 000 d", "rm -f a; chmod 755 d; rm -r d")
    assert found.steps == ()
    assert [words.partition(":")[0] for words in found.unkept] == ["a", "d", "d"]


def test_the_permissions_of_a_root_are_not_kept_and_that_is_said(user: As) -> None:
    found = user.examine("true", "chmod 711 .; echo a >a")
    assert told(found) == ["created a"]
    assert found.unkept[0].endswith("/ws: changes to the permissions of a root are not kept")


def test_odd_names(user: As) -> None:
    script = "echo a >$'new\\nline'; echo a >' '; echo a >$'\\xff'; mkdir 'a,b:c'; echo a >'a,b:c/\\'; echo a >é"
    found = user.examine("true", script)
    assert {step.path for step in found.steps} == {
        b"new\nline", b" ", b"\xff", b"a,b:c", b"a,b:c/\\", "é".encode(),
    }  # fmt: skip
    assert "\\xff" in "".join(change.path for change in found.changes).replace("\\udcff", "\\xff")


def test_binary_files_are_told_apart(user: As) -> None:
    found = by_path(user.examine("head -c 99 /dev/zero >gone", "head -c 99 /dev/zero >b; echo t >t; rm gone"))
    assert [found[path].binary for path in ("b", "t", "gone")] == [True, False, True]


def test_a_sparse_file_that_is_larger_than_memory_would_like_is_hashed_in_pieces(user: As) -> None:
    found = by_path(user.examine("true", "truncate -s 64M sparse"))
    assert found["sparse"].size == 64 << 20
    assert found["sparse"].after == hashlib.sha256(bytes(64 << 20)).hexdigest()


def test_a_whiteout_with_nothing_beneath_says_nothing(user: As) -> None:
    def work(world: World) -> tuple[OverlayChanges, int]:
        world.sh("echo a >a")
        layer = world.layer("rm a")
        os.unlink(world.root / "a")
        return examine(world.workspace(), layer), sum(len(list(OverlayWalk(mount).paths())) for mount in layer.overlaid)

    found, paths = user(work)
    assert (found.steps, paths) == ((), 0)


def test_a_whiteout_in_the_form_of_an_attribute_counts_too(user: As) -> None:
    def work(world: World) -> OverlayChanges:
        world.sh("echo a >a; mkdir d; echo x >d/x; echo b >b")
        layer = world.layer("true")
        for name in ("a", "d"):
            path = f"{layer.overlaid[0].upper}/{name}"
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            os.setxattr(path, "user.overlay.whiteout", b"")
        return examine(world.workspace(), layer)

    assert told(user(work)) == ["deleted a", "deleted d", "deleted d/x"]
