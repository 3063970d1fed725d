"""`handrail serve` as a command: where it listens, what it prints, what it needs, how it ends."""

import json
import os
import re
import shutil
import signal
import ssl
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.server.serve_process import PATIENCE, TOKEN, ServeProcess
from websockets.exceptions import ConnectionClosed

from apart import environment_in
from handrail.server.wire import Closing

_MOST_IDLE_KB = 60 * 1024


def _run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command of handrail that ends by itself."""
    environment = environment_in(folder, **variables)
    whole = [sys.executable, "-m", "handrail", *words]
    return subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


def _serve(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return _run(folder, "serve", "--workspace", str(folder), *options, **variables)


def test_each_start_prints_an_address_with_a_new_token(tmp_path: Path) -> None:
    tokens: set[str] = set()
    for _ in range(2):
        with ServeProcess(tmp_path, token=None) as server, server.client() as client:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}\n", server.printed)
            assert client.get("/api/info").json()["caller"] == {"name": "owner", "role": "admin"}
            tokens.add(server.token)
            assert server.stop() == 0
            server._reader.join()
            assert server.token not in "".join(server.said)
    assert len(tokens) == 2


def test_the_token_of_the_environment_is_printed_nowhere(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server, server.client() as client:
        assert client.get("/api/info").status_code == 200
        assert server.stop() == 0
        server._reader.join()
        assert TOKEN not in server.printed + "".join(server.said)


def test_it_opens_the_browser_at_the_token_without_printing_it_again(tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    os.mkfifo(seen)
    browser.write_text(f'#!/bin/sh\necho "$1" | cat - "${{1#file://}}" >{seen}\n')
    browser.chmod(0o755)
    with ServeProcess(tmp_path, "--open", token=None, variables={"BROWSER": f"{browser} %s"}) as server:
        arguments, page = seen.read_text().split("\n", 1)
        assert server.token not in arguments
        assert f'url={server.address}/#token={server.token}"' in page
        assert stat.S_IMODE(Path(arguments.removeprefix("file://")).stat().st_mode) == 0o600
        with server.client() as client:
            assert client.get("/healthz").status_code == 200  # from here on it obeys signals
        assert server.stop() == 0
        server._reader.join()
        assert server.token not in "".join(server.said)
    assert not Path(arguments.removeprefix("file://")).exists()


def test_without_a_display_it_opens_nothing_and_serves(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, "--open") as server, server.client() as client:
        assert client.get("/api/info").status_code == 200
        assert server.stop() == 0
        server._reader.join()
        assert "there is no browser here" in "".join(server.said)


@pytest.mark.parametrize("user", ["user:secret", "secret"])
def test_a_password_in_the_url_of_a_repository_is_refused(tmp_path: Path, user: str) -> None:
    workspace = f"git+https://{user}@git.example/shop.git"
    refused = _serve(tmp_path, "--database", "postgresql:///none", "--workspace", workspace)
    assert refused.returncode == 2
    assert "every viewer would see" in refused.stderr
    assert "secret" not in refused.stderr


def test_a_weak_token_is_refused(tmp_path: Path) -> None:
    for weak in ("short", "has blanks in its many words", "x" * 15):
        refused = _serve(tmp_path, HANDRAIL_TOKEN=weak)
        assert refused.returncode == 2
        assert "at least 16" in refused.stderr


def test_named_tokens_replace_the_token_of_the_start(tmp_path: Path) -> None:
    added = _run(tmp_path, "serve", "tokens", "add", "ann", "--role", "operator", "--json")
    token = json.loads(added.stdout)["token"]
    with ServeProcess(tmp_path, token=None) as server, server.client(token) as client:
        assert "#token" not in server.printed
        assert client.get("/api/info").json()["caller"] == {"name": "ann", "role": "operator"}
        assert client.get("/api/info", headers={"authorization": "Bearer None"}).status_code == 401


def test_a_named_token_is_shown_once_and_only_its_digest_is_stored(tmp_path: Path) -> None:
    added = _run(tmp_path, "serve", "tokens", "add", "ci", "--role", "viewer")
    token = added.stdout.strip()
    assert re.fullmatch(r"[\w-]{43}", token)
    stored = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path.name for path in stored] == ["ci"]
    assert stat.S_IMODE(stored[0].stat().st_mode) == 0o600
    assert token not in stored[0].read_text()
    listed = _run(tmp_path, "serve", "tokens", "--json").stdout
    assert [(one["name"], one["role"]) for one in json.loads(listed)["tokens"]] == [("ci", "viewer")]
    assert token not in listed
    assert "ci     viewer" in _run(tmp_path, "serve", "tokens").stdout


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("add", "ci"), 2, "there is a token named ci already"),
        (("add", "../ci"), 2, "the name of a token is made of"),
        (("add", "owner"), 2, "the name of a token is made of"),
        (("add",), 2, "the name of the token is missing"),
        (("remove", "nobody"), 1, "there is no token 'nobody'"),
        (("remove", "../ci"), 1, "there is no token '../ci'"),
    ],
)
def test_a_token_that_cannot_be_added_or_removed_is_told(
    tmp_path: Path, words: tuple[str, ...], code: int, problem: str
) -> None:
    assert _run(tmp_path, "serve", "tokens", "add", "ci").returncode == 0
    refused = _run(tmp_path, "serve", "tokens", *words)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert problem in refused.stderr


# Where it listens


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "192.0.2.1:7420", "[::]:0", "[2001:db8::1]:7420"])
def test_other_machines_are_kept_out_without_tls_or_an_explicit_option(tmp_path: Path, listen: str) -> None:
    refused = _serve(tmp_path, "--listen", listen)
    assert refused.returncode == 2
    assert "plain HTTP shows the token to the whole network" in refused.stderr
    assert "--tls-cert" in refused.stderr


@pytest.mark.parametrize("listen", ["example.org:80", "7420", "127.0.0.1", "127.0.0.1:x", "::1:80"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, listen: str) -> None:
    refused = _serve(tmp_path, "--listen", listen, "--allow-plain-http")
    assert refused.returncode == 2
    assert f"--listen '{listen}' is not" in refused.stderr


def test_an_open_address_needs_the_names_that_clients_use(tmp_path: Path) -> None:
    refused = _serve(tmp_path, "--listen", "0.0.0.0:0", "--allow-plain-http")
    assert refused.returncode == 2
    assert "--name HOST" in refused.stderr
    with ServeProcess(tmp_path, "--listen", "0.0.0.0:0", "--allow-plain-http", "--name", "Rail.example.org") as server:
        own, other = f"rail.example.org:{server.port}", f"127.0.0.1:{server.port}"
        with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=PATIENCE) as client:
            assert client.get("/healthz", headers={"host": own}).status_code == 200
            assert client.get("/healthz", headers={"host": other}).status_code == 421


def _make_certificate(folder: Path) -> tuple[str, str]:
    certificate, key = str(folder / "cert.pem"), str(folder / "key.pem")
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_it_serves_with_tls(tmp_path: Path) -> None:
    certificate, key = _make_certificate(tmp_path)
    with ServeProcess(tmp_path, "--tls-cert", certificate, "--tls-key", key) as server:
        assert server.address.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=certificate)
        with server.client(verify=trust) as client:
            assert client.get("/api/info").status_code == 200
            page = {"origin": server.address}
            cookie = client.post("/api/login", json={"token": TOKEN}, headers=page).headers["set-cookie"]
            assert "; Secure" in cookie
            plain = {"origin": server.address.replace("https", "http")}
            assert client.get("/api/info", headers=plain).status_code == 403
        assert server.send(b"GET / HTTP/1.1\r\n\r\n") == b""
        assert server.stop() == 0


def test_tls_needs_a_certificate_with_its_key(tmp_path: Path) -> None:
    assert "need each other" in _serve(tmp_path, "--tls-cert", "x").stderr
    refused = _serve(tmp_path, "--tls-cert", str(tmp_path / "none"), "--tls-key", str(tmp_path / "none"))
    assert refused.returncode == 2
    assert "cannot be used" in refused.stderr


# What it serves


def test_it_serves_several_workspaces_and_no_other_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with ServeProcess(tmp_path, "--workspace", str(other)) as server, server.client() as client:
        assert client.get("/api/info").json()["workspaces"] == [str(server.workspace), str(other)]
        made = client.post("/api/tasks", json={"workspace": str(other)})
        assert made.json()["workspace"] == str(other)
        assert client.post("/api/tasks", json={"workspace": str(tmp_path)}).status_code == 404
    assert "is not a folder" in _serve(tmp_path, "--workspace", str(tmp_path / "none")).stderr


def test_it_speaks_a_dialect(tmp_path: Path) -> None:
    with ServeProcess(tmp_path, "--dialect", "devminds") as server, server.client() as client:
        assert client.get("/api/info").json()["dialect"] == "devminds"
    refused = _serve(tmp_path, "--dialect", "latin")
    assert refused.returncode == 2
    assert "dialect" in refused.stderr


def test_without_a_build_the_console_says_how_to_make_one(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server, server.client("") as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "scripts/web" in page.text or '<script type="module"' in page.text


def test_mcp_is_served_beside_it_for_operators(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    accept = {"accept": "application/json, text/event-stream"}
    with ServeProcess(tmp_path, "--mcp") as server:
        viewer = server.add_token("viewer", "viewer")
        with server.client() as client, server.client(viewer) as other, server.client("") as stranger:
            answer = client.post("/mcp", json=message, headers=accept)
            assert answer.status_code == 200
            assert '"serverInfo"' in answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert other.post("/mcp", json=message, headers=accept).status_code == 403
            assert stranger.post("/mcp", json=message, headers=accept).status_code == 401
        assert server.stop() == 0
    with ServeProcess(tmp_path) as server, server.client() as client:
        assert client.post("/mcp", json=message, headers=accept).status_code in {404, 405}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_closes_the_websockets_so_that_they_can_resume(tmp_path: Path, number: int) -> None:
    with ServeProcess(tmp_path) as server:
        with server.client() as client:
            task = client.post("/api/tasks", json={}).json()["id"]
        with server.follow(task) as opened:
            opened.recv(PATIENCE)
            assert server.stop(number) == 0
            with suppress(ConnectionClosed):
                while True:
                    opened.recv(PATIENCE)
            assert opened.close_code == Closing.RESTARTING
        server._reader.join()
        assert "error" not in "".join(server.said)


def test_an_idle_server_is_small(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server, server.client() as client:
        assert client.get("/healthz").status_code == 200
        status = Path(f"/proc/{server.process.pid}/status")
        if not status.exists():
            pytest.skip("needs /proc")
        used = int(re.findall(r"VmRSS:\s+(\d+) kB", status.read_text())[0])
        assert used <= _MOST_IDLE_KB


# Without the extra


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    for name in ("starlette", "uvicorn", "websockets"):
        (blocked / name).mkdir(parents=True)
        (blocked / name / "__init__.py").write_text(f"raise ImportError('no {name}', name='{name}')\n")
    path = f"{blocked}{os.pathsep}{environment_in(tmp_path)['PYTHONPATH']}"
    refused = _serve(tmp_path, PYTHONPATH=path)
    assert refused.returncode == 2
    assert "the HTTP server is not installed (no " in refused.stderr
    assert "handrail[server]" in refused.stderr
    assert _run(tmp_path, "serve", "tokens", "add", "ci", PYTHONPATH=path).returncode == 0
    assert _run(tmp_path, "tools", PYTHONPATH=path).returncode == 0
    assert _run(tmp_path, "serve", "--help", PYTHONPATH=path).returncode == 0


@pytest.mark.parametrize("code", ["import handrail", "from handrail.cli.main import run; run(['tools', '-q'])"])
def test_nothing_of_the_server_is_imported_without_it(tmp_path: Path, code: str) -> None:
    check = "print([n for n in sys.modules if n.split('.')[0] in {'starlette', 'uvicorn', 'websockets', 'h11'}"
    check += " or n.startswith('handrail.server')], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; {check}"],
        env=environment_in(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[]\n"
