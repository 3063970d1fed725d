"""The keeper: a program that runs one background command, which outlives the call and the runtime that started it.

It runs in a bare interpreter: its modules import the standard library, `kernel` and `sandbox.launch`, and little of it.
"""
