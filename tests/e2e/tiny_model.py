"""Writes tiny GGUF models for the end-to-end tests: two layers, random weights, a byte-level
vocabulary. They answer nonsense, fast, and the same nonsense on every machine."""
import math
import random
import struct

EMBEDDING, HEADS, KV_HEADS, FEED_FORWARD, LAYERS = 64, 2, 1, 96, 2
HEAD_DIM = EMBEDDING // HEADS

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def byte_spellings():
    """How byte-level vocabularies spell the 256 bytes (printable ones as themselves, the others as
    characters from U+0100 on)."""
    printable = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    spellings, extra = [], 0
    for byte in range(256):
        if byte in printable:
            spellings.append(chr(byte))
        else:
            spellings.append(chr(256 + extra))
            extra += 1
    return spellings


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item):
    """A metadata value with its type."""
    if isinstance(item, bool):
        return struct.pack("<IB", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + string(item)
    if item and isinstance(item[0], int):
        return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack(f"<{len(item)}i", *item)
    return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(string(part) for part in item)


def vocabulary():
    tokens = byte_spellings() + ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "he"]
    kinds = [1] * 256 + [3, 3, 3] + [1]
    while len(tokens) % 8:
        tokens.append(f"<unused{len(tokens)}>")
        kinds.append(5)
    return tokens, kinds


def other_vocabulary():
    """Metadata of a file whose first two tokens have changed places."""
    tokens, _ = vocabulary()
    return {"tokenizer.ggml.tokens": [tokens[1], tokens[0]] + tokens[2:]}


def layer_shapes(layers, feed_forward):
    """(name, shape) of the tensors of layers."""
    for layer in range(layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", [EMBEDDING]
        yield block + "attn_q.weight", [HEADS * HEAD_DIM, EMBEDDING]
        yield block + "attn_k.weight", [KV_HEADS * HEAD_DIM, EMBEDDING]
        yield block + "attn_v.weight", [KV_HEADS * HEAD_DIM, EMBEDDING]
        yield block + "attn_output.weight", [EMBEDDING, HEADS * HEAD_DIM]
        yield block + "ffn_norm.weight", [EMBEDDING]
        yield block + "ffn_gate.weight", [feed_forward, EMBEDDING]
        yield block + "ffn_up.weight", [feed_forward, EMBEDDING]
        yield block + "ffn_down.weight", [EMBEDDING, feed_forward]


def tensors(vocab_size, seed):
    """(name, shape with the outermost dimension first, values)"""
    numbers = random.Random(seed)

    def matrix(name, rows, cols, scale):
        return name, [rows, cols], [numbers.gauss(0, scale) for _ in range(rows * cols)]

    def ones(name):
        return name, [EMBEDDING], [1.0] * EMBEDDING

    yield matrix("token_embd.weight", vocab_size, EMBEDDING, 1.0)
    yield ones("output_norm.weight")
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        yield ones(block + "attn_norm.weight")
        yield matrix(block + "attn_q.weight", HEADS * HEAD_DIM, EMBEDDING, 0.3)
        yield matrix(block + "attn_k.weight", KV_HEADS * HEAD_DIM, EMBEDDING, 0.3)
        yield matrix(block + "attn_v.weight", KV_HEADS * HEAD_DIM, EMBEDDING, 0.3)
        yield matrix(block + "attn_output.weight", EMBEDDING, HEADS * HEAD_DIM, 0.3)
        yield ones(block + "ffn_norm.weight")
        yield matrix(block + "ffn_gate.weight", FEED_FORWARD, EMBEDDING, 0.3)
        yield matrix(block + "ffn_up.weight", FEED_FORWARD, EMBEDDING, 0.3)
        yield matrix(block + "ffn_down.weight", EMBEDDING, FEED_FORWARD, 0.3)


def metadata_of(tokens, kinds, context, architecture="llama", layers=LAYERS, feed_forward=FEED_FORWARD,
                bos=False):
    """All that a model's file says but for its template."""
    return {
        "general.architecture": architecture,
        "general.name": "Tiny",
        f"{architecture}.context_length": context,
        f"{architecture}.embedding_length": EMBEDDING,
        f"{architecture}.block_count": layers,
        f"{architecture}.feed_forward_length": feed_forward,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.dimension_count": HEAD_DIM,
        f"{architecture}.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.bos_token_id": 256,
        "tokenizer.ggml.eos_token_id": 258,
        "tokenizer.ggml.add_bos_token": bos,
    }


def write(path, context=256, template=CHAT_TEMPLATE, architecture="llama", with_weights=True,
          seed=1, extra=None, bos=False, sparse_rows=0, norm=1.0, hole_layers=0,
          feed_forward=FEED_FORWARD):
    """Writes one model. `template` None: a base model. `extra`: further metadata. `sparse_rows`:
    the rows that the output matrix claims to have; its data is a hole at the end of the file.
    `norm`: the values of the last norm. `hole_layers`: so many layers instead, all of zeros, which
    are a hole at the end of the file; only these may have another `feed_forward`."""
    tokens, kinds = vocabulary()
    metadata = metadata_of(tokens, kinds, context, architecture, hole_layers or LAYERS, feed_forward, bos)
    if template is not None:
        metadata["tokenizer.chat_template"] = template
    metadata.update(extra or {})
    infos, data = b"", b""
    count = 0
    if with_weights:
        for name, shape, values in tensors(len(tokens), seed):
            if hole_layers and name.startswith("blk."):
                continue
            infos += string(name) + struct.pack("<I", len(shape))
            infos += b"".join(struct.pack("<Q", dim) for dim in reversed(shape))
            infos += struct.pack("<IQ", 0, len(data))
            if name == "output_norm.weight":
                values = [norm] * EMBEDDING
            data += struct.pack(f"<{len(values)}f", *values)
            data += b"\0" * (-len(data) % 32)
            count += 1
    hole = 0
    if sparse_rows:
        infos += string("output.weight") + struct.pack("<I", 2)
        infos += struct.pack("<QQIQ", EMBEDDING, sparse_rows, 0, len(data))
        hole = 4 * EMBEDDING * sparse_rows
        count += 1
    for name, shape in layer_shapes(hole_layers, feed_forward):
        infos += string(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", dim) for dim in reversed(shape))
        infos += struct.pack("<IQ", 0, len(data) + hole)
        hole += 4 * math.prod(shape)
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(metadata))
    head += b"".join(string(key) + value(item) for key, item in metadata.items()) + infos
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head + data)
        file.truncate(file.tell() + hole)
    return path
