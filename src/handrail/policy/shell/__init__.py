"""A strict parser for the subset of bash in which a text has one provable meaning."""
