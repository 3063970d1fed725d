"""OpenTelemetry traces of runs: a span for the run, which has one for each call of a model or tool."""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from datetime import datetime

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, Status, StatusCode

from handrail.api import Handrail
from handrail.models.base import Model, ModelRequest, StreamPiece
from handrail.protocol.events import Event, ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.version import VERSION


class RunTraces:
    """Names and results are in the spans, never contents. Several threads may use it."""

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        """Without a processor the spans go where the variables `OTEL_EXPORTER_OTLP_…` say."""
        resource = Resource.create({"service.name": "handrail", "service.version": VERSION})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(processor or BatchSpanProcessor(_build_exporter()))
        self._tracer = self._provider.get_tracer("handrail")

    @contextmanager
    def trace_run(self, session: str, tries: int) -> Generator["RunTrace"]:
        attributes = {"handrail.session": session, "handrail.tries": tries}
        with self._tracer.start_as_current_span("handrail.run", attributes=attributes) as span:
            yield RunTrace(self._tracer, span)

    def close(self) -> None:
        """Sends what is left."""
        self._provider.shutdown()


class RunTrace:
    """The spans of one run."""

    def __init__(self, tracer: trace.Tracer, span: Span) -> None:
        self._tracer, self._span = tracer, span
        self._context = trace.set_span_in_context(span)
        self._calls: dict[str, Span] = {}

    def follow(self, rail: Handrail) -> None:
        """Makes a span for each later call of a tool."""
        rail.subscribe(self._take, kinds=(ToolCallStart, ToolCallEnd, ToolCallError))

    def wrap(self, model: Model) -> Model:
        return _TracedModel(model, self)

    def end(self, reason: str, tokens: int) -> None:
        """Notes how the turn ended. Calls that wait for an approval end here, and continue in the next run."""
        self._span.set_attributes({"handrail.reason": reason, "handrail.tokens": tokens})
        for span in self._calls.values():
            span.set_attribute("handrail.waits", True)
            span.end()

    def start_model_call(self, name: str) -> Span:
        return self._tracer.start_span("handrail.model", self._context, attributes={"handrail.model": name})

    def _take(self, event: Event) -> None:
        if isinstance(event, ToolCallStart):
            attributes = {"handrail.tool": event.tool_call_name, "handrail.call": event.tool_call_id}
            self._calls[event.tool_call_id] = self._tracer.start_span(
                "handrail.tool", self._context, attributes=attributes, start_time=_to_nanoseconds(event.time)
            )
        elif isinstance(event, ToolCallEnd | ToolCallError):
            span = self._calls.pop(event.tool_call_id, None)
            if span is not None:
                if event.result.error is not None:
                    span.set_status(Status(StatusCode.ERROR, event.result.error.code))
                span.end(_to_nanoseconds(event.time))


class _TracedModel:
    def __init__(self, model: Model, run: RunTrace) -> None:
        self._model, self._run = model, run
        self.name, self.window = model.name, model.window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        span = self._run.start_model_call(self.name)
        try:
            async for piece in self._model.stream(request):
                yield piece
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            span.end()

    async def close(self) -> None:
        await self._model.close()


def _build_exporter() -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  slow to load

    return OTLPSpanExporter()


def _to_nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1e9)
