"""A worker of the real Dynamo runtime whose tokens depend on the policy directory that it was told to load.

It takes the place of a second inference engine where two real ones are too heavy: it starts in about a second and
needs no torch. Discovery, request plane, system server and the announced routes are Dynamo's own code; the bodies
of the routes are those of `dynamo.vllm` 1.6.1. Only the engine is made up: each token is a hash of the loaded
`model.safetensors`, the prompt and the position, so equal weights give equal tokens and nothing else does.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import signal
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from dynamo.common.rl import RLRouteRegistry, register_rl_routes
from dynamo.llm import ModelInput, ModelRuntimeConfig, ModelType, WorkerType, register_model
from dynamo.runtime import DistributedRuntime

Body = dict[str, Any]

NOT_PAUSED = (
    "Worker must be paused via pause_generation() before updating weights. "
    "Call pause_generation() first, then update, then resume_generation()."
)
UNDECLARED = object()


class Policy:
    """The weights of one directory, as far as tokens depend on them."""

    def __init__(self, directory: str) -> None:
        self.digest = hashlib.sha256((Path(directory) / "model.safetensors").read_bytes()).digest()
        self.vocabulary: int = json.loads((Path(directory) / "config.json").read_text())["vocab_size"]

    def next(self, tokens: list[int]) -> tuple[int, float]:
        """Return the token after these, never one of the three special ones, and its log probability."""
        state = hashlib.sha256(self.digest + struct.pack(f"<{len(tokens)}I", *tokens)).digest()
        token, fraction = struct.unpack_from("<IH", state)
        return 3 + token % (self.vocabulary - 3), -(1 + fraction) / 32768


class Engine:
    """What vLLM's engine client is to `dynamo.vllm`: generation, pauses and a load of weights."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.admitting = set_event()  # new requests may start
        self.moving = set_event()  # requests under way may go on
        self.idle = set_event()  # no request is under way
        self.cut_marks: set[asyncio.Event] = set()  # one for each request under way

    async def pause(self, mode: str) -> None:
        """Hold new requests, then let the others end (wait), cut them off (abort) or freeze them (keep)."""
        self.admitting.clear()
        if mode == "keep":
            self.moving.clear()
            return
        if mode == "abort":
            for mark in self.cut_marks:
                mark.set()
        self.moving.set()
        await self.idle.wait()

    def resume(self) -> None:
        """Let everything that was held run."""
        self.moving.set()
        self.admitting.set()

    async def generate(self, prompt: list[int], limit: int) -> AsyncIterator[tuple[int, float] | None]:
        """Yield a token and its log probability at a time; `None` where the request was cut off."""
        await self.admitting.wait()
        cut = asyncio.Event()
        self.cut_marks.add(cut)
        self.idle.clear()
        try:
            tokens = list(prompt)
            for _ in range(limit):
                await asyncio.sleep(0)
                await self.moving.wait()
                if cut.is_set():
                    yield None
                    return
                token, logprob = self.policy.next(tokens)
                tokens.append(token)
                yield token, logprob
        finally:
            self.cut_marks.discard(cut)
            if not self.cut_marks:
                self.idle.set()


def set_event() -> asyncio.Event:
    """Make an event that has already happened."""
    event = asyncio.Event()
    event.set()
    return event


class Routes:
    """The administration routes, answering as `dynamo.vllm` does."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = asyncio.Lock()
        self.paused = False
        self.version: Any = UNDECLARED

    async def liveness_probe(self, body: Body) -> Body:
        """Say that the event loop runs."""
        return {"status": "ok", "alive": True}

    async def pause_generation(self, body: Body) -> Body:
        """Pause, with the mode and cache choice that the caller named."""
        mode, clear_cache = body.get("mode", "keep"), bool(body.get("clear_cache", False))
        if mode not in ("keep", "wait", "abort"):
            return error(f"Invalid mode '{mode}'; expected keep|wait|abort")
        async with self.lock:
            await self.engine.pause(mode)
            self.paused = True
        return {"status": "ok", "message": "Engine paused", "mode": mode, "clear_cache": clear_cache}

    async def resume_generation(self, body: Body) -> Body:
        """Resume; as often as one likes."""
        async with self.lock:
            self.engine.resume()
            self.paused = False
        return {"status": "ok", "message": "Engine resumed"}

    async def flush_cache(self, body: Body) -> Body:
        """Flush the cache, of which there is none."""
        async with self.lock:
            return {"status": "ok", "message": "Cache flushed"}

    async def abort_request(self, body: Body) -> Body:
        """Say yes to every id, as the real worker does for ids that it does not know."""
        request_id = body.get("request_id")
        if not request_id:
            return error("Missing 'request_id' in body")
        return {"status": "ok", "request_id": request_id}

    async def get_weight_version(self, body: Body) -> Body:
        """Report the label that was declared last."""
        declared = self.version is not UNDECLARED
        return {"status": "ok", "version": self.version if declared else None, "version_declared": declared}

    async def set_weight_version(self, body: Body) -> Body:
        """Declare a label."""
        if "weight_version" not in body:
            return error("Missing 'weight_version' in body")
        self.version = body["weight_version"]
        return {"status": "ok", "version": self.version}

    async def update_weights_from_disk(self, body: Body) -> Body:
        """Load a policy directory, while paused only."""
        async with self.lock:
            if not self.paused:
                return error(NOT_PAUSED)
            path = body.get("model_path")
            if not path:
                return error("Missing 'model_path' in body")
            rpc = body.get("engine_rpc", "reload_weights")
            if rpc != "reload_weights":
                return missing_rpc(rpc)
            try:
                self.engine.policy = Policy(path)
            except (OSError, ValueError, KeyError) as why:
                return rpc_failed(str(why))
            return self.declare(body)

    async def update_weights_from_distributed(self, body: Body) -> Body:
        """Refuse like a real worker that was started without an extension for it."""
        async with self.lock:
            if not self.paused and not body.get("allow_unpaused", False):
                return error(NOT_PAUSED)
            return missing_rpc(body.get("engine_rpc", "update_weights_from_path"))

    async def update_weights_from_tensor(self, body: Body) -> Body:
        """Refuse, as the real worker does."""
        return error("update_weights_from_tensor is not implemented")

    async def init_weights_update_group(self, body: Body) -> Body:
        """Refuse like a real worker that was started without an extension for it."""
        return missing_rpc(body.get("engine_rpc", "init_broadcaster"))

    async def destroy_weights_update_group(self, body: Body) -> Body:
        """Refuse like a real worker that was started without an extension for it."""
        return missing_rpc(body.get("engine_rpc", "destroy_broadcaster"))

    def declare(self, body: Body) -> Body:
        """Keep the label of a load that succeeded."""
        declared = "weight_version" in body
        if declared:
            self.version = body["weight_version"]
        return {"status": "ok", "version": body.get("weight_version", "unknown"), "version_declared": declared}


ROUTES = (
    "abort_request",
    "destroy_weights_update_group",
    "flush_cache",
    "get_weight_version",
    "init_weights_update_group",
    "liveness_probe",
    "pause_generation",
    "resume_generation",
    "set_weight_version",
    "update_weights_from_disk",
    "update_weights_from_distributed",
    "update_weights_from_tensor",
)


def error(message: str) -> Body:
    """Make a failure; the system server sends it with status 200."""
    return {"status": "error", "message": message}


def rpc_failed(why: str) -> Body:
    """Make the failure of a call that vLLM's worker process refused."""
    return error(
        f"Call to collective_rpc method failed: Worker failed with error '{why}', "
        "please check the stack trace above for the root cause"
    )


def missing_rpc(name: str) -> Body:
    """Make the failure of a call that no extension answers."""
    return rpc_failed(f"'CPUWorker' object has no attribute '{name}'")


def object_only(handler: Callable[[Body], Awaitable[Body]]) -> Callable[[Any], Awaitable[Body]]:
    """Refuse a body that is not an object; none at all is an empty one."""

    async def checked(body: Any) -> Body:
        if body is not None and not isinstance(body, dict):
            return error("request body must be a JSON object")
        return await handler(body or {})

    return checked


def generation(engine: Engine) -> Callable[[Body, Any], AsyncIterator[Body]]:
    """Make the handler of the request plane."""

    async def generate(request: Body, context: Any) -> AsyncIterator[Body]:
        prompt: list[int] = list(request["token_ids"])
        limit = (request.get("stop_conditions") or {}).get("max_tokens") or 16
        wants_logprobs = (request.get("output_options") or {}).get("logprobs") is not None
        made = 0
        async with contextlib.aclosing(engine.generate(prompt, limit)) as steps:
            async for step in steps:
                if context.is_stopped():
                    return
                if step is None:
                    yield {"token_ids": [], "index": 0, "finish_reason": "cancelled"}
                    return
                made += 1
                yield answer(step, wants_logprobs) | (end(len(prompt), made) if made == limit else {})

    return generate


def answer(step: tuple[int, float], wants_logprobs: bool) -> Body:
    """Make the part of the stream that carries one token."""
    token, logprob = step
    part: Body = {"token_ids": [token], "index": 0}
    if wants_logprobs:
        chosen = {"rank": 1, "token_id": token, "token": None, "logprob": logprob}
        part |= {"log_probs": [logprob], "top_logprobs": [[chosen]]}
    return part


def end(prompt_tokens: int, made: int) -> Body:
    """Make what the last part of the stream carries besides."""
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": made,
        "total_tokens": prompt_tokens + made,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    return {"finish_reason": "length", "completion_usage": usage}


def card(context_length: int) -> ModelRuntimeConfig:
    """Describe the worker as `dynamo.vllm` 1.6.1 describes itself.

    The frontend compares a checksum over the model card, these values included. A worker whose checksum differs
    from that of the first one under the same component is listed by discovery and never sent a request.
    """
    config = ModelRuntimeConfig()
    config.context_length = context_length
    budget = {"combined_limit": context_length, "reject_prompt_overflow": True, "reject_total_overflow": True}
    config.set_engine_specific("token_budget", json.dumps(budget))
    config.set_engine_specific("stream_interval", "1")
    config.set_engine_specific("vllm_inference_v1_generate", "true")
    config.set_engine_specific("vllm_enable_tower_connector_lora", "false")
    config.set_engine_specific("tool_call_structural_tag_excludes_reasoning", "false")
    return config


async def serve(arguments: argparse.Namespace) -> None:
    """Register with the runtime and serve until told to stop."""
    loop = asyncio.get_running_loop()
    runtime = DistributedRuntime(loop, "file", "tcp")
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, runtime.shutdown)
    where = f"{arguments.namespace}.{arguments.component}"
    generate, discovery = runtime.endpoint(f"{where}.generate"), runtime.endpoint(f"{where}.rl")

    engine = Engine(Policy(arguments.model_path))
    registry = RLRouteRegistry(runtime, world_size=arguments.world_size)
    routes = Routes(engine)
    handlers = {name: object_only(getattr(routes, name)) for name in ROUTES}
    register_rl_routes(runtime, registry, handlers, enable_dispatch=True)
    await register_model(
        ModelInput.Tokens,
        ModelType.Chat | ModelType.Completions,
        generate,
        arguments.model_path,
        arguments.model,
        worker_type=WorkerType.Aggregated,
        kv_cache_block_size=arguments.block_size,
        runtime_config=card(arguments.context_length),
    )
    await asyncio.gather(
        generate.serve_endpoint(generation(engine), graceful_shutdown=True),
        discovery.serve_endpoint(registry.dispatch_stream),
    )


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--component", required=True)
    parser.add_argument("--model", required=True, help="the name that requests ask for")
    parser.add_argument("--model-path", required=True, help="the policy directory to start with")
    parser.add_argument("--world-size", required=True, type=int, help="GPUs to announce")
    parser.add_argument("--context-length", required=True, type=int, help="as the real worker beside it has")
    parser.add_argument("--block-size", required=True, type=int, help="as the real worker beside it has")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
