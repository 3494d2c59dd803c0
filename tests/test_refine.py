"""The refinement loop, over real HTTP against a scripted judge and a scripted proposer."""

import json
import random
import re

import msgspec
import pytest
from sklearn.metrics import cohen_kappa_score

from pararecover_core.agreement import measure
from pararecover_core.completions import Endpoint
from pararecover_core.errors import InputError
from pararecover_core.judges.llm_judge import Item
from pararecover_core.judges.prompt import Prompt
from pararecover_core.llm import Model
from pararecover_core.pairing import Cell
from pararecover_core.plan import Plan
from pararecover_core.records import Instance, Replan, Source
from pararecover_core.refine import (
    Fate,
    Interrupted,
    Judged,
    Proposal,
    Rules,
    Step,
    refine,
    share_of,
)
from pararecover_core.refine_models import ModelJudge, ModelProposer, texts_of
from tests.model_server import chat, failure, serving

TEXT = "Judge well.\n{{rubric}}\n{{answer_form}}\nEDIT 0"
START = Prompt("sde", 1, TEXT, dimensions=("D1",))


def items(n):
    made = {}
    for number in range(n):
        instance = Instance(
            f"i{number}", str(number), f"q{number}", 1, Source.ROLLOUT,
            f"Query number {number} asks for item{number} and nothing else at all today", (),
            Plan.parse({"tasks": []}), (),
        )  # fmt: skip
        made[f"r{number}"] = Item(
            instance, Replan(f"r{number}", f"i{number}", "agent", "", Plan.parse({}))
        )
    return made


def scripted(human, accuracy, edits):
    """A reply function: a judge right where its draw lies under the edit's accuracy."""
    draws = {key: random.Random(key[0]).random() for key in human}

    def reply(call):
        system, user = (message["content"] for message in call.body["messages"])
        if system.startswith("You edit"):
            number = proposed[0] = proposed[0] + 1
            text = edits[min(number, len(edits)) - 1]
            return chat(json.dumps({"note": f"edit {number}", "text": text}))
        edit = int(re.search(r"EDIT (\d+)", system)[1])
        key = ("r" + re.search(r"item(\d+)", user)[1], "D1")
        right = draws[key] < accuracy(edit, key)
        score = human[key] if right else 0.5 if human[key] != 0.5 else 1.0
        return chat(json.dumps({"D1": {"reason": "so", "score": score}}))

    proposed = [0]
    return reply


def edit(number):
    return TEXT.replace("EDIT 0", f"EDIT {number}")


def run(server, dev, made, **options):
    model = Model(Endpoint("scripted", server.url, concurrency=8, retries=0))
    judge = ModelJudge(model, made, list(dev))
    return refine(START, dev, judge, ModelProposer(model, made), texts=texts_of(made), **options)


def test_a_known_confusion_gives_the_known_figures():
    table = [[20, 4, 1], [3, 15, 6], [2, 5, 24]]
    pairs = [(h / 2, j / 2) for h in range(3) for j in range(3) for _ in range(table[h][j])]
    made = items(len(pairs))
    human = {(f"r{n}", "D1"): pair[0] for n, pair in enumerate(pairs)}

    def reply(call):
        number = int(re.search(r"item(\d+)", call.text)[1])
        return chat(json.dumps({"D1": {"reason": "r", "score": pairs[number][1]}}))

    with serving(reply) as server:
        model = Model(Endpoint("scripted", server.url, concurrency=8))
        judged = ModelJudge(model, made, list(human)).judge(START)
    assert judged.failed == 0
    assert judged.usage.prompt == 10 * len(pairs)
    cells = [Cell(s, d, human[s, d], score) for (s, d), score in judged.scores.items()]
    found = measure(cells, dimensions=("D1",), resamples=0).dimensions[0]
    # n = 80; 59 equal; gaps 0.5: 4 + 3 + 6 + 5 = 18, gaps 1: 3
    assert found.ema.value == pytest.approx(59 / 80, abs=1e-9)
    assert found.mae.value == pytest.approx((18 * 0.5 + 3) / 80, abs=1e-9)
    one, other = ([int(2 * pair[side]) for pair in pairs] for side in (0, 1))
    expected = cohen_kappa_score(one, other, weights="linear")
    assert found.kappa.value == pytest.approx(expected, abs=1e-9)
    assert [list(row) for row in found.confusion] == table


def test_the_third_edit_that_truly_helps_is_found_and_holds():
    made = items(180)
    human = {(key, "D1"): (n % 3) / 2 for n, key in enumerate(made)}
    dev = {key: human[key] for key in list(human)[:120]}
    held = {key: human[key] for key in list(human)[120:]}

    def accuracy(number, key):
        return 0.9 if number == 3 else 0.6 if number == 0 else 0.58

    reply = scripted(human, accuracy, [edit(1), edit(2), edit(3), edit(4)])
    kept = []
    with serving(reply) as server:
        found = run(server, dev, made, rules=Rules(tries=3, most=6), done=kept.append)
        model = Model(Endpoint("scripted", server.url, concurrency=8))
        sealed = ModelJudge(model, made, list(held)).judge(found.prompt)
    assert [step.fate for step in found.steps[:4]] == [
        Fate.START, Fate.NO_WIN, Fate.NO_WIN, Fate.ACCEPTED,
    ]  # fmt: skip
    assert found.prompt.text == edit(3)
    assert (found.prompt.version, found.prompt.parent) == (4, 1)
    assert kept == list(found.steps)
    assert found.stopped == "nothing won in 3 tries"
    right = sum(sealed.scores[key] == held[key] for key in held) / len(held)
    assert found.steps[3].ema - right < 0.1  # no gap: it helps everywhere


def test_an_edit_that_fits_dev_alone_is_exposed_by_the_gap():
    made = items(180)
    human = {(key, "D1"): (n % 3) / 2 for n, key in enumerate(made)}
    dev = {key: human[key] for key in list(human)[:120]}
    held = {key: human[key] for key in list(human)[120:]}

    def accuracy(number, key):
        return 0.95 if number and key in dev else 0.6

    with serving(scripted(human, accuracy, [edit(1)])) as server:
        found = run(server, dev, made, rules=Rules(tries=1))
        model = Model(Endpoint("scripted", server.url, concurrency=8))
        sealed = ModelJudge(model, made, list(held)).judge(found.prompt)
    assert found.steps[1].fate is Fate.ACCEPTED
    right = sum(sealed.scores[key] == held[key] for key in held) / len(held)
    assert found.steps[1].ema - right > 0.2


def test_an_edit_that_quotes_dev_samples_is_refused_unjudged():
    made = items(20)
    human = {(key, "D1"): 1.0 for key in made}
    cheat = edit(1) + "\nQuery number 3 asks for item3 and nothing else at all today: give 1."
    with serving(scripted(human, lambda *_: 0.5, [cheat])) as server:
        found = run(server, human, made, rules=Rules(tries=1))
    assert found.steps[1].fate is Fate.REPEATS
    assert "item3 and nothing else" in found.steps[1].detail
    assert found.steps[1].paired is None
    assert found.prompt == START


class Fixed:
    """A judge and proposer in process, for what needs no endpoint."""

    def __init__(self, texts, scores):
        self.texts, self.scores, self.judged = list(texts), scores, []

    def propose(self, situation):
        return Proposal(self.texts.pop(0), "n", cost=0.5)

    def judge(self, prompt):
        self.judged.append(prompt.version)
        return Judged(self.scores(prompt), cost=None)


def test_the_shares_of_alpha_add_up():
    # 0.05 / (1 x 2), 0.05 / (2 x 3), 0.05 / (3 x 4)
    assert [share_of(0.05, j) for j in (1, 2, 3)] == pytest.approx([0.025, 0.05 / 6, 0.05 / 12])
    assert sum(share_of(0.05, j) for j in range(1, 2000)) == pytest.approx(0.05, rel=1e-3)


def test_chance_does_not_win_by_many_tries():
    """Edits that change nothing but luck, eight a refinement: one in twenty may be kept."""
    human = {(f"r{n}", "D1"): 1.0 for n in range(80)}
    kept = small = 0
    for seed in range(60):
        rng = random.Random(seed)
        fixed = Fixed(
            [edit(n) for n in range(1, 10)],
            lambda prompt, rng=rng: {key: float(rng.random() < 0.6) for key in human},
        )
        found = refine(START, human, fixed, fixed, rules=Rules(tries=8, most=8))
        kept += any(step.fate is Fate.ACCEPTED for step in found.steps)
        small += any(s.paired and s.paired.p < 0.05 and s.paired.ema.low > 0 for s in found.steps)
    assert kept <= 5
    assert small >= 2 * max(kept, 1)  # what a fixed 0.05 would have kept


def test_a_judge_that_was_stopped_makes_no_step():
    human = {(f"r{n}", "D1"): 1.0 for n in range(4)}

    def scores(prompt):
        if prompt.version == 2:
            raise Interrupted
        return dict.fromkeys(human, 0.0)

    fixed = Fixed([edit(1)], scores)
    found = refine(START, human, fixed, fixed)
    assert found.stopped == "stopped by hand"
    assert [step.fate for step in found.steps] == [Fate.START]


def test_it_goes_on_from_its_steps():
    human = {(f"r{n}", "D1"): 1.0 for n in range(40)}

    def scores(prompt):
        right = 36 if "EDIT 2" in prompt.text else 20
        return {key: 1.0 if n < right else 0.0 for n, key in enumerate(human)}

    one = Fixed([edit(1), edit(2)], scores)
    calls = iter([False, False, True])
    part = refine(START, human, one, one, cancelled=lambda: next(calls))
    assert part.stopped == "stopped by hand"
    assert [s.fate for s in part.steps] == [Fate.START, Fate.NO_WIN, Fate.ACCEPTED]
    saved = msgspec.json.decode(msgspec.json.encode(part.steps), type=tuple[Step, ...])
    assert [s.prompt for s in saved] == [s.prompt for s in part.steps]
    two = Fixed([edit(5), edit(6)], scores)
    rest = refine(START, human, two, two, rules=Rules(tries=2), history=part.steps)
    assert two.judged == [3, 4, 5]  # the accepted version first, then the new ones
    assert rest.prompt == part.steps[2].prompt
    assert len(rest.steps) == 5
    # refined to the end already: nothing is proposed
    three = Fixed([], scores)
    assert (
        refine(START, human, three, three, rules=Rules(tries=2), history=rest.steps).steps
        == rest.steps
    )


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(ema=0.5, mae=0.6), "target reached: EMA 0.5000"),
        (Rules(money=0.7), "budget of 0.7 US dollars used up"),
        (Rules(most=1), "1 edit tried"),
    ],
)
def test_reasons_to_stop(rules, words):
    human = {(f"r{n}", "D1"): 1.0 for n in range(4)}
    fixed = Fixed(
        [edit(n) for n in range(1, 9)], lambda p: {k: float(int(k[0][1]) % 2) for k in human}
    )
    found = refine(START, human, fixed, fixed, rules=rules)
    assert found.stopped.startswith(words)


def test_edits_that_cannot_work_cost_no_judging():
    human = {(f"r{n}", "D1"): 1.0 for n in range(4)}
    fixed = Fixed([TEXT, "no slots", ""], lambda prompt: dict.fromkeys(human, 0.0))
    found = refine(START, human, fixed, fixed)
    assert [s.fate for s in found.steps[1:]] == [Fate.UNCHANGED, Fate.INVALID, Fate.UNCHANGED]
    assert fixed.judged == [1]


def test_a_failing_endpoint_never_wins():
    human = {(f"r{n}", "D1"): 1.0 for n in range(10)}
    fixed = Fixed(
        [edit(1)],
        lambda p: dict.fromkeys(list(human)[: 10 if p.version == 1 else 3], 0.0 + (p.version > 1)),
    )
    found = refine(START, human, fixed, fixed, rules=Rules(tries=1))
    assert found.steps[1].fate is Fate.INCOMPLETE
    with pytest.raises(InputError, match="no score of people"):
        refine(START, {}, fixed, fixed)


def test_a_proposer_that_fails_is_a_refused_step():
    made = items(6)
    human = {(key, "D1"): 1.0 for key in made}

    def reply(call):
        if call.body["messages"][0]["content"].startswith("You edit"):
            return failure(400, "bad words")
        return chat(json.dumps({"D1": {"reason": "x", "score": 0}}))

    with serving(reply) as server:
        found = run(server, human, made, rules=Rules(tries=1))
    assert found.steps[1].fate is Fate.UNCHANGED
    assert "endpoint error" in found.steps[1].prompt.note
