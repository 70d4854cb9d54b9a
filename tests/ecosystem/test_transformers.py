"""Networks of Hugging Face's transformers, in small random configurations."""

import pytest
import torch
from ecosystem_networks import assert_converted_trained_and_saved

import ssvi

transformers = pytest.importorskip("transformers", reason="transformers is not installed: run `make test-ecosystem`")

pytestmark = [pytest.mark.ecosystem, pytest.mark.filterwarnings("default")]

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
TEXT = {"vocab_size": 200, "max_position_embeddings": 64}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def bert():
    return transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL, **TEXT))


def gpt2():
    config = {"vocab_size": 200, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, **SPECIAL}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**config))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **SMALL, **TEXT))


def vit():
    return transformers.ViTForImageClassification(transformers.ViTConfig(image_size=32, patch_size=8, **SMALL))


def t5():
    config = {"vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**config, decoder_start_token_id=0))


def whisper():
    sizes = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in WHISPER.items()}
    lengths = {"num_mel_bins": 20, "max_source_positions": 32, "max_target_positions": 32}
    config = transformers.WhisperConfig(
        vocab_size=200, d_model=64, decoder_start_token_id=1, **sizes, **lengths, **SPECIAL
    )
    return transformers.WhisperForConditionalGeneration(config)


WHISPER = {"layers": 2, "attention_heads": 4, "ffn_dim": 128}
TOKENS = torch.randint(3, 200, (4, 12), generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SOUND = torch.randn(4, 20, 64, generator=torch.Generator().manual_seed(0))
CLASSES = torch.tensor([0, 1, 0, 1])

NETWORKS = {
    "bert": (bert, {"input_ids": TOKENS, "labels": CLASSES}),
    "gpt2": (gpt2, {"input_ids": TOKENS, "labels": TOKENS}),
    "llama": (llama, {"input_ids": TOKENS, "labels": TOKENS}),
    "vit": (vit, {"pixel_values": IMAGES, "labels": CLASSES}),
    "t5": (t5, {"input_ids": TOKENS, "labels": TOKENS}),
    "whisper": (whisper, {"input_features": SOUND, "labels": TOKENS}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_converted_trained_saved_loaded_and_predicts(name, tmp_path):
    torch.manual_seed(0)
    make, batch = NETWORKS[name]
    assert_converted_trained_and_saved(make(), lambda net: net(**batch).loss, lambda net: net(**batch).logits, tmp_path)


def test_the_linear_layers_of_gpt2_are_served_by_the_kernels_of_linear():
    """Its Conv1D holds (inputs, outputs); the posterior holds (outputs, inputs). At density 1 nothing changes."""
    torch.manual_seed(0)
    net = gpt2().eval()
    bnn = ssvi.to_bnn(net, 1.0)
    layer = bnn.transformer.h[0].attn.c_attn
    assert layer.posterior.shape == (192, 64)
    assert torch.equal(
        ssvi.mean(bnn, dense=True).transformer.h[0].attn.c_attn.weight, net.transformer.h[0].attn.c_attn.weight
    )
    with torch.no_grad(), ssvi.at_mean(bnn):
        torch.testing.assert_close(bnn(TOKENS).logits, net(TOKENS).logits, rtol=1e-4, atol=1e-5)
    sparse = ssvi.to_bnn(net, 0.1)
    assert sparse.lm_head.posterior is sparse.transformer.wte.posterior
    assert sparse.transformer.h[0].attn.c_attn.kernel == sparse.lm_head.kernel
