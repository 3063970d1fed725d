"""The keeper: a program that runs one background command, independent of the runtime that started it.

It runs in a bare interpreter. Its modules import the standard library, `kernel` and `sandbox.launch`, and little of it.
"""
