"""Faults of a data set that would spoil a model or its figures: `check_dataset` lists them with a remedy each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepxc.data.checks.duplicates import leak_findings, repeated_findings
from deepxc.data.checks.finding import Finding, ordered
from deepxc.data.checks.labels import coverage_findings, label_space_findings, matrix_findings
from deepxc.data.checks.reciprocal import reciprocal_findings
from deepxc.data.checks.texts import text_findings

if TYPE_CHECKING:
    from deepxc.data.dataset import Dataset

__all__ = ["Finding", "check_dataset", "findings_text"]

_BLOCKING = frozenset({"label-out-of-range", "filter-pair-out-of-range"})


def check_dataset(dataset: Dataset, *, near_threshold: float | None = 0.8) -> list[Finding]:
    """Everything that is suspicious about a data set, the gravest first; an empty list where nothing is.

    Checks that follow labels through the splits wait until labels and filter pairs that point nowhere are mended.

    Args:
        dataset: The data set.
        near_threshold: Least Jaccard similarity of 4-character shingles from which a test text is a near duplicate
            of a train text; None to look for exact duplicates alone.
    """
    splits = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
    parts = {part: split for part, split in splits.items() if split is not None}
    found = list(label_space_findings(dataset.labels))
    for part, split in parts.items():
        found += matrix_findings(part, split)
        found += text_findings(part, split)
        found += repeated_findings(part, split)
        if split is not dataset.train:
            found += leak_findings(part, split, dataset.train, near_threshold)
    if not any(finding.code in _BLOCKING for finding in found):
        for part, split in parts.items():
            found += coverage_findings(part, split, dataset.train)
            found += reciprocal_findings(part, split, dataset.train)
    return ordered(found)


def findings_text(findings: list[Finding]) -> str:
    """The findings for a reader, one paragraph each."""
    if not findings:
        return "nothing suspicious found"
    lines = []
    for finding in findings:
        lines.append(f"{finding.severity:<8}{finding.count:>10,}  {finding.what}  [{finding.code}]")
        lines.append(f"{'':20}first: {finding.example}")
        lines.append(f"{'':20}{finding.remedy}")
    return "\n".join(lines)
