"""Where the hosts of package registries come from: variables, files and installed clients that a command sees."""

import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from handrail.protocol.decisions import CommandFact
from handrail.runtime.facts import collect_command_facts
from handrail.sandbox.profile import SandboxHost
from handrail.workspace.workspace import Workspace

INDEX = 'class PackageIndex:\n    pass\n\nPyPI = PackageIndex("https://{0}/", file_storage_domain="files.{0}")\n'
TEST_INDEX = 'TestPyPI = PackageIndex(\n    "https://test.{0}/", file_storage_domain="test-files.{0}"\n)\n'
DEFINITIONS = "{}\n  registry: new Definition('registry', {{\n    default: 'https://{}/',\n    type: url,\n"
UNKNOWN = "the registry of {} is not known; list its host in network.allow"


class Machine:
    """A workspace with one folder of programs, which commands see because settings list it as a toolchain."""

    def __init__(self, workspace: Path, base: Path) -> None:
        self.root, self.base = workspace, base
        self.tools, self.home = base / "tools", base / "home"
        for folder in (self.tools / "bin", self.home):
            folder.mkdir(parents=True)
        self.place = Workspace(str(workspace))

    def install(self, program: str) -> None:
        (self.tools / "bin" / program).write_text("#!/bin/sh\n")

    def add(self, path: str, text: str) -> Path:
        file = self.base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def fact(self, text: str, variables: Mapping[str, str] | None = None, cwd: str = ".") -> CommandFact:
        given = variables or {}
        host = SandboxHost(
            home=str(self.home),
            environ={"PATH": str(self.tools / "bin"), **given},
            state=str(self.base / "state"),
            toolchains=(str(self.tools),),
            variables=tuple(given),
        )
        found = collect_command_facts(self.place, text, cwd, tier=2, host=lambda: host).command
        assert found is not None
        return found

    def hosts(self, text: str, variables: Mapping[str, str] | None = None, cwd: str = ".") -> tuple[str, ...]:
        return self.fact(text, variables, cwd).hosts


@pytest.fixture
def machine(workspace: Path, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(workspace, tmp_path / "machine")
    with made.place:
        yield made


@pytest.fixture
def pip(machine: Machine) -> Machine:
    machine.install("python3")
    index = INDEX.format("index.example.org") + TEST_INDEX.format("index.example.org")
    machine.add("tools/lib/python3.99/site-packages/pip/_internal/models/index.py", index)
    return machine


@pytest.fixture
def npm(machine: Machine) -> Machine:
    package = "tools/lib/node_modules/npm"
    machine.add(f"{package}/bin/npm-cli.js", "")
    (machine.tools / "bin" / "npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    definitions = DEFINITIONS.format("// x\n" * 20_000, "npm.example.org")
    machine.add(f"{package}/node_modules/@npmcli/config/lib/definitions/definitions.js", definitions)
    return machine


DEFAULT = ("index.example.org:443", "files.index.example.org:443")


def test_the_default_comes_from_the_installed_client(pip: Machine) -> None:
    for command in ("pip install x", "python3 -m pip install x", "pipx install x", "uv add x", "poetry add x", "uvx y"):
        assert pip.hosts(command) == DEFAULT
    assert pip.hosts("pip install --no-index x") == ()
    assert pip.hosts("pip install -i https://other.example.org/simple x") == ("other.example.org:443",)


def test_npm_and_its_kin_share_the_default_of_the_installed_npm(npm: Machine) -> None:
    for command in ("npm ci", "npx a", "pnpm install", "bun install"):
        assert npm.hosts(command) == ("npm.example.org:443",)


def test_the_wheel_that_python_bundles_has_the_default_too(machine: Machine) -> None:
    machine.install("python3")
    wheel = machine.add("tools/lib/python3.99/ensurepip/_bundled/pip-99-py3-none-any.whl", "")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pip/_internal/models/index.py", INDEX.format("wheel.example.org"))
    assert machine.hosts("pip install x") == ("wheel.example.org:443", "files.wheel.example.org:443")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, None])
def test_a_damaged_wheel_has_no_default(machine: Machine, method: int | None) -> None:
    machine.install("python3")
    wheel = machine.add("tools/lib/python3.99/ensurepip/_bundled/pip-99-py3-none-any.whl", "PK\x05\x06")
    if method is not None:
        with zipfile.ZipFile(wheel, "w", method) as archive:
            archive.writestr("pip/_internal/models/index.py", INDEX.format("damaged.example.org") * 50)
        content = wheel.read_bytes()
        wheel.write_bytes(content[:80] + b"\xff" * 20 + content[100:])
    assert "damaged.example.org:443" not in machine.hosts("pip install x")


def test_variables_that_commands_get_replace_the_default(pip: Machine, npm: Machine) -> None:
    mirror = {"PIP_INDEX_URL": "https://mirror.example.org/simple"}
    assert pip.hosts("pip install x", mirror) == ("mirror.example.org:443",)
    assert pip.hosts("uv add x", mirror) == DEFAULT
    more = {"PIP_EXTRA_INDEX_URL": "https://a.example.org/simple http://b.example.org:8080/simple"}
    assert pip.hosts("pip install x", more) == (*DEFAULT, "a.example.org:443", "b.example.org:8080")
    assert pip.hosts("uv add x", {"UV_DEFAULT_INDEX": "https://u.example.org/"}) == ("u.example.org:443",)
    given = {"NPM_CONFIG_REGISTRY": "https://n.example.org/"}  # no command gets this one
    assert npm.hosts("npm ci", given) == ("npm.example.org:443",)


def test_a_variable_that_commands_do_not_get_counts_for_nothing(pip: Machine, tmp_path: Path) -> None:
    environ = {"PATH": str(pip.tools / "bin"), "PIP_INDEX_URL": "https://mirror.example.org/simple"}
    host = SandboxHost(home=str(pip.home), environ=environ, state=str(tmp_path / "s"), toolchains=(str(pip.tools),))
    found = collect_command_facts(pip.place, "pip install x", tier=2, host=lambda: host).command
    assert found is not None
    assert found.hosts == DEFAULT


def test_pip_conf_is_read_where_a_command_sees_it(pip: Machine) -> None:
    conf = "[global]\nindex_url = https://somebody:word@conf.example.org/simple\nextra-index-url =\n    {}\n    {}\n"
    text = conf.format("https://a.example.org/simple", "https://b.example.org/simple")
    pip.add("home/.config/pip/pip.conf", text)
    assert pip.hosts("pip install x") == DEFAULT  # the home that commands have is another one
    pip.add("tools/pip.conf", text)
    expected = ("conf.example.org:443", "a.example.org:443", "b.example.org:443")
    assert pip.hosts("pip install x") == expected


def test_a_link_to_a_file_that_commands_do_not_see_is_not_followed(pip: Machine) -> None:
    secret = pip.add("hidden/pip.conf", "[global]\nindex-url = https://hidden.example.org/\n")
    (pip.tools / "pip.conf").symlink_to(secret)
    (pip.root / ".npmrc").symlink_to(pip.add("hidden/npmrc", "registry=https://hidden.example.org/\n"))
    assert pip.hosts("pip install x") == DEFAULT
    assert "hidden.example.org:443" not in pip.hosts("npm ci")


def test_a_file_that_may_hold_credentials_is_not_read(npm: Machine) -> None:
    (npm.root / ".npmrc").write_text("//r.example.org/:_authToken=npm_0123\nregistry=https://r.example.org/npm/\n")
    assert npm.hosts("npm ci") == ("npm.example.org:443",)


def test_go_has_its_proxy_and_its_checksums_in_one_file(machine: Machine) -> None:
    machine.add("tools/lib/go/bin/go", "")
    (machine.tools / "bin" / "go").symlink_to("../lib/go/bin/go")
    machine.add("tools/lib/go/go.env", "# x\nGOPROXY=https://proxy.example.org,direct\nGOSUMDB=sum.example.org\n")
    assert machine.hosts("go get a") == ("proxy.example.org:443", "sum.example.org:443")
    several = {"GOPROXY": "https://a.example.org|https://b.example.org,direct"}
    assert machine.hosts("go get a", several) == ("a.example.org:443", "b.example.org:443")


def test_an_unknown_registry_is_named_and_nothing_of_a_file_is_shown(machine: Machine) -> None:
    assert machine.fact("cargo fetch").unopened == (UNKNOWN.format("cargo"),)
    assert machine.fact("conda install x").unopened == (UNKNOWN.format("conda"),)
    alone = collect_command_facts(machine.place, "cargo fetch", tier=2).command
    assert alone is not None
    assert alone.unopened == (UNKNOWN.format("cargo"),)


@pytest.mark.parametrize("url", ["https://se_cret/", "https://us,er@y.example.org/", 'https://us"er@y.example.org'])
def test_a_url_without_a_certain_host_shows_nothing_of_itself(pip: Machine, url: str) -> None:
    pip.add("tools/pip.conf", f"[global]\nindex-url = {url}\n")
    fact = pip.fact("pip install x")
    assert (fact.hosts, fact.unopened) in (((), (UNKNOWN.format("pip"),)), (("y.example.org:443",), ()))


@pytest.mark.parametrize(
    "text",
    ["", "\0\xff", "[" * 100_000, "a." * 50_000, " " * 100_000, "=\n" * 50_000, "[[index]]\n" * 10_000, "]" * 70_000,
     "url = " + "https://" * 10_000 + '"', "#" * 70_000 + "\nregistry=https://late.example.org\n",
     "https://\n" * 9_000],
)  # fmt: skip
def test_malformed_and_huge_files_are_ignored(pip: Machine, npm: Machine, text: str) -> None:
    for name in ("pip.conf", "uv.toml", "go.env"):
        (pip.tools / name).write_text(text, encoding="latin-1")
    assert pip.hosts("pip install x") == DEFAULT
    assert npm.hosts("npm ci") == ("npm.example.org:443",)


def test_folders_and_pipes_are_no_files(npm: Machine) -> None:
    os.mkfifo(npm.root / ".npmrc")
    assert npm.hosts("npm ci") == ("npm.example.org:443",)
    (npm.root / ".npmrc").unlink()
    (npm.root / ".npmrc").mkdir()
    assert npm.hosts("npm ci") == ("npm.example.org:443",)


def test_the_pip_that_is_really_installed(workspace: Path, tmp_path: Path) -> None:
    models = pytest.importorskip("pip._internal.models.index")
    folder = os.path.dirname(sys.executable)
    host = SandboxHost(
        home=str(tmp_path), environ={"PATH": folder}, state=str(tmp_path / "s"), toolchains=(sys.prefix,)
    )
    with Workspace(str(workspace)) as place:
        found = collect_command_facts(place, "pip install x", tier=2, host=lambda: host).command
    assert found is not None
    assert found.hosts == (f"{urlsplit(models.PyPI.url).netloc}:443", f"{models.PyPI.file_storage_domain}:443")
