#!/usr/bin/env python3
"""Small tokenizers of every kind, with the ids and texts that PyPI `tokenizers` makes of them.

Writes FOLDER/NAME.json for each: {"tokenizer": its tokenizer.json, "cases": [[text, ids, ids with
special tokens, decoded, decoded without special tokens]]}, and FOLDER/sentencepiece/NAME.json of
models of PyPI `sentencepiece`: {"model": in base64, "cases": [[text, ids, decoded]]}. By hand:

    tools/make_tokenizer_fixture.py tests/golden/tokenizers [--full FOLDER]

With --full it writes, into another folder, directories with a tokenizer.json each, for
tools/compare_tokenizers.py.
"""
import argparse
import base64
import json
import os
import random
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tokenizer_corpus import SENTENCES, corpus  # noqa: E402

SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
P = pre_tokenizers
N = normalizers
D = decoders


def charsmap():
    """A double-array trie and its texts, as SentencePiece writes them."""
    rules = {"ﬁ": "fi", "Ａ": "A", "Ｂ": "B", "①": "1", "½": "1⁄2", "\u3000": " ", "\u00a0": " ", "é": "é",
             "e\u0301": "é", "㎏": "kg", "…": "...", "\u200b": "", "\t": " ", "\n": " "}
    texts, offsets = b"", {}
    for to in rules.values():
        if to not in offsets:
            offsets[to] = len(texts)
            texts += to.encode() + b"\0"
    root = {}
    for key, to in rules.items():
        node = root
        for b in key.encode():
            node = node.setdefault(b, {})
        node[0] = offsets[to]
    units, used = [0] * 8192, {0}

    def place(node, at):
        labels = sorted(node)
        base = 256
        while any((base ^ b) in used for b in labels) or (base ^ at) >= 1 << 21:
            base += 1
        for b in labels:
            used.add(base ^ b)
        units[at] |= (base ^ at) << 10
        if 0 in node:
            units[at] |= 1 << 8
            units[base] = node[0] | (1 << 31)
        for b in labels:
            if b:
                units[base ^ b] |= b
                place(node[b], base ^ b)

    place(root, 0)
    raw = b"".join(u.to_bytes(4, "little") for u in units)
    return len(raw).to_bytes(4, "little") + raw + texts


def bpe(pre=None, norm=None, dec=None, post=None, size=420, lines=None, **options):
    special = SPECIAL + (BYTES if options.get("byte_fallback") else [])
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **options))
    trainer_options = {}
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if name in options:
            trainer_options[name] = options[name]
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if norm is not None:
        tokenizer.normalizer = norm
    trainer = trainers.BpeTrainer(vocab_size=size + len(special), special_tokens=special, show_progress=False,
                                  limit_alphabet=160, **trainer_options)
    tokenizer.train_from_iterator(lines or SENTENCES, trainer)
    if options.get("byte_fallback"):
        # Bytes are tokens of the model alone.
        root = json.loads(tokenizer.to_str())
        root["added_tokens"] = [t for t in root["added_tokens"] if not t["content"].startswith("<0x")]
        tokenizer = Tokenizer.from_str(json.dumps(root))
    if dec is not None:
        tokenizer.decoder = dec
    if post is not None:
        tokenizer.post_processor = post
    return tokenizer


def byte_level(pre, size=500, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = D.ByteLevel()
    tokenizer.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=P.ByteLevel.alphabet()))
    return tokenizer


def unigram(pre, norm=None, dec=None, size=380, bytes_too=False, post=None):
    tokenizer = Tokenizer(models.Unigram())
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if norm is not None:
        tokenizer.normalizer = norm
    tokenizer.train_from_iterator(SENTENCES[:12] * 3, trainers.UnigramTrainer(
        vocab_size=size, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False))
    if bytes_too:
        root = json.loads(tokenizer.to_str())
        root["model"]["vocab"] += [[b, -20.0] for b in BYTES]
        root["model"]["byte_fallback"] = True
        tokenizer = Tokenizer.from_str(json.dumps(root))
    tokenizer.decoder = dec or D.Metaspace()
    if post is not None:
        tokenizer.post_processor = post
    return tokenizer


def wordpiece(norm=None, pre=None, cleanup=True, prefix="##", post=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=prefix,
                                           max_input_chars_per_word=20))
    tokenizer.normalizer = norm or N.BertNormalizer()
    tokenizer.pre_tokenizer = pre or P.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=special, show_progress=False, limit_alphabet=200,
        continuing_subword_prefix=prefix))
    tokenizer.decoder = D.WordPiece(prefix=prefix, cleanup=cleanup)
    if post:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def word_level(pre, norm=None, dec=None):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre
    if norm is not None:
        tokenizer.normalizer = norm
    tokenizer.train_from_iterator(SENTENCES, trainers.WordLevelTrainer(
        vocab_size=260, special_tokens=SPECIAL, show_progress=False))
    if dec is not None:
        tokenizer.decoder = dec
    return tokenizer


def template(single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1"):
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[("<s>", 1), ("</s>", 2)])


def with_added(tokenizer):
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, normalized=False),
                          AddedToken("wheel", single_word=True, normalized=True),
                          AddedToken("Wasser", normalized=True), AddedToken("<r>", rstrip=True, normalized=False),
                          AddedToken("  two", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<|end|>", normalized=False, special=True),
                                  AddedToken("<|late|>", normalized=True, special=True, lstrip=True)])
    return tokenizer


LLAMA_DECODER = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
LLAMA_NORM = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
ODD_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}&&[^\p{Han}]]*\p{Ll}+|\p{Han}|\p{N}{1,2}"
               r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+|\p{L}")


def tokenizers():
    yield "bpe-llama", bpe(norm=LLAMA_NORM, dec=LLAMA_DECODER, post=template("<s> $A", "<s> $A <s> $B"),
                           byte_fallback=True, fuse_unk=True)
    yield "bpe-gemma", bpe(norm=N.Replace(" ", "▁"), pre=P.Split(" ", "merged_with_previous"),
                           dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]), byte_fallback=True)
    yield "bpe-metaspace-first", bpe(pre=P.Metaspace(prepend_scheme="first", split=False), dec=LLAMA_DECODER,
                                     byte_fallback=True, post=template())
    yield "bpe-suffix", bpe(norm=N.Lowercase(), pre=P.WhitespaceSplit(), dec=D.BPEDecoder(suffix="</w>"),
                            end_of_word_suffix="</w>")
    yield "bpe-prefix", bpe(pre=P.Whitespace(), dec=D.WordPiece(prefix="@@", cleanup=False),
                            continuing_subword_prefix="@@", size=380)
    yield "bpe-fuse", bpe(pre=P.WhitespaceSplit(), fuse_unk=True, lines=SENTENCES[:4])
    yield "bpe-added", with_added(bpe(norm=N.Sequence([N.NFKC(), N.Lowercase()]), pre=P.Metaspace(), dec=D.Metaspace(),
                                      byte_fallback=True))
    yield "bytes-gpt2", byte_level(P.ByteLevel(add_prefix_space=False))
    yield "bytes-prefix", byte_level(P.ByteLevel(add_prefix_space=True))
    yield "bytes-odd", with_added(byte_level(P.Sequence([
        P.Split(Regex(ODD_PATTERN), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])))
    yield "bytes-ignore-merges", byte_level(P.Sequence([
        P.Split(Regex(r"\s+|\w+|[^\s\w]+"), "removed", invert=True), P.Digits(True),
        P.ByteLevel(add_prefix_space=False, use_regex=False)]), ignore_merges=True)
    roberta = byte_level(P.ByteLevel(add_prefix_space=False))
    roberta.post_processor = processors.Sequence([processors.ByteLevel(), processors.RobertaProcessing(("</s>", 1),
                                                                                                      ("<s>", 0))])
    roberta.normalizer = N.NFD()
    yield "bytes-roberta", roberta
    yield "unigram-t5", unigram(P.Sequence([P.WhitespaceSplit(), P.Metaspace()]),
                                N.Sequence([N.Precompiled(charsmap()), N.Replace(Regex(" {2,}"), " ")]),
                                post=template("$A </s>", "$A </s> $B </s>"))
    yield "unigram-bytes", unigram(P.Metaspace(prepend_scheme="first"), N.NFKD(), LLAMA_DECODER, bytes_too=True)
    yield "unigram-whole", unigram(None, N.Sequence([N.Nmt(), N.NFKC(), N.Strip(), N.Replace(" ", "▁")]),
                                   D.Sequence([D.Replace("▁", " "), D.Fuse(), D.Strip(" ", 2, 1)]))
    yield "unigram-scripts", with_added(unigram(P.Sequence([P.UnicodeScripts(), P.Metaspace(prepend_scheme="never")])))
    yield "wordpiece-bert", with_added(wordpiece())
    yield "wordpiece-cased", wordpiece(N.BertNormalizer(lowercase=False, strip_accents=False), cleanup=False)
    yield "wordpiece-accents", wordpiece(N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()]),
                                         P.Sequence([P.Whitespace(), P.Punctuation()]), prefix="#")
    yield "word-level", word_level(P.Whitespace())
    yield "word-level-ctc", word_level(P.Split("", "isolated"), N.Replace(" ", "|"), D.CTC(pad_token="<pad>"))
    yield "characters", word_level(P.FixedLength(1), N.Strip(right=False), D.Fuse())
    yield "fixed-length", bpe(pre=P.FixedLength(7), dec=D.Fuse())
    yield "delimiter", word_level(P.CharDelimiterSplit("e"), dec=D.Fuse())
    yield "byte-normalizer", bpe(norm=N.Sequence([N.NFC(), N.ByteLevel()]), dec=D.ByteLevel(),
                                 pre=P.Split(Regex("Ġ?[^Ġ]+"), "contiguous"))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"split-{behavior}", word_level(P.Sequence([P.Split(Regex(r"[aeiou ]|\h{2}"), behavior),
                                                          P.Punctuation(behavior), P.Digits(behavior == "removed")]))
        yield f"split-{behavior}-inverted", word_level(P.Split(Regex(r"\w+?[nrt]|\S"), behavior, invert=True))


def sentencepiece_models():
    """Name, the model's bytes."""
    import io

    import sentencepiece
    common = {"character_coverage": 1.0, "minloglevel": 2, "num_threads": 1, "hard_vocab_limit": False}
    for name, options in {
            "bpe-bytes": {"model_type": "bpe", "vocab_size": 620, "byte_fallback": True,
                          "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
            "bpe-symbols": {"model_type": "bpe", "vocab_size": 420, "user_defined_symbols": ["<sep>", "wheel"],
                            "normalization_rule_name": "identity", "add_dummy_prefix": False,
                            "remove_extra_whitespaces": False},
            "unigram-nfkc": {"model_type": "unigram", "vocab_size": 420, "normalization_rule_name": "nmt_nfkc"}}.items():
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES[:11] * 4), model_writer=out, **common,
                                                 **options)
        yield name, out.getvalue()


def sentencepiece_cases(model, texts):
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    unknown = processor.unk_id()
    return [[text, processor.encode(text), processor.decode(
        [i for i in processor.encode(text) if i != unknown])] for text in texts if "\0" not in text]


def cases(tokenizer, texts):
    out = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        full = tokenizer.encode(text, add_special_tokens=True).ids
        try:
            decoded = [tokenizer.decode(full, skip_special_tokens=skip) for skip in (False, True)]
        except BaseException as fault:  # some decoders of the library cannot take an empty list
            if type(fault).__name__ != "PanicException":
                raise
            continue
        out.append([text, ids, full, *decoded])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--full", metavar="FOLDER")
    args = parser.parse_args()
    texts = SENTENCES + [t for t in corpus(420, seed=7)[len(SENTENCES):] if len(t) < 60]
    rng = random.Random(3)
    os.makedirs(args.folder, exist_ok=True)
    for name, tokenizer in tokenizers():
        chosen = rng.sample(SENTENCES, 12) + rng.sample(texts[len(SENTENCES):], 28)
        data = {"tokenizer": json.loads(tokenizer.to_str()), "cases": cases(tokenizer, chosen)}
        with open(os.path.join(args.folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")
        if args.full:
            folder = os.path.join(args.full, name)
            os.makedirs(folder, exist_ok=True)
            tokenizer.save(os.path.join(folder, "tokenizer.json"))
    models_folder = os.path.join(args.folder, "sentencepiece")
    os.makedirs(models_folder, exist_ok=True)
    for name, model in sentencepiece_models():
        chosen = rng.sample(SENTENCES, 12) + rng.sample(texts[len(SENTENCES):], 28)
        data = {"model": base64.b64encode(model).decode(), "cases": sentencepiece_cases(model, chosen)}
        with open(os.path.join(models_folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()
