"""A busy machine: processes that compute, and a server that stands still for seconds."""

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

BURN = [sys.executable, "-c", "while True: pass"]
SEED = 1


@contextmanager
def load(processes):
    """The machine computes twice as much as it can; every process of the run stands still now and then."""
    burners = [subprocess.Popen(BURN, env=processes.env) for _ in range(2 * (os.cpu_count() or 1))]
    done = threading.Event()
    pauser = threading.Thread(target=pause, args=(processes, {it.pid for it in burners}, done), daemon=True)
    pauser.start()
    try:
        yield
    finally:
        done.set()
        pauser.join()
        for burner in burners:
            burner.kill()
            burner.wait()


def pause(processes, burners, done):
    """Stops one server after the other, each for up to three seconds."""
    draw = random.Random(SEED)
    while not done.wait(draw.uniform(0.2, 1.5)):
        servers = [pid for pid, command in processes.left().items() if pid not in burners and is_server(command)]
        if not servers:
            continue
        pid = draw.choice(sorted(servers))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            done.wait(draw.uniform(0.1, 3))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def is_server(command):
    return Path(command.split(" ")[0]).name != "rehearse"
