"""The indexes that `search.py` compares: ours, and what FAISS, usearch, voyager, ScaNN and SVS offer.

Each contestant is built once and then searched with ever wider settings until it reaches the recall that is asked for.
"""

# ruff: noqa: D102, ARG001, ARG005 - a contestant's methods are described once, in their base class
from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faiss
import numpy as np

from deepxc.search.choose import build_index, kind_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from search_workloads import Workload

IP = faiss.METRIC_INNER_PRODUCT
WIDTHS = (64, 100, 150, 250, 400, 600)

Searching = tuple[str, "Callable[[np.ndarray], np.ndarray]"]


class Contestant:
    """One index; a subclass says how it is built and how it is searched.

    Args:
        name: Shown in the table.
        slow: Takes minutes to build on half a million vectors.
    """

    needs = "faiss"

    def __init__(self, name: str, *, slow: bool = False) -> None:
        self.name, self.slow = name, slow

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.needs) is not None

    def build(self, work: Workload, threads: int) -> Any:
        raise NotImplementedError

    def settings(self, index: Any, work: Workload) -> Iterator[Searching]:
        """(description, search) pairs, from narrow to wide."""
        raise NotImplementedError

    def mib(self, index: Any) -> float:
        return len(faiss.serialize_index(index)) / 2**20


class Ours(Contestant):
    """`build_index` of one kind; where it is the one chosen for the size, with its default settings first."""

    def __init__(self, kind: str, wider: dict[str, tuple], *, slow: bool = False, **settings: Any) -> None:
        shown = "".join(f" {key}={value}" for key, value in settings.items())
        super().__init__(f"deepxc {kind}{shown}", slow=slow)
        self.kind, self.wider, self.given = kind, wider, settings

    def build(self, work, threads):
        if kind_for(len(work.vectors)) == self.kind and not self.given:
            self.name = f"**{self.name.strip('*')}**"
        return build_index(work.vectors, work.metric, kind=self.kind, threads=threads, **self.given)

    def settings(self, index, work):
        yield "as it comes", lambda queries: index.search(queries, work.k)[0]
        for name, values in self.wider.items():
            for value in values:
                index.settings[name] = value
                index.apply_settings()
                yield f"{name} {value}", lambda queries: index.search(queries, work.k)[0]

    def mib(self, index):
        with tempfile.TemporaryDirectory() as folder:
            index.save(Path(folder))
            return sum(file.stat().st_size for file in Path(folder).iterdir()) / 2**20


class Faiss(Contestant):
    """A FAISS index made by hand."""

    def __init__(
        self,
        name: str,
        make: Callable[[int, int], Any],
        vary: Callable[[Any, int], dict],
        values: tuple,
        *,
        store: str | None = None,
        slow: bool = False,
    ) -> None:
        super().__init__(f"FAISS {name}", slow=slow)
        self.make, self.vary, self.values, self.store = make, vary, values, store

    def build(self, work, threads):
        size, dim = work.vectors.shape
        faiss.omp_set_num_threads(threads)
        index = self.make(size, dim)
        if self.store:
            kept = faiss.IndexFlatIP(dim) if self.store == "fp32" else _quantised(dim, self.store)
            index = faiss.IndexRefine(index, kept)
        few = np.random.default_rng(0).choice(size, min(size, 100_000), replace=False)
        index.train(work.vectors[np.sort(few)])
        index.add(work.vectors)
        return index

    def settings(self, index, work):
        for value in self.values:
            faiss.omp_set_num_threads(1)
            params = self.vary(index, value)
            yield f"{value}", lambda queries, params=params: index.search(queries, work.k, params=params)[1]


def _quantised(dim: int, kind: str) -> Any:
    return faiss.IndexScalarQuantizer(dim, getattr(faiss.ScalarQuantizer, kind), IP)


def _graph(index: Any, width: int) -> Any:
    return faiss.SearchParametersHNSW(efSearch=width)


def _refined_graph(index: Any, width: int) -> Any:
    inner = faiss.SearchParametersPreTransform(index_params=faiss.SearchParametersHNSW(efSearch=width))
    return faiss.IndexRefineSearchParameters(k_factor=3, base_index_params=inner)


def _refined(index: Any, factor: float) -> Any:
    return faiss.IndexRefineSearchParameters(k_factor=factor)


def _refined_lists(factor: float, *, turned: bool = False) -> Callable[[Any, int], Any]:
    def vary(index: Any, probes: int) -> Any:
        inner = faiss.IVFSearchParameters(nprobe=probes)
        if turned:
            inner = faiss.SearchParametersPreTransform(index_params=inner)
        return faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=inner)

    return vary


def _lists(size: int) -> int:
    return int(3 * np.sqrt(size))


def _pca_graph(size: int, dim: int) -> Any:
    return faiss.index_factory(dim, f"PCA{dim // 2},HNSW32_SQ8", IP)


class Usearch(Contestant):
    """A graph of usearch's."""

    needs = "usearch"

    def __init__(self, dtype: str, *, slow: bool = False) -> None:
        super().__init__(f"usearch HNSW {dtype}", slow=slow)
        self.dtype = dtype

    def build(self, work, threads):
        from usearch.index import Index

        dim = work.vectors.shape[1]
        index = Index(ndim=dim, metric="ip", dtype=self.dtype, connectivity=32, expansion_add=128)
        index.add(np.arange(len(work.vectors)), work.vectors, threads=threads)
        return index

    def settings(self, index, work):
        for width in WIDTHS:
            index.expansion_search = width
            yield f"{width}", lambda queries: np.atleast_2d(index.search(queries, work.k, threads=1).keys)

    def mib(self, index):
        return index.serialized_length / 2**20


class Voyager(Contestant):
    """A graph of Spotify's voyager."""

    needs = "voyager"

    def __init__(self, dtype: str) -> None:
        super().__init__(f"voyager HNSW {dtype}")
        self.dtype = dtype

    def build(self, work, threads):
        import voyager

        dtype = getattr(voyager.StorageDataType, self.dtype)
        index = voyager.Index(
            voyager.Space.InnerProduct, work.vectors.shape[1], M=24, ef_construction=128, storage_data_type=dtype
        )
        index.add_items(work.vectors, num_threads=threads)
        return index

    def settings(self, index, work):
        for width in WIDTHS:
            if width >= work.k:
                yield (
                    f"{width}",
                    lambda queries, width=width: index.query(queries, work.k, num_threads=1, query_ef=width)[0],
                )

    def mib(self, index):
        return len(index.as_bytes()) / 2**20


class Scann(Contestant):
    """Google's ScaNN: a scan of codes, within the nearest lists where there are many vectors."""

    needs = "scann"

    def __init__(self) -> None:
        super().__init__("ScaNN 4-bit codes, re-scored")

    def build(self, work, threads):
        from scann import scann_ops_pybind as scann

        size = len(work.vectors)
        builder = scann.builder(work.vectors, work.k, "dot_product").set_n_training_threads(threads)
        if kind_for(size) == "lists":
            builder = builder.tree(num_leaves=_lists(size), num_leaves_to_search=20, training_sample_size=100_000)
        return builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(4 * work.k).build()

    def settings(self, index, work):
        if kind_for(len(work.vectors)) != "lists":
            for factor in (3, 4, 6, 8):
                yield (
                    f"re-score {factor}",
                    lambda queries, factor=factor: index.search_batched(
                        queries, work.k, pre_reorder_num_neighbors=factor * work.k
                    )[0],
                )
            return
        for probes in (10, 20, 40, 80, 160):
            yield (
                f"probes {probes}",
                lambda queries, probes=probes: index.search_batched(queries, work.k, leaves_to_search=probes)[0],
            )

    def mib(self, index):
        with tempfile.TemporaryDirectory() as folder:
            index.serialize(folder)
            return sum(file.stat().st_size for file in Path(folder).iterdir()) / 2**20


class Svs(Contestant):
    """Intel's scalable vector search: a Vamana graph."""

    needs = "svs"

    def __init__(self, *, slow: bool = False) -> None:
        super().__init__("SVS Vamana fp16", slow=slow)

    def build(self, work, threads):
        import svs

        parameters = svs.VamanaBuildParameters(graph_max_degree=64, window_size=128, alpha=0.95)
        index = svs.Vamana.build(parameters, work.vectors.astype(np.float16), svs.DistanceType.MIP, num_threads=threads)
        index.num_threads = 1
        return index

    def settings(self, index, work):
        for width in WIDTHS:
            if width >= work.k:
                index.search_window_size = width
                yield f"{width}", lambda queries: index.search(queries, work.k)[0]

    def mib(self, index):
        with tempfile.TemporaryDirectory() as folder:
            index.save(*(f"{folder}/{name}" for name in ("config", "graph", "data")))
            return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 2**20


def _of_short_codes(dims: int) -> Callable[[int, int], Any]:
    return lambda size, dim: faiss.IndexPQFastScan(dim, dim // dims, 4, IP)


def _byte_graph(size: int, dim: int) -> Any:
    return faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, 32, IP)


def contestants(size: int) -> list[Contestant]:
    """All that make sense for so many vectors; over large sets the quickest graph of each library."""
    return _for_large_sets() if kind_for(size) == "lists" else _for_small_sets()


def _for_small_sets() -> list[Contestant]:
    return [
        Ours("scan", {"rescore": (6.0, 8.0)}),
        Ours("scan", {"rescore": (6.0, 8.0)}, code_dims=4),
        Ours("scan", {"rescore": (6.0, 8.0)}, store="int8"),
        Ours("graph", {"width": (150, 250, 400)}),
        Faiss("4-bit scan, 2 dims a code, not turned", _of_short_codes(2), _refined, (2, 4, 8), store="fp32"),
        Faiss("4-bit scan, 4 dims a code, not turned", _of_short_codes(4), _refined, (2, 4, 8, 16), store="fp32"),
        Faiss("RaBitQ scan", lambda size, dim: faiss.IndexRaBitQFastScan(dim, IP), _refined, (4, 8, 16), store="fp32"),
        Faiss("HNSW32 fp32", lambda size, dim: faiss.IndexHNSWFlat(dim, 32, IP), _graph, WIDTHS),
        Faiss("HNSW32 SQ8", _byte_graph, _graph, WIDTHS),
        Faiss("PCA to half, HNSW32 SQ8, re-scored", _pca_graph, _refined_graph, WIDTHS, store="fp32"),
        *(Usearch(dtype) for dtype in ("f32", "bf16", "i8")),
        *(Voyager(dtype) for dtype in ("Float32", "E4M3")),
        Scann(),
        Svs(),
    ]


def _for_large_sets() -> list[Contestant]:
    probes = (10, 20, 40, 80, 160, 320)
    more = {"probes": (160, 240, 320, 400)}
    return [
        Ours("lists", more),
        Ours("lists", more, code_dims=4),
        Ours("lists", more, store="int8"),
        Faiss(
            "PCA to half, 4,096 lists, SQ8, re-scored",
            lambda size, dim: faiss.index_factory(dim, f"PCA{dim // 2},IVF4096,SQ8", IP),
            _refined_lists(2, turned=True),
            probes,
            store="QT_fp16",
        ),
        Faiss(
            "lists of RaBitQ codes, re-scored",
            lambda size, dim: faiss.index_factory(dim, f"IVF{_lists(size)},RaBitQfs", IP),
            _refined_lists(8),
            probes,
            store="QT_fp16",
        ),
        Scann(),
        Ours("graph", {"width": (150, 250, 400)}, slow=True),
        Faiss("HNSW32 SQ8", _byte_graph, _graph, WIDTHS, slow=True),
        Usearch("bf16", slow=True),
        Svs(slow=True),
    ]
