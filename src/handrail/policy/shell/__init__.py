"""The text of a command: a strict lexer over the part of the language in which it provably agrees with bash."""
