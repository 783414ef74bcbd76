"""What the machine can do: the questions whose answer differs from one to the next."""

from __future__ import annotations

import torch

_SUPPORT_CHECKS = {torch.bfloat16: "_is_mkldnn_bf16_supported", torch.float16: "_is_mkldnn_fp16_supported"}


def processor_has(dtype: torch.dtype) -> bool:
    """Whether the processor has instructions for a half precision; no where PyTorch was built without the answer."""
    answer = getattr(torch.ops.mkldnn, _SUPPORT_CHECKS[dtype], None)
    return answer is not None and bool(answer())


# Asked once: a processor does not change, and a compiler can read a dictionary.
PROCESSOR_HAS = {dtype: processor_has(dtype) for dtype in _SUPPORT_CHECKS}


def multiplies(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether a device multiplies matrices of this type itself.

    Where a processor does not, PyTorch does it in a way that is many times slower than float32, and may warn.

    Example:
        >>> multiplies(torch.float32, torch.device("cpu"))
        True
    """
    if device.type == "cpu":
        return PROCESSOR_HAS.get(dtype, True)
    if device.type == "cuda" and dtype == torch.bfloat16:
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    return True
