"""One real step of SFT and of DPO on a tiny model made here; needs the extra ``train``."""

import json
import os
import runpy
import sys
from pathlib import Path

import pytest

from annotations import training
from pararecover_core.formats.training import TRAINING_FORMS, form_for, write_training
from pararecover_core.preferences import Rules, select
from tests.training_data import JUDGE, run_of, scored_store

REASON = "needs the extra train: pip install 'pararecover[train]'"
datasets = pytest.importorskip("datasets", reason=REASON)
ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module", autouse=True)
def offline():
    os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    made = scored_store(folder / "t.db", tasks=4)
    from tests.store_data import items

    for one in training.candidates(made, JUDGE)[:2]:
        made.ingest(items(run_of(made, made.replan(one.replan), 0.5)))
    return made


def written(store, folder, kind, name, **more):
    rules = Rules(test_share=0.25)
    found = training.candidates(store, JUDGE)
    path = folder / f"{kind}-{name}.jsonl"
    if kind == "stepwise":
        texts = training.stepwise(store, found, 10)
    else:
        texts = training.texts(store, select(found, rules, kind=kind).examples, **more)
    assert write_training(texts, path, form_for(kind, name)).rows
    return path


FILES = [
    (kind, form.name, apart)
    for form in TRAINING_FORMS.values()
    for kind in form.kinds
    for apart in (False, True)
    if not (apart and (kind in ("kto", "stepwise") or "alpaca" in form.name))
]


@pytest.mark.parametrize(("kind", "name", "apart"), FILES)
def test_datasets_loads_every_format(store, tmp_path, kind, name, apart):
    path = written(store, tmp_path, kind, name, **({"tools_apart": True} if apart else {}))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    loaded = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.column_names == list(rows[0])
    assert [dict(row) for row in loaded] == rows


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A Llama of two layers over bytes, saved with its tokenizer; nothing is downloaded."""
    pytest.importorskip("torch", reason=REASON)
    transformers = pytest.importorskip("transformers", reason=REASON)
    tokenizers = pytest.importorskip("tokenizers", reason=REASON)
    folder = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    special = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    vocabulary = {token: n for n, token in enumerate([*special, *alphabet])}
    model = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="<|pad|>", eos_token="<|end|>",
        additional_special_tokens=special[2:],
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=4096,
        pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def step(script, monkeypatch, **options):
    """Run a script for one step on the CPU."""
    common = {
        "use_cpu": True, "bf16": False, "dtype": "float32", "max_steps": 1, "warmup_steps": 0,
        "per_device_train_batch_size": 1, "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False, "save_strategy": "no", "report_to": "none",
        "logging_steps": 1,
    }  # fmt: skip
    words = [word for name, value in {**common, **options}.items() for word in (f"--{name}", value)]
    monkeypatch.setattr(sys, "argv", [script, *map(str, words)])
    monkeypatch.syspath_prepend(str(ROOT / "train"))
    runpy.run_path(str(ROOT / "train" / script), run_name="__main__")


def test_examples_that_are_too_long_are_told(store, tiny, tmp_path, monkeypatch, capsys):
    pytest.importorskip("trl", reason=REASON)
    monkeypatch.syspath_prepend(str(ROOT / "train"))
    import common
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    rows = common.examples(str(written(store, tmp_path, "dpo", "trl")))
    sizes = sorted(common._tokens(row, tokenizer) for row in rows)
    common.check_lengths(rows, tokenizer, sizes[-1])
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit, match=f"all 3 examples .*the shortest has {sizes[0]:,}"):
        common.check_lengths(rows, tokenizer, 10)
    long = rows.map(lambda row, at: {"prompt": row["prompt"] * (1 + (at == 0))}, with_indices=True)
    common.check_lengths(long, tokenizer, sizes[-1])
    assert "1 of 3 examples are longer than" in capsys.readouterr().out


def test_a_step_of_sft_then_one_of_dpo(store, tiny, tmp_path, monkeypatch):
    pytest.importorskip("trl", reason=REASON)
    pytest.importorskip("peft", reason=REASON)
    import torch
    from safetensors.torch import load_file

    sft = written(store, tmp_path, "sft", "trl")
    first, second = tmp_path / "sft", tmp_path / "dpo"
    step("sft.py", monkeypatch, model_name_or_path=tiny, train_file=sft, output_dir=first)
    adapter = load_file(first / "adapter_model.safetensors")
    settings = json.loads((first / "adapter_config.json").read_text())
    assert (settings["r"], settings["lora_alpha"], settings["lora_dropout"]) == (32, 64, 0.05)
    # B starts at 0: one step has moved it
    assert any(bool(torch.any(w != 0)) for name, w in adapter.items() if "lora_B" in name)

    dpo = written(store, tmp_path, "dpo", "trl")
    step("dpo.py", monkeypatch, model_name_or_path=first, train_file=dpo, output_dir=second)
    assert (second / "adapter_model.safetensors").is_file()
    merged = load_file(second / "merged" / "model.safetensors")
    before = load_file(tiny / "model.safetensors")
    assert merged.keys() == before.keys()
    assert any(not torch.equal(merged[name], before[name]) for name in before)
