"""Write the documents that the benchmarks read: workers-128.json and workers-16.json beside this file.

Rows as a frontend of Dynamo 1.6.1 lists them (fixtures/dynamo/): three quarters Python workers, which announce a
system server, one quarter native sidecars, which announce their engine's own server too. The numbers come from a
fixed seed: running this again changes nothing.
"""

import json
import pathlib
import random

PYTHON_ROUTES = [
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
]
SIDECAR_ROUTES = [
    "control/get_weight_version",
    "control/is_paused",
    "control/is_sleeping",
    "control/pause_generation",
    "control/resume_generation",
    "update/finish_weight_update",
    "update/init_weight_transfer_engine",
    "update/model_taints",
    "update/start_weight_update",
    "update/update_weight_version",
    "update/update_weights",
]


def row(number: int, component: str, instance_id: int) -> dict:
    """One row, its keys in Dynamo's order."""
    host = f"10.20.{number // 8}.{10 + number % 8}"
    sidecar = component == "prefill"
    made = {
        "namespace": "dynamo",
        "component": component,
        "endpoint": "rl",
        "instance_id": instance_id,
        "transport": {"tcp": f"{host}:{40000 + number}/{instance_id:x}/dynamo/{component}/rl"},
        "request_plane_url": f"dyn://dynamo.{component}.rl",
        "system_url": f"http://{host}:8081",
    }
    if sidecar:
        made["admin_base_url"] = f"http://{host}:8120/"
    made["model"] = "Qwen/Qwen3-30B-A3B"
    made["routes"] = SIDECAR_ROUTES if sidecar else PYTHON_ROUTES
    made["world_size"] = 2
    return made


def document(rows: int) -> str:
    """A whole document, without white space, as the listener writes it."""
    random.seed(rows)
    components = ["backend" if number < rows * 3 // 4 else "prefill" for number in range(rows)]
    identities = sorted((component, random.getrandbits(64)) for component in components)
    workers = [row(number, component, identity) for number, (component, identity) in enumerate(identities)]
    made = {"protocol_version": 1, "namespace": "dynamo", "workers": workers}
    return json.dumps(made, separators=(",", ":"))


if __name__ == "__main__":
    for rows in (16, 128):
        path = pathlib.Path(__file__).parent / f"workers-{rows}.json"
        path.write_text(document(rows) + "\n", encoding="utf-8")
