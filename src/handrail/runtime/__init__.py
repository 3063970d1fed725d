"""How a call travels: registry, facts, pipeline, latch, locks."""
