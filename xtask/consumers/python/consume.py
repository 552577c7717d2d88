"""A Python program that knows prime-dynamo by its JSON Schemas alone.

`consume.py COMMAND SCHEMAS FIXTURES PAGE SCRATCH`: makes pydantic models of every schema, reads every recorded discovery
document and what the command writes, and holds that no instance id lost a digit. Runs the program that PAGE shows. Prints a
line a check, and at the end one that counts them.
"""

import importlib
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ValidationError

COMMAND, SCHEMAS, FIXTURES, PAGE, SCRATCH = (Path(argument) for argument in sys.argv[1:])


def make_models() -> None:
    """Make a package `models` with a module for each schema, as `docs/other-languages.md` shows."""
    # fmt: off
    subprocess.run([
        sys.executable, "-m", "datamodel_code_generator", "--input", SCHEMAS, "--input-file-type", "jsonschema",
        "--output", SCRATCH / "models", "--output-model-type", "pydantic_v2.BaseModel", "--use-title-as-name",
        "--target-python-version", "3.11", "--no-formatters", "--disable-timestamp",
    ], check=True)
    # fmt: on
    sys.path.insert(0, str(SCRATCH))


def model(name: str) -> type[BaseModel]:
    """The model of one kind of document."""
    title = json.loads((SCHEMAS / f"{name}.json").read_text())["title"]
    module: ModuleType = importlib.import_module("models." + name.replace("-", "_"))
    return getattr(module, title)


def run(*arguments: str, stdin: str = "") -> list[str]:
    """What the command writes with `--format json`: one document a line."""
    ended = subprocess.run([COMMAND, *arguments, "--format", "json"], input=stdin.encode(), capture_output=True)
    if not ended.stdout:
        raise AssertionError(f"{arguments} ended with {ended.returncode}: {ended.stderr.decode()}")
    return ended.stdout.decode().splitlines()


def read_ours(name: str, line: str) -> Any:
    """Read a document of ours; what the model holds is the document, no more and no less."""
    document = model(name).model_validate_json(line)
    held = json.loads(document.model_dump_json(by_alias=True, exclude_unset=True))
    assert held == json.loads(line), f"{name}: {held} is not {line}"
    return document


def recorded() -> Iterator[tuple[dict, dict, str]]:
    """Every recorded document with a case of its verdict."""
    for case in json.loads((FIXTURES / "dynamo/verdicts.json").read_text())["cases"]:
        wrapper = json.loads((FIXTURES / "dynamo" / case["file"]).read_text())
        yield case, wrapper["body"], case["file"]


def recorded_documents_are_read() -> None:
    """Each that is accepted or pending; Python's integers have no end, so the ids are whole."""
    large = 0
    for case, body, file in recorded():
        if not case["accepted"] and "unsupported-protocol-version" in case["codes"]:
            continue
        document = model("discovery-document").model_validate_json(json.dumps(body))
        ids = [row["instance_id"] for row in body["workers"]]
        assert [row.instance_id for row in document.workers] == ids, file
        large += sum(instance_id > 2**53 for instance_id in ids)
    assert large > 0, "no recorded instance id needs 64 bits"


def an_old_document_is_refused() -> None:
    """Dynamo 1.4 sends no protocol version."""
    body = json.loads((FIXTURES / "dynamo/v1.4.2-rl-workers.json").read_text())["body"]
    try:
        model("discovery-document").model_validate_json(json.dumps(body))
    except ValidationError as error:
        assert "protocol_version" in str(error), error
    else:
        raise AssertionError("a document without a protocol version was read")


def hostile_documents_are_refused() -> None:
    """Each that a schema can refuse, but for one rule that pydantic models do not carry over."""
    taken = []
    for case in json.loads((FIXTURES / "hostile/documents.json").read_text())["refused_by_the_schema"]:
        try:
            model("discovery-document").model_validate_json(case["document"], strict=True)
        except ValidationError:
            continue
        taken.append(case["name"])
    # `if` and `then` have no counterpart in a model; `Literal[1]` takes what Python holds equal to 1.
    known = ["protocol version true", "no namespace anywhere", "no namespace anywhere, as null"]
    assert taken == known, taken


def fleets_are_read() -> None:
    """What `workers` and `ranks` say of every recorded document, with the ids that Dynamo wrote."""
    for case, body, file in recorded():
        flags = ["--model", case["model"], "--inference-world-size", str(case["inference_world_size"])]
        flags += ["--from", str(FIXTURES / "dynamo" / file), "--allow-endpoint", "127.0.0.0/8"]
        flags += ["--namespace", case["namespace"]] if case["namespace"] else []
        for verb in ("workers", "ranks"):
            (line,) = run(verb, *flags)
            fleet = read_ours("fleet-document", line)
            assert fleet.accepted == case["accepted"], file
            written = {row["instance_id"] for row in body["workers"] if isinstance(row, dict)}
            named = [engine.identity for engine in fleet.engines]
            named += [rejection.identity for rejection in fleet.rejections if rejection.identity]
            assert {int(identity.instance_id) for identity in named} <= written, file
            assert [rank.global_ for rank in fleet.ranks] == list(range(len(fleet.ranks))), file
            assert sum(engine.world_size for engine in fleet.engines) == len(fleet.ranks), file


def rounds_are_read() -> None:
    """Two refreshes, and what becomes of one when something breaks."""
    fleet, first, second = run("demo")
    identities = [engine.identity.instance_id for engine in read_ours("fleet-document", fleet).engines]
    for line in (first, second):
        record = read_ours("round-record", line)
        assert record.result == "committed" and not record.failures
        assert [engine.identity.instance_id for engine in record.engines] == identities
    _, _, second, verdict = run("demo", "--fault", "wrong-weights")
    record = read_ours("round-record", second)
    assert record.result == "closed" and record.gate == "closed"
    assert record.failures[0].cause.root.cause == "probe"
    assert read_ours("fault-verdict", verdict).held


def a_refused_round_is_read() -> None:
    """Nobody listens there."""
    urls = ["--discovery-url", "http://127.0.0.1:1", "--frontend-url", "http://127.0.0.1:1"]
    policy = ["--source", "filesystem:/policies/v1", "--to", "v1", "--accept-evidence", "probe"]
    (line,) = run("refresh", *urls, *policy, "--model", "m", "--inference-world-size", "1", "--ready-deadline", "1s")
    record = read_ours("round-record", line)
    assert record.result == "refused" and record.failures[0].cause.root.cause == "not-resolved"


def verdicts_are_read() -> None:
    """One record that passes, and one whose logprob is missing."""
    request = {"model": "m", "prompt": [1, 2], "max_tokens": 2, "logprobs": 1}
    for logprobs, expected in (([-0.5, -0.25], "pass"), ([-0.5, None], "reject")):
        choice = {"index": 0, "finish_reason": "length", "token_ids": [3, 4], "logprobs": {"token_logprobs": logprobs}}
        record = {"interface": "openai-completions", "request": request, "status": 200}
        record["response"] = {"model": "m", "choices": [choice]}
        line = model("rollout-record").model_validate(record).model_dump_json(by_alias=True, exclude_unset=True)
        (said,) = run("verify", "-", stdin=line + "\n")
        assert read_ours("verdict-line", said).verdict == expected, said


def everything_else_is_read() -> None:
    """Explanations, and configurations that can be used or not."""
    (line,) = run("explain")
    assert any(kind.kind == "rejection-code" for kind in read_ours("explanations", line).kinds)
    recipes = sorted((PAGE.parent / "recipes").glob("*.toml"))
    for recipe in recipes:
        (line,) = run("config", "show", "@", str(recipe))
        assert read_ours("configuration", line).valid, recipe
    (line,) = run("config", "check", "@", str(recipes[0]), "--prime_dynamo.no_such_key", "1")
    assert read_ours("configuration", line).problems


def the_program_of_the_page_runs() -> None:
    """As it is printed, with what the command writes on its stdin."""
    program = PAGE.read_text().split("```python\n")[1].split("```")[0]
    assert len(program.splitlines()) <= 10
    flags = ["--from", str(FIXTURES / "dynamo/rl-workers-sidecar-several.json"), "--allow-endpoint", "127.0.0.0/8"]
    for size, code, first in (("12", 0, "ranks 0+2: 11197091638646508562 "), ("13", 1, "world-size-below-expected (pending): ")):
        (line,) = run("workers", *flags, "--model", "tiny", "--inference-world-size", size)
        ended = subprocess.run([sys.executable, "-c", program], input=line.encode(), cwd=SCRATCH, stdout=subprocess.PIPE)
        assert (ended.returncode, ended.stdout.decode()[: len(first)]) == (code, first), ended.stdout


CHECKS: list[Callable[[], None]] = [
    recorded_documents_are_read,
    an_old_document_is_refused,
    hostile_documents_are_refused,
    fleets_are_read,
    rounds_are_read,
    a_refused_round_is_read,
    verdicts_are_read,
    everything_else_is_read,
    the_program_of_the_page_runs,
]


def main() -> int:
    """Run every check and count."""
    make_models()
    failed = 0
    for check in CHECKS:
        outcome = "ok"
        try:
            check()
        except Exception:
            outcome = "failed"
            failed += 1
            traceback.print_exc()
        print(f"{check.__name__.replace('_', ' ')}: {outcome}")
    passed = len(CHECKS) - failed
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {failed} failed; 0 ignored")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
