"""Preference learning on pairs that ``pararecover export dpo`` wrote, from what ``sft.py`` saved.

The adapter of the first stage is merged into its base; the new one is trained on top, and with it
switched off the same weights are the reference model.

Run: python train/dpo.py --model_name_or_path out/sft --train_file dpo.jsonl

Source: paper section 3.4 and appendix G.
"""

from collections.abc import Sequence

from common import check_lengths, examples, model_and_tokenizer, options
from trl import DPOConfig, DPOTrainer, get_peft_config


def main(argv: Sequence[str] | None = None) -> None:
    """Train and save the adapter with its tokenizer, and the merged model that it belongs to."""
    data, training, settings = options(DPOConfig, "dpo.yaml", argv)
    model, tokenizer = model_and_tokenizer(settings)
    rows = examples(data.train_file)
    check_lengths(rows, tokenizer, training.max_length)
    trainer = DPOTrainer(
        model=model,
        args=training,
        train_dataset=rows,
        eval_dataset=examples(data.eval_file),
        processing_class=tokenizer,
        peft_config=get_peft_config(settings),
    )
    trainer.train()
    trainer.save_model(training.output_dir)
    if settings.use_peft:
        merged = trainer.model.merge_and_unload()
        merged.save_pretrained(f"{training.output_dir}/merged")
        tokenizer.save_pretrained(f"{training.output_dir}/merged")


if __name__ == "__main__":
    main()
