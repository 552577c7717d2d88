"""The peer of `Snapshot::accept`: a discovery document judged with pydantic, as well as an expert would write it.

What pydantic's core can check in the parse, it checks there: types, strictness, ranges, lengths, hidden characters.
The rest is plain Python over the parsed rows, once for each row. Addresses of the usual form are read by a regular
expression, because pydantic's own `Url` costs six times as much, and others by `Url`.

What comes out is what `Snapshot::accept` returns: engines in rank order, a fingerprint to compare two documents by,
the skipped rows with the reason, the names of unknown fields.

What `Snapshot::accept` does and this does not, each of which makes this faster: no key twice, depth at most 64, no `NaN`
in unknown fields, lengths in bytes (characters here), every reason of a refusal (the first is enough here), the addresses
inside IPv6 ones beyond the mapped (NAT64, 6to4, Teredo, ISATAP), metadata services outside the link-local block, and a
digest as fingerprint (a tuple here, as in Prime-RL).
"""

import ipaddress
import re
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import Url

MAX_BYTES = 4 << 20
MAX_ROUTES = 256

# Controls, bidirectional marks, zero-width and other invisible characters, as a class of pydantic's regex engine.
HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
Name = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=rf"^[^{HIDDEN}]*$")]
Text = Annotated[str, StringConstraints(max_length=512)]
Address = Annotated[str, StringConstraints(max_length=2048)]
Routes = Annotated[list[Text], Field(max_length=MAX_ROUTES)]


class Worker(BaseModel):
    """One row. Null equals absent."""

    model_config = ConfigDict(strict=True, extra="allow")

    namespace: Name | None = None
    component: Name
    endpoint: Name | None = None
    instance_id: Annotated[int, Field(ge=0, lt=1 << 64)]
    transport: Annotated[dict[str, Any] | str | None, Field(union_mode="left_to_right")] = None
    request_plane_url: Address | None = None
    system_url: Address | None = None
    admin_base_url: Address | None = None
    model: Text | None = None
    routes: Routes | None = None
    system_routes: Routes | None = None
    world_size: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    error: str | None = None


class Document(BaseModel):
    """The whole document."""

    model_config = ConfigDict(strict=True, extra="allow")

    # Not `Literal[1]`, which takes `true` and `1.0`.
    protocol_version: Annotated[int, Field(ge=1, le=1)]
    namespace: Name | None = None
    workers: Annotated[list[Worker], Field(max_length=4096)]


class Snapshot(NamedTuple):
    """What was accepted."""

    engines: list[Worker]
    fingerprint: tuple
    skipped: list[tuple[int, str]]
    unknown_fields: list[str]


class Fatal(Exception):
    """The document is refused."""


class Pending(Exception):
    """The document may become acceptable."""


class Policy:
    """Private ranges, and loopback if asked for. Without `shortcut` every address goes to pydantic's `Url`."""

    def __init__(self, loopback: bool, shortcut: bool = True) -> None:
        self.loopback = loopback
        self.endpoint = endpoint if shortcut else parsed_endpoint

    def judge(self, a: int, b: int, host: str) -> None:
        """Judge an IPv4 address by its first two octets."""
        if a == 10 or (a == 172 and 16 <= b <= 31) or (a == 192 and b == 168):
            return
        if a == 127 and self.loopback:
            return
        raise Fatal(f"{host} may not be called")

    def judge_v6(self, address: ipaddress.IPv6Address) -> None:
        """Judge an IPv6 address."""
        if address.ipv4_mapped is not None:
            packed = address.ipv4_mapped.packed
            return self.judge(packed[0], packed[1], str(address))
        if address.packed[0] & 0xFE == 0xFC or (address.is_loopback and self.loopback):
            return None
        raise Fatal(f"{address} may not be called")


OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
PLAIN = re.compile(
    rf"(https?)://(({OCTET})\.({OCTET})\.{OCTET}\.{OCTET})(?::([1-9]\d{{0,4}}))?((?:/[A-Za-z0-9_-]*)*)", re.ASCII
).fullmatch


def endpoint(text: str, policy: Policy) -> tuple:
    """Judge an address and return the form in which addresses are compared."""
    match = PLAIN(text)
    if match is None:
        return parsed_endpoint(text, policy)
    scheme, host, first, second, port, path = match.groups()
    if first != "10":
        policy.judge(int(first), int(second), host)
    if port is None:
        number = 443 if scheme == "https" else 80
    else:
        number = int(port)
        if number > 65535:
            raise Fatal("a port above 65535")
    return (scheme, host, number, base_path(path) if path else path)


def base_path(path: str) -> str:
    """A path without final `/` and `/v1`."""
    if not path:
        return path
    while True:
        path = path.rstrip("/")
        if not path.endswith("/v1"):
            return path
        path = path[:-3]


def parsed_endpoint(text: str, policy: Policy) -> tuple:
    """Judge any address, by pydantic's own parser."""
    if not text.isprintable() or " " in text or "\\" in text or not re.match(r"https?://", text, re.IGNORECASE):
        raise Fatal("no plain http or https address")
    authority = re.split(r"[/?#]", text.split("://", 1)[1], maxsplit=1)[0]
    if not authority or "@" in authority:
        raise Fatal("no host, or user information")
    try:
        url = Url(text)
    except ValueError as error:
        raise Fatal("no URL") from error
    if url.query is not None or url.fragment is not None or not url.port:
        raise Fatal("a query, a fragment or port 0")
    host = url.host
    if host.startswith("["):
        address = ipaddress.IPv6Address(host[1:-1])
        policy.judge_v6(address)
        host = str(address.ipv4_mapped or address)
    else:
        host = host.rstrip(".")
        try:
            packed = ipaddress.IPv4Address(host).packed
        except ValueError:
            if host == "localhost" or host.endswith(".localhost"):
                policy.judge(127, 0, host)
        else:
            policy.judge(packed[0], packed[1], host)
    return (url.scheme, host, url.port, base_path(url.path or ""))


def accept(
    status: int | None, body: bytes, model: str, namespace: str | None, world_size: int, policy: Policy
) -> Snapshot:
    """Judge an answer: a snapshot, or `Fatal`, or `Pending`."""
    if status is not None and status != 200:
        raise (Pending if status == 429 or status >= 500 else Fatal)(f"status {status}")
    if len(body) > MAX_BYTES:
        raise Fatal("too large")
    try:
        document = Document.model_validate_json(body)
    except ValidationError as error:
        raise Fatal(str(error)) from error

    known: set[tuple] = set()
    selected: list[tuple[tuple, Worker]] = []
    skipped: list[tuple[int, str]] = []
    unknown_fields = list(document.model_extra)
    for position, worker in enumerate(document.workers):
        space = worker.namespace or document.namespace
        if space is None:
            raise Fatal("a row without a namespace")
        identity = (space, worker.component, worker.endpoint or "rl", worker.instance_id)
        known.add(identity)
        if worker.routes and worker.system_routes and len({*worker.routes, *worker.system_routes}) > MAX_ROUTES:
            raise Fatal("too many routes")
        if worker.model_extra:
            unknown_fields.extend(f"workers[{position}].{key}" for key in worker.model_extra)
        if namespace is not None and namespace != space:
            skipped.append((position, "other-namespace"))
        elif worker.model == model:
            selected.append((identity, worker))
        else:
            skipped.append((position, "no-model" if worker.model is None else "other-model"))
    if len(known) != len(document.workers):
        raise Fatal("an identity twice")
    judge_selected(selected, namespace, world_size, policy)
    selected.sort(key=lambda pair: pair[0])
    return Snapshot(
        [worker for _, worker in selected],
        tuple(fingerprint(identity, worker) for identity, worker in selected),
        skipped,
        unknown_fields,
    )


def judge_selected(
    selected: list[tuple[tuple, Worker]], namespace: str | None, world_size: int, policy: Policy
) -> None:
    """Judge what is wanted: addresses, their duplicates, and whether everything is there."""
    admin: set[tuple] = set()
    system: set[tuple] = set()
    admins = systems = ranks = 0
    pending = not selected
    for _, worker in selected:
        if worker.admin_base_url is not None:
            admin.add(policy.endpoint(worker.admin_base_url, policy))
            admins += 1
        if worker.system_url is not None:
            system.add(policy.endpoint(worker.system_url, policy))
            systems += 1
        if worker.admin_base_url is None and (
            worker.system_url is None or not (worker.routes or worker.system_routes)
        ):
            pending = True
        if worker.world_size is None:
            pending = True
        else:
            ranks += worker.world_size
        if worker.error is not None:
            pending = True
    if len(admin) != admins or len(system) != systems:
        raise Fatal("an endpoint twice")
    if namespace is None and len({identity[0] for identity, _ in selected}) > 1:
        pending = True
    if pending or ranks != world_size:
        raise Pending(f"{len(selected)} engines with {ranks} ranks")


def fingerprint(identity: tuple, worker: Worker) -> tuple:
    """All that makes two documents announce the same engine."""
    routes = {*(worker.routes or ()), *(worker.system_routes or ())}
    return (identity, worker.admin_base_url, worker.system_url, worker.model, worker.world_size, tuple(sorted(routes)))
