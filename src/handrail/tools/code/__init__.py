"""Tools that know the syntax of files, and the programs that format and check them."""
