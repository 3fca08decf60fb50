"""The one tree of errors.

A `UserError` is bad input: it says what is wrong, where, and how to mend it. The command line turns it into one
line and exit code 2, the server into HTTP 4xx. Everything else that is raised is a bug of ours.
"""

from __future__ import annotations


class DeepxcError(Exception):
    """Root of every error that deepxc raises on purpose."""


class UserError(DeepxcError, ValueError):
    """Bad input, told in one line: where it is, what is wrong, and what to do about it.

    Args:
        what: What is wrong, in plain words, without a full stop.
        where: The place, as `file` or `file:line` (lines count from 1) or the name of a parameter.
        remedy: What to do about it, as an imperative sentence without a full stop, or a question.
    """

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        text = f"{where}: {what}" if where else what
        stop = "" if not remedy or remedy.endswith("?") else "."
        super().__init__(f"{text}. {remedy}{stop}" if remedy else text)


class DataError(UserError):
    """A file or an array that cannot be read as a data set."""


class ModelFolderError(UserError):
    """A saved model that is missing, damaged, edited or from a newer version."""
