#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs a command whose standard error is a terminal: on_tty.py FILE COMMAND [ARG]...

What it writes there is in FILE at once, as a terminal would get it.  Ends as it ends.
The terminal has as many columns as COLUMNS says in the environment.
"""
import fcntl
import os
import struct
import subprocess
import sys
import termios


def main(path, *command):
    terminal, its_end = os.openpty()
    columns = int(os.environ.get("COLUMNS", "0"))
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with open(path, "wb", buffering=0) as file:
        with subprocess.Popen(command, stderr=its_end) as process:
            os.close(its_end)
            try:
                while data := os.read(terminal, 4096):
                    file.write(data)
            except OSError:
                pass    # how it ends when nobody has the other end any more
            return process.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
