"""Judge discovery documents with pydantic.

usage: accept.py accept|accept-url DOCUMENT MODEL RANKS WARM_UP ITERATIONS
       accept.py judge CASES

`accept-url` reads every address with pydantic's `Url`, without the shortcut for the usual form.
"""

import json
import pathlib
import sys

from discovery_model import Fatal, Pending, Policy, accept
from measured import done, ready


def measure(policy: Policy, document: str, model: str, ranks: str, warm_up: str, iterations: str) -> None:
    """Accept one document again and again."""
    body = pathlib.Path(document).read_bytes()
    world_size = int(ranks)
    snapshot = None
    for _ in range(int(warm_up)):
        snapshot = accept(200, body, model, None, world_size, policy)
    rounds = range(int(iterations))
    ready()
    for _ in rounds:
        snapshot = accept(200, body, model, None, world_size, policy)
    done(len(snapshot.engines))


def verdict(case: dict, policy: Policy) -> str:
    """Judge one case."""
    try:
        accept(case["status"], case["body"].encode(), case["model"], case["namespace"], case["world_size"], policy)
    except Fatal:
        return "fatal"
    except Pending:
        return "pending"
    return "accepted"


def judge(path: str) -> None:
    """Print the verdict on every case of a file, one a line; where the shortcut changes it, both."""
    for case in json.loads(pathlib.Path(path).read_bytes()):
        both = {verdict(case, Policy(case["loopback"], shortcut)) for shortcut in (True, False)}
        print(" or ".join(sorted(both)))


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    tasks = {
        "accept": lambda *rest: measure(Policy(loopback=False), *rest),
        "accept-url": lambda *rest: measure(Policy(loopback=False, shortcut=False), *rest),
        "judge": judge,
    }
    tasks[task](*arguments)
