"""Inverted lists over four-bit codes: for sets so large that reading every code takes too long.

The vectors are sorted into lists by their nearest centre. A query reads the lists of its nearest centres only. Lists
are learnt from a sample, so that half a million vectors are indexed in seconds where a graph takes minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import faiss
import numpy as np

from deepxc.search.blocks import groups, nearest, rotate
from deepxc.search.centres import list_centres, quick_lookup
from deepxc.search.faiss_index import FaissIndex, own_parts
from deepxc.search.short_codes import CODE_SAMPLE, dims_of_a_code, draw_rotation, learn_codes, sample
from deepxc.search.vectors import check_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deepxc.search.protocol import Kind, Metric
    from deepxc.search.stores import Store

_SAMPLE_PER_LIST = 24
_READ_AT_LEAST = 4096  # vectors


class InvertedListIndex(FaissIndex):
    """FAISS inverted lists of FastScan codes; the best `rescore` times k are scored from the store."""

    kind: ClassVar[Kind] = "lists"

    @classmethod
    def build(
        cls,
        vectors: ArrayLike,
        *,
        metric: Metric = "cosine",
        seed: int = 0,
        threads: int | None = None,
        lists: int | None = None,
        probes: int | None = None,
        code_dims: int | None = None,
        rescore: float = 3.0,
        store: Store = "float16",
    ) -> Self:
        """Index vectors, one a row.

        Args:
            vectors: One vector a row.
            metric: The similarity.
            seed: Of the rotation, the centres and the samples that both and the codes are learnt from.
            threads: At most so many; all cores by default.
            lists: How many lists; about four times the square root of the number of vectors by default.
            probes: How many lists a query reads; one in 40 by default, more in small sets.
            code_dims: Dimensions to one code of four bits; by default as few as keep a vector's codes in 128 bytes.
            rescore: How many times k candidates are scored from the store.
            store: Precision of the store.
        """
        settings = {"lists": lists, "probes": probes, "code_dims": code_dims, "rescore": rescore, "store": store}
        return cls._build(vectors, metric, seed, threads, settings)

    @classmethod
    def _check_settings(cls, settings: dict[str, Any], dim: int) -> None:
        super()._check_settings(settings, dim)
        for name in ("lists", "probes", "code_dims"):
            if settings[name] is not None:
                check_count(settings[name], name)

    @classmethod
    def _structure(cls, vectors: np.ndarray, settings: dict[str, Any], threads: int) -> faiss.Index:
        seed, size = settings["seed"], len(vectors)
        settings["lists"] = count = min(settings["lists"] or int(4 * np.sqrt(size)), size)
        settings["probes"] = min(settings["probes"] or _probes_for(count, size), count)
        settings["code_dims"] = settings["code_dims"] or dims_of_a_code(vectors.shape[1])
        turn = draw_rotation(vectors.shape[1], settings["code_dims"], seed)
        drawn = rotate(turn, sample(vectors, max(count * _SAMPLE_PER_LIST, CODE_SAMPLE), seed), threads)
        centres = list_centres(drawn, count, seed, threads)
        parts = turn.d_out // settings["code_dims"]
        plain = faiss.IndexIVFPQ(centres, turn.d_out, count, parts, 4, faiss.METRIC_INNER_PRODUCT)
        plain.by_residual = True  # codes of what is left after the centre: much finer where vectors crowd together
        learn_codes(plain, sample(drawn, CODE_SAMPLE, seed), seed)
        for group in groups(size):
            turned = rotate(turn, vectors[group], threads)
            _add(plain, turned, nearest(centres, turned, threads))
        packed = faiss.IndexIVFPQFastScan(plain)
        packed.orig_invlists = None  # the lists before packing, which go with `plain`
        quick = quick_lookup(centres, settings["code_dims"], seed)
        packed.quantizer = quick
        return own_parts(faiss.IndexPreTransform(turn, own_parts(packed, quick)), turn, packed)

    def apply_settings(self) -> None:
        """Set how widely the structure looks."""
        proposer = self._proposer
        if proposer is not None:
            lists: Any = faiss.downcast_index(proposer.index)
            lists.nprobe = self.settings["probes"]


def _probes_for(lists: int, size: int) -> int:
    """One list in 40, but enough to read some thousand vectors: in a small set that is most of it."""
    return max(lists // 40, -(-lists * _READ_AT_LEAST // size))


def _add(lists: faiss.IndexIVFPQ, rows: np.ndarray, chosen: np.ndarray) -> None:
    """Append rows to the lists chosen for them; FAISS's own `add` would choose by a product split over threads."""
    ids = np.arange(lists.ntotal, lists.ntotal + len(rows))
    lists.add_core(len(rows), faiss.swig_ptr(rows), faiss.swig_ptr(ids), faiss.swig_ptr(chosen))
