"""What in the roots is kept from commands, looked for anew only where something changed."""

import os
import random
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.policy.names import find_protection
from handrail.protocol.errors import ToolError
from handrail.workspace.roots import Root
from handrail.workspace.sensitive_paths import MaskedPaths, SensitivePaths, list_read_only_paths

LONG_AGO = 1_000_000_000
SOON = 0.05
"""Seconds after which a change bears another time on every clock that tests run with."""


class Place:
    """Roots of one test; paths are told relative to the folder they are all in."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.workspace = tmp / "shop"
        self.workspace.mkdir()
        self.roots = [Root(str(self.workspace), main=True)]
        self.withheld = SensitivePaths()

    def root(self, name: str, *, writable: bool = True) -> Root:
        (self.tmp / name).mkdir(parents=True, exist_ok=True)
        self.roots.append(Root(str(self.tmp / name), writable=writable))
        return self.roots[-1]

    def put(self, *names: str) -> None:
        for name in names:
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text("x")

    def found(self, withheld: SensitivePaths | None = None) -> dict[str, list[str]]:
        found = (withheld or self.withheld).scan(self.roots)
        shown = {kind: sorted(os.path.relpath(path, self.tmp) for path in getattr(found, kind)) for kind in KINDS}
        return {kind: paths for kind, paths in shown.items() if paths}


KINDS = MaskedPaths.__struct_fields__


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    opened = Place(tmp_path.resolve())
    yield opened
    for root in opened.roots:
        root.close()


class Reads:
    """Which folders are read, as the interpreter itself tells."""

    def __init__(self) -> None:
        self.on = False
        self.paths: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on and event == "os.scandir" and isinstance(arguments[0], int):
            self.paths.append(os.path.basename(os.readlink(f"/proc/self/fd/{arguments[0]}")))

    def take(self) -> list[str]:
        """Those since the last time."""
        taken, self.paths = sorted(self.paths), []
        return taken


@pytest.fixture(scope="module")
def heard() -> Reads:
    return Reads()  # such a hook cannot be taken out again


@pytest.fixture
def reads(heard: Reads) -> Iterator[Reads]:
    heard.on = True
    yield heard
    heard.on = False
    heard.take()


def grow_old(top: Path, seconds: float) -> None:
    """Until nothing in a tree has changed for so long."""
    changed = max(os.stat(folder).st_ctime_ns for folder, _, _ in os.walk(top))
    while (time.time_ns() - changed) / 1e9 <= seconds:
        time.sleep(seconds / 10)


def test_a_workspace_without_anything_to_withhold_has_nothing(place: Place) -> None:
    place.put("README.md", "src/main.py", ".env.example", "src/key.pub.pem")
    assert place.found() == {}


def test_credentials_are_found_by_their_names_in_every_folder(place: Place) -> None:
    place.put(".env", "a/b/c/id_rsa", "certs/server.KEY", ".ssh/config", "a/.aws/deep/x", "home/.config/gh/hosts.yml")
    place.put("node_modules/x/.npmrc", ".git/.git-credentials", "home/.config/git/credentials")
    assert place.found() == {
        "credentials": [
            "shop/.env",
            "shop/.git/.git-credentials",
            "shop/a/b/c/id_rsa",
            "shop/certs/server.KEY",
            "shop/home/.config/git/credentials",
            "shop/node_modules/x/.npmrc",
        ],
        "credential_folders": ["shop/.ssh", "shop/a/.aws", "shop/home/.config/gh"],
    }


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET], ids=str)
def test_a_socket_that_nobody_has_any_more_is_not_withheld(
    place: Place, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    monkeypatch.chdir(place.workspace)
    name = "s" * 100
    with socket.socket(socket.AF_UNIX, kind) as listening:
        listening.bind(name)
        assert place.found() == {"sockets": [f"shop/{name}"]}
        if kind != socket.SOCK_DGRAM:
            listening.listen()
            assert place.found() == {"sockets": [f"shop/{name}"]}
            listening.settimeout(0)
            with pytest.raises(BlockingIOError):
                listening.accept()
    place.put("new")
    assert place.found() == {}


def test_sockets_and_pipes_are_found_and_links_to_them_are_not(place: Place) -> None:
    (place.workspace / "run").mkdir()
    os.mkfifo(place.workspace / "run/pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place.workspace / "run/agent"))
        (place.workspace / "link").symlink_to("run/agent")
        assert place.found() == {"sockets": ["shop/run/agent"], "pipes": ["shop/run/pipe"]}


def test_a_credential_is_found_whatever_kind_of_file_it_is(place: Place) -> None:
    os.mkfifo(place.workspace / ".env")
    assert place.found() == {"credentials": ["shop/.env"]}


def test_a_link_called_like_a_credential_withholds_what_it_leads_to(place: Place) -> None:
    place.put("real/settings", "real/keys/one", "real/keys/id_rsa", "other")
    (place.workspace / ".env").symlink_to("real/settings")
    (place.workspace / ".ssh").symlink_to("real/keys")
    assert place.found() == {"credentials": ["shop/real/settings"], "credential_folders": ["shop/real/keys"]}
    (place.workspace / ".env").unlink()
    (place.workspace / ".env").symlink_to("other")
    assert place.found()["credentials"] == ["shop/other"]


@pytest.mark.parametrize("target", ["/etc/hostname", "gone", ".", "..", ".env", "/"])
def test_a_link_that_leads_to_nothing_in_the_roots_withholds_nothing(place: Place, target: str) -> None:
    (place.workspace / ".env").symlink_to(target)
    assert place.found() == {}


def test_no_link_is_followed_on_the_way(place: Place) -> None:
    (place.tmp / "outside").mkdir()
    (place.tmp / "outside/.env").write_text("x")
    (place.workspace / "out").symlink_to(place.tmp / "outside")
    (place.workspace / "round").symlink_to(".")
    assert place.found() == {}


def test_a_root_in_another_is_looked_through_once(place: Place, reads: Reads) -> None:
    place.put("vendor/.env", "vendor/lib/x")
    place.root("shop/vendor", writable=False)
    assert place.found() == {"credentials": ["shop/vendor/.env"]}
    assert reads.take() == ["lib", "shop", "vendor"]


def test_a_folder_of_credentials_that_is_a_root_itself_is_not_withheld_as_a_whole(place: Place) -> None:
    place.put(".docker/config.json", ".docker/id_rsa")
    place.root("shop/.docker")
    assert place.found() == {"credentials": ["shop/.docker/id_rsa"]}


def test_roots_may_come_and_go(place: Place) -> None:
    place.put("inner/.env")
    extra = place.root("extra")
    (place.tmp / "extra/.env").write_text("x")
    inner = place.root("shop/inner")
    expected = {"credentials": ["extra/.env", "shop/inner/.env"]}
    assert place.found() == expected
    place.roots.remove(inner)
    assert place.found() == expected
    place.roots.remove(extra)
    assert place.found() == {"credentials": ["shop/inner/.env"]}
    place.roots.append(extra)
    assert place.found() == expected
    inner.close()


def test_only_folders_that_changed_are_read_again(place: Place, reads: Reads) -> None:
    place.put("a/x", "b/c/.env", "d/x")
    place.withheld = SensitivePaths(settled_after=SOON)
    grow_old(place.workspace, SOON)
    assert place.found() == {"credentials": ["shop/b/c/.env"]}
    assert reads.take() == ["a", "b", "c", "d", "shop"]
    assert place.found() == {"credentials": ["shop/b/c/.env"]}
    assert reads.take() == []
    (place.workspace / "d/x").write_text("other content")
    assert place.found() == {"credentials": ["shop/b/c/.env"]}
    assert reads.take() == []
    place.put("a/id_rsa")
    os.utime(place.workspace / "a", (LONG_AGO, LONG_AGO))
    assert place.found() == {"credentials": ["shop/a/id_rsa", "shop/b/c/.env"]}
    assert reads.take() == ["a"]


def test_a_folder_that_has_just_changed_is_read_again_the_next_time(place: Place, reads: Reads) -> None:
    place.put("a/x")
    place.withheld = SensitivePaths(settled_after=3600)
    place.found()
    reads.take()
    place.found()
    assert reads.take() == ["a", "shop"], "a change within the same tick of the clock would not show"


CHANGES: dict[str, Callable[[Path], object]] = {
    "made": lambda top: (top / "b/.env").write_text("x"),
    "removed": lambda top: (top / "a/.env").unlink(),
    "renamed": lambda top: (top / "a/.env").rename(top / "b/id_rsa"),
    "renamed to nothing": lambda top: (top / "a/.env").rename(top / "a/plain"),
    "folder moved": lambda top: (top / "a").rename(top / "b/a"),
    "folder swapped for a link": lambda top: ((top / "a").rename(top / "z"), (top / "a").symlink_to("z")),
    "folder made": lambda top: (top / "n/m").mkdir(parents=True) or (top / "n/m/.netrc").write_text("x"),
    "folders exchanged": lambda top: (
        (top / "a").rename(top / "t"), (top / "b").rename(top / "a"), (top / "t").rename(top / "b")
    ),
    "tree removed": lambda top: shutil.rmtree(top / "a"),
    "hard link": lambda top: os.link(top / "b/x", top / "b/.env"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_after_any_change_it_finds_what_a_first_look_finds(place: Place, change: str) -> None:
    place.put("a/.env", "b/x", "c/d/e/x")
    place.withheld = SensitivePaths(settled_after=SOON)
    grow_old(place.workspace, SOON)
    before = place.found()
    CHANGES[change](place.workspace)
    after = place.found()
    assert after == place.found(SensitivePaths())
    assert after != before


def test_after_many_changes_it_finds_what_a_plain_walk_finds(place: Place, deep: bool) -> None:
    place.withheld = SensitivePaths(settled_after=SOON)
    source = random.Random(None if deep else 3)
    names = ["a", "b", ".env", "id_rsa", ".ssh", "x.pem", ".config", "gh", "plain"]
    for _ in range(400 if deep else 80):
        _disturb(place.workspace, source, names)
        assert place.found() == _walked(place.workspace, place.tmp)


def _disturb(top: Path, source: random.Random, names: list[str]) -> None:
    folders = [Path(folder) for folder, _, _ in os.walk(top)]
    target = source.choice(folders) / source.choice(names)
    if target.is_dir():
        shutil.rmtree(target)
    elif target.exists():
        target.unlink()
    elif source.random() < 0.5:
        target.mkdir()
    else:
        target.write_text("x")


def _walked(top: Path, tmp: Path) -> dict[str, list[str]]:
    """The same, said in other words: the first name on a path by which policy calls it a credential."""
    files, folders = list[str](), list[str]()
    for folder, inner, names in os.walk(top):
        here = Path(folder)
        if find_protection(str(here.relative_to(top))) == "credential":
            continue
        for found, into in ((inner, folders), (names, files)):
            paths = [here / name for name in found]
            into += [
                str(path.relative_to(tmp))
                for path in paths
                if find_protection(str(path.relative_to(top))) == "credential"
            ]
    shown = {"credentials": sorted(files), "credential_folders": sorted(folders)}
    return {kind: paths for kind, paths in shown.items() if paths}


def test_a_walk_by_names_finds_the_same_as_one_by_openat2(place: Place) -> None:
    place.put("a/b/c/.env", ".ssh/x", "d/id_rsa", "e")
    assert place.found(SensitivePaths(kernel=False)) == place.found(SensitivePaths(kernel=True)) == place.found()


def test_too_many_folders_are_an_error_that_says_what_to_do(place: Place) -> None:
    for number in range(6):
        (place.workspace / f"f{number}").mkdir()
    few = SensitivePaths(most_folders=6)
    for _ in range(2):
        with pytest.raises(ToolError, match=r"more than 6 folders.*Ask for a smaller folder") as caught:
            few.scan(place.roots)
        assert caught.value.code == "LIMIT_EXCEEDED"
    (place.workspace / "f0").rmdir()
    assert few.scan(place.roots) == MaskedPaths()


def test_after_an_error_nothing_old_is_told(place: Place) -> None:
    place.root("extra")
    place.put("a/x")
    few = SensitivePaths(most_folders=3)
    assert few.scan(place.roots) == MaskedPaths()
    place.put("a/.env")
    for number in range(4):
        (place.tmp / f"extra/f{number}").mkdir()
    with pytest.raises(ToolError):
        few.scan(place.roots)
    for number in range(4):
        (place.tmp / f"extra/f{number}").rmdir()
    assert few.scan(place.roots).credentials == (str(place.workspace / "a/.env"),)


def test_a_folder_whose_path_is_too_long_is_withheld_as_a_whole(place: Place) -> None:
    name = "n" * 200
    way = os.open(place.workspace, os.O_RDONLY)
    for _ in range(25):
        os.mkdir(name, dir_fd=way)
        way, outer = os.open(name, os.O_RDONLY, dir_fd=way), way
        os.close(outer)
    with open(os.open(".env", os.O_CREAT | os.O_WRONLY, dir_fd=way), "w"):
        pass
    os.close(way)
    found = place.withheld.scan(place.roots)
    (folder,) = found.credential_folders
    assert 3_600 < len(folder) < 4_095
    assert os.path.isdir(folder)
    shutil.rmtree(place.workspace / name)
    assert place.withheld.scan(place.roots) == MaskedPaths()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_only_its_owner_could_open_is_withheld_as_a_whole(place: Place) -> None:
    place.put("closed/.env")
    (place.workspace / "closed").chmod(0o311)
    assert place.found() == {"credential_folders": ["shop/closed"]}
    (place.workspace / "closed").chmod(0o755)
    assert place.found() == {"credentials": ["shop/closed/.env"]}


def test_names_that_are_no_unicode_are_looked_through(place: Place) -> None:
    folder = os.fsencode(place.workspace) + b"/\xff\xfe"
    os.mkdir(folder)
    with open(folder + b"/.env", "w"):
        pass
    assert [os.fsencode(path) for path in place.withheld.scan(place.roots).credentials] == [folder + b"/.env"]


def test_a_root_that_is_gone_is_an_error(place: Place) -> None:
    extra = place.root("extra")
    place.found()
    extra.close()
    with pytest.raises(ToolError, match="can no longer be read"):
        place.found()
    place.roots.remove(extra)
    assert place.found() == {}


def test_many_threads_may_look_at_once_while_things_change(place: Place) -> None:
    place.put("always/.env", *(f"f{number}/x" for number in range(20)))
    always = str(place.workspace / "always/.env")
    stop, faults = threading.Event(), list[object]()

    def ask() -> None:
        while not stop.is_set():
            found = place.withheld.scan(place.roots)
            if always not in found.credentials:
                faults.append(found)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(100):
        place.put(f"g{number % 7}/h/.env")
        shutil.rmtree(place.workspace / f"g{number % 7}")
    stop.set()
    for thread in threads:
        thread.join(30)
    assert faults == []
    assert place.found() == {"credentials": ["shop/always/.env"]}


def test_no_descriptor_is_left_open(place: Place) -> None:
    place.put("a/b/.env", ".ssh/x")
    for kernel in (True, False):
        before = len(os.listdir("/proc/self/fd"))
        SensitivePaths(kernel=kernel).scan(place.roots)
        assert len(os.listdir("/proc/self/fd")) == before


def test_what_decides_about_commands_is_sealed_where_it_is_there(place: Place) -> None:
    assert list_read_only_paths(place.roots) == ()
    place.put("handrail.toml", ".handrail/skills/x", "sub/handrail.toml")
    extra, other = place.root("extra"), place.root("read", writable=False)
    (place.tmp / "extra/handrail.toml").write_text("")
    (place.tmp / "read/handrail.toml").write_text("")
    (place.tmp / "extra/.handrail").symlink_to("/etc")
    assert (extra.writable, other.writable) == (True, False)
    assert [os.path.relpath(path, place.tmp) for path in list_read_only_paths(place.roots)] == [
        "shop/handrail.toml",
        "shop/.handrail",
        "extra/handrail.toml",
    ]


def test_a_search_gets_the_protected_names_below_its_folder(place: Place) -> None:
    place.put(".env", "a/.env", "a/deep/.ssh/id_rsa", "ab/.env", "a/b/c.py")
    (place.workspace / "a/link.pem").symlink_to("b/c.py")
    place.withheld.scan(place.roots)
    listed = {folder: sorted(place.withheld.list_known(place.roots[0], folder) or ()) for folder in (".", "a")}
    assert listed["."] == [(b".env", False), (b"a/.env", False), (b"a/deep/.ssh", True), (b"ab/.env", False)]
    assert listed["a"] == [(b".env", False), (b"deep/.ssh", True)]


def test_protected_names_are_those_of_the_last_scan(place: Place, reads: Reads) -> None:
    place.put("a/.env", "b/c.py")
    assert place.withheld.list_known(place.roots[0], ".") is None
    place.withheld.scan(place.roots)
    reads.take()
    assert place.withheld.list_known(place.roots[0], ".") == ((b"a/.env", False),)
    shutil.rmtree(place.workspace / "a")
    reads.take()
    assert place.withheld.list_known(place.roots[0], ".") == ((b"a/.env", False),)
    assert reads.take() == []
    place.withheld.scan(place.roots)
    assert place.withheld.list_known(place.roots[0], ".") == ()
