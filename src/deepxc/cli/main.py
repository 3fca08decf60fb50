"""`deepxc`: the group of commands, and how their errors reach the terminal."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from deepxc.errors import DeepxcError
from deepxc.version import __version__

COMMANDS = {
    "train": "Train a model on texts with labels.",
    "predict": "Rank labels for texts.",
    "evaluate": "Score a model on labelled texts.",
    "info": "Tell what a model folder holds.",
    "data": "Look at, check, convert and split data sets.",
    "demo": "Train on the built-in ICD-10 data and answer sample diagnoses.",
    "bench": "Train and score systems on one data set, in one run.",
}


class LazyGroup(click.Group):
    """Lists every command without importing any: the help must not wait for numerical libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order of a first session."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command that was called."""
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"deepxc.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: deepxc demo",
)
@click.version_option(__version__, prog_name="deepxc")
def cli() -> None:
    """Extreme classification of short text: from a text to the few right labels out of millions.

    DATA is everywhere a folder, a file, or the name of a built-in sample set (icd10, debian, synthetic).
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's error is one line on stderr and exit code 2."""
    # Two libraries bring OpenMP threads of their own; waiting actively, each takes the cores from the other. Must be
    # said before either is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        code = cli.main(arguments, prog_name="deepxc", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as fault:
        click.echo(fault.format_message())
        code = 2
    except click.ClickException as fault:
        _complain(" ".join(fault.format_message().split()))
        code = 2
    except DeepxcError as fault:
        _complain(" ".join(str(fault).split()))
        code = 2
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped")
        code = 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output is gone: nothing is left to say
        code = 141
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    click.echo(f"deepxc: {message}", err=True)


if __name__ == "__main__":
    main()
