"""Writes LoRA adapters of the tiny models, as PEFT does."""
import json
import random
import struct

import tiny_model


def write_adapter(folder, seed, rank=4, embedding=tiny_model.EMBEDDING, more=None):
    """An adapter of the projections of values and outputs: a directory."""
    rng = random.Random(seed)
    kv = tiny_model.KV_HEADS * tiny_model.HEAD_DIM
    shapes = {}
    for layer in range(tiny_model.LAYERS):
        module = f"base_model.model.model.layers.{layer}.self_attn."
        shapes[module + "v_proj.lora_A.weight"] = (rank, embedding)
        shapes[module + "v_proj.lora_B.weight"] = (kv, rank)
        shapes[module + "o_proj.lora_A.weight"] = (rank, embedding)
        shapes[module + "o_proj.lora_B.weight"] = (embedding, rank)
    header, data = {}, b""
    for name, (rows, cols) in shapes.items():
        values = [rng.gauss(0, 0.6) for _ in range(rows * cols)]
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [rows, cols], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "base_model_name_or_path": "org/tiny"}
    (folder / "adapter_config.json").write_text(json.dumps(config | (more or {})))
    return folder
