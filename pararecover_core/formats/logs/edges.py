"""Which earlier results a call quotes: dependencies that a log does not write down.

A value counts where a result brought it first: what the user said, what a tool's schema lists, and
what the agent made up itself are no evidence, and a result that only echoes its own call's
arguments is none either.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pararecover_core.literals import loads

LEAST = 4
"""Characters of the shortest text that counts as a quotation."""
_LONGEST = 500
_SCANNED = 200_000
"""Characters of one result that are looked through."""
_LEAVES = 2_000
"""Values of one call that are looked at."""
_POSTINGS = 8
"""Newest results that are looked at for a phrase."""
_USER_TEXT = 50_000
_TOKEN = re.compile(r"[^\s\"'`,;()\[\]{}<>|=*：，。；、（）【】《》“”‘’！？]+")
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,12})?")
_DULL = frozenset({"true", "false", "null", "none", "undefined", "unknown", "default", "auto"})


class Evidence:
    """What results brought so far, in the order of the run.

    Every step costs about the length of what it is given, however long the run is.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = {_folded(text) for text in known}
        self._user = ""
        self._exact: dict[str, str] = {}
        self._token: dict[str, str] = {}
        self._postings: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}
        self._arguments: dict[str, str] = {}

    def heard(self, text: str) -> None:
        """Take in what the user said: later results that repeat it bring nothing new."""
        self._user = (self._user + "\n" + _folded(text))[:_USER_TEXT]
        keys = _keys_of_text(text[:_USER_TEXT])
        self._known.update(k for k in keys if k not in self._exact and k not in self._token)

    def called(self, node: str, arguments: Any) -> None:
        """Take in the arguments of a call, after its sources were asked for."""
        leaves = list(_leaves(arguments))
        self._arguments[node] = "\n".join(str(leaf) for leaf in leaves)[:_SCANNED]
        for leaf in leaves:
            for key in (_key(leaf), *_keys_of_leaf(leaf)):
                if key and key not in self._exact and key not in self._token:
                    self._known.add(key)

    def returned(self, node: str, text: str) -> None:
        """Take in what a call gave."""
        text = text[:_SCANNED]
        own = self._arguments.get(node, "")
        echoed = _keys_of_text(own) | {_key(line) for line in own.split("\n")}
        leaves = _values_of(text)
        for key in filter(None, map(_key, leaves)):
            if key not in echoed and key not in self._known and key not in self._user:
                self._exact[key] = node
        for key in _keys_of_text(_prose(leaves) if leaves else text):
            if key not in echoed and key not in self._known:
                self._token[key] = node
        self._texts[node] = text
        for word in {token.casefold() for token in _TOKEN.findall(text) if len(token) >= LEAST}:
            newest = self._postings.setdefault(word, [])
            newest.append(node)
            del newest[:-_POSTINGS]

    def sources(self, arguments: Any) -> tuple[str, ...]:
        """The nodes whose results the arguments quote; of several the newest, in order found."""
        found: dict[str, None] = {}
        for leaf in _leaves(arguments):
            for node in self._of(leaf):
                found[node] = None
        return tuple(found)

    def _of(self, leaf: Any) -> Iterator[str]:
        key = _key(leaf)
        if key in self._known:
            return
        node = self._exact.get(key) or self._token.get(key)
        if node:
            yield node
            return
        if not isinstance(leaf, str):
            return
        phrase = leaf.strip()
        if LEAST <= len(phrase) <= _LONGEST and _folded(phrase) not in self._user:
            node = self._phrase(phrase)
            if node:
                yield node
                return
        for part in _keys_of_leaf(leaf):
            node = self._token.get(part)
            if node:
                yield node

    def _phrase(self, phrase: str) -> str:
        """The newest result that holds a text of several words."""
        words = [token.casefold() for token in _TOKEN.findall(phrase) if len(token) >= LEAST]
        if len(words) < 2 or any(word not in self._postings for word in words):
            return ""
        rarest = min((self._postings[word] for word in words), key=len)
        return next(
            (
                node
                for node in reversed(rarest)
                if phrase in self._texts[node] and phrase not in self._arguments.get(node, "")
            ),
            "",
        )


def enums_of(tools: Any) -> Iterator[str]:
    """Values that tools' schemas list: quoting them says nothing about where they came from."""
    for name, value in _walk(tools):
        if name == "enum" and isinstance(value, list):
            yield from (item for item in value if isinstance(item, str))


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        name, item = waiting.pop()
        yield name, item
        if isinstance(item, Mapping):
            waiting.extend((str(key), inner) for key, inner in item.items())
        elif isinstance(item, list | tuple):
            waiting.extend((name if name == "enum" else "", inner) for inner in item)


def _leaves(value: Any) -> Iterator[Any]:
    """Texts and numbers inside a value, at most ``_LEAVES`` of them."""
    count = 0
    for _, item in _walk(value):
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            count += 1
            if count > _LEAVES:
                return
            yield item


def _values_of(text: str) -> list[Any]:
    """The values inside a result that is JSON; [] for prose."""
    if text.lstrip()[:1] not in ("{", "["):
        return [text] if len(text) <= _LONGEST else []
    try:
        return list(_leaves(loads(text)))
    except ValueError:
        return []


def _prose(leaves: Iterable[Any]) -> str:
    return "\n".join(str(leaf) for leaf in leaves)


def _key(leaf: Any) -> str:
    """What a value is looked up by; "" where it is too common to be a quotation."""
    if isinstance(leaf, int | float):
        return _number_key(leaf)
    text = leaf.strip()
    if _NUMBER.fullmatch(text):
        return _number_key(float(text)) if len(text) <= 15 else text
    return _folded(text) if LEAST <= len(text) <= _LONGEST and text.lower() not in _DULL else ""


def _folded(text: str) -> str:
    return text.strip().casefold()


def _number_key(number: float) -> str:
    """A number that is not likely to turn up by chance: 1,000 and more, or three digits and more.

    Years are too common.
    """
    if number != number or number in (float("inf"), float("-inf")):
        return ""
    whole = number == int(number)
    if whole:
        if abs(number) < 1_000 or 1_900 <= number <= 2_100 or number % 1_000 == 0:
            return ""
        return str(int(number))
    text = repr(float(number))
    return text if len(text.replace("-", "").replace(".", "").lstrip("0")) >= 3 else ""


def _keys_of_leaf(leaf: Any) -> Iterator[str]:
    if isinstance(leaf, str) and len(leaf) > LEAST:
        yield from sorted(_keys_of_text(leaf[:_SCANNED]))


def _keys_of_text(text: str) -> set[str]:
    """Distinctive words of a text: ids, numbers, addresses, names."""
    found = set()
    for token in _TOKEN.findall(text):
        word = token.strip(".:!?#/")
        if _NUMBER.fullmatch(word):
            key = _key(word)
        else:
            key = _folded(word) if len(word) >= LEAST and _is_distinctive(word) else ""
        if key:
            found.add(key)
    return found


def _is_distinctive(word: str) -> bool:
    """Whether a word is more than a plain word: it has a digit, a capital, an @ or no ASCII."""
    if word.lower() in _DULL or len(word) > _LONGEST:
        return False
    return not word.isascii() or "@" in word or any(c.isdigit() or c.isupper() for c in word)
