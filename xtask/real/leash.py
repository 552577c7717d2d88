"""Run a command on a leash: it ends when standard input closes.

usage: leash.py LOG COMMAND [ARGUMENT ...]

Whoever starts this holds the other end of its standard input. When that end closes, for whatever reason (a
drop, a panic, ctrl-C, SIGKILL), the command and everything that it started are ended: SIGTERM, then SIGKILL.
The first line on standard output is the command's process id, which is also its process group. Standard output
and error of the command go to LOG. The exit code is the command's, or 128 plus the signal that ended it.
"""

import os
import select
import signal
import subprocess
import sys

GRACE_SECONDS = 5.0


def signal_group(group: int, number: int) -> None:
    """Signal every process of the group that is still there."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def main() -> int:
    """Start the command, wait for its end or for ours, leave nothing behind."""
    log, *command = sys.argv[1:]
    with open(log, "ab", buffering=0) as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    print(child.pid, flush=True)
    ended = os.pidfd_open(child.pid)
    readable, _, _ = select.select([ended, sys.stdin], [], [])
    if ended not in readable:
        signal_group(child.pid, signal.SIGTERM)
        select.select([ended], [], [], GRACE_SECONDS)
    # The child may have ended before those that it started.
    signal_group(child.pid, signal.SIGKILL)
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
