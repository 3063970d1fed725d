"""Who writes in a root does not choose what commands see outside of it."""

import os
import socket
from pathlib import Path

import pytest
from namespaces import PROGRAM, World

from handrail.sandbox.mounts import list_toolchain_mounts

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no bubblewrap here")

WAYS = {
    "the interpreter of an activated environment": ("VIRTUAL_ENV", ".venv", ".venv/bin/python", "deep/program"),
    "an environment that is itself a link": ("VIRTUAL_ENV", ".venv", ".venv", "."),
    "a toolchain that a variable moved into the root": ("CARGO_HOME", ".cargo", ".cargo/bin", "."),
}


def with_link(world: World, way: str, outside: Path) -> dict[str, str]:
    """A root with the link in it, and the environment of who works there."""
    variable, named, link, below = WAYS[way]
    place = world.workspace / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.normpath(outside / below))
    return world.environ | {variable: str(world.workspace / named)}


@pytest.mark.parametrize("way", WAYS)
def test_a_link_in_a_root_shows_no_other_folder(tmp_path: Path, way: str) -> None:
    world = World(tmp_path)
    secret = world.write("home/other/deep/secret.txt")
    environ = with_link(world, way, world.home / "other")
    for confinement in (world.confinement(), world.proven()):
        assert "content" not in world.run(f"cat {secret}", confinement, environ=environ).out


@pytest.mark.parametrize("way", WAYS)
def test_a_link_in_a_root_leads_to_no_socket_outside(tmp_path: Path, way: str) -> None:
    world = World(tmp_path)
    (world.folder / "run" / "deep").mkdir(parents=True)
    environ = with_link(world, way, world.folder / "run")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(world.folder / "run" / "bus"))
        assert "bus" not in world.run(f"ls {world.folder}/run", environ=environ).out


def test_a_variable_that_names_a_link_outside_of_the_roots_is_followed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("home/big-disk/cargo/bin/cargo")
    (world.home / ".cargo").symlink_to(world.home / "big-disk/cargo")
    assert world.run("cat ~/.cargo/bin/cargo").out == "content"


def test_the_python_of_an_environment_in_a_root_is_shown_wherever_it_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    python = world.write("elsewhere/python/bin/python3.12")
    world.write("elsewhere/python/lib/python3.12/os.py")
    (world.workspace / ".venv/bin").mkdir(parents=True)
    environ = world.environ | {"VIRTUAL_ENV": str(world.workspace / ".venv")}
    (world.workspace / ".venv/bin/python").symlink_to(python)
    assert world.run(f"cat {python}", environ=environ).out == "content"


def test_a_link_in_a_root_opens_no_other_folder_to_landlock_either(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("home/other/deep/secret.txt")
    for way in WAYS:
        inner = World(tmp_path / WAYS[way][2].replace("/", "-"))
        environ = with_link(inner, way, world.home / "other")
        shown = [mount.place for mount in list_toolchain_mounts(inner.host(environ=environ), (str(inner.workspace),))]
        assert not [place for place in shown if place.startswith(f"{world.home}/other")]
