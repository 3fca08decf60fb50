"""Package synopsis to related packages, from the machine's own Debian (or Ubuntu) package index.

A text is a package's one-line synopsis; its labels are the packages that it depends on, recommends, suggests or
enhances, each with its own synopsis as text. Packages are texts and labels at once, so the pairs that would make the
task trivial are handled as in the public title-to-title sets: a test pair whose reverse is in train is left out of
the truth, and it and the package itself are filter pairs.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepxc.data.dataset import Source, Split
from deepxc.data.label_matrix import label_matrix
from deepxc.data.label_space import LabelSpace
from deepxc.data.rows import counted_dataset, starts
from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from deepxc.data.dataset import Dataset

_RELATIONS = ("Depends", "Recommends", "Suggests", "Enhances")
_COMMAND = ("apt-cache", "dumpavail")
_TEST_SHARE = 10  # one package in ten goes to test
_ALTERNATIVES = re.compile("[,|]")
_NAME_END = re.compile("[ :(]")


@dataclass(frozen=True)
class _Package:
    """What the sample needs of a package: its synopsis and the field values that name other packages."""

    synopsis: str
    relations: tuple[str, ...]


def load(seed: int = 7) -> Dataset:
    """The `debian` sample: about 51,000 train and 5,500 test texts, 40,000 labels, on a stable release's main part.

    Args:
        seed: Decides which packages are test texts.

    Raises:
        UserError: apt or its package index is missing.
    """
    return from_index(_package_index(), seed)


def from_index(index: Iterable[str], seed: int = 7) -> Dataset:
    """The sample from the lines of a package index (`apt-cache dumpavail`, or a mirror's `Packages` file).

    Labels are the packages that train names. A text whose labels all fall away is left out.

    Args:
        index: Lines of the index.
        seed: Decides which packages are test texts.
    """
    packages = dict(_packages(index))
    rows = [(name, related) for name in sorted(packages) if (related := _related(name, packages))]
    if len(rows) < _TEST_SHARE:
        raise UserError(
            f"the package index lists {len(packages)} packages, of which {len(rows)} name others",
            where="debian",
            remedy="Run `apt-get update` (as root) and try again",
        )
    random.Random(seed).shuffle(rows)
    cut = len(rows) // _TEST_SHARE
    test, train = rows[:cut], rows[cut:]
    names = sorted({label for _, related in train for label in related})
    labels = LabelSpace(ids=names, names=names, texts=[packages[name].synopsis for name in names])
    known = {(name, label) for name, related in train for label in related}
    parts = {
        "train": _split("train", train, set(), labels, packages),
        "test": _split("test", test, known, labels, packages),
    }
    return counted_dataset("debian", parts)


def _split(
    part: str,
    rows: list[tuple[str, set[str]]],
    known: Set[tuple[str, str]],
    labels: LabelSpace,
    packages: Mapping[str, _Package],
) -> Split:
    """Rows of (package, related packages) without the pairs whose reverse is in `known`, which become filter pairs."""
    index = {name: i for i, name in enumerate(labels.ids)}
    kept_ids, targets, pairs = [], [], []
    for name, related in rows:
        reverse = {index[label] for label in related if label in index and (label, name) in known}
        truth = sorted({index[label] for label in related if label in index} - reverse)
        if not truth:
            continue
        itself = {index[name]} if name in index else set()
        pairs += [(len(kept_ids), label) for label in sorted(itself | reverse)]
        targets.append(truth)
        kept_ids.append(name)
    indptr = starts([len(truth) for truth in targets])
    indices = np.fromiter((label for truth in targets for label in truth), np.int64, int(indptr[-1]))
    source = Source(f"debian {part}", first_line=0)
    return Split(
        labels=labels,
        Y=label_matrix(indptr, indices, None, len(labels), source.at),
        texts=[packages[name].synopsis for name in kept_ids],
        ids=kept_ids,
        filter_pairs=np.array(pairs, np.int64).reshape(-1, 2),
        source=source,
    )


def _packages(index: Iterable[str]) -> Iterator[tuple[str, _Package]]:
    """Every package that has a synopsis, by name; a later entry of the same name replaces an earlier one."""
    fields: dict[str, str] = {}
    for line in (*index, ""):
        if line:
            key, colon, value = line.partition(":")
            if colon and key in _WANTED:
                fields[key] = value.removeprefix(" ")
            continue
        if "Package" in fields and fields.get("Description"):
            relations = tuple(fields[key] for key in _RELATIONS if key in fields)
            yield fields["Package"], _Package(fields["Description"], relations)
        fields = {}


_WANTED = frozenset((*_RELATIONS, "Package", "Description"))


def _related(name: str, packages: Mapping[str, _Package]) -> set[str]:
    """The packages that a package names, without versions and architectures, as far as they are listed themselves."""
    clauses = (clause for value in packages[name].relations for clause in _ALTERNATIVES.split(value))
    named = {_NAME_END.split(clause.strip(), maxsplit=1)[0] for clause in clauses}
    return {other for other in named if other in packages and other != name}


def _package_index() -> list[str]:
    """The lines of the machine's package index."""
    program = shutil.which(_COMMAND[0])
    if program is None:
        raise UserError(
            "there is no apt on this machine, and the debian sample is built from its package index",
            where="debian",
            remedy="Use another sample such as icd10, or run this on Debian or Ubuntu",
        )
    done = subprocess.run([program, *_COMMAND[1:]], capture_output=True, check=False)  # noqa: S603 - a fixed command
    if done.returncode or not done.stdout.strip():
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(
            f"`{' '.join(_COMMAND)}` gives no packages" + (f" ({reason[0]})" if reason else ""),
            where="debian",
            remedy="Run `apt-get update` (as root) and try again",
        )
    return done.stdout.decode("utf-8", "replace").split("\n")
