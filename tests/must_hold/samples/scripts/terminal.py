"""A program that is given a terminal of its own."""

import os
import pty

answer = b""
child, terminal = pty.fork()
if child == 0:
    os.execvp("tty", ["tty"])
while True:
    try:
        answer += os.read(terminal, 100)
    except OSError:
        break
print("terminal", answer.decode().strip())
