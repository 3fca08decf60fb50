"""A pretrained transformer, from a folder or by its name on the hub, its token states pooled into one vector."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch

from deepxc.errors import ModelFolderError, UserError
from deepxc.modules.encoders.bags import texts_of
from deepxc.modules.encoders.stored import TOKENIZER, StoredEncoder
from deepxc.number_formats import native_bfloat16
from deepxc.text.pretrained import PretrainedTokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scipy import sparse

    from deepxc.data.dataset import Split

_BUCKET = 128  # texts that go through the model at once: enough for products at full speed
_TEXTS_AT_ONCE = 65_536  # bounds the memory of 64-bit ids while they are made


class PieceBatch(NamedTuple):
    """Pieces of texts, (rows, longest): their ids, int64, and how many of each row are pieces, int64."""

    ids: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True, eq=False)
class PieceInputs:
    """Texts as ids of a pretrained tokenizer, special tokens included.

    Attributes:
        ids: All texts' ids, end to end, int32.
        bounds: Text i owns `ids[bounds[i]:bounds[i + 1]]`.
        pad_id: Id that fills rows up.
    """

    ids: np.ndarray
    bounds: np.ndarray
    pad_id: int

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Ids of each text."""
        return np.diff(self.bounds)

    def take(self, rows: np.ndarray) -> PieceBatch:
        """The given rows, padded to the longest of them."""
        begins = self.bounds[rows]
        lengths = self.bounds[np.asarray(rows) + 1] - begins
        places = np.arange(max(1, int(lengths.max(initial=1))))
        inside = places < lengths[:, None]
        ids = np.full(inside.shape, self.pad_id, np.int64)
        ids[inside] = self.ids[(begins[:, None] + places)[inside]]
        return PieceBatch(ids, lengths)


class TransformerEncoder(StoredEncoder):
    """A transformer whose parameters all train (or none).

    Needs the `transformers` extra. The saved folder holds the weights: opening it fetches nothing.

    Args:
        source: A folder that holds the model and its `tokenizer.json`, or its name on the hub.
        max_length: Ids of a text that are read, special tokens included.
        pooling: `mean` of the text's token states, or the state of the `first` token.
        trained: Whether it trains.
        precision: `float32`, or `native` for products in bfloat16 where the machine has them.
        seed: Seed of dropout-free parts that a checkpoint may lack.
    """

    kind = "transformer"
    _empty_first = False  # such models hold buffers that are computed, not saved

    def __init__(
        self,
        source: str | Path,
        *,
        max_length: int = 32,
        pooling: Literal["mean", "first"] = "mean",
        trained: bool = True,
        precision: Literal["float32", "native"] = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if precision not in ("float32", "native"):
            raise UserError(f"{precision!r} is neither 'float32' nor 'native'", where="precision")
        if pooling not in ("mean", "first"):
            raise UserError(f"{pooling!r} is neither 'mean' nor 'first'", where="pooling")
        self.source, self.max_length, self.pooling = source, max_length, pooling
        self.trained, self.precision, self.seed = trained, precision, seed
        self.dim = 0
        self.tokenizer: PretrainedTokenizer | None = None

    def build(self, config: dict[str, Any], pad_id: int) -> None:  # noqa: ARG002  # pyrefly: ignore[bad-override]
        """Make the model that a saved configuration describes."""
        transformers = _transformers()
        named = {name: value for name, value in config.items() if name != "model_type"}
        made = transformers.AutoConfig.for_model(config["model_type"], **named)
        self._adopt(transformers.AutoModel.from_config(made))

    def learn(self, split: Split) -> PieceInputs:
        """Open the pretrained model and read the rows; nothing is learned from them."""
        transformers = _transformers()
        self.tokenizer = PretrainedTokenizer.load(self.source, max_length=self.max_length)
        try:
            model = transformers.AutoModel.from_pretrained(str(self.source), dtype=torch.float32)
        except (OSError, ValueError) as fault:
            first = str(fault).partition("\n")[0]
            raise UserError(
                f"no model found ({first})",
                where=str(self.source),
                remedy="Check the name and the network; without one, give a local folder that holds the model",
            ) from fault
        self._adopt(model)
        self.sizes = {
            "config": json.loads(model.config.to_json_string(use_diff=False)),
            "pad_id": self.tokenizer.pad_id,
        }
        return self.read(split.inputs)

    def _adopt(self, model: Any) -> None:  # noqa: ANN401
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # a head over the first token, which nothing here reads and no gradient would reach
        self.model = model.requires_grad_(self.trained)
        self.dim = int(model.config.hidden_size)

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> PieceInputs:
        """Tokenise new texts."""
        tokenizer = self.checked().tokenizer
        assert tokenizer is not None
        texts = texts_of(inputs, type(self).__name__)
        parts, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            encoded = tokenizer.encode(texts[start : start + _TEXTS_AT_ONCE])
            inside = encoded.mask.astype(bool)
            parts.append(encoded.ids[inside].astype(np.int32))
            lengths.append(inside.sum(axis=1))
        return PieceInputs(np.concatenate(parts), np.cumsum(np.concatenate(lengths)), tokenizer.pad_id)

    def forward(self, batch: PieceBatch) -> torch.Tensor:
        """Features, (rows, dim).

        Texts of like length go through the model together, so that hardly any padding does.
        """
        order = np.argsort(-batch.lengths, kind="stable")
        if len(order) <= _BUCKET:
            return self._pooled(batch.ids, batch.lengths)
        parts = []
        for rows in np.array_split(order, -(-len(order) // _BUCKET)):
            width = max(1, int(batch.lengths[rows].max()))
            parts.append(self._pooled(batch.ids[rows, :width], batch.lengths[rows]))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return torch.cat(parts)[torch.from_numpy(back).to(parts[0].device)]

    def _pooled(self, ids_of_rows: np.ndarray, lengths_of_rows: np.ndarray) -> torch.Tensor:
        device = self.model.device
        ids, lengths = (torch.from_numpy(part).to(device) for part in (ids_of_rows, lengths_of_rows))
        mask = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        # A text of no pieces attends to one padding piece, as attention to nothing at all is not a number.
        seen = torch.arange(ids.shape[1], device=device) < lengths[:, None].clamp(min=1)
        halved = self.precision == "native" and native_bfloat16(device.type)
        with torch.autocast(device.type, torch.bfloat16, enabled=halved):
            states = self.model(input_ids=ids, attention_mask=seen.long()).last_hidden_state
        if self.pooling == "first":
            return states[:, 0].float()
        weights = mask.to(states.dtype)[:, :, None]
        sums = (states * weights).sum(dim=1, dtype=torch.float32)
        return sums / mask.sum(dim=1, keepdim=True).clamp(min=1)

    def write_reading(self, folder: Path) -> None:
        """Save the tokenizer."""
        assert self.tokenizer is not None
        (folder / TOKENIZER).write_text(self.tokenizer.to_json(), encoding="utf-8")

    def read_reading(self, folder: Path) -> None:
        """Open the tokenizer."""
        path = folder / TOKENIZER
        if not path.is_file():
            raise ModelFolderError("the tokenizer is missing", where=str(path), remedy="Copy the whole folder")
        self.tokenizer = PretrainedTokenizer.load(path, max_length=self.max_length, pad_id=self.sizes["pad_id"])


def _transformers() -> Any:  # noqa: ANN401
    try:
        import transformers  # pyrefly: ignore[missing-import]
    except ImportError:
        raise UserError(
            "this encoder needs the package transformers",
            where="TransformerEncoder",
            remedy="Run pip install 'deepxc[transformers]'",
        ) from None
    return transformers
