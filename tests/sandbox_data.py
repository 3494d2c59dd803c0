"""Legal calls of any sandbox tool, made apart from the composer."""

from pararecover_core.sandbox.draw_values import Draw
from pararecover_core.sandbox.registry import call, tools


def value_of(kind, draw, depth=0):
    """A legal value of a kind: drawn, or made by a tool that gives one."""
    if kind.sample:
        return kind.sample(draw)
    for maker in tools().values():
        for field, made in maker.outputs.items():
            if made.name == kind.name and depth < 6:
                given = arguments_of(maker, draw, depth + 1)
                outcome = call(maker.name, given) if given is not None else None
                if outcome and outcome.value is not None:
                    return outcome.value[field]
    return None


def arguments_of(tool, draw, depth=0):
    """Legal values for the required parameters, None where one cannot be made."""
    given = {n: value_of(tool.inputs[n].kind, draw, depth) for n in tool.required}
    return None if any(v is None for v in given.values()) else given


def legal_call(tool, seed=0):
    """Arguments of a call that succeeds, and its result."""
    for attempt in range(30):
        given = arguments_of(tool, Draw("legal", tool.name, seed, attempt))
        outcome = call(tool.name, given) if given is not None else None
        if outcome and outcome.value is not None:
            return given, outcome
    raise AssertionError(f"no legal call of {tool.name}")
