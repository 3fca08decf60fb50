"""Presets are data: beside each system stands a TOML file in which every value has its source.

A system's settings are a frozen dataclass without defaults; the preset fills it, what the user gives overrides it.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from deepxc.errors import UserError

Settings = TypeVar("Settings")


@cache
def presets_of(system: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Preset name -> setting -> `{"value": ..., "source": ...}`."""
    file = resources.files("deepxc.systems") / f"{system}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def preset_values(system: str, preset: str) -> dict[str, Any]:
    """The values of one preset; a preset may name another as its `base`."""
    table = presets_of(system)
    if preset not in table:
        raise UserError(
            f"{system} has no preset {preset!r}", where="preset", remedy=f"Choose one of {', '.join(sorted(table))}"
        )
    own = dict(table[preset])
    base = own.pop("base", None)
    values = preset_values(system, base["value"]) if base else {}
    return values | {name: entry["value"] for name, entry in own.items()}


def nearest_name(name: str, known: list[str]) -> str:
    """A remedy that names the known word nearest to a mistyped one."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(sorted(known))}"


def resolve(kind: type[Settings], system: str, preset: str, given: dict[str, Any]) -> Settings:
    """The settings of one training: the preset's values, overridden by those that were given (None: not given)."""
    types_of = typing.get_type_hints(kind)
    known = {field.name for field in dataclasses.fields(kind)}  # pyrefly: ignore[bad-argument-type]
    values = preset_values(system, preset) | {name: value for name, value in given.items() if value is not None}
    for name in values:
        if name not in known:
            raise UserError(f"{system} has no setting {name!r}", where=name, remedy=nearest_name(name, sorted(known)))
    values = {name: _typed(name, value, types_of[name]) for name, value in values.items()}
    return kind(**values)


def _typed(name: str, value: object, wanted: Any) -> object:
    """The value in its setting's type; whole numbers pass for fractions, nothing else is converted."""
    options = typing.get_args(wanted) if typing.get_origin(wanted) in (types.UnionType, typing.Union) else (wanted,)
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            if value in typing.get_args(option):
                return value
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        elif isinstance(value, typing.get_origin(option) or option) and not (option is int and isinstance(value, bool)):
            return value
    raise UserError(f"{value!r} is not a {_in_words(options)}", where=name, remedy="Give a value of that kind")


def _in_words(options: tuple[Any, ...]) -> str:
    words = []
    for option in options:
        if typing.get_origin(option) is typing.Literal:
            words += [repr(choice) for choice in typing.get_args(option)]
        else:
            words.append({int: "whole number", float: "number", str: "word", bool: "true or false"}.get(option, "none"))
    return " or ".join(words)
