"""Translation and text: languages, words, style."""

from typing import Annotated, TypedDict

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.kinds import (
    Language,
    Minutes,
    Money,
    Text,
    Words,
    choice_kind,
    id_kind,
    text_kind,
)
from pararecover_core.sandbox.registry import tool

Phrase = Annotated[
    str,
    text_kind(
        "phrase",
        "the phrase",
        ("Where is the station?", "The meeting is postponed.", "Thank you for the parcel.",
         "The water is cold.", "Please sign both copies.", "See you on Thursday."),
    ),
]  # fmt: skip
Tone = Annotated[str, choice_kind("tone", "the tone", ("formal", "friendly", "plain"))]
JobId = Annotated[str, id_kind("translation_job", "the translation job", "TJ")]


class Translated(TypedDict):
    """A text in another language."""

    translated_text: Text


class Detected(TypedDict):
    """The language of a text."""

    language: Language


class WordCount(TypedDict):
    """How long a text is."""

    word_count: Words
    reading_time: Minutes


class Quote(TypedDict):
    """An offer for a translation."""

    translation_job: JobId
    quoted_price: Money


class Job(TypedDict):
    """How a job stands."""

    remaining_time: Minutes
    progress_note: Text


class Rewritten(TypedDict):
    """A text in another tone."""

    rewritten_text: Text


class Shouted(TypedDict):
    """A text in capitals."""

    capitalised_text: Text


@tool("translate {phrase} into {language}", makes="the translation")
def translate_phrase(phrase: Phrase, language: Language) -> Translated:
    """Translate a short phrase word by word.

    Args:
        phrase: What to translate.
        language: Language to translate into.
    """
    return {"translated_text": f"[{language[:2].upper()}] {phrase}"}


@tool("translate {text} into {language}", makes="the translation")
def translate_text(text: Text, language: Language) -> Translated:
    """Translate a longer text.

    Args:
        text: What to translate.
        language: Language to translate into.
    """
    return {"translated_text": f"[{language[:2].upper()}] {text}"}


@tool("find out which language {text} is meant for", makes="the language")
def detect_language(text: Text) -> Detected:
    """Tell the language of a text.

    Args:
        text: Any text.
    """
    languages = ("French", "German", "Spanish", "Portuguese", "Japanese", "Norwegian", "Italian")
    marks = {language[:2].upper(): language for language in languages}
    found = marks.get(text[1:3]) or Draw("language", text).choice(languages)
    return {"language": found}


@tool("count the words of {text}", makes="the word count")
def count_words(text: Text) -> WordCount:
    """Count words and tell the reading time.

    Args:
        text: Any text.
    """
    words = max(1, len(text.split()))
    return {"word_count": words, "reading_time": max(1, round(words / 4))}


@tool("ask what a translation into {language} costs for {words}", makes="the translation job")
def quote_translation(words: Words, language: Language) -> Quote:
    """Ask a translator for an offer.

    Args:
        words: Number of words.
        language: Language to translate into.
    """
    draw = Draw("quote", words, language)
    return {"translation_job": draw.id("TJ"), "quoted_price": round(draw.amount(1, 3) * words, 2)}


@tool("see how far {translation_job} is", makes="the job status")
def get_job_status(translation_job: JobId) -> Job:
    """Tell how long a translation job still takes.

    Args:
        translation_job: Identifier of the job.
    """
    draw = Draw("job", translation_job)
    return {
        "remaining_time": draw.integer(5, 600),
        "progress_note": f"{draw.integer(10, 95)} percent done.",
    }


@tool("rewrite {text} in a {tone} tone", makes="the new wording")
def rewrite_text(text: Text, tone: Tone) -> Rewritten:
    """Rewrite a text in another tone.

    Args:
        text: Any text.
        tone: Tone to write in.
    """
    opening = {
        "formal": "We wish to inform you:",
        "friendly": "Just so you know:",
        "plain": "Note:",
    }
    return {"rewritten_text": f"{opening[tone]} {text}"}


@tool("put {text} in capitals", makes="the capitals")
def capitalise_text(text: Text) -> Shouted:
    """Write a text in capitals.

    Args:
        text: Any text.
    """
    return {"capitalised_text": text.upper()}
