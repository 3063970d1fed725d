"""The server of `handrail serve`."""
