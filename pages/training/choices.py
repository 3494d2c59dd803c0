"""The bar of the page: kind, scorer, thresholds, split, format, and the downloads."""

from collections.abc import Sequence

import msgspec
import streamlit as st

from annotations import training_files
from annotations.score_log import storable
from annotations.store import Store
from annotations.training_files import KINDS, Wanted
from pararecover_core.formats.training import TRAINING_FORMS
from pararecover_core.pairing import GOLD, HUMAN
from pararecover_core.preferences import FULL, PAIRINGS, Candidate, Part, Rules, Selection
from ui.messages import show_note

_TITLES = {"sft": "SFT", "dpo": "DPO", "kto": "KTO", "stepwise": "Stepwise"}
_HELP = (
    "SFT: good answers alone. DPO: a better and a worse answer to the same instance. KTO: single "
    "answers, each good or bad. Stepwise: runs with a label for each round."
)
_PAIRS = {"best": "The best with each", "all": "Every two"}
_LARGE = 20_000
"""Examples above which a file is better written by the command: a download is held in memory."""


def draw(scorers: Sequence[str], usual: str) -> Wanted:
    """Draw the choices.

    Args:
        scorers: Whose scores there are.
        usual: The one that is chosen at first.
    """
    asked = st.query_params.get("kind", KINDS[0])
    kind = st.segmented_control(
        "Kind", KINDS, default=asked if asked in KINDS else KINDS[0], required=True,
        format_func=_TITLES.__getitem__, help=_HELP, key="tr_kind", width="content",
    ) or KINDS[0]  # fmt: skip
    named = st.query_params.get("scorer", usual)
    scorer = st.selectbox(
        "Totals by", scorers, scorers.index(named) if named in scorers else 0,
        format_func=scorer_words, key=f"tr_scorer_{usual}", width=180,
    ) or usual  # fmt: skip
    _keep("kind", kind, KINDS[0])
    _keep("scorer", scorer, usual)
    rules = _rules(kind)
    forms = [form.name for form in TRAINING_FORMS.values() if kind in form.kinds]
    form = st.selectbox(
        "Format", forms, format_func=lambda name: TRAINING_FORMS[name].title, width=220,
        key=f"tr_form_{kind}", disabled=len(forms) == 1,
    ) or forms[0]  # fmt: skip
    with st.popover("Options", icon=":material/tune:", key="tr_options"):
        rules, part = _split(rules)
        if kind == "dpo":
            pairs = st.radio(
                "Pairs", PAIRINGS, format_func=_PAIRS.__getitem__, horizontal=True, key="tr_pairs"
            )
            rules = msgspec.structs.replace(rules, pairs=pairs or rules.pairs)
        apart = kind in ("sft", "dpo") and not form.endswith("alpaca")
        tools = st.toggle(
            "Tools in a column, not in the prompt", key="tr_tools", disabled=not apart
        )
    return Wanted(kind, scorer, rules, form, part, apart and tools)


def scorer_words(name: str) -> str:
    """A scorer as a choice names it."""
    if name == GOLD:
        return "People (gold)"
    return storable(name.removeprefix("judge:").removeprefix(HUMAN))[:60]


def _keep(name: str, value: str, usual: str) -> None:
    if value != usual and st.query_params.get(name) != value:
        st.query_params[name] = storable(value)
    elif value == usual and name in st.query_params:
        del st.query_params[name]


def _number(label: str, value: float, key: str, words: str) -> float:
    return st.number_input(label, 0.0, FULL, value, 0.5, format="%g", key=key, help=words, width=96)


def _rules(kind: str) -> Rules:
    usual = Rules()
    if kind == "dpo":
        least = _number("Both at least", usual.least, "tr_least", "Lowest total of both answers.")
        gap = _number("Gap above", usual.gap, "tr_gap", "By how much the better one is better.")
        return Rules(least=least, gap=gap)
    above = _number("Good above", usual.above, "tr_above", "Total of a good answer, of 15.")
    if kind != "kto":
        return Rules(above)
    words = "Answers with a total of at most the good one's less this are bad."
    return Rules(above, gap=_number("Less for bad", usual.gap, "tr_kto_gap", words))


def _split(rules: Rules) -> tuple[Rules, Part]:
    share = st.slider(
        "Test: tasks set apart, percent", 0, 50, 10, key="tr_share",
        help="Whole tasks: what shares a query id or a query is never on both sides.",
    )  # fmt: skip
    seed = st.number_input("Seed", 0, 2**31, 0, key="tr_seed")
    text = st.text_area(
        "Query ids of the test, one a line", key="tr_queries", height=68,
        help="Where given, share and seed have no say: paste the list of an earlier card.",
    )  # fmt: skip
    part: Part = "test" if st.toggle("Show the test part", key="tr_test") else "train"
    listed = tuple(line.strip() for line in text.splitlines() if line.strip())
    split = {"test_share": share / 100, "seed": int(seed), "test_queries": listed}
    return msgspec.structs.replace(rules, **split), part


def downloads(store: Store, wanted: Wanted, found: Sequence[Candidate], chosen: Selection) -> None:
    """The files of what is chosen, made when they are asked for."""
    name = f"{wanted.kind}{'-test' if wanted.part == 'test' else ''}.jsonl"
    empty = wanted.kind != "stepwise" and not chosen.examples
    with st.popover("Download", icon=":material/download:", key="tr_download", disabled=empty):
        if len(chosen.examples) > _LARGE:
            show_note(
                f"{len(chosen.examples):,} examples are many for a browser. The command writes "
                f"them as they come: pararecover export {wanted.kind} --out {name}"
            )
        st.download_button(
            "File with its card, ZIP",
            lambda: training_files.zipped(store, wanted, found, chosen, name),
            f"{wanted.kind}.zip", "application/zip", on_click="ignore", width="stretch",
            type="primary", key="tr_take_zip",
            help="The card says what it was made from. For LLaMA-Factory dataset_info.json too.",
        )  # fmt: skip
        st.download_button(
            "File alone, JSONL", lambda: training_files.plain(store, wanted, found, chosen),
            name, "application/jsonl", on_click="ignore", width="stretch", key="tr_take_file",
        )  # fmt: skip
        st.download_button(
            "Card alone, JSON",
            lambda: training_files.card(wanted, chosen, len(chosen.examples)),
            f"{name}.card.json", "application/json", on_click="ignore", width="stretch",
            key="tr_take_card", disabled=wanted.kind == "stepwise",
        )  # fmt: skip
