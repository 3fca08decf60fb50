"""Sample sets that come with deepxc: `Dataset.read("icd10")` and friends, without a download.

A sample is named on its own or with options, as in `synthetic:labels=1000,texts=5000`.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deepxc.data.dataset import Dataset

SAMPLES = ("icd10", "debian", "synthetic")


def is_sample(spec: object) -> bool:
    """Whether a data argument names a built-in sample, with or without options."""
    return isinstance(spec, str) and spec.partition(":")[0] in SAMPLES


def load_sample(spec: str, /, **options: object) -> Dataset:
    """Build a sample set.

    Args:
        spec: A name of `SAMPLES`, or `name:option=value,option=value`.
        **options: Options of that sample; they are the arguments of its module's `load`. Strings are read as
            numbers where the option is one.

    Raises:
        UserError: No such sample or option, or a value that the option cannot take.
    """
    name, _, tail = spec.partition(":")
    if name not in SAMPLES:
        raise UserError(f"{name!r} is not a built-in sample", remedy=_nearest(name, SAMPLES, "Samples"))
    load: Callable[..., Dataset] = import_module(f"deepxc.data.samples.{name}").load
    given = dict(_pairs(spec, tail))
    for option, value in options.items():
        if given.get(option, value) != value:
            raise UserError(f"option {option} of sample {name} is given twice", where=spec, remedy="Give it once")
        given[option] = value
    known = signature(load).parameters
    return load(**{option: _value(name, option, value, known) for option, value in given.items()})


def _pairs(spec: str, tail: str) -> Iterable[tuple[str, object]]:
    """The options written behind the name."""
    for part in filter(None, (part.strip() for part in tail.split(","))):
        option, sign, value = part.partition("=")
        if not sign:
            raise UserError(f"{part!r} has no value", where=spec, remedy="Write name:option=value,option=value")
        yield option.strip(), value.strip()


def _value(name: str, option: str, value: object, known: Mapping[str, Parameter]) -> object:
    """An option's value in the type of its default."""
    if option not in known:
        raise UserError(
            f"{option!r} is not an option of sample {name}", remedy=_nearest(option, tuple(known), "Its options")
        )
    default = known[option].default
    try:
        number = float(str(value)) if isinstance(default, float) else _whole(value)
    except (ValueError, OverflowError):
        kind = "number" if isinstance(default, float) else "whole number"
        raise UserError(
            f"{value!r} is not a {kind}", where=f"{name}:{option}", remedy=f"Give one such as {default}"
        ) from None
    return number


def _whole(value: object) -> int:
    """A whole number, also from `100_000` and `1e6`."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    number = float(str(value))
    if number != int(number):
        raise ValueError(value)
    return int(number)


def _nearest(name: str, known: tuple[str, ...], what: str) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}" if close else f"{what} are {', '.join(known)}"
