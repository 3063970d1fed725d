"""Requests that schemathesis makes up from the OpenAPI document: none of them is too much for the server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.serve_process import PATIENCE, ServeProcess

from handrail.server.info import build_document

_SETTINGS = "[server]\nrequests = 100_000\ndirect_calls = true\n"
_STREAM = "/api/tasks/{task}/stream"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path, settings=_SETTINGS) as one:
        yield one


def _list_operations() -> list[Any]:
    import schemathesis

    document = {**build_document(), "servers": [{"url": "http://127.0.0.1"}]}
    found = [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations()]
    return [operation for operation in found if operation.path != _STREAM]  # a stream has no end


@pytest.mark.filterwarnings("ignore")
def test_no_request_is_answered_with_a_server_error(server: ServeProcess, deep: bool) -> None:
    from schemathesis import GenerationMode

    operations = _list_operations()
    assert len(operations) > 35
    with server.client() as client:
        task = client.post("/api/tasks", json={}).json()["id"]
        for operation in operations:
            for mode in GenerationMode:

                @settings(max_examples=50 if deep else 2, suppress_health_check=list(HealthCheck), deadline=None)
                @given(operation.as_strategy(generation_mode=mode), st.booleans())
                def ask(case: Any, is_real: bool) -> None:
                    if is_real and "task" in (case.path_parameters or {}):
                        case.path_parameters["task"] = task
                    response = case.call(
                        base_url=server.address,
                        headers={**(case.headers or {}), "Authorization": f"Bearer {server.token}"},
                        timeout=PATIENCE,
                    )
                    assert response.status_code < 500 or response.status_code == 503, response.text

                ask()
    assert not [line for line in server.said if "internal error" in line]
