"""``pararecover check``: findings and S5 of each instance of a file."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from pararecover_cli.inputs import check_input
from pararecover_core.errors import InputError
from pararecover_core.findings import Finding, instance_findings
from pararecover_core.formats import read
from pararecover_core.formats.items import Answer, Reject
from pararecover_core.literals import dumps
from pararecover_core.records import Instance


def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files with instances.")],
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a row is rejected.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line for each instance.")
    ] = False,
) -> None:
    """Say where plan, tools and observations of each instance show an error.

    Rejected rows are listed on stderr. Findings follow the paper's definitions; the label that
    the file gives is printed beside them.

    Example: pararecover check LEVEL-1_augmented.jsonl --json
    """
    for file in files:
        check_input(file, "a file to check")
    rejected, other, types, checked = 0, 0, Counter[str](), 0
    for file in files:
        for content in _contents(file):
            if isinstance(content, Reject):
                rejected += 1
                typer.echo(printable(str(content)), err=True)
            elif isinstance(content, Instance):
                checked += 1
                found = instance_findings(content)
                types.update(_type(finding) for finding in found)
                typer.echo(dumps(as_data(content, found)) if as_json else as_lines(content, found))
            else:
                other += 1
    if not checked:
        names = ", ".join(map(str, files))
        cure = "Give a file with queries, tools and plans"
        raise InputError(names, "no instance", "at least one", cure)
    typer.echo(_summary(checked, types, other), err=as_json)
    if strict and rejected:
        raise typer.Exit(1)


def _contents(file: Path) -> Iterator[Any]:
    """Instances and rejects of a file; an answer that brings its instance counts as one."""
    try:
        for item in read(file):
            content = item.content
            if isinstance(content, Answer) and content.instance is not None:
                content = content.instance
            yield content
    except OSError as error:
        got = error.strerror or str(error)
        raise InputError(str(file), got, "a file that can be read", "Check it") from error


def as_data(instance: Instance, found: tuple[Finding, ...]) -> dict[str, Any]:
    """One instance as the JSON object that ``check --json`` prints."""
    return {
        "id": instance.id,
        "query_id": instance.query_id,
        "level": instance.level,
        "tags": list(instance.tags),
        "s5": instance.plan.s5,
        "fault": instance.plan.fault,
        "findings": [finding.data() for finding in found],
    }


def as_lines(instance: Instance, found: tuple[Finding, ...]) -> str:
    """One instance for people: a heading, then a line a finding."""
    name = " ".join(
        part
        for part in (
            instance.id or instance.key,
            f"(query {instance.query_id})" if instance.query_id else "",
            f"LEVEL-{instance.level}" if instance.level else "",
            f"labelled {', '.join(instance.tags)}" if instance.tags else "no label",
            "" if instance.plan.s5 else f"S5 = 0: {instance.plan.fault}",
        )
        if part
    )
    lines = [printable(name)]
    for finding in found:
        nodes = ", ".join(finding.nodes[:4]) or "-"
        head = f"  {finding.certainty.value:<9}{_type(finding):<21}{nodes:<12}"
        lines.append(head + printable(finding.message))
    return "\n".join(lines if found else [*lines, "  nothing found"])


def _type(finding: Finding) -> str:
    return finding.error_type.value if finding.error_type else "other error"


def _summary(checked: int, types: Counter[str], other: int) -> str:
    total = sum(types.values())
    by_type = ", ".join(f"{name} {count:,}" for name, count in types.most_common())
    line = f"{checked:,} instances, {total / checked:.1f} findings each"
    line += f": {by_type}" if by_type else ""
    return line + (f"; {other:,} rows hold no instance" if other else "")


def printable(text: str) -> str:
    """Text from a file as a terminal may show it: control characters are written out."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
