"""How quick ``check`` is, and how often the findings hold what the files' labels say.

Speed: makes 10,626 instances of 6 KB in the published format and runs ``pararecover check`` on
them; to reach: under 30 s. Recall: for each file that is given, the share of labels that are
among the findings, per error type, with and without the merges that published labels call for
({Serial, Parallelism}, {Null, Timeout}); to reach: 90% of augmented records and 75% of all of
the seven types that plan, tools and observations decide, half of the others, at most 5 findings
a record. Sandbox: precision and recall on generated instances, where the truth is known;
findings that are only possible do not count there.

Run: python benchmarks/bench_findings.py [FILE...] [--count 10626] [--sandbox 560]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench_import import write_file

from pararecover_core.findings import Certainty, instance_findings
from pararecover_core.formats import read
from pararecover_core.records import Instance, Source
from pararecover_core.taxonomy import ErrorType

COUNT, TARGET_SECONDS = 10_626, 30.0
DECIDED = (
    ErrorType.PARAMETER_ERROR,
    ErrorType.PARAMETER_MISSING,
    ErrorType.TYPE_ERROR,
    ErrorType.TOOL_NAME_ERROR,
    ErrorType.NULL_ERROR,
    ErrorType.TIMEOUT_ERROR,
    ErrorType.DEPENDENCE_NULL,
)
MERGED = {
    ErrorType.SERIAL_ERROR: "Serial or Parallelism",
    ErrorType.PARALLELISM_ERROR: "Serial or Parallelism",
    ErrorType.NULL_ERROR: "Null or Timeout",
    ErrorType.TIMEOUT_ERROR: "Null or Timeout",
}
_KNOWN = frozenset(ErrorType)


def main() -> None:
    """Measure what was asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="labelled files for the recall")
    parser.add_argument("--count", type=int, default=COUNT, help="instances for the speed; 0: none")
    parser.add_argument("--sandbox", type=int, default=0, help="generated instances a level")
    given = parser.parse_args()
    if given.count:
        speed(given.count)
    if given.files:
        recall(list(instances(given.files)))
    for level in (1, 2) if given.sandbox else ():
        sandbox(level, given.sandbox)


def speed(count: int) -> None:
    """Time ``pararecover check`` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instances.jsonl"
        write_file(path, count)
        command = [sys.executable, "-m", "pararecover_cli", "check", str(path), "--json"]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    verdict = "reached" if seconds < TARGET_SECONDS * count / COUNT else "missed"
    print(
        f"check of {count:,} instances: {seconds:.1f} s ({used.ru_utime:.1f} s of processor, "
        f"{used.ru_maxrss / 1024:.0f} MB); to reach {TARGET_SECONDS:.0f} s: {verdict}"
    )


def instances(files: Iterable[Path]) -> Iterator[Instance]:
    """The instances of some files."""
    for file in files:
        for item in read(file):
            if isinstance(item.content, Instance):
                yield item.content


def recall(found: list[Instance]) -> None:
    """Print, per label, how often it is among the findings."""
    labels, hits, merged = Counter[str](), Counter[str](), Counter[str]()
    augmented, augmented_hits, augmented_merged, total = 0, 0, 0, 0
    for instance in found:
        findings = instance_findings(instance)
        total += len(findings)
        types = {f.error_type for f in findings if f.error_type}
        loose = {MERGED.get(kind, kind) for kind in types}
        for tag in instance.tags:
            kind = ErrorType(tag) if tag in _KNOWN else None
            hit = kind in types
            near = kind is not None and MERGED.get(kind, kind) in loose
            labels[tag] += 1
            hits[tag] += hit
            merged[tag] += near
            if kind in DECIDED and instance.source is Source.AUGMENTED:
                augmented += 1
                augmented_hits += hit
                augmented_merged += near
    print(f"\n{len(found):,} labelled records, {total / max(1, len(found)):.1f} findings each")
    print(f"{'label':<22}{'labels':>7}{'found':>7}{'merged':>8}")
    for tag in sorted(labels):
        print(f"{tag:<22}{labels[tag]:>7}{hits[tag]:>7}{merged[tag]:>8}")
    others = [kind.value for kind in ErrorType if kind not in DECIDED]
    for name, kinds in (("the seven", [k.value for k in DECIDED]), ("the others", others)):
        counts = [sum(counter[kind] for kind in kinds) for counter in (labels, hits, merged)]
        print(f"{name:<22}{_shares(*counts)}")
    print(f"{'the seven, augmented':<22}{_shares(augmented, augmented_hits, augmented_merged)}")


def _shares(labels: int, hits: int, merged: int) -> str:
    if not labels:
        return "no such label"
    return f"{hits / labels:.0%} of {labels} labels, with the merges {merged / labels:.0%}"


def sandbox(level: int, count: int) -> None:
    """Print precision and recall on generated instances of one level."""
    from pararecover_core.generate import Mix, generate

    right, missed, wrong, total = Counter[str](), Counter[str](), Counter[str](), 0
    for instance in generate(level=level, count=count, seed="bench", mix=Mix.UNIFORM):
        findings = instance_findings(instance)
        total += len(findings)
        sure = {
            finding.error_type.value
            for finding in findings
            if finding.error_type and finding.certainty is not Certainty.POSSIBLE
        }
        truth = set(instance.tags)
        right.update(truth & sure)
        missed.update(truth - sure)
        wrong.update(sure - truth)
    print(f"\nsandbox LEVEL-{level}: {count:,} instances, {total / count:.1f} findings each")
    print(f"{'error type':<22}{'recall':>8}{'precision':>11}")
    for kind in ErrorType:
        hit, out, more = right[kind], missed[kind], wrong[kind]
        print(f"{kind.value:<22}{_share(hit, hit + out):>8}{_share(hit, hit + more):>11}")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "none"


if __name__ == "__main__":
    main()
