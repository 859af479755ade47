"""What a run starts, and how it ends."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
REHEARSE = os.path.abspath(os.environ.get("REHEARSE", TARGET / "debug/rehearse"))
SECONDS = 180  # that a command may take
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    """A peer could not be met; what happened, for people."""


def supervise(body):
    """Calls `body` with the processes of a run, and ends them. Whether it came to its end, and nothing was left."""
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    processes, ended = Processes(), False
    try:
        body(processes)
        ended = True
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    except (Failure, OSError) as failure:
        print(failure, file=sys.stderr)
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        left = processes.close()
    for command in left:
        print(f"✗ still there after the run: {command}")
    return ended and not left


class Processes:
    """Everything that was started, each in its own group, so that nothing outlives the run."""

    def __init__(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="interop-"))
        # Clients hand HOME down to the servers they start, so it marks every process of the run.
        self.env = os.environ | {"HOME": str(self.scratch), "SCRATCH": str(self.scratch), "NO_COLOR": "1"}
        self.running, self.lock, self.closed = [], threading.Lock(), False

    def start(self, command, env=None, **options):
        with self.lock:
            if self.closed:
                raise Failure("interrupted")
            options |= {"encoding": "utf-8", "errors": "replace", "start_new_session": True}
            options.setdefault("stdin", subprocess.DEVNULL)
            process = subprocess.Popen(command, env=self.env | (env or {}), **options)
            self.running.append(process)
            return process

    def run(self, command, env=None, seconds=SECONDS, input=None, **options):
        """The exit code and the output of a command that ends by itself; `input` is its standard input."""
        options |= {"stdin": subprocess.DEVNULL if input is None else subprocess.PIPE}
        process = self.start(command, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        try:
            out, err = process.communicate(input, timeout=seconds)
        except subprocess.TimeoutExpired:
            self.stop(process)
            raise Failure(f"no end after {seconds} s") from None
        return process.returncode, out, err

    def listen(self, command, pattern, env=None, lines=None, **options):
        """The address that a server on a free port writes when it is ready. All that it writes goes into `lines`."""
        process = self.start(command, env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        address, lines, ready = [], [] if lines is None else lines, threading.Event()

        def read():
            for line in process.stdout:
                lines.append(line)
                if not address and (match := re.search(pattern, line)):
                    address.append(match[1])
                    ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(30) or not address:
            raise Failure(f"the server did not start: {' '.join(command)}\n{''.join(lines[-10:])}")
        return address[0]

    def stop(self, process):
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, signal_number)
                process.wait(5)
                return
            except ProcessLookupError:
                process.wait()
                return
            except subprocess.TimeoutExpired:
                pass

    def close(self):
        """Ends what still runs. The commands that did not end with those who started them; they are killed."""
        with self.lock:
            self.closed = True
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(self.stop, [process for process in self.running if process.poll() is None]))
        deadline = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.scratch, ignore_errors=True)
        return list(left.values())

    def left(self):
        """The processes of the run that are there, as far as the system tells: from their ids to their commands."""
        mark, left = f"HOME={self.scratch}\0".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes():
                    left[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                pass
        return left
