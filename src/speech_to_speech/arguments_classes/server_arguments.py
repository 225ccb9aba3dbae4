"""Options of the server itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerArguments:
    """Where the server listens, who may connect, and how much it accepts."""

    host: str = field(
        default="127.0.0.1",
        metadata={"help": "address to listen on; anything but loopback needs --api_key_file or S2S_API_KEY"},
    )
    port: int = field(default=8765, metadata={"help": "TCP port; 0: any free one", "minimum": 0, "maximum": 65535})
    api_key_file: str = field(
        default="", metadata={"help": "file whose first line is the key clients must send (or set S2S_API_KEY)"}
    )
    allowed_origins: str = field(
        default="",
        metadata={"help": "web origins that may connect besides the server's own, comma-separated"},
    )
    max_sessions: int = field(default=16, metadata={"help": "conversations at the same time", "minimum": 1})
    audio_lead_ms: int = field(
        default=200,
        metadata={"help": "audio sent ahead of its playback, ms; 0: sent as soon as it is made", "minimum": 0},
    )
    speculate: bool = field(
        default=True, metadata={"help": "make the reply during the user's pause, unheard until the turn has ended"}
    )
    log_level: str = field(
        default="info", metadata={"help": "least important log lines shown", "choices": ("debug", "info", "warning")}
    )
