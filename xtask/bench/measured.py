"""The peer's half of a measurement: whoever started this holds the clock, and takes this process's CPU time."""

import gc
import sys


def ready() -> None:
    """Say that everything is warm, and wait until the clock runs."""
    # What was imported is no garbage: without this, each collection would walk it.
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    sys.stdin.readline()


def done(engines: int) -> None:
    """Say what came out, and wait until the clock was read."""
    print(f'{{"engines":{engines}}}', flush=True)
    sys.stdin.read()
