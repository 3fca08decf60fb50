"""`deepxc bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deepxc.cli.options import MODELS, Run, make_model, parse_settings, threads_option
from deepxc.errors import UserError
from deepxc.threads import thread_count

if TYPE_CHECKING:
    from deepxc.bench.contestant import Entry
    from deepxc.bench.outcome import Comparison, Outcome


@click.command(
    epilog="""\b
Examples:
  deepxc bench icd10
  deepxc bench data/ --systems nearest,nearest:best --peers omikuji-bonsai,pecos-xrl --threads 2
  deepxc bench data/ --systems nearest:fast,dim=256 --peers none --part validation --json bench.json
A system is name, name:preset or name:preset,setting=value; omikuji-bonsai:label_texts=true gives a peer the labels'
texts as further train texts. Peers come with: pip install 'deepxc[bench]'"""
)
@click.argument("data")
@click.option("--systems", multiple=True, help="Ours, with commas between, or none [default: nearest].")
@click.option("--peers", multiple=True, help="Other libraries, with commas between, or none [default: all].")
@threads_option
@click.option("--part", type=click.Choice(["test", "validation", "train"]), help="Part to score [default: test].")
@click.option("--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Rounds; costs are medians.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of our systems.")
@click.option("--json", "json_file", metavar="FILE", help="Write all figures to FILE; - for stdout.")
@click.pass_context
def command(
    context: click.Context,
    data: str,
    systems: tuple[str, ...],
    peers: tuple[str, ...],
    threads: int | None,
    part: str | None,
    repeat: int,
    seed: int,
    json_file: str | None,
) -> None:
    """Train and score our systems and other libraries on DATA, in one run with the same threads.

    Each gets the same train texts and tokens, in a process of its own, and its answers are scored alike. A library
    that is not installed gets a row that says so. Texts are ranked from the text itself, one at a time on one thread
    (p50, p99) and all at once on all threads (texts/s).
    """
    from deepxc.bench.peers import PEERS
    from deepxc.bench.runner import compare
    from deepxc.bench.table import table

    ours = [_system(spec, seed) for spec in split_specs(systems or ("nearest",)) if spec != "none"]
    named = [name for name in split_specs(peers or tuple(PEERS)) if name != "none"]
    comparison = compare(
        data,
        [*ours, *map(_peer, named)],
        threads=thread_count(threads),
        part=part or "test",
        repeat=repeat,
        told=lambda name, number, outcome: _tell(name, number, repeat, outcome),
    )
    if json_file == "-":
        click.echo(_json(comparison))
    else:
        if json_file is not None:
            _write(Path(json_file), _json(comparison))
        click.echo(table(comparison))
    if any(outcome.kind == "ours" and outcome.status != "ok" for outcome in comparison.outcomes):
        context.exit(1)


def split_specs(values: tuple[str, ...]) -> list[str]:
    """The names between the commas; `setting=value` belongs to the name before it."""
    specs: list[str] = []
    for piece in (piece.strip() for value in values for piece in value.split(",")):
        if not piece:
            continue
        if "=" in piece and ":" not in piece.partition("=")[0]:
            if not specs:
                raise UserError(
                    f"{piece!r} follows no system", where="--systems", remedy="Write name:preset,setting=value"
                )
            specs[-1] += f",{piece}"
        else:
            specs.append(piece)
    return list(dict.fromkeys(specs))


def _system(spec: str, seed: int) -> Entry:
    """`name`, `name:preset`, `name:setting=value` or `name:preset,setting=value`."""
    from deepxc.bench.ours import system_entry

    name, _, tail = spec.partition(":")
    pieces = [piece for piece in tail.split(",") if piece]
    preset = pieces.pop(0) if pieces and "=" not in pieces[0] else "fast"
    settings = parse_settings(tuple(pieces))
    try:
        make_model(Run(model=name, preset=preset, seed=seed, settings=settings))
        return system_entry(spec, *MODELS[name], preset, seed, settings)
    except UserError as fault:
        raise UserError(f"{spec}: {fault.what}", where="--systems", remedy=fault.remedy) from None


def _peer(spec: str) -> Entry:
    """`name`, or `name:label_texts=true`."""
    from deepxc.bench.peers import peer_entry

    name, _, tail = spec.partition(":")
    return peer_entry(name, parse_settings(tuple(piece for piece in tail.split(",") if piece)))


def _tell(name: str, number: int, repeat: int, outcome: Outcome | None) -> None:
    """Progress, on stderr, for who waits."""
    turn = f" (round {number} of {repeat})" if repeat > 1 else ""
    if outcome is None:
        click.echo(f"deepxc: {name}{turn} ...", err=True)
    elif outcome.status == "ok":
        costs = outcome.costs
        click.echo(f"deepxc: {name}: trained in {costs['fit_s']:.1f} s, P@1 {outcome.metrics['P@1']:.2f}", err=True)
    else:
        click.echo(f"deepxc: {name}: {outcome.problem}", err=True)


def _json(comparison: Comparison) -> str:
    import platform

    from deepxc.version import __version__

    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": thread_count()}
    return json.dumps({"deepxc": __version__, "machine": machine, **comparison.as_dict()}, indent=1)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as fault:
        raise UserError(
            f"cannot be written: {fault.strerror}", where=str(path), remedy="Choose another place"
        ) from None
