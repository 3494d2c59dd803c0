"""Supervised fine-tuning on answers that ``pararecover export sft`` wrote.

Run: python train/sft.py --model_name_or_path Qwen/Qwen3-8B --train_file sft.jsonl

Source: paper section 3.4 and appendix G.
"""

from collections.abc import Sequence

from common import check_lengths, examples, model_and_tokenizer, options
from trl import SFTConfig, SFTTrainer, get_peft_config


def main(argv: Sequence[str] | None = None) -> None:
    """Train and save the adapter with its tokenizer."""
    data, training, settings = options(SFTConfig, "sft.yaml", argv)
    model, tokenizer = model_and_tokenizer(settings)
    rows = examples(data.train_file)
    check_lengths(rows, tokenizer, training.max_length)
    trainer = SFTTrainer(
        model=model,
        args=training,
        train_dataset=rows,
        eval_dataset=examples(data.eval_file),
        processing_class=tokenizer,
        peft_config=get_peft_config(settings),
    )
    trainer.train()
    trainer.save_model(training.output_dir)


if __name__ == "__main__":
    main()
