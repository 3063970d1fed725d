"""The keeper, a program: it keeps one command that outlives the call, and the runtime, that started it.

Only what a bare interpreter has is imported here, and as little of that as will do: there may be many of them.
"""
