"""Writes tiny encoders of BERT's kind as GGUF files for tests: two layers, random weights, a vocabulary of
WordPiece. With a classification head they rank."""
import random
import struct

import tiny_model

EMBEDDING, HEADS, FEED_FORWARD, LAYERS, CONTEXT = 32, 4, 48, 2, 64
WORDS = "the a cat dog sat ran down off on mat road red blue is was big small in house tree".split()


def vocabulary():
    """Control tokens, words, letters that begin a word, and letters that go on with one, as GGUF spells
    them; with the kinds."""
    letters = [chr(ord("a") + i) for i in range(26)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    plain = ["\u2581" + word for word in WORDS]
    plain += ["\u2581" + letter for letter in letters + list(".,!?0123456789") if letter not in WORDS] + letters
    return tokens + plain, [3] * len(tokens) + [1] * len(plain)


def tensors(num_tokens, labels, seed, broken):
    numbers = random.Random(seed)

    def some(name, *shape, scale=0.3, around=0.0):
        size = 1
        for extent in shape:
            size *= extent
        return name, list(shape), [around + numbers.gauss(0, scale) for _ in range(size)]

    def linear(name, rows, cols):
        yield some(name + ".weight", rows, cols)
        yield some(name + ".bias", rows)

    def norm(name):
        yield some(name + ".weight", EMBEDDING, scale=0.1, around=1.0)
        yield some(name + ".bias", EMBEDDING, scale=0.1)

    yield some("token_embd.weight", num_tokens, EMBEDDING, scale=1.0)
    yield some("position_embd.weight", CONTEXT, EMBEDDING)
    yield some("token_types.weight", 2, EMBEDDING)
    yield from norm("token_embd_norm")
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield from linear(block + name, EMBEDDING, EMBEDDING)
        yield from norm(block + "attn_output_norm")
        yield from linear(block + "ffn_up", FEED_FORWARD, EMBEDDING)
        yield from linear(block + "ffn_down", EMBEDDING, FEED_FORWARD)
        if broken and layer == LAYERS - 1:
            yield block + "layer_output_norm.weight", [EMBEDDING], [float("nan")] * EMBEDDING
            yield some(block + "layer_output_norm.bias", EMBEDDING)
        else:
            yield from norm(block + "layer_output_norm")
    if labels:
        yield from linear("cls", EMBEDDING, EMBEDDING)
        yield from linear("cls.output", labels, EMBEDDING)


def write(path, labels=0, seed=1, broken=False, pooling=1):
    """`labels`: classes of a classification head; 0: it has none. `broken`: its vectors are no numbers.
    `pooling`: as in "bert.pooling_type"."""
    tokens, kinds = vocabulary()
    metadata = {
        "general.architecture": "bert",
        "general.name": "Tiny BERT",
        "bert.context_length": CONTEXT,
        "bert.embedding_length": EMBEDDING,
        "bert.block_count": LAYERS,
        "bert.feed_forward_length": FEED_FORWARD,
        "bert.attention.head_count": HEADS,
        "bert.attention.layer_norm_epsilon": 1e-12,
        "bert.attention.causal": False,
        "bert.pooling_type": 4 if labels else pooling,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.cls_token_id": 2,
        "tokenizer.ggml.seperator_token_id": 3,
        "tokenizer.ggml.padding_token_id": 0,
    }
    infos, data, count = b"", b"", 0
    for name, shape, values in tensors(len(tokens), labels, seed, broken):
        infos += tiny_model.string(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", extent) for extent in reversed(shape))
        infos += struct.pack("<IQ", 0, len(data))
        data += struct.pack(f"<{len(values)}f", *values)
        data += b"\0" * (-len(data) % 32)
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(metadata))
    head += b"".join(tiny_model.string(key) + tiny_model.value(item) for key, item in metadata.items()) + infos
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head + data)
    return path
