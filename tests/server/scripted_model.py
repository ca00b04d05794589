"""Writes a model that says what a test wants: after the last character of a prompt comes a chain of
tokens, each with a text of its own, then the end. At temperature 0 (the layers are zeros, and the
output matrix has the direction of each token's predecessor)."""
import random
import struct

import tiny_model

END = 258  # <|im_end|>


def spelling(data):
    spellings = tiny_model.byte_spellings()
    return "".join(spellings[byte] for byte in data)


def write(path, chains, context=256):
    """`chains`: the bytes of each token of what is said, by the character that it comes after."""
    tokens, kinds = tiny_model.vocabulary()
    places = {token: place for place, token in enumerate(tokens)}
    after = {}
    for start, parts in chains.items():
        last = places[spelling(start.encode())]
        for part in parts:
            name = spelling(part)
            assert name not in places, f"{part} is said already"
            places[name] = len(tokens)
            tokens.append(name)
            kinds.append(1)
            after[last] = places[name]
            last = places[name]
        after[last] = END
    while len(tokens) % 8:
        tokens.append(f"<unused{len(tokens)}>")
        kinds.append(5)
    numbers = random.Random(7)
    width = tiny_model.EMBEDDING
    embedding = [[numbers.gauss(0, 1) for _ in range(width)] for _ in tokens]
    output = [[0.0] * width for _ in tokens]
    for one, other in after.items():
        output[other] = [a + b for a, b in zip(output[other], embedding[one])]
    tensors = [("token_embd.weight", [len(tokens), width], embedding),
               ("output_norm.weight", [width], [[1.0] * width]),
               ("output.weight", [len(tokens), width], output)]
    for name, shape in tiny_model.layer_shapes(1, tiny_model.FEED_FORWARD):
        rows, cols = shape if len(shape) == 2 else (1, shape[0])
        tensors.append((name, shape, [[0.0] * cols for _ in range(rows)]))
    metadata = tiny_model.metadata_of(tokens, kinds, context, layers=1)
    metadata["tokenizer.chat_template"] = tiny_model.CHAT_TEMPLATE
    write_file(path, metadata, tensors)
    return path


def write_file(path, metadata, tensors):
    infos, data = b"", b""
    for name, shape, rows in tensors:
        infos += tiny_model.string(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", dim) for dim in reversed(shape))
        infos += struct.pack("<IQ", 0, len(data))
        data += b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
        data += b"\0" * (-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(tiny_model.string(key) + tiny_model.value(item) for key, item in metadata.items()) + infos
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head + data)
