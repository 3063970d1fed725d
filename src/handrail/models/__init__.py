"""Models: what the loop asks, whoever answers. Providers are imported when one is called."""
