"""Globs that hide credentials from search programs: never more than `find_protection` says, and hardly less."""

import subprocess
from pathlib import Path

import pytest

from handrail.policy.credential_names import (
    CREDENTIAL_ENDINGS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    PLAIN_ENDINGS,
    PLAIN_FILES,
    PUBLIC_ENDINGS,
    TEMPLATES,
)
from handrail.policy.names import find_protection, is_credential, list_secret_globs
from handrail.workspace.search.ripgrep import find_ripgrep

TABLE = [
    *CREDENTIAL_FOLDERS,
    *CREDENTIAL_FILES,
    *PLAIN_FILES,
    *(f"{start}{ending}" for ending in PLAIN_ENDINGS for start in ("", "prod", "my-le", "e", "x.y")),
    *(f"{start}{ending}" for ending in CREDENTIAL_ENDINGS for start in ("", "server", "mypub", "b", "ub", "pub")),
    *(f".env.{word}" for word in ("local", "prod", "production", "dev", "development", "test", "staging", "secrets")),
    *(f".env.{word}" for word in ("vault", "private", "remote", "example.local", "ci", "docker", "stage", "aws")),
]
CREDENTIALS = sorted({*TABLE, *map(str.upper, TABLE), *map(str.title, TABLE)} - {""})
OTHERS = [
    *(f".env.{word}" for word in TEMPLATES),
    *(f".env.local.{word}" for word in TEMPLATES),
    *(f".ENV.{word.upper()}" for word in TEMPLATES),
    *(f"server{ending}" for ending in PUBLIC_ENDINGS),
    *(f".dev.vars.{word}" for word in TEMPLATES),
    *("example.env", "my.sample.env", "template.tfvars", "secrets.py", "prod.env.example", "kubeconfig.go"),
    "env", ".environment", "ssh", "id_rsa.pub", "key", "pem", "keys.py", ".env-notes", "credentials.json.md", "x.py",
]  # fmt: skip


def listed(folder: Path, *options: str) -> set[str]:
    """What ripgrep lists of a folder."""
    program = find_ripgrep(())
    assert program is not None
    command = [program, "--no-config", "--hidden", "--files", "--null", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return {name.decode() for name in done.stdout.split(b"\0") if name}


@pytest.fixture
def options() -> list[str]:
    return [f"--iglob=!{glob}" for glob in list_secret_globs()]


def test_every_name_of_the_table_is_covered_in_any_case(tmp_path: Path, options: list[str]) -> None:
    for name in CREDENTIALS:
        assert is_credential(name), name
        (tmp_path / name).write_text("secret")
    assert len(listed(tmp_path)) == len(CREDENTIALS)
    assert listed(tmp_path, *options) == set(), "these would be searched"


def test_what_is_no_credential_is_not_passed_over(tmp_path: Path, options: list[str]) -> None:
    for name in OTHERS:
        assert not is_credential(name), name
        (tmp_path / name).write_text("text")
    assert listed(tmp_path, *options) == set(OTHERS)


@pytest.mark.parametrize("ending", [".", " ", "..", ". ."])
def test_a_template_with_dots_at_its_end_is_not_passed_over(tmp_path: Path, options: list[str], ending: str) -> None:
    (tmp_path / f".env.example{ending}").write_text("text")
    assert listed(tmp_path, *options) == {f".env.example{ending}"}


def test_a_single_name_is_judged_as_a_path_is() -> None:
    for name in (*CREDENTIALS, *OTHERS):
        assert is_credential(name) == (find_protection(name) == "credential")
