#!/usr/bin/env python3
"""The `speech-to-speech` command, run from the repository: `python s2s_pipeline.py …`."""

import sys

from speech_to_speech.cli import main

if __name__ == "__main__":
    sys.exit(main())
