"""File search, by ripgrep or by Python with the same results.

`search.choose_engines` picks the engine. `search.find_files`, `search.find_hits` and `search.find_in_stream` search
with either one.
"""
