"""Every role on every route: what it may not do is refused before anything else is looked at."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import httpx2
import pytest
from tests.server.serve_process import ServeProcess

from handrail.server.routes import ROUTES, Route
from handrail.server.wire import ROLES

_CALLERS = (*ROLES, "nobody", "stranger")


class Party(NamedTuple):
    server: ServeProcess
    clients: dict[str, httpx2.Client]


@pytest.fixture(scope="module")
def party(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    """A server with a token for each role."""
    with ServeProcess(tmp_path_factory.mktemp("roles"), settings="[server]\nrequests = 10_000\n") as server:
        tokens = {role: server.add_token(role, role) for role in ROLES} | {"nobody": "", "stranger": "x" * 43}
        clients = {name: server.client(token) for name, token in tokens.items()}
        yield Party(server, clients)
        for client in clients.values():
            client.close()


def _ask(client: httpx2.Client, route: Route) -> httpx2.Response:
    """The response to a request with ids that nothing has, and with a body that is no message."""
    path = re.sub(r"\{(\w+)\}", lambda found: "7" if found[1] == "number" else "no-such-thing", route.path)
    body = {"content": b"[]", "headers": {"content-type": "application/json"}} if route.body is not None else {}
    return client.request(route.method, path, **body)


@pytest.mark.parametrize("caller", _CALLERS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_role_is_let_in_where_the_table_says_so(party: Party, route: Route, caller: str) -> None:
    response = _ask(party.clients[caller], route)
    status = response.status_code
    if caller in {"nobody", "stranger"}:
        assert status == 401
        assert response.json()["code"] == "UNAUTHORIZED"
    elif ROLES.index(caller) < ROLES.index(route.role):
        assert (status, response.json()["code"]) == (403, "FORBIDDEN")
        assert route.role in response.json()["message"]
    else:
        assert status < 500, response.text
        assert status not in {401, 405}
        assert status != 403 or response.json()["code"] != "FORBIDDEN" or "role" not in response.json()["message"]


def test_the_table_has_every_kind_of_route() -> None:
    assert {route.role for route in ROUTES} == set(ROLES)
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize("caller", _CALLERS)
def test_an_unknown_address_and_another_method_are_told_to_those_with_a_token(party: Party, caller: str) -> None:
    client, known = party.clients[caller], caller in ROLES
    unknown, other = client.get("/api/nothing"), client.put("/api/tasks")
    assert (unknown.status_code, other.status_code) == ((404, 405) if known else (401, 401))
    if known:
        assert other.headers["allow"] == "GET, POST"
        assert other.json()["code"] == "METHOD_NOT_ALLOWED"


def test_only_an_admin_may_choose_the_mode_without_questions(party: Party) -> None:
    def modes(role: str) -> list[str]:
        return party.clients[role].get("/api/info").json()["modes"]

    assert modes("viewer") == []
    assert modes("operator") == ["ask", "plan", "auto"]
    assert modes("admin") == ["ask", "plan", "auto", "full"]
    refused = party.clients["operator"].post("/api/tasks", json={"mode": "full"})
    assert refused.status_code == 403
