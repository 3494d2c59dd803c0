"""Training data out of scored replans: good answers (SFT), pairs of a better and a worse (DPO).

Test instances are set apart first, whole tasks at a time: a task is everything that shares a
query id or the text of the query, so that no task has instances on both sides. What is left out is
counted with its reason, never dropped in silence.

Source: paper section 3.4 (thresholds; the split comes before everything else).
"""

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from pararecover_core.errors import InputError
from pararecover_core.rubric import DIMENSIONS

Kind = Literal["sft", "dpo", "kto"]
Part = Literal["train", "test"]
PAIRINGS = ("best", "all")
"""Which pairs of an instance become examples: the best answer against each that it beats by the
gap, or every two answers that differ by the gap."""

FULL = float(len(DIMENSIONS))
"""The highest total: 1 for each of the 15 sub-dimensions."""

NO_CONTENT = "content not imported"
NO_ANSWER = "no thought and no plan"
INCOMPLETE = "not all 15 sub-dimensions scored"
OTHER_PART = {"train": "set apart for the test", "test": "not of the test"}
TOO_LOW = "total too low"
BETWEEN = "total neither good nor bad"
NO_PARTNER = "no other answer to the instance far enough away"
REPEATED = "same prompt and answer as another"
SAME_ANSWER = "both answers say the same"
DROPPED = "dropped by hand"


class Rules(msgspec.Struct, frozen=True):
    """What makes an example.

    Attributes:
        above: SFT takes answers whose total is above this, in [0, 15].
        least: DPO takes pairs of answers whose totals are both at least this, in [0, 15].
        gap: DPO takes pairs whose totals differ by more than this, in [0, 15].
        pairs: "best" or "all" (``PAIRINGS``).
        test_share: Share of tasks that is set apart for the test, in [0, 1).
        seed: Chooses which tasks these are.
        test_queries: Query ids of the test; where given, share and seed have no say.

    Source: paper section 3.4; the share is ours, the paper does not give it.
    """

    above: float = 10.0
    least: float = 3.0
    gap: float = 5.0
    pairs: str = "best"
    test_share: float = 0.1
    seed: int = 0
    test_queries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("above", "least", "gap"):
            value = getattr(self, name)
            if not 0 <= value <= FULL:
                raise InputError(name, f"{value:g}", "a total from 0 to 15", "Correct it")
        if not 0 <= self.test_share < 1:
            expected = "at least 0 and below 1"
            raise InputError("test share", f"{self.test_share:g}", expected, "Correct it")
        if self.pairs not in PAIRINGS:
            expected = f"one of {', '.join(PAIRINGS)}"
            raise InputError("pairs", repr(self.pairs), expected, "Choose one of these")


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """One scored answer.

    Attributes:
        replan: Key of the replan.
        query: The text of the query, for telling tasks apart.
        total: Sum of the 15 sub-dimensions in [0, 15]; NaN where not all are scored.
        prompt: Stands for what the agent saw: equal where that is equal.
        answer: Stands for what it answered, "" where it answered nothing.
        missing: Sub-dimensions without a score.
        stub: Whether the content of replan or instance is not there.
    """

    replan: str
    instance: str
    query_id: str
    query: str
    agent: str
    total: float
    prompt: str = ""
    answer: str = ""
    missing: tuple[str, ...] = ()
    stub: bool = False


class Decision(msgspec.Struct, frozen=True):
    """What a person decided about one example: the newest of an example counts.

    Attributes:
        example: ``Example.id``.
        keep: False takes the example out, True says that it was read and stays.
        reason: Why, in the person's words; never empty for an example taken out.
        by: Who decided.
        at: When, ISO 8601.
    """

    kind: str
    example: str
    keep: bool
    reason: str
    by: str = ""
    at: str = ""


class Example(msgspec.Struct, frozen=True, gc=False):
    """One training example: an answer, or a better and a worse one to the same instance.

    Attributes:
        id: The key of the replan; of a pair the two keys with ">" between them.
        rejected: The worse answer of a pair, None for SFT.
        decision: What a person decided about it, None where nobody did.
    """

    id: str
    chosen: Candidate
    rejected: Candidate | None = None
    decision: Decision | None = None

    @property
    def gap(self) -> float:
        """By how much the totals of a pair differ; NaN for SFT."""
        return math.nan if self.rejected is None else self.chosen.total - self.rejected.total


class Selection(msgspec.Struct, frozen=True):
    """What was taken, and what was not.

    Attributes:
        examples: Those taken, best first within an instance, instances in the order given.
        dropped: Those that a person took out.
        excluded: Answers (SFT, and DPO before pairing) or pairs left out, by reason.
        totals: The total of every answer that has one, of both parts.
        tasks: Number of tasks.
        test_tasks: Number of tasks of the test.
        test_queries: Query ids of the test, sorted.
    """

    kind: Kind
    part: Part
    examples: tuple[Example, ...]
    dropped: tuple[Example, ...]
    excluded: dict[str, int]
    totals: tuple[float, ...]
    tasks: int
    test_tasks: int
    test_queries: tuple[str, ...]


def total(scores: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
    """The total of an answer and the sub-dimensions without a score.

    Args:
        scores: Score in [0, 1] by sub-dimension.

    Returns:
        Sum over all 15 in [0, 15], NaN where one is missing; the missing ones in rubric order.
    """
    missing = tuple(d for d in DIMENSIONS if d not in scores)
    return (math.nan if missing else math.fsum(scores[d] for d in DIMENSIONS)), missing


def select(
    candidates: Iterable[Candidate],
    rules: Rules,
    *,
    kind: Kind,
    part: Part = "train",
    decisions: Iterable[Decision] = (),
) -> Selection:
    """Choose the examples.

    Args:
        candidates: N scored answers, those of one instance in any order.
        rules: Thresholds and split.
        kind: "sft" takes good answers, "dpo" pairs, "kto" good answers (as SFT) and bad ones: at
            most ``above - gap``.
        part: Of which side of the split.
        decisions: What people decided, oldest first. Those about single answers count for SFT and
            KTO, those about pairs for DPO.

    Returns:
        The examples, and counts of what was left out.

    Raises:
        InputError: A given test list puts a task on both sides, or names no query at all.
    """
    given = list(candidates)
    tasks = group_tasks(given)
    test = choose_test(given, tasks, rules)
    tested = [tasks[_names(one)[0]] in test for one in given]
    excluded: Counter[str] = Counter()
    mine = []
    for one, in_test in zip(given, tested, strict=True):
        reason = OTHER_PART[part] if in_test != (part == "test") else _unusable(one)
        if reason:
            excluded[reason] += 1
        else:
            mine.append(one)
    find = _pairs if kind == "dpo" else _answers
    found = find(mine, rules, excluded, worst=rules.above - rules.gap if kind == "kto" else -1.0)
    decided = {one.example: one for one in decisions if (one.kind == "dpo") == (kind == "dpo")}
    every = [
        msgspec.structs.replace(example, decision=decided.get(example.id))
        for example in _once(found, excluded)
    ]
    dropped = tuple(one for one in every if one.decision and not one.decision.keep)
    excluded[DROPPED] = len(dropped)
    ids = {one.query_id for one, in_test in zip(given, tested, strict=True) if in_test}
    return Selection(
        kind,
        part,
        tuple(one for one in every if one.decision is None or one.decision.keep),
        dropped,
        dict(+excluded),
        tuple(one.total for one in given if not math.isnan(one.total)),
        len(set(tasks.values())),
        len(test),
        tuple(sorted(ids - {""})),
    )


def _unusable(one: Candidate) -> str:
    if one.stub:
        return NO_CONTENT
    if math.isnan(one.total):
        return INCOMPLETE
    return "" if one.answer else NO_ANSWER


def _answers(
    candidates: Iterable[Candidate], rules: Rules, excluded: Counter[str], *, worst: float
) -> Iterator[Example]:
    """Answers above the threshold, and those whose total is at most ``worst``."""
    for group in _by_instance(candidates):
        for one in group:
            if one.total > rules.above or one.total <= worst:
                yield Example(one.replan, one)
            else:
                excluded[TOO_LOW if worst < 0 else BETWEEN] += 1


def _pairs(
    candidates: Iterable[Candidate], rules: Rules, excluded: Counter[str], *, worst: float
) -> Iterator[Example]:
    """Pairs of one instance; ``worst`` has no say."""
    for group in _by_instance(candidates):
        fit = [one for one in group if one.total >= rules.least]
        excluded[TOO_LOW] += len(group) - len(fit)
        paired: set[str] = set()
        better = fit[:1] if rules.pairs == "best" else fit
        for chosen in better:
            for rejected in fit:
                if chosen.total - rejected.total <= rules.gap:
                    continue
                paired |= {chosen.replan, rejected.replan}
                if chosen.answer == rejected.answer:
                    excluded[SAME_ANSWER] += 1
                else:
                    yield Example(f"{chosen.replan}>{rejected.replan}", chosen, rejected)
        excluded[NO_PARTNER] += sum(one.replan not in paired for one in fit)


def _by_instance(candidates: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """Answers instance by instance, the best first; equal totals in the order of their keys."""
    groups: dict[str, list[Candidate]] = {}
    for one in candidates:
        groups.setdefault(one.instance, []).append(one)
    for group in groups.values():
        yield sorted(group, key=lambda one: (-one.total, one.replan))


def _once(examples: Iterable[Example], excluded: Counter[str]) -> Iterator[Example]:
    """Each text once: the same prompt with the same answers comes from a file given twice."""
    seen: set[tuple[str, str, str]] = set()
    for one in examples:
        key = (one.chosen.prompt, one.chosen.answer, one.rejected.answer if one.rejected else "")
        if key in seen:
            excluded[REPEATED] += 1
            continue
        seen.add(key)
        yield one


# The split


def normal(query: str) -> str:
    """A query with form, case, white space and end marks folded: equal for the same task."""
    text = unicodedata.normalize("NFKC", query).casefold()
    return " ".join(text.split()).strip(" .!?。！？")


def _names(one: Candidate) -> list[str]:
    """What ties a candidate to its task; an answer with neither id nor query is its own task."""
    text = normal(one.query)
    names = [f"id {one.query_id}"] if one.query_id else []
    names += [f"text {text}"] if text else []
    return names or [f"instance {one.instance}"]


def group_tasks(candidates: Iterable[Candidate]) -> dict[str, str]:
    """The task of each name: names that occur together belong to one task.

    Returns:
        A stable name of the task by each of its names.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for one in candidates:
        first, *others = map(root, _names(one))
        for other in others:
            low, high = sorted((root(first), other))
            parent[high] = low
    return {name: root(name) for name in list(parent)}


def choose_test(
    candidates: Sequence[Candidate], tasks: Mapping[str, str], rules: Rules
) -> frozenset[str]:
    """The tasks of the test.

    Args:
        candidates: All answers.
        tasks: What ``group_tasks`` gave for them.
        rules: The list of query ids, else share and seed.

    Returns:
        Names of tasks. By share: the nearest whole number of tasks, at least one where the share
        is above 0 and there are two, drawn by a hash of seed and name.

    Raises:
        InputError: The list leaves part of a task outside, or names nothing that is here.
    """
    if not rules.test_queries:
        every = sorted(set(tasks.values()), key=lambda name: (_draw(rules.seed, name), name))
        count = round(rules.test_share * len(every))
        if rules.test_share and len(every) > 1:
            count = max(1, count)
        return frozenset(every[:count])
    listed = set(rules.test_queries)
    test = [one for one in candidates if one.query_id in listed]
    if candidates and not test:
        got = f"{len(listed)} query ids, none of them in the data"
        raise InputError("test list", got, "query ids of the data", "Check the list")
    check_leakage(test, [one for one in candidates if one.query_id not in listed])
    return frozenset(tasks[_names(one)[0]] for one in test)


def _draw(seed: int, name: str) -> bytes:
    data = f"{seed}:{name}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()


def check_leakage(test: Iterable[Candidate], train: Iterable[Candidate]) -> None:
    """Refuse a split that has a task on both sides.

    Raises:
        InputError: A query id, or the same text under another id, stands on both.
    """
    held: dict[str, str] = {}
    for one in test:
        held |= {name: one.query_id for name in _names(one)}
    leaks: dict[tuple[str, str], None] = {}
    for one in train:
        leaks |= {(held[name], one.query_id): None for name in _names(one) if name in held}
    if leaks:
        first, second = next(iter(leaks))
        got = (
            f"{len(leaks)} tasks in both train and test, such as query id {first!r} of the test "
            f"and {second!r} of the training data, which are the same query"
        )
        cure = "Put all query ids of a task into the test list, or none"
        raise InputError("split", got, "no task on both sides", cure)


def of_part(candidates: Iterable[Candidate], rules: Rules, part: Part) -> list[Candidate]:
    """The candidates of one side of the split.

    Raises:
        InputError: As ``choose_test``.
    """
    given = list(candidates)
    tasks = group_tasks(given)
    test = choose_test(given, tasks, rules)
    return [one for one in given if (tasks[_names(one)[0]] in test) == (part == "test")]


# What a preview shows


def histogram(values: Collection[float], *, top: float = FULL, width: float = 1.0) -> list[int]:
    """How many values lie in each step from 0 to ``top``.

    Args:
        values: N numbers in [0, top].
        top: The highest value; it belongs to the last step.
        width: Width of a step, above 0.

    Returns:
        ceil(top / width) counts that add up to N.
    """
    steps = math.ceil(top / width)
    counts = [0] * steps
    for value in values:
        counts[min(int(value / width), steps - 1)] += 1
    return counts


def demonstrations(examples: Iterable[Example], count: int = 3) -> list[Example]:
    """The best answers to show an agent, each of another task and by preference another agent.

    Args:
        examples: SFT examples of the training part.
        count: How many.

    Returns:
        At most ``count`` examples, the highest total first.

    Source: paper section 3.4 (three high-quality demonstrations); which ones is our choice.
    """
    ranked = sorted(examples, key=lambda one: (-one.chosen.total, one.id))
    tasks = group_tasks(one.chosen for one in ranked)
    chosen: list[Example] = []
    seen: set[str] = set()
    agents: set[str] = set()
    for fresh in (True, False):
        for one in ranked:
            task = tasks[_names(one.chosen)[0]]
            if len(chosen) < count and task not in seen:
                if fresh and one.chosen.agent in agents:
                    continue
                seen.add(task)
                agents.add(one.chosen.agent)
                chosen.append(one)
    return sorted(chosen, key=lambda one: (-one.chosen.total, one.id))
