"""What lies where, as data: the order of mounts, what is left out, what can be seen."""

from itertools import permutations

import pytest

from handrail.sandbox.mounts import Mount, is_shown, list_pins, order_mounts
from handrail.workspace.roots import is_inside


def places(*mounts: Mount) -> list[tuple[str, str]]:
    return [(mount.kind, mount.place) for mount in order_mounts(mounts)]


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("/", "/a", False),
    ],
)
def test_a_path_lies_in_a_folder_by_whole_names(path: str, folder: str, inside: bool) -> None:
    assert is_inside(path, folder) is inside


def test_what_holds_others_comes_first_in_whatever_order_it_is_given() -> None:
    mounts = (Mount("shown", "/usr"), Mount("home", "/h"), Mount("writable", "/h/w"), Mount("read-only", "/h/w/x"))
    expected = [("home", "/h"), ("writable", "/h/w"), ("read-only", "/h/w/x"), ("shown", "/usr")]
    assert all(places(*order) == expected for order in permutations(mounts))


def test_names_are_compared_whole_when_mounts_are_ordered() -> None:
    """`/h-x` sorts between `/h` and `/h/w` as text; what lies in `/h` must still follow it."""
    mounts = (Mount("home", "/h"), Mount("writable", "/h-x"), Mount("writable", "/h/w"), Mount("no-file", "/h/w/.env"))
    assert places(*mounts) == [("home", "/h"), ("writable", "/h/w"), ("no-file", "/h/w/.env"), ("writable", "/h-x")]


def test_of_two_at_one_place_the_later_counts() -> None:
    assert places(Mount("home", "/h"), Mount("writable", "/h")) == [("writable", "/h")]


@pytest.mark.parametrize(
    ("outer", "inner", "kept"),
    [
        # a toolchain that is there anyway, in a root or on the system, is neither shown twice nor made read-only
        ("writable", "shown", False),
        ("shown", "shown", False),
        ("home", "shown", True),
        ("private", "link", True),
        ("shown", "link", False),
        # a home in a root is part of the root; one on the system is hidden
        ("writable", "home", False),
        ("shown", "home", True),
        # what lies over something needs something under it
        ("writable", "no-file", True),
        ("shown", "no-folder", True),
        ("home", "no-file", False),
        ("no-folder", "no-file", False),
        ("no-folder", "sealed", False),
        ("writable", "sealed", True),
        ("home", "sealed", False),
        # roots are always there
        ("no-folder", "read-only", True),
        ("home", "writable", True),
        ("read-only", "writable", True),
        ("writable", "private", True),
    ],
)
def test_a_mount_is_made_only_where_it_has_a_point(outer, inner, kept: bool) -> None:
    around = [Mount("writable", "/r")] if outer == "no-folder" else []
    found = places(*around, Mount(outer, "/r/o"), Mount(inner, "/r/o/i"))
    assert (outer, "/r/o") in found
    assert ((inner, "/r/o/i") in found) is kept


def test_what_is_left_out_does_not_count_as_what_is_around() -> None:
    assert places(Mount("writable", "/w"), Mount("home", "/w/h"), Mount("no-file", "/w/h/.env")) == [
        ("writable", "/w"),
        ("no-file", "/w/h/.env"),
    ]


def test_what_can_be_seen_is_said_by_the_innermost_mount() -> None:
    mounts = order_mounts(
        (
            Mount("shown", "/usr"),
            Mount("link", "/bin", "usr/bin"),
            Mount("link", "/run/now", "../usr/./lib"),
            Mount("link", "/lost", "/nowhere"),
            Mount("home", "/h"),
            Mount("shown", "/h/.tool/bin"),
            Mount("writable", "/h/w"),
            Mount("no-folder", "/h/w/keys"),
            Mount("no-file", "/usr/secret"),
        )
    )
    seen = ["/usr/bin/x", "/bin", "/bin/x", "/run/now/x", "/h/.tool", "/h/.tool/bin/x", "/h", "/h/w/a/b"]
    unseen = ["/etc", "/h/other", "/h/.tool/else", "/h/w/keys", "/h/w/keys/k", "/usr/secret", "/lost/x", "/us"]
    assert [path for path in seen if not is_shown(mounts, path)] == []
    assert [path for path in unseen if is_shown(mounts, path)] == []


def test_the_folders_on_the_way_to_something_sealed_cannot_be_moved() -> None:
    assert list(list_pins(["/w/.git/hooks/x", "/w/top", "/elsewhere/x"], ["/w"])) == [
        Mount("pinned", "/w/.git/hooks"),
        Mount("pinned", "/w/.git"),
    ]
