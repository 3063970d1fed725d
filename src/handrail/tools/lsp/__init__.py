"""Tools that ask language servers, one module a kind of question."""
