"""`handrail serve`: tasks, events and approvals over HTTP and WebSocket."""
