"""Background processes of the served workspaces."""

from handrail.processes import StoredProcess
from handrail.processes import list_processes as list_stored_processes
from handrail.protocol.records import ProcessRecord
from handrail.server.context import Request
from handrail.server.options import ApiFailure
from handrail.server.wire import ProcessList, ProcessOutput


def list_processes(request: Request) -> ProcessList:
    return ProcessList(processes=tuple(record for _, record in _list_served(request)))


def get_output(request: Request) -> ProcessOutput:
    page = _find_process(request).read_page(request.query["after"])
    return ProcessOutput(text=page.text, next=page.next, running=page.running)


def stop_process(request: Request) -> ProcessList:
    """Ends a process with everything it started. One that has ended stays as it is."""
    process = _find_process(request)
    return ProcessList(processes=(process.record() if process.has_ended() else process.stop(),))


def _list_served(request: Request) -> list[tuple[StoredProcess, ProcessRecord]]:
    return list_stored_processes(
        folder
        for workspace in request.server.options.list_workspaces(request.query.get("workspace"))
        for folder in request.server.options.state.sessions(workspace)
    )


def _find_process(request: Request) -> StoredProcess:
    process_id = request.params["process"]
    for process, _ in _list_served(request):
        if process.id == process_id:
            return process
    raise ApiFailure(404, "PROCESS_NOT_FOUND", "There is no such process. GET /api/processes lists them.")
