"""Programs that end with the one that started them, so that a test or a demo that is killed leaves nothing running."""

from __future__ import annotations

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends: prctl(2), on Linux alone. For `preexec_fn`."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
