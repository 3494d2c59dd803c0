"""Judges: prompts as files, the LLM judge, the program judge, what they answer."""

from pararecover_core.judges.answer import UnparsableError, answer_schema, parse_answer
from pararecover_core.judges.llm_judge import (
    Item,
    Judgement,
    LlmJudge,
    Task,
    forecast,
    judge_many,
    scorer_name,
)
from pararecover_core.judges.program import ProgramJudge
from pararecover_core.judges.prompt import Prompt, built_in_prompts, parse_prompt, write_prompt

__all__ = [
    "Item",
    "Judgement",
    "LlmJudge",
    "ProgramJudge",
    "Prompt",
    "Task",
    "UnparsableError",
    "answer_schema",
    "built_in_prompts",
    "forecast",
    "judge_many",
    "parse_answer",
    "parse_prompt",
    "scorer_name",
    "write_prompt",
]
