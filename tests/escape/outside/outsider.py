"""A process outside of any sandbox: it has a secret in its memory, its environment, its arguments and an open file."""

import ctypes
import os
import signal
import sys

# python outsider.py FILE SECRET: answers each line on stdin with what its memory holds and the signals it has got.
memory = ctypes.create_string_buffer(os.environ["OUTSIDER_SECRET"].encode(), 64)
received: list[int] = []
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCONT, signal.SIGURG, 40):
    signal.signal(number, lambda got, _: received.append(got))
held = os.open(sys.argv[1], os.O_RDWR)
os.unlink(sys.argv[1])
print(ctypes.addressof(memory), held, flush=True)
while line := os.read(0, 100):
    print(memory.raw.hex(), sorted(received), os.getcwd(), os.pread(held, 100, 0), flush=True)
