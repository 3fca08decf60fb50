"""Words that say nothing about what a text is about: the function words of English."""

from __future__ import annotations

from deepxc.errors import UserError

_PRONOUNS = """i me my myself we us our ours ourselves you your yours yourself yourselves he him his himself she her
hers herself it its itself they them their theirs themselves who whom whose which what this that these those"""
_VERBS = """am is are was were be been being have has had having do does did doing can could may might must shall should
will would"""
_PARTICLES = """a an the and or but nor so if then than as because while until though although about above across after
against along among around at before behind below beneath beside between beyond by down during except for from in into
of off on onto out over through to toward towards under up upon with within without not no only own same such too very
just also here there when where why how again further once each both few more most some any all other"""

ENGLISH = tuple(sorted({*_PRONOUNS.split(), *_VERBS.split(), *_PARTICLES.split()}))


def stop_words_of(setting: str | list[str]) -> list[str]:
    """The stop words that a setting names: `none`, `english`, or a list of words."""
    if isinstance(setting, list):
        return setting
    if setting not in ("none", "english"):
        raise UserError(
            f"{setting!r} names no stop words", where="stop_words", remedy="Use none, english, or a list of words"
        )
    return list(ENGLISH) if setting == "english" else []
