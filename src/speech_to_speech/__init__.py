"""Self-hosted spoken conversation: audio in, audio out, behind the OpenAI Realtime API."""

__version__ = "0.1.0"
