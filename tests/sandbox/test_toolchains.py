"""Toolchains: what a command needs of somebody's home, and never a credential."""

import os
from pathlib import Path

import pytest
from namespaces import World

from handrail.policy.names import find_protection
from handrail.sandbox.mounts import (
    TOOLCHAINS,
    Mount,
    find_objection,
    is_shown,
    list_refused_toolchains,
    list_toolchain_mounts,
    order_mounts,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def seen(world: World, path: str, **changes) -> bool:
    """Whether a command would see this, in a home that is otherwise empty."""
    host = world.host(**changes)
    mounts = order_mounts((Mount("home", str(world.home)), *list_toolchain_mounts(host)))
    return is_shown(mounts, os.path.join(world.home, path))


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda toolchain: f"{toolchain.name} {toolchain.folder}")
def test_no_place_of_the_table_is_one_of_credentials(toolchain) -> None:
    for part in toolchain.parts or ("",):
        path = os.path.join("/home/somebody", toolchain.folder, part).rstrip("/")
        assert find_protection(path) != "credential"


@pytest.mark.parametrize("toolchain", [one for one in TOOLCHAINS if one.folder and one.folder[0] != "/"], ids=str)
def test_every_toolchain_of_the_table_is_found_in_the_home(world: World, toolchain) -> None:
    part = os.path.join(toolchain.folder, (toolchain.parts or ("",))[0], "program")
    world.write(f"home/{part}")
    assert seen(world, part)


@pytest.mark.parametrize(
    ("secret", "beside"),
    [
        (".cargo/credentials.toml", ".cargo/bin/cargo"),
        (".cargo/credentials", ".cargo/registry/index"),
        (".cargo/config.toml", ".cargo/bin/cargo"),
        (".m2/settings.xml", ".m2/repository/a.jar"),
        (".gradle/gradle.properties", ".gradle/wrapper/dists/x"),
        (".gem/credentials", ".gem/ruby/3.1.0/x"),
        (".pub-cache/credentials.json", ".pub-cache/bin/x"),
        (".julia/servers/pkg.julialang.org/auth.toml", ".julia/packages/x"),
        (".nuget/NuGet/NuGet.Config", ".nuget/packages/x"),
        (".cabal/config", ".cabal/bin/x"),
        (".hex/hex.config", ".hex/packages/x"),
        (".config/composer/auth.json", ".config/composer/vendor/bin/x"),
        (".opam/plugins/opam-publish/repos/x.token", ".opam/default/bin/ocaml"),
        (".dotnet/corefx/cryptography/x509stores/my/key", ".dotnet/sdk/x"),
        (".local/share/keyrings/login", ".local/bin/x"),
        (".config/gh/hosts.yml", ".config/yarn/global/node_modules/x"),
        (".nvm/.npmrc", ".nvm/versions/node/v20/bin/node"),
        (".pyenv/.env", ".pyenv/versions/3.12/bin/python"),
        (".rustup/id_rsa", ".rustup/toolchains/x"),
        ("miniconda3/.condarc", "miniconda3/bin/python"),
        (".local/share/pnpm/auth.ini", ".local/share/pnpm/node"),
        ("go/src/work/private.go", "go/pkg/mod/x"),
        (".ssh/id_ed25519", ".local/bin/x"),
    ],
)
def test_a_credential_beside_a_toolchain_is_not_seen(world: World, secret: str, beside: str) -> None:
    world.write(f"home/{secret}")
    world.write(f"home/{beside}")
    assert seen(world, beside)
    assert not seen(world, secret)


def test_a_variable_moves_a_toolchain(world: World) -> None:
    world.write("elsewhere/cargo/bin/cargo")
    world.write("elsewhere/cargo/credentials.toml")
    world.environ["CARGO_HOME"] = str(world.folder / "elsewhere/cargo")
    assert seen(world, str(world.folder / "elsewhere/cargo/bin/cargo"))
    assert not seen(world, str(world.folder / "elsewhere/cargo/credentials.toml"))


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_environment_that_is_activated_is_shown_without_its_index_password(world: World, variable: str) -> None:
    world.write("home/envs/e/bin/tool")
    world.write("home/envs/e/pip.conf", "[global]\nindex-url = https://me:secret@host/")
    world.write("home/envs/e/.condarc")
    world.environ[variable] = str(world.home / "envs/e")
    assert seen(world, "envs/e/bin/tool")
    assert not seen(world, "envs/e/pip.conf")
    assert not seen(world, "envs/e/.condarc")


def test_an_environment_on_path_is_shown_with_the_python_it_was_made_with(world: World) -> None:
    world.write("home/pythons/3.12/bin/python3.12")
    world.write("home/pythons/3.12/lib/python3.12/os.py")
    world.write("home/envs/e/pyvenv.cfg")
    (world.home / "envs/e/bin").mkdir()
    (world.home / "envs/e/bin/python").symlink_to(world.home / "pythons/3.12/bin/python3.12")
    world.environ["PATH"] = f"{world.home}/envs/e/bin:{world.home}/other/bin:/usr/bin"
    world.write("home/other/bin/x")
    assert seen(world, "envs/e/bin")
    assert seen(world, "pythons/3.12/bin/python3.12")
    assert not seen(world, "other/bin/x")


def test_a_toolchain_behind_links_is_shown_with_the_links(world: World) -> None:
    world.write("disk/pyenv/versions/x")
    (world.home / ".pyenv").symlink_to(world.folder / "disk/pyenv")
    mounts = order_mounts((Mount("home", str(world.home)), *list_toolchain_mounts(world.host())))
    assert Mount("link", f"{world.home}/.pyenv", f"{world.folder}/disk/pyenv") in mounts
    assert is_shown(mounts, f"{world.home}/.pyenv/versions/x")


def test_a_link_does_not_make_a_toolchain_of_the_home_or_of_credentials(world: World) -> None:
    world.write("home/.ssh/id_rsa")
    (world.home / ".pyenv").symlink_to(world.home)
    (world.home / ".nvm").symlink_to(world.home / ".ssh")
    (world.home / ".rbenv").symlink_to("/")
    assert [mount for mount in list_toolchain_mounts(world.host()) if mount.kind == "shown"] == []


def test_settings_add_files_and_folders_with_the_credentials_in_them_covered(world: World) -> None:
    world.write("home/tools/bin/x")
    world.write("home/tools/.netrc")
    world.write("home/.config/some/x")
    world.write("home/.config/gh/hosts.yml")
    world.write("home/.config/containers/auth.json")
    shown = (f"{world.home}/tools", f"{world.home}/.config")
    assert seen(world, "tools/bin/x", toolchains=shown)
    assert seen(world, ".config/some/x", toolchains=shown)
    for secret in ("tools/.netrc", ".config/gh/hosts.yml", ".config/containers/auth.json"):
        assert not seen(world, secret, toolchains=shown)


@pytest.mark.parametrize(
    "path",
    ["/", "/home", "/etc", "/var", "~", "~/..", "~/.ssh", "~/.aws/x", "~/to-home", "~/to-keys", "STATE", "STATE/x"],
)
def test_a_toolchain_that_would_bare_too_much_is_refused(world: World, path: str) -> None:
    world.write("home/.ssh/id_rsa")
    (world.home / "to-home").symlink_to(world.home)
    (world.home / "to-keys").symlink_to(world.home / ".ssh")
    spelled = path.replace("~", str(world.home)).replace("STATE", str(world.folder / "state"))
    host = world.host(toolchains=(spelled,))
    assert find_objection(spelled, host)
    assert [why for named, why in list_refused_toolchains(host) if named == spelled]


def test_what_cannot_be_shown_is_said(world: World) -> None:
    world.write("home/tools/x")
    host = world.host(toolchains=(f"{world.home}/tools", f"{world.home}/gone", "tools"))
    assert dict(list_refused_toolchains(host)) == {
        f"{world.home}/gone": "it does not exist",
        "tools": "it is not an absolute path",
    }
