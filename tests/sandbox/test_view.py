"""The view of a command: where the home is, what becomes of the state folder, whatever the roots are."""

import tempfile
from pathlib import Path

import pytest
from namespaces import World

from handrail.sandbox.mounts import Mount
from handrail.sandbox.view import build_base_view, build_view


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def kinds(world: World, *, roots: tuple[str, ...] = (), **changes) -> dict[str, str]:
    """Of each place what lies there."""
    confinement = world.confinement(cwd="/", writable=roots)
    return {mount.place: mount.kind for mount in build_view(confinement, build_base_view(world.host(**changes)))}


def test_a_home_is_private_and_a_root_in_it_is_not(world: World) -> None:
    found = kinds(world, roots=(str(world.workspace),))
    assert (found[str(world.home)], found[str(world.workspace)]) == ("home", "writable")
    assert list(found).index(str(world.home)) < list(found).index(str(world.workspace))


@pytest.mark.parametrize("home", ["/", "/usr", "/etc", "/tmp", "/dev"])
def test_a_home_never_takes_the_place_of_what_every_command_needs(world: World, home: str) -> None:
    found = kinds(world, home=home)
    assert "home" not in found.values()
    assert (found["/usr"], found["/tmp"], found["/dev"]) == ("shown", "private", "devices")


@pytest.mark.parametrize("above", [False, True])
def test_a_root_that_holds_the_home_shows_it_without_the_state_folder(world: World, above: bool) -> None:
    place = str(world.folder if above else world.home)
    state = world.write("home/.local/state/handrail/audit.jsonl").parent
    found = kinds(world, roots=(place,), state=str(state))
    assert (found[place], found[str(state)]) == ("writable", "no-folder")
    assert "home" not in found.values()


def test_the_whole_disk_as_a_root_leaves_processes_devices_and_tmp_private(world: World) -> None:
    found = kinds(world, roots=("/",), state="/srv/state", home="/srv/home")
    assert (found["/"], found["/srv/state"]) == ("writable", "no-folder")
    assert (found["/tmp"], found["/proc"], found["/dev"]) == ("private", "processes", "devices")
    # Only handrail's own ripgrep is shown, if handrail is installed in the real /tmp.
    assert all(path.startswith("/tmp/") for path, kind in found.items() if kind in {"home", "shown"})


def test_a_root_at_tmp_is_the_real_one(world: World) -> None:
    assert kinds(world, roots=("/tmp",))["/tmp"] == "writable"


def test_the_links_at_the_root_of_the_disk_stay_links(world: World) -> None:
    for name in ("bin", "lib"):
        place = Path("/", name)
        expected = (
            Mount("link", str(place), str(place.readlink())) if place.is_symlink() else Mount("shown", str(place))
        )
        assert expected in build_base_view(world.host()).mounts


def test_one_look_lasts_a_while_and_is_about_one_host(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.sandbox.view._SECONDS_TO_KEEP", 3600.0)
    host, other = world.host(), world.host()
    first = build_base_view(host)
    world.write("home/.nvm/node")
    second = build_base_view(other)
    assert f"{world.home}/.nvm" in [mount.place for mount in second.mounts]
    for _ in range(3):  # two sessions on one workspace take turns, and each keeps its own look
        assert build_base_view(host) is first
        assert build_base_view(other) is second


def test_a_root_in_the_other_temporary_folder_can_be_worked_in() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        world = World(Path(folder))
        world.write("home/other.txt")
        ended = world.run("echo x >made; cat made; touch /var/tmp/own; ls /var/tmp ../..")
        assert sorted(ended.out.split()) == sorted(["x", "../..:", "projects", "/var/tmp:", world.folder.name, "own"])
        assert not Path("/var/tmp/own").exists()
