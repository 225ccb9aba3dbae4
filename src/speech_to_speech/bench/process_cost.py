"""What this process takes of the machine: memory, open files, and how long it waits for a core."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

from speech_to_speech.errors import ConfigurationError

SPARE_FILES = 128
"""Open files besides the connections: libraries, pipes, the event loop."""

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Memory of this process in RAM, garbage collected before; where that is not told, its peak. 0 on Windows."""
    gc.collect()
    if _STATM.exists():
        import resource

        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def waited_for_core_s() -> float | None:
    """Seconds the calling thread was ready to run and another had its core; None where that is not told."""
    statistics = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return int(statistics.read_text().split()[1]) / 1e9 if statistics.exists() else None


def allow_connections(count: int) -> None:
    """Let this process and those it starts hold `count` connections each.

    Raises `ConfigurationError` where the system's hard limit is below that.
    """
    if sys.platform == "win32":
        return
    import resource

    needed = count + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigurationError(
            f"{count} connections need {needed} open files and this system allows {hard}: "
            "raise the hard limit (ulimit -Hn) or ask for fewer with --sessions and --idle"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
