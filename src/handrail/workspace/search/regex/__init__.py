"""Rust's regular expressions, as far as they can be given their exact meaning in Python."""
