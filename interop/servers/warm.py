"""Starts a Python server on stdio without the seconds that it takes to import its SDK: they are spent once.

`warm.py SOCKET PROGRAM` imports what `PROGRAM` does, and waits. `warm.py SOCKET` is a new server: a fork of that process
with the standard streams of this one. Each ends with the other.
"""

import os
import runpy
import signal
import socket
import sys
import threading


def serve(address, program):
    runpy.run_path(program)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(16)
        print(f"warm at {address}", flush=True)
        while True:
            client, _ = listener.accept()
            _, streams, _, _ = socket.recv_fds(client, 1, 3)
            if os.fork() == 0:
                listener.close()
                break
            client.close()
            for stream in streams:
                os.close(stream)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    threading.Thread(target=lambda: (client.recv(1), os._exit(1)), daemon=True).start()
    sys.argv = [program, "stdio"]
    runpy.run_path(program, run_name="__main__")


def join(address):
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [b"s"], [0, 1, 2])
        for number in range(3):
            os.close(number)
        server.recv(1)


if __name__ == "__main__":
    serve(*sys.argv[1:]) if len(sys.argv) == 3 else join(sys.argv[1])
