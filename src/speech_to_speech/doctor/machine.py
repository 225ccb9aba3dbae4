"""What this machine has: processor, memory, graphics, sound, disk. Reads, never installs or downloads."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from speech_to_speech.client.sound_device import sound_devices
from speech_to_speech.errors import SpeechToSpeechError
from speech_to_speech.models import cache
from speech_to_speech.runtime.cpu_budget import available_cores

_CPU_FEATURES = (
    *("sse4_2", "avx", "avx2", "f16c", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8"),
    *("amx_bf16", "asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2"),
)
"""Instruction sets that the engines have kernels for, as Linux names them."""

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact. `remedy` is the one line that mends what is wrong; "" when nothing is."""

    name: str
    value: str
    remedy: str = ""


def machine_findings() -> list[Finding]:
    """Every fact, in the order they are shown."""
    return [_python(), _processor(), _memory(), _graphics(), *_sound(), _models_folder()]


def _python() -> Finding:
    version = f"{platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()}"
    supported = sys.version_info[:2] >= (3, 10)
    return Finding("python", version, "" if supported else "install Python 3.10 or newer")


def _processor() -> Finding:
    model, features = _cpu_info()
    cores = available_cores()
    return Finding(
        "processor", f"{model}; {cores} core{'s' * (cores != 1)}; {' '.join(features) or 'features unknown'}"
    )


def _cpu_info() -> tuple[str, list[str]]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or "unknown", []
    fields = dict(line.partition(":")[::2] for line in reversed(lines))
    values = {name.strip(): value.strip() for name, value in fields.items()}
    flags = set((values.get("flags") or values.get("Features") or "").split())
    return values.get("model name") or platform.machine(), [name for name in _CPU_FEATURES if name in flags]


def _memory() -> Finding:
    total = _total_memory()
    if total is None:
        return Finding("memory", "unknown")
    remedy = "" if total >= 2 * _GIB else "the default models need 1.3 GB: try --stt_model tiny.en --llm_model smollm2"
    return Finding("memory", f"{total / _GIB:.1f} GiB", remedy)


def _total_memory() -> int | None:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "win32":
        kilobytes = ctypes.c_ulonglong()
        if ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            return kilobytes.value * 1024
    return None


def _graphics() -> Finding:
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return Finding("graphics", "Apple GPU (Metal)")
    listed = _output("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    if listed:
        return Finding("graphics", "; ".join(line.strip() for line in listed.splitlines()))
    if Path("/proc/driver/nvidia/version").exists():
        return Finding("graphics", "NVIDIA driver without nvidia-smi", "install the driver's tools (nvidia-smi)")
    return Finding("graphics", "no NVIDIA GPU found: models run on the processor")


def _sound() -> list[Finding]:
    try:
        return [Finding(name, device) for name, device in sound_devices().items()]
    except SpeechToSpeechError as error:
        return [Finding("sound", *reason_and_remedy(error))]


def _models_folder() -> Finding:
    root = cache.root()
    place = next(parent for parent in (root, *root.parents) if parent.exists())
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        return Finding("models", f"{root} cannot be written", f"choose another folder with {cache.ROOT_VARIABLE}")
    remedy = "" if free >= _GIB else f"free some space, or choose another folder with {cache.ROOT_VARIABLE}"
    return Finding("models", f"{root}, {free / 1e9:.0f} GB free", remedy)


def reason_and_remedy(error: SpeechToSpeechError) -> tuple[str, str]:
    """Our errors end with the remedy, behind the first semicolon."""
    reason, _, remedy = str(error).partition("; ")
    return reason, remedy


def _output(*command: str) -> str:
    """What a program prints; "" when there is no such program or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
