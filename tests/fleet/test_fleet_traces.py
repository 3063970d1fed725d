"""Traces of a worker: a run with its model calls and tool calls."""

from pathlib import Path

from fleet_worker import ON, find_model
from fleets import Fleet
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from handrail.fleet.run import Run
from handrail.fleet.traces import RunTraces


def test_a_run_is_a_span_with_its_model_calls_and_tool_calls(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    traces = RunTraces(SimpleSpanProcessor(exporter))
    ended: list[tuple[str, int]] = []
    with Fleet(tmp_path) as fleet:
        fleet.submit("append:2", "one")
        run = Run(
            fleet.sessions,
            "one",
            worker="here",
            folder=str(tmp_path / "runs"),
            find_model=find_model,
            settings=ON,
            on_end=lambda state, tokens, _seconds: ended.append((state, tokens)),
            traces=traces,
        )
        run.perform()
        run.perform()  # a job too many finds nothing to do
        assert fleet.read("one", "log.txt") == "line-0\nline-1\n"
    traces.close()
    first, *_ = [span for span in exporter.get_finished_spans() if span.name == "handrail.run"]
    assert first.context is not None
    own = first.context.span_id
    inside = [span.name for span in exporter.get_finished_spans() if span.parent and span.parent.span_id == own]
    assert inside == ["handrail.model", "handrail.tool", "handrail.model", "handrail.tool", "handrail.model"]
    assert first.attributes is not None
    assert (first.attributes["handrail.reason"], first.attributes["handrail.session"]) == ("done", "one")
    assert ended == [("idle", 0), ("idle", 0)]
