"""Poll a discovery listener with httpx and judge each answer with pydantic.

usage: poll.py warm|new URL MODEL RANKS WARM_UP ITERATIONS

`warm` keeps one client. `new` opens one for each poll, as the integration in Prime-RL does. The settings are the
integration's: no proxies of the environment, no redirects, no compression, one deadline for the whole call.
"""

import asyncio
import sys

import httpx

from discovery_model import Policy, accept
from measured import done, ready

TIMEOUT_SECONDS = 35.0
POLICY = Policy(loopback=True)


def client() -> httpx.AsyncClient:
    """A client with the integration's settings."""
    return httpx.AsyncClient(
        timeout=TIMEOUT_SECONDS, trust_env=False, follow_redirects=False, headers={"accept-encoding": "identity"}
    )


async def read(opened: httpx.AsyncClient, url: str, model: str, ranks: int) -> int:
    """One poll with a client that is there."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        reply = await opened.get(url)
    return len(accept(reply.status_code, reply.content, model, None, ranks, POLICY).engines)


async def warm(url: str, model: str, ranks: int, warm_up: int, iterations: int) -> None:
    """Every poll with one client."""
    engines = 0
    async with client() as kept:
        for _ in range(warm_up):
            engines = await read(kept, url, model, ranks)
        ready()
        for _ in range(iterations):
            engines = await read(kept, url, model, ranks)
        done(engines)


async def new(url: str, model: str, ranks: int, warm_up: int, iterations: int) -> None:
    """Every poll with a client of its own."""

    async def one() -> int:
        async with client() as opened:
            return await read(opened, url, model, ranks)

    engines = 0
    for _ in range(warm_up):
        engines = await one()
    ready()
    for _ in range(iterations):
        engines = await one()
    done(engines)


if __name__ == "__main__":
    task, url, model, *numbers = sys.argv[1:]
    asyncio.run({"warm": warm, "new": new}[task](url, model, *map(int, numbers)))
