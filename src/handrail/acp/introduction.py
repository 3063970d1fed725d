"""What the agent says of itself when it meets an editor."""

from acp import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    McpCapabilities,
    PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
)

from handrail.protocol.version import VERSION


def build_initialize_response(*, serves_http: bool) -> InitializeResponse:
    """The one version there is, whatever the client asks for: it goes where it cannot speak it."""
    return InitializeResponse(
        protocol_version=PROTOCOL_VERSION,
        agent_capabilities=AgentCapabilities(
            load_session=True,
            prompt_capabilities=PromptCapabilities(embedded_context=True, image=True),
            mcp_capabilities=McpCapabilities(http=serves_http),
            session_capabilities=SessionCapabilities(
                list=SessionListCapabilities(),
                resume=SessionResumeCapabilities(),
                close=SessionCloseCapabilities(),
                additional_directories=SessionAdditionalDirectoriesCapabilities(),
            ),
        ),
        auth_methods=[],
        agent_info=Implementation(name="handrail", title="handrail", version=VERSION),
    )
