#!/usr/bin/env python3
"""Makes tiny random checkpoints of many architectures, with the logits that transformers computes.

Run by hand; needs PyPI's torch and transformers. Each case becomes a folder with config.json,
generation_config.json, model.safetensors and golden.json (48 input ids, their logits, 16 greedy
tokens), which the test checkpoints_test takes from $HEADRACE_CONFORMANCE/models:

    tools/make_golden.py /tmp/golden/models
    HEADRACE_CONFORMANCE=/tmp/golden build/release/tests/checkpoints_test

`--only NAME` makes the cases whose names contain NAME; `--list` names them all. `--old-spelling`
rewrites each config in the spellings of transformers 4.
"""

import argparse
import json
import pathlib

import torch
import transformers

INPUT_TOKENS = 48
GREEDY_TOKENS = 16
BASE = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
MOE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 40}


def rope(kind, **values):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **values}}


def longrope(dims):
    return rope(
        "longrope",
        short_factor=[1.0 + 0.03 * i for i in range(dims // 2)],
        long_factor=[1.5 + 0.4 * i for i in range(dims // 2)],
    )


def case(architecture, **changes):
    return architecture, changes


CASES = {
    "llama-biases": case("Llama", attention_bias=True, mlp_bias=True),
    "llama-odd-widths": case(
        "Llama", hidden_size=60, intermediate_size=96, num_attention_heads=5, num_key_value_heads=1,
        head_dim=12, vocab_size=323),
    "llama-wide-heads": case("Llama", head_dim=96, num_attention_heads=2, num_key_value_heads=2),
    "llama-60": case("Llama", head_dim=60, num_attention_heads=2, num_key_value_heads=1),
    "llama-one-kv-head": case("Llama", num_key_value_heads=1, num_attention_heads=8, head_dim=8),
    "llama-tied-vocab": case("Llama", vocab_size=331, tie_word_embeddings=True),
    "llama-linear": case("Llama", **rope("linear", factor=4.0)),
    "llama-dynamic": case("Llama", **rope("dynamic", factor=4.0)),
    "llama-yarn": case(
        "Llama", **rope("yarn", factor=8.0, original_max_position_embeddings=64)),
    "llama-yarn-scales": case(
        "Llama", **rope("yarn", factor=8.0, original_max_position_embeddings=64, beta_fast=16,
                        beta_slow=2, mscale=0.7, mscale_all_dim=1.0, truncate=False)),
    "llama-yarn-attention": case(
        "Llama", **rope("yarn", factor=4.0, original_max_position_embeddings=128,
                        attention_factor=1.3)),
    "llama-llama3": case(
        "Llama", **rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                        original_max_position_embeddings=64)),
    "llama-longrope": case(
        "Llama", max_position_embeddings=4096, original_max_position_embeddings=1024,
        **longrope(16)),
    "mistral": case("Mistral", sliding_window=None, head_dim=24),
    "mistral-window": case("Mistral", sliding_window=7, num_key_value_heads=4),
    "qwen2-window": case(
        "Qwen2", use_sliding_window=True, sliding_window=9, max_window_layers=1),
    "qwen2-tied": case("Qwen2", tie_word_embeddings=True, vocab_size=333),
    "qwen3-biases": case("Qwen3", attention_bias=True, head_dim=40, tie_word_embeddings=True),
    "qwen3-yarn": case(
        "Qwen3", head_dim=32, **rope("yarn", factor=4.0, original_max_position_embeddings=32)),
    "smollm3": case("SmolLM3", no_rope_layers=[0, 1, 0], attention_bias=True),
    "smollm3-interval": case("SmolLM3", no_rope_layer_interval=2, mlp_bias=True),
    "gemma": case("Gemma", head_dim=32, tie_word_embeddings=True),
    "gemma-untied": case("Gemma", head_dim=24, num_key_value_heads=1),
    "gemma2": case(
        "Gemma2", head_dim=24, query_pre_attn_scalar=48, sliding_window=8,
        final_logit_softcapping=20.0, attn_logit_softcapping=10.0, tie_word_embeddings=True),
    "gemma2-no-caps": case(
        "Gemma2", head_dim=32, final_logit_softcapping=None, attn_logit_softcapping=None,
        sliding_window=16, tie_word_embeddings=True),
    "gemma3": case(
        "Gemma3", num_hidden_layers=4, head_dim=24, query_pre_attn_scalar=30, sliding_window=8,
        layer_types=["full_attention", "sliding_attention"] * 2, tie_word_embeddings=True),
    "gemma3-linear": case(
        "Gemma3", num_hidden_layers=4, head_dim=32, sliding_window=8, tie_word_embeddings=True,
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}}),
    "phi3-window": case("Phi3", sliding_window=10),
    "phi3-partial": case(
        "Phi3", rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                 "partial_rotary_factor": 0.75}),
    "phi3-longrope-short": case(
        "Phi3", max_position_embeddings=4096, original_max_position_embeddings=1024,
        **longrope(16)),
    "phi3-longrope-long": case(
        "Phi3", max_position_embeddings=4096, original_max_position_embeddings=32,
        **longrope(16)),
    "gpt2-gelu": case("GPT2", activation_function="gelu", n_inner=72),
    "gpt2-odd": case("GPT2", n_embd=60, n_head=3, scale_attn_weights=False),
    "xglm": case("XGLM"),
    "xglm-unscaled": case("XGLM", scale_embedding=False, activation_function="relu"),
    "stablelm": case("StableLm"),
    "stablelm-parallel": case(
        "StableLm", use_parallel_residual=True, use_qkv_bias=True, qk_layernorm=True,
        num_key_value_heads=4),
    "stablelm-norms": case(
        "StableLm", qk_layernorm=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                         "partial_rotary_factor": 0.5}),
    "granite": case(
        "Granite", embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.06,
        logits_scaling=5.0, tie_word_embeddings=True),
    "granite-biases": case(
        "Granite", attention_bias=True, mlp_bias=True, residual_multiplier=0.5, logits_scaling=3.0),
    "olmo2": case("Olmo2", num_key_value_heads=4),
    "olmo2-grouped": case("Olmo2", num_key_value_heads=1, attention_bias=True),
    "mixtral": case("Mixtral", num_local_experts=5, num_experts_per_tok=3),
    "mixtral-window": case("Mixtral", num_local_experts=4, num_experts_per_tok=1, sliding_window=8),
    "qwen2-moe": case("Qwen2Moe", shared_expert_intermediate_size=56, norm_topk_prob=False, **MOE),
    "qwen2-moe-sparse": case(
        "Qwen2Moe", shared_expert_intermediate_size=32, norm_topk_prob=True, decoder_sparse_step=2,
        num_hidden_layers=4, **MOE),
    "qwen3-moe": case("Qwen3Moe", head_dim=20, norm_topk_prob=False, **MOE),
    "qwen3-moe-dense-layer": case(
        "Qwen3Moe", head_dim=32, norm_topk_prob=True, mlp_only_layers=[1], **MOE),
    "olmoe": case(
        "Olmoe", num_experts=7, num_experts_per_tok=3, norm_topk_prob=True, clip_qkv=0.6),
    "starcoder2": case("Starcoder2", sliding_window=9),
    "starcoder2-plain": case("Starcoder2", use_bias=False, tie_word_embeddings=True),
}

RENAMED = {
    "GPT2": {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
             "max_position_embeddings": "n_positions"},
    "XGLM": {"hidden_size": "d_model", "num_hidden_layers": "num_layers",
             "num_attention_heads": "attention_heads", "intermediate_size": "ffn_dim"},
}
DROPPED = {"GPT2": {"intermediate_size", "num_key_value_heads", "tie_word_embeddings"},
           "XGLM": {"num_key_value_heads", "tie_word_embeddings"}}
CONFIGS = {"Gemma3": "Gemma3TextConfig"}


def make_model(architecture, changes):
    values = {RENAMED.get(architecture, {}).get(key, key): value for key, value in BASE.items()
              if key not in DROPPED.get(architecture, set())}
    values.update(changes)
    config = getattr(transformers, CONFIGS.get(architecture, architecture + "Config"))(**values)
    suffix = "LMHeadModel" if architecture == "GPT2" else "ForCausalLM"
    model = getattr(transformers, architecture + suffix)._from_config(
        config, attn_implementation="eager")
    model.eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.3 if "norm" in name or "ln_" in name else 0.12
            noise = torch.randn_like(parameter) * spread
            parameter.copy_(parameter * 0.5 + noise if parameter.dim() == 1 else noise)
            if parameter.dim() == 1 and "norm" in name and "bias" not in name:
                parameter.add_(0.7)
    return model


def to_old_spelling(config):
    """transformers 4: rope_theta and rope_scaling beside the others, torch_dtype."""
    rope_parameters = config.pop("rope_parameters", None)
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    if not rope_parameters:
        return config
    if "full_attention" in rope_parameters:
        local = rope_parameters.get("sliding_attention", {})
        config["rope_local_base_freq"] = local.get("rope_theta", 10000.0)
        rope_parameters = rope_parameters["full_attention"]
    config["rope_theta"] = rope_parameters.pop("rope_theta", 10000.0)
    if "partial_rotary_factor" in rope_parameters:
        config["partial_rotary_factor"] = rope_parameters.pop("partial_rotary_factor")
    if rope_parameters.get("rope_type", "default") != "default":
        rope_parameters["type"] = rope_parameters.pop("rope_type")
        config["rope_scaling"] = rope_parameters
    if "num_local_experts" in config and config["architectures"][0] != "MixtralForCausalLM":
        config["num_experts"] = config.pop("num_local_experts")
    return config


def make_case(folder, name, architecture, changes, seed, old_spelling):
    torch.manual_seed(seed)
    model = make_model(architecture, changes)
    ids = torch.randint(3, model.config.vocab_size, (1, INPUT_TOKENS))
    with torch.no_grad():
        logits = model(ids).logits[0]
        text = ids
        for _ in range(GREEDY_TOKENS):
            best = model(text, use_cache=False).logits[0, -1].argmax()
            text = torch.cat([text, best.reshape(1, 1)], dim=1)
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(path)
    if old_spelling:
        config = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps(to_old_spelling(config), indent=2))
    golden = {
        "source": f"{architecture} of transformers {transformers.__version__}, float32, eager",
        "input_ids": ids[0].tolist(),
        "logits": [[float(f"{value:.7g}") for value in row] for row in logits.tolist()],
        "greedy": text[0, INPUT_TOKENS:].tolist(),
    }
    (path / "golden.json").write_text(json.dumps(golden))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", help="where the cases go")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--old-spelling", action="store_true", help="configs as of transformers 4")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    args = parser.parse_args()
    if args.list or args.folder is None:
        print("\n".join(CASES))
        return
    for number, (name, (architecture, changes)) in enumerate(CASES.items()):
        if args.only in name:
            make_case(args.folder, name, architecture, dict(changes), args.seed + number,
                      args.old_spelling)
            print(name)


if __name__ == "__main__":
    main()
