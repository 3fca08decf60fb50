"""What a token is: one Hugging Face `tokenizers` file that says everything.

The file holds the normaliser (NFKC, case, accents), the splitter (words of any script) and the vocabulary. What the
format has no place for (document counts, weighting, character n-grams) lies inside its `model` object under the key
`deepxc`, which `tokenizers` skips: the saved file opens with `Tokenizer.from_file` as it is and gives the same ids.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from deepxc.errors import ModelFolderError, UserError

FORMAT = 1
SECTION = "deepxc"
UNKNOWN = "[UNK]"
PAD = "[PAD]"
WORD_START = "▁"  # begins the first subword of each word, so that `▁art` and `art` are two
NGRAM_PREFIX = "#"  # marks a character n-gram; no word holds this sign, so the two cannot collide


@dataclass(frozen=True)
class TokenSettings:
    """How texts become tokens and tokens become weights.

    Attributes:
        lowercase: Fold case.
        strip_accents: Drop every combining mark. Off by default: in many scripts the marks are vowels.
        min_df: Texts a token must occur in to be kept.
        max_tokens: Keep at most this many tokens, the ones in most texts; None keeps all.
        sublinear_tf: Weigh `tf` repeats of a token as `1 + log(tf)`.
        idf: Weigh tokens by smoothed inverse document frequency.
        normalize: Scale each row to unit Euclidean length.
        ngrams: `(shortest, longest)` character n-grams taken from each word beside the word itself; None for none.
        ngram_min_df: Texts that a character n-gram must occur in; as many as a token where it is None.
        subwords: Number of subwords to learn (byte pair encoding); None keeps whole words. The way to go for scripts
            that put no space between words.
    """

    lowercase: bool = True
    strip_accents: bool = False
    min_df: int = 2
    max_tokens: int | None = None
    sublinear_tf: bool = True
    idf: bool = True
    normalize: bool = True
    ngrams: tuple[int, int] | None = None
    ngram_min_df: int | None = None
    subwords: int | None = None

    def __post_init__(self) -> None:
        if self.ngrams is not None:
            object.__setattr__(self, "ngrams", tuple(self.ngrams))  # JSON and TOML bring lists
        for name in ("min_df", "max_tokens", "ngram_min_df", "subwords"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise UserError(f"{value!r} is not a whole number above 0", where=name)
        if self.ngrams is not None and not (len(self.ngrams) == 2 and 1 <= self.ngrams[0] <= self.ngrams[1]):
            raise UserError(f"{self.ngrams!r} is not a range", where="ngrams", remedy="Give (3, 5), say, or None")
        if self.ngrams is not None and self.subwords is not None:
            raise UserError("character n-grams and learned subwords exclude each other", remedy="Set one of them")

    def normaliser(self) -> normalizers.Normalizer:
        """Compatibility forms made alike, then accents and case folded where asked."""
        steps: list[normalizers.Normalizer] = []
        if self.strip_accents:
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        steps.append(normalizers.NFKC())
        if self.lowercase:
            steps.append(normalizers.Lowercase())
        return normalizers.Sequence(steps)

    def splitter(self) -> pre_tokenizers.PreTokenizer:
        """Runs of letters, marks, digits and connectors of any script; all else is dropped."""
        return pre_tokenizers.Split(Regex(r"\w+"), "removed", invert=True)

    def tokenizer(self, model: models.Model) -> Tokenizer:
        """A `tokenizers` object around `model`."""
        made = Tokenizer(model)
        made.normalizer = self.normaliser()
        made.pre_tokenizer = self.splitter()
        if self.subwords is not None:
            start = pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always", split=False)
            made.pre_tokenizer = pre_tokenizers.Sequence([self.splitter(), start])
        return made


@dataclass(frozen=True, eq=False)
class TokenDefinition:
    """A learned vocabulary with all that is needed to apply it; what `tokenizer.json` holds.

    Ids `0 … n_tokens-1` are the tokens, most frequent first; `unknown_id` and `pad_id` follow. Learned subwords that
    were too rare to keep come after those, because the merges need them; they read as unknown.

    Attributes:
        settings: How texts become tokens.
        tokenizer: The `tokenizers` object.
        document_counts: For each token, the number of texts it was seen in.
        n_texts: Number of texts seen.
        extras: Further settings that travel in the file (such as those of padded sequences).
    """

    settings: TokenSettings
    tokenizer: Tokenizer
    document_counts: list[int]
    n_texts: int
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def n_tokens(self) -> int:
        """Number of tokens, without the unknown and the padding token."""
        return len(self.document_counts)

    @property
    def unknown_id(self) -> int:
        """Id that stands for every token outside the vocabulary."""
        return self.n_tokens

    @property
    def pad_id(self) -> int:
        """Id that fills sequences up."""
        return self.n_tokens + 1

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Id of each token, in the order of ids."""
        pairs = self.tokenizer.get_vocab().items()
        return dict(sorted(((t, i) for t, i in pairs if i < self.n_tokens), key=lambda pair: pair[1]))

    def to_json(self) -> bytes:
        """The file's content."""
        whole = orjson.loads(self.tokenizer.to_str())
        whole["model"][SECTION] = {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "n_texts": self.n_texts,
            "document_counts": self.document_counts,
            **self.extras,
        }
        return orjson.dumps(whole)

    @classmethod
    def from_json(cls, content: bytes | str, where: str = "tokenizer.json") -> TokenDefinition:
        """Read what `to_json` wrote; `where` names the source in errors."""
        whole, section = _parts(content, where)
        try:
            settings = TokenSettings(**section.pop("settings"))
            counts, n_texts = [int(c) for c in section.pop("document_counts")], int(section.pop("n_texts"))
            tokenizer = Tokenizer.from_str(orjson.dumps(whole).decode())
        except Exception as error:  # tokenizers raises bare Exception
            raise ModelFolderError(f"damaged ({error})", where=where, remedy="Save the tokenizer again") from error
        extras = {name: value for name, value in section.items() if name != "format"}
        definition = cls(settings, tokenizer, counts, n_texts, extras)
        plain = orjson.loads(settings.tokenizer(models.WordLevel({UNKNOWN: 0}, UNKNOWN)).to_str())
        same = all(whole.get(name) == plain[name] for name in plain.keys() - {"model"})
        special = (tokenizer.token_to_id(UNKNOWN), tokenizer.token_to_id(PAD))
        if not same or special != (definition.unknown_id, definition.pad_id):
            raise ModelFolderError("its parts disagree", where=where, remedy="Undo the edit or learn and save it again")
        return definition

    def save(self, path: str | Path) -> None:
        """Write the file; nothing half-written is ever left under its name."""
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            with partial.open("wb") as out:
                out.write(self.to_json())
                out.flush()
                os.fsync(out.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> TokenDefinition:
        """Read a saved file."""
        return cls.from_json(read_bytes(path), str(path))


def read_bytes(path: str | Path) -> bytes:
    """Content of a file that ought to be there."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(
            error.strerror or str(error), where=str(path), remedy="Give a readable tokenizer.json"
        ) from None


def _parts(content: bytes | str, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is for `tokenizers`, and our section of it, checked to be one we can read."""
    try:
        whole = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ModelFolderError(f"not JSON ({error})", where=where, remedy="Save the tokenizer again") from None
    model = whole.get("model") if isinstance(whole, dict) else None
    # tokenizers happens to skip a key it does not know here; it is taken out all the same, not to lean on that.
    section = model.pop(SECTION, None) if isinstance(model, dict) else None
    if not isinstance(section, dict):
        raise UserError(
            "a tokenizer without document counts, so no bag of tokens",
            where=where,
            remedy="Open it as a pretrained tokenizer",
        )
    if section.get("format") != FORMAT:
        raise ModelFolderError(
            f"tokenizer format {section.get('format')!r}, this version reads {FORMAT}",
            where=where,
            remedy="Upgrade deepxc",
        )
    return whole, section
