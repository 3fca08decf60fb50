"""Which number formats a machine multiplies natively."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_CPU_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}


@cache
def native_bfloat16(device_type: str = "cpu") -> bool:
    """Whether the device multiplies bfloat16 matrices natively."""
    if device_type == "cuda":
        import torch

        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device_type != "cpu":
        return False
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():  # macOS, Windows: no CPU there is known to gain
        return False
    flags = {word for line in cpuinfo.read_text().splitlines() if _lists_flags(line) for word in line.split()}
    return bool(flags & _CPU_FLAGS)


def _lists_flags(line: str) -> bool:
    return line.startswith(("flags", "Features"))
