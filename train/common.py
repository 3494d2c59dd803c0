"""What both training scripts share: options, data, and starting from an earlier adapter."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from trl import ModelConfig, TrlParser

HERE = Path(__file__).resolve().parent


@dataclass
class DataConfig:
    """Files of examples.

    Attributes:
        train_file: Written by ``pararecover export`` in a TRL format.
        eval_file: The same with ``--part test``; "" for none.
    """

    train_file: str = field(metadata={"help": "File that `pararecover export` wrote."})
    eval_file: str = field(default="", metadata={"help": "The same of the test part."})


def options(config: type[Any], default: str, argv: Sequence[str] | None) -> tuple[Any, Any, Any]:
    """Options from a file (``--config``, else the paper's settings) and the command line.

    Args:
        config: The trainer's own options.
        default: Name of the file of settings beside this one.
        argv: The command line; None for the program's own.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    if "--config" not in given:
        given = ["--config", str(HERE / default), *given]
    parsed = TrlParser((DataConfig, config, ModelConfig)).parse_args_and_config(given)
    return parsed[0], parsed[1], parsed[2]


def examples(path: str) -> Dataset | None:
    """The rows of a file; None where no file is named."""
    return load_dataset("json", data_files=path, split="train") if path else None


def check_lengths(rows: Dataset | None, tokenizer: Any, longest: int | None) -> None:
    """Say how many examples are too long: the trainer cuts them, or drops them without a word.

    Args:
        rows: What ``examples`` gave.
        tokenizer: That of the model.
        longest: ``max_length`` of the trainer, in tokens; None for no limit.

    Raises:
        SystemExit: None of them fits.
    """
    if rows is None or longest is None:
        return
    sizes = [_tokens(row, tokenizer) for row in rows]
    long = sum(size > longest for size in sizes)
    if long == len(sizes):
        raise SystemExit(
            f"all {long:,} examples are longer than {longest:,} tokens (the shortest has "
            f"{min(sizes, default=0):,}): raise --max_length"
        )
    if long:
        print(
            f"{long:,} of {len(sizes):,} examples are longer than {longest:,} tokens (the longest "
            f"has {max(sizes):,}) and are cut or dropped: raise --max_length to keep them whole"
        )


def _tokens(row: dict[str, Any], tokenizer: Any) -> int:
    """Tokens of the whole conversation; of a pair, of the longer one."""
    start = row.get("messages") or row["prompt"]
    ends = [row[name] for name in ("completion", "chosen", "rejected") if name in row] or [[]]
    texts = [tokenizer.apply_chat_template(start + end, tokenize=False) for end in ends]
    return max(len(tokenizer(text)["input_ids"]) for text in texts)


def model_and_tokenizer(settings: ModelConfig) -> tuple[PreTrainedModel, Any]:
    """The model to start from; an adapter is merged into its base first."""
    path = settings.model_name_or_path
    if (Path(path) / "adapter_config.json").is_file():
        from peft import AutoPeftModelForCausalLM

        adapted = AutoPeftModelForCausalLM.from_pretrained(path, dtype=settings.dtype)
        return adapted.merge_and_unload(), AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=settings.dtype)
    return model, AutoTokenizer.from_pretrained(path)
