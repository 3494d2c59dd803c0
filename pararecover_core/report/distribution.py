"""How many instances carry each error type, by level and round.

Source: paper appendix F (tables 10 and 11, figure 4).
"""

from collections.abc import Iterable

from pararecover_core.records import Instance
from pararecover_core.report.table import Cell, Report, Row
from pararecover_core.taxonomy import ErrorType, split_labels

_ROUNDS = 3
_TYPES = [error_type.value for error_type in ErrorType]


def distribution(instances: Iterable[Instance]) -> Report:
    """Counts and percentages of error types in each round, for each level and source.

    Args:
        instances: N instances.

    Returns:
        A row for each level, source and type, then its total. Keys are those of the instances;
        a percentage is of the labels in that round.
    """
    found: dict[tuple[str, str], dict[tuple[str, int], list[str]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for instance in instances:
        place = str(instance.level or "?"), instance.source.value
        cells, sizes[place] = found.setdefault(place, {}), sizes.get(place, 0) + 1
        for number, tag in enumerate(instance.tags[:_ROUNDS], start=1):
            for label in split_labels(tag):
                cells.setdefault((label, number), []).append(instance.key)
    rows: list[Row] = []
    for place in sorted(found):
        rows += _rows(place, found[place])
    columns = [c for r in range(1, _ROUNDS + 1) for c in (f"Round {r}", f"Round {r} %")]
    notes = [
        f"LEVEL-{level}, {source}: {size:,} instances."
        for (level, source), size in sorted(sizes.items())
    ]
    return Report(
        title="Error type distribution",
        labels=("level", "source", "error type"),
        columns=tuple(columns),
        rows=tuple(rows),
        digits=(0, 2) * _ROUNDS,
        notes=tuple(notes),
        counts=True,
    )


def _rows(place: tuple[str, str], cells: dict[tuple[str, int], list[str]]) -> list[Row]:
    rounds = range(1, _ROUNDS + 1)
    totals = {r: sum(len(k) for (_, at), k in cells.items() if at == r) for r in rounds}
    others = sorted({label for label, _ in cells} - set(_TYPES))
    known = [kind for kind in [*_TYPES, *others] if any((kind, r) in cells for r in rounds)]
    rows = []
    for kind in known:
        made: list[Cell] = []
        for r in rounds:
            keys = tuple(cells.get((kind, r), ()))
            share = 100.0 * len(keys) / totals[r] if totals[r] else float("nan")
            made += [Cell(len(keys), len(keys), keys), Cell(share, len(keys), keys)]
        rows.append(Row((*place, kind), tuple(made)))
    total = [
        Cell(value, totals[r])
        for r in rounds
        for value in (totals[r], 100.0 if totals[r] else float("nan"))
    ]
    return [*rows, Row((*place, "Total"), tuple(total))]
