"""Options that several commands share, and the settings of a run: preset, run file and `--set`, in that order."""

from __future__ import annotations

import difflib
import logging
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deepxc.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deepxc.systems.estimator import XmcEstimator

MODELS = {
    "astec": ("deepxc.systems.astec", "Astec"),
    "decaf": ("deepxc.systems.decaf", "Decaf"),
    "inceptionxml": ("deepxc.systems.inception_xml", "InceptionXML"),
    "inceptionxml+": ("deepxc.systems.inception_xml", "InceptionXMLPlus"),
    "dexa": ("deepxc.systems.dexa", "Dexa"),
    "mach": ("deepxc.systems.mach", "Mach"),
    "nearest": ("deepxc.systems.nearest", "NearestLabels"),
}

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines.")
threads_option = click.option("--threads", type=click.IntRange(min=1), help="Threads to use [default: every core].")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Tell what is being decided on the way.")


@dataclass
class Run:
    """What a run file (TOML) may say; an option on the command line wins over it."""

    data: str | None = None
    model: str = "astec"
    preset: str = "fast"
    out: str | None = None
    checkpoint: str | None = None
    seed: int = 0
    threads: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | None) -> Run:
        """Read a run file; None gives the defaults."""
        if path is None:
            return cls()
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise UserError("there is no such run file", where=path, remedy="Check the path") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as fault:
            raise UserError(f"not readable as TOML: {fault}", where=path, remedy="Mend that line") from None
        known = {f.name: f.type for f in fields(cls)}
        for name, value in table.items():
            if name not in known:
                near = difflib.get_close_matches(name, list(known), n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}"
                raise UserError(f"unknown key {name!r}", where=path, remedy=hint)
            wanted = {"seed": int, "threads": int, "settings": dict}.get(name, str)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise UserError(f"{name} = {value!r} is not a {_WORDS[wanted]}", where=path, remedy="Mend the value")
        return cls(**table)


_WORDS = {int: "whole number", dict: "table", str: "string"}


def parse_settings(assignments: tuple[str, ...]) -> dict[str, Any]:
    """`--set name=value` pairs; a value is read as TOML would read it, or else as a plain word."""
    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise UserError(f"{assignment!r} is not name=value", where="--set", remedy="Write, say, --set dim=256")
        try:
            settings[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[name.strip()] = value.strip()
    return settings


def make_model(run: Run) -> XmcEstimator:
    """The estimator that a run asks for, not yet trained."""
    from importlib import import_module

    if run.model not in MODELS:
        near = difflib.get_close_matches(run.model, list(MODELS), n=1)
        raise UserError(
            f"no model is called {run.model!r}",
            where="--model",
            remedy=f"Did you mean {near[0]!r}?" if near else f"Choose one of {', '.join(MODELS)}",
        )
    module, name = MODELS[run.model]
    kind = getattr(import_module(module), name)
    known = [p for p in kind().get_params() if p not in ("preset", "seed", "threads")]
    for setting in run.settings:
        if setting not in known:
            near = difflib.get_close_matches(setting, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(sorted(known))}"
            raise UserError(f"{run.model} has no setting {setting!r}", where="--set", remedy=hint)
    return kind(preset=run.preset, seed=run.seed, threads=run.threads, **run.settings)


def start_logging(verbose: bool) -> None:
    """Messages of the library go to stderr: warnings always, decisions when asked for."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="deepxc: %(message)s")


def apply(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several option decorators as one, in reading order."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return wrap
