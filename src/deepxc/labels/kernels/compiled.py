"""How loops are compiled here: once, ahead, for one set of types, without the interpreter's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from numba import njit, types

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")


def compiled(signature: Any, *, lanes: bool = False) -> Callable[[Function], Function]:
    """Compile for these types alone and keep the result on disk, so that later processes do not compile.

    Args:
        signature: A numba signature.
        lanes: Let sums be reordered, so that they run in vector lanes. The order is still the same in every run.
    """
    fast: Any = {"reassoc", "contract", "nsz"} if lanes else False
    return njit(signature, cache=True, nogil=True, error_model="numpy", fastmath=fast)


def given(dtype: types.Type, ndim: int = 1) -> types.Array:
    """The type of an array that is only read; arrays mapped read-only from a file fit it too."""
    return types.Array(dtype, ndim, "C", readonly=True)


F32, I32, I64 = given(types.float32), given(types.int32), given(types.int64)
F32_ROWS = given(types.float32, 2)
