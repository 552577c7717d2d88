"""A worker extension that asks Linux for the right to use AMX tiles.

On CPUs with AMX some of vLLM's kernels use tiles before anybody asked; the worker process then dies of SIGILL at
its first short prompt. The extension is imported inside each worker process, which is where the right is needed.
"""

import torch

if torch.cpu._is_amx_tile_supported():
    torch.cpu._init_amx()


class AmxExtension:
    """Adds nothing to the worker; importing this module is the effect."""
