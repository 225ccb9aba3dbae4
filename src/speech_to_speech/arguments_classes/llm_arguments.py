"""Options of the language model (`--llm_…`)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LLMArguments:
    """Which model answers, and the memory it may use."""

    model: str = field(
        default="qwen2.5-coder-0.5b",
        metadata={
            "help": "GGUF model: qwen2.5-coder-0.5b, smollm2, a path, or a hub id as owner/repository/file.gguf; "
            "with --llm openai the name of a model of that server"
        },
    )
    context_tokens: int = field(
        default=4096, metadata={"help": "context of one conversation, prompt and answer", "minimum": 256}
    )
    slots: int = field(
        default=4, metadata={"help": "conversations whose cache stays warm at the same time", "minimum": 1}
    )
    cache_ram_mib: int = field(
        default=256,
        metadata={"help": "memory for caches of conversations that lost their slot, MiB; 0: none", "minimum": 0},
    )
    max_tokens: int = field(
        default=400, metadata={"help": "longest answer in tokens when the client sets no limit", "minimum": 1}
    )
    temperature: float = field(
        default=0.0, metadata={"help": "0: always the likeliest token", "minimum": 0.0, "maximum": 2.0}
    )
    batch_tokens: int = field(
        default=16, metadata={"help": "prompt tokens read between two looks at a cancel", "minimum": 1}
    )
    base_url: str = field(
        default="",
        metadata={"help": "with --llm openai: the server's address, such as http://127.0.0.1:11434/v1 (Ollama)"},
    )
    api: str = field(
        default="chat-completions",
        metadata={"help": "with --llm openai: which of its interfaces", "choices": ("chat-completions", "responses")},
    )
    api_key_file: str = field(
        default="",
        metadata={"help": "with --llm openai: file whose first line is the key; else the variable S2S_LLM_API_KEY"},
    )
    timeout_s: float = field(
        default=30.0,
        metadata={"help": "with --llm openai: longest silence of the server, in seconds", "minimum": 0.1},
    )
