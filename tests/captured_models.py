"""Small random models of the transformers library, over the architectures of today.

A name stands for a configuration; the weights are drawn so that no map is close to uniform.
"""

import inspect

import numpy as np
import pytest

TEXT = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GQA = {"num_key_value_heads": 2}
SIZED = GQA | {"head_dim": 8}
WINDOW = {"sliding_window": 5}
GEMMA = SIZED | WINDOW | {"query_pre_attn_scalar": 8}
MOE = {
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
}
MLA = {
    "q_lora_rank": 12,
    "kv_lora_rank": 10,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 6,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
SIDES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "decoder_start_token_id": 2,
}
T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_heads": 4,
    "num_layers": 2,
    "decoder_start_token_id": 0,
}
IMAGE = {"image_size": 12, "patch_size": 4, "num_channels": 3}
SOUND = {
    "conv_dim": [16, 16],
    "conv_stride": [4, 4],
    "conv_kernel": [8, 4],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "max_relative_positions": 16,
}
DECODER, ENCODER, BOTH = "CausalLM", "MaskedLM", "Seq2SeqLM"
PICTURE, SPEECH, SPOKEN = "ImageClassification", "SpeechSeq2Seq", "CTC"

MODELS = {
    "llama": (DECODER, GQA),
    "llama3": (DECODER, GQA | {"model_type": "llama", "rope_parameters": LLAMA3}),
    "mistral": (DECODER, GQA | WINDOW),
    "ministral": (DECODER, SIZED),
    "qwen2": (DECODER, GQA),
    "qwen3": (DECODER, SIZED),
    "gemma": (DECODER, SIZED),
    "gemma2": (DECODER, GEMMA),
    "gemma3_text": (DECODER, GEMMA),
    "granite": (DECODER, GQA),
    "phi": (DECODER, {}),
    "phi3": (DECODER, GQA),
    "olmo": (DECODER, GQA),
    "olmo2": (DECODER, GQA),
    "olmo3": (DECODER, GQA | WINDOW),
    "olmoe": (DECODER, GQA | MOE),
    "mixtral": (DECODER, GQA | MOE),
    "qwen2_moe": (DECODER, GQA | MOE | {"shared_expert_intermediate_size": 16}),
    "qwen3_moe": (DECODER, SIZED | MOE),
    "gpt_oss": (DECODER, SIZED | MOE | WINDOW),
    "deepseek_v2": (DECODER, MOE | MLA),
    "deepseek_v3": (DECODER, MOE | MLA),
    "granitemoe": (DECODER, GQA | MOE),
    "phimoe": (DECODER, GQA | MOE),
    "cohere": (DECODER, GQA),
    "cohere2": (DECODER, SIZED | WINDOW),
    "glm": (DECODER, SIZED),
    "glm4": (DECODER, SIZED),
    "smollm3": (DECODER, GQA),
    "starcoder2": (DECODER, GQA),
    "stablelm": (DECODER, GQA),
    "nemotron": (DECODER, GQA),
    "helium": (DECODER, SIZED),
    "exaone4": (DECODER, GQA | WINDOW),
    "bitnet": (DECODER, GQA),
    "gpt2": (DECODER, {}),
    "gpt_neo": (
        DECODER,
        {
            "attention_types": [[["global", "local"], 1]],
            "num_layers": 2,
            "num_heads": 4,
            "window_size": 5,
        },
    ),
    "gptj": (DECODER, {"rotary_dim": 4}),
    "codegen": (DECODER, {"rotary_dim": 4}),
    "gpt_neox": (DECODER, {}),
    "gpt_bigcode": (DECODER, {}),
    "opt": (DECODER, {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "bloom": (DECODER, {}),
    "mpt": (DECODER, {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    "falcon": (DECODER, {}),
    "falcon with groups": (
        DECODER,
        {"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 2},
    ),
    "falcon with alibi": (DECODER, {"model_type": "falcon", "alibi": True, "multi_query": False}),
    "bert": (ENCODER, {}),
    "roberta": (ENCODER, {}),
    "xlm-roberta": (ENCODER, {}),
    "albert": (ENCODER, {"embedding_size": 16}),
    "distilbert": (ENCODER, {"hidden_dim": 48}),
    "electra": (ENCODER, {"embedding_size": 16}),
    "deberta": (ENCODER, DEBERTA | {"position_biased_input": False}),
    "deberta-v2": (ENCODER, DEBERTA | {"position_buckets": 8, "share_att_key": True}),
    "mpnet": (ENCODER, {}),
    "modernbert": (ENCODER, {"local_attention": 4, "cls_token_id": 1, "sep_token_id": 2}),
    "esm": (ENCODER, {"mask_token_id": 4, "position_embedding_type": "rotary"}),
    "longformer": (ENCODER, {"attention_window": [4, 4]}),
    "t5": (BOTH, T5),
    "bart": (BOTH, SIDES),
    "marian": (BOTH, SIDES | {"decoder_vocab_size": 60}),
    "whisper": (
        SPEECH,
        SIDES
        | {
            "num_mel_bins": 8,
            "max_source_positions": 10,
            "max_target_positions": 64,
            "suppress_tokens": [],
            "begin_suppress_tokens": [],
        },
    ),
    "wav2vec2": (SPOKEN, SOUND),
    "vit": (PICTURE, IMAGE),
    "dinov2": (PICTURE, IMAGE | {"mlp_ratio": 2}),
    "clip": (
        "",
        {
            "text_config": TEXT | {"projection_dim": 32},
            "vision_config": TEXT | IMAGE,
            "projection_dim": 32,
        },
    ),
}
"""The automatic class of each, and what its configuration says beside `TEXT`."""


def library():
    """torch and transformers, or a skip."""
    torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    return torch, transformers


def random_model(name, seed=0):
    """A model in float64, in evaluation mode, with eager attention."""
    torch, transformers = library()
    task, changes = MODELS[name]
    changes = dict(changes)
    kind = changes.pop("model_type", name)
    known = transformers.CONFIG_MAPPING[kind]
    names = {*inspect.signature(known.__init__).parameters, *known.attribute_map}
    sizes = {name: size for name, size in TEXT.items() if name in names and kind != "clip"}
    config = transformers.AutoConfig.for_model(kind, **(sizes | changes))
    settings = {"attn_implementation": "eager"}
    if "num_experts" in changes:
        settings["experts_implementation"] = "eager"
    torch.manual_seed(seed)
    loader = getattr(transformers, f"AutoModelFor{task}" if task else "AutoModel")
    model = loader.from_config(config, **settings).eval().double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for place, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            gain = weight.ndim == 1 and "bias" not in place
            weight.copy_(0.3 * noise + float(gain))
    return model


def random_tokens(count=3, length=9, seed=1):
    """Token numbers that are special in none of the models."""
    return np.random.default_rng(seed).integers(5, 55, (count, length))
