"""Write two policies: tiny Qwen3 checkpoints of the same shapes with different weights.

usage: make_policies.py DIRECTORY

DIRECTORY/a and DIRECTORY/b are complete model directories (configuration, byte-level tokenizer, safetensors).
Only the standard library is used and every number is seeded, so both are the same bytes wherever they are made.
"""

import json
import random
import struct
import sys
from pathlib import Path

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = SPECIAL.index("<|im_end|>")
LAYERS, HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, POSITIONS = 2, 64, 128, 4, 2, 32, 2048
# Weights are uniform in -SPREAD..SPREAD: exact on every machine, and wide enough that two seeds differ in their
# greedy tokens from the first position on.
SPREAD = 0.6
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_alphabet() -> list[str]:
    """Give each byte the printable character that byte-level BPE writes for it."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    stand_ins = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(stand_ins)) for byte in range(256)]


VOCABULARY = {text: number for number, text in enumerate(SPECIAL + byte_alphabet())}


def tokenizer() -> dict[str, object]:
    """Describe a byte-level BPE without merges: one token a byte."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": text, **flags} for number, text in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": VOCABULARY,
            "merges": [],
        },
    }


def configuration() -> dict[str, object]:
    """Describe the model the way a published checkpoint does."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "dtype": "bfloat16",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": END,
        "pad_token_id": 0,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.35,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": len(VOCABULARY),
    }


def shapes() -> dict[str, list[int]]:
    """List every tensor of the checkpoint with its shape, in the order in which they are drawn."""
    vocabulary, query, key = len(VOCABULARY), HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    layer = {
        "input_layernorm": [HIDDEN],
        "mlp.down_proj": [HIDDEN, INNER],
        "mlp.gate_proj": [INNER, HIDDEN],
        "mlp.up_proj": [INNER, HIDDEN],
        "post_attention_layernorm": [HIDDEN],
        "self_attn.k_norm": [HEAD_DIM],
        "self_attn.k_proj": [key, HIDDEN],
        "self_attn.o_proj": [HIDDEN, query],
        "self_attn.q_norm": [HEAD_DIM],
        "self_attn.q_proj": [query, HIDDEN],
        "self_attn.v_proj": [key, HIDDEN],
    }
    tensors = {"lm_head.weight": [vocabulary, HIDDEN], "model.embed_tokens.weight": [vocabulary, HIDDEN]}
    for number in range(LAYERS):
        tensors |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    return tensors | {"model.norm.weight": [HIDDEN]}


def bfloat16(value: float) -> bytes:
    """Cut a number down to bfloat16, little-endian."""
    return struct.pack("<f", value)[2:]


def safetensors(seed: int) -> bytes:
    """Draw all weights from one seed."""
    draw = random.Random(seed)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, shape in shapes().items():
        start = len(data)
        if len(shape) == 1:  # a norm
            data += bfloat16(1.0) * shape[0]
        else:
            data += b"".join(bfloat16(draw.uniform(-SPREAD, SPREAD)) for _ in range(shape[0] * shape[1]))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write(directory: Path, seed: int) -> None:
    """Write one policy."""
    directory.mkdir(parents=True, exist_ok=True)
    texts: dict[str, object] = {
        "config.json": configuration(),
        "generation_config.json": {"eos_token_id": END, "pad_token_id": 0},
        "tokenizer.json": tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": POSITIONS,
            "bos_token": None,
            "eos_token": SPECIAL[END],
            "pad_token": SPECIAL[0],
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT,
        },
    }
    for name, value in texts.items():
        (directory / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    (directory / "model.safetensors").write_bytes(safetensors(seed))


if __name__ == "__main__":
    for policy_name, policy_seed in (("a", 1), ("b", 2)):
        write(Path(sys.argv[1]) / policy_name, policy_seed)
