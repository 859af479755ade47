"""How a run tells what it met."""

import time


def report(name, seconds, summary, failures):
    lines = [f"{'✗' if failures else '✓'} {name:<45} {summary:<35} {seconds:5.1f} s"]
    lines += ["    " + line for failure in failures for line in failure.rstrip().splitlines()]
    print("\n".join(lines), flush=True)


def timed(meet):
    start = time.monotonic()
    try:
        summary, failures = meet()
    except Exception as failure:
        summary, failures = "not met", [f"{type(failure).__name__}: {failure}"]
    return time.monotonic() - start, summary, failures
