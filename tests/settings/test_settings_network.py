"""Which hosts are listed for commands, as settings say it."""

from pathlib import Path

import pytest
from layer_files import find_problem, load_layers

from handrail.settings import LoadedSettings, SettingsError

LISTED = 'network.allow = ["example.net:443", "*.example.org", "10.0.0.0/8:5432"]'


def load_with(
    tmp_path: Path, user: str, project: str = "", *, trusted: bool = True, managed: str = ""
) -> LoadedSettings:
    return load_layers(tmp_path, user=user, project=project, managed=managed, trusted=trusted)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_can_narrow_the_list_and_never_widen_it(tmp_path: Path, trusted: bool) -> None:
    said = 'network.allow = ["api.example.org:443", "example.net:443", "example.net", "evil.org"]'
    loaded = load_with(tmp_path, LISTED, said, trusted=trusted)
    assert loaded.settings.network.allow == ("api.example.org:443", "example.net:443")
    assert "applies only if stricter (" in loaded.notes[0]
    assert load_with(tmp_path, LISTED, "network.allow = []", trusted=trusted).settings.network.allow == ()


def test_of_the_persons_list_and_the_managed_one_what_both_have_counts(tmp_path: Path) -> None:
    managed = 'network.allow = ["*.org:443", "10.1.0.0/16:5432"]'
    with pytest.raises(SettingsError, match="it would allow the domains of many owners"):
        load_with(tmp_path, LISTED, managed=managed)
    loaded = load_with(
        tmp_path, LISTED, managed='network.allow = ["example.net", "10.1.0.0/16:5432", "a.example.org:80"]'
    )
    assert set(loaded.settings.network.allow) == {"example.net:443", "10.1.0.0/16:5432", "a.example.org:80"}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("https://example.net/simple", "it is a URL; write only its host and port"),
        ("localhost:8080", "it is the sandbox's own; this machine is listed by its address, such as 127.0.0.1:8080"),
        ("*", "a star stands for subdomains, as in *.example.org"),
        ("*.org", "it would allow the domains of many owners"),
        ("0.0.0.0/0", "it would allow too many addresses"),
        ("example.org.", "example.org. ends with a dot"),
        ("0x7f.1:80", "0x7f.1 is not an IPv4 address in its plain form, such as 192.0.2.7"),
        ("example.org:0", "a port is a number from 1 to 65535, with commas between several, each once"),
    ],
)
def test_a_wrong_entry_is_told_with_its_line_its_key_and_what_is_right(tmp_path: Path, entry: str, why: str) -> None:
    said = find_problem(tmp_path, f'# hosts\nnetwork.allow = ["example.net:443", "{entry}"]')
    assert said.startswith("line 2: network.allow is ")
    assert '; allowed: a list such as "index.example.org:443"' in said
    assert said.endswith(f"; {entry} cannot be listed: {why}")


def test_what_is_no_list_of_texts_is_refused_without_looking_into_it(tmp_path: Path) -> None:
    assert "; allowed: a list such as" in find_problem(tmp_path, "network.allow = [443]")
    assert "; allowed: a list such as" in find_problem(tmp_path, 'network.allow = "example.net"')
