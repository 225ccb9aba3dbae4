"""What MkDocs fills in when it builds the site, so that nothing is written down twice.

A page asks with a comment on a line of its own:

    <!-- readme: Serve it -->               a section of README.md; `introduction` is what stands before the first one
    <!-- include: CONTRIBUTING.md -->       a file of the repository, as it is
    <!-- help: bench turn -->               what `speech-to-speech bench turn -h` prints; with `help:` all commands
    <!-- options -->                        every option, a table per component
    <!-- options: stt_model tts_* -->       a table of these
    <!-- fragments -->, <!-- releases -->   what changelog.d/ holds; CHANGELOG.md without its head
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from speech_to_speech.arguments_classes.parsing import Option, options
from speech_to_speech.cli import main

ROOT = Path(__file__).parents[1]

_REQUEST = re.compile(
    r"^<!-- (?P<what>readme|include|help|options|fragments|releases)(: ?(?P<argument>.*?))? -->$", re.MULTILINE
)

_COMPONENTS = {
    "server": "Server",
    "pipeline": "Stages",
    "vad": "Voice activity and turn detection",
    "stt": "Speech recognition",
    "llm": "Language model",
    "tts": "Speech synthesis",
}
_TYPE_NAMES = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}

_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files outside docs/ and the pages that show them."""

_LOADED_FROM_ELSEWHERE = (
    re.compile(r"<(?:script|img|iframe|source|audio|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>", re.IGNORECASE),
    re.compile(r"<link\b(?![^>]*\brel=[\"']?canonical)[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>", re.IGNORECASE),
    re.compile(r"(?:@import\s+[\"']?|url\([\"']?)(?:https?:)?//[^;)]*", re.IGNORECASE),
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in what the page asks for."""
    return _REQUEST.sub(lambda request: _FILLED_BY[request["what"]](request["argument"] or ""), markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """Refuse a site that loads anything from another host."""
    for path in sorted(Path(config["site_dir"]).rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            content = path.read_text(encoding="utf-8")
            for pattern in _LOADED_FROM_ELSEWHERE:
                if found := pattern.search(content):
                    raise RuntimeError(f"{path.name} loads from another host: {found[0][:120]}")


def readme(section: str) -> str:
    """A section of README.md, with its heading; "introduction": the text before the first one, without the title."""
    parts = re.split(r"^(?=## )", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    if section == "introduction":
        return _with_page_links(parts[0].split("\n", 1)[1])
    for part in parts[1:]:
        if part.startswith(f"## {section}\n"):
            return _with_page_links(part)
    raise ValueError(f"README.md has no section {section!r}")


def include(path: str) -> str:
    """A file of the repository."""
    content = (ROOT / path).read_text(encoding="utf-8").rstrip()
    return _with_page_links(content) if path.endswith(".md") else content


def fragments(_: str) -> str:
    """The changes that are not released yet, by kind."""
    by_kind: dict[str, list[str]] = {}
    for path in sorted((ROOT / "changelog.d").glob("*.md")):
        lines = path.read_text(encoding="utf-8").strip().splitlines()
        by_kind.setdefault(path.name.split(".")[-2].capitalize(), []).append("- " + "\n  ".join(lines))
    parts = [f"### {kind}\n\n" + "\n".join(changes) for kind, changes in sorted(by_kind.items())]
    return "\n\n".join(parts) or "Nothing yet."


def releases(_: str) -> str:
    """The changes of each release."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("<!-- towncrier release notes start -->")[2]


def help_of(command: str) -> str:
    """What `speech-to-speech COMMAND -h` prints, as a block of text."""
    width = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*command.split(), "-h"])
    finally:
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width
    if not printed.getvalue():
        raise ValueError(f"there is no command {command!r}")
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue())
    return f"```text\n{text.rstrip()}\n```"


def reference(names: str) -> str:
    """Options as tables: those named (`*` stands for any ending), or all, a heading per component."""
    known = options()
    if not names:
        components = dict.fromkeys(option.component for option in known)
        return "\n\n".join(
            f"## {_COMPONENTS[component]}\n\n{_table(option for option in known if option.component == component)}"
            for component in components
        )
    wanted = []
    for pattern in names.split():
        matching = [option for option in known if fnmatchcase(option.name, pattern)]
        if not matching:
            raise ValueError(f"there is no option {pattern!r}")
        wanted += matching
    return _table(wanted)


def _table(rows: Iterable[Option]) -> str:
    lines = ["| flag and YAML key | type | default | range or choices | meaning |", "| --- | --- | --- | --- | --- |"]
    for option in rows:
        cells = (f"`{option.name}`", _TYPE_NAMES[option.type], _default(option), _range(option))
        meaning = str(option.metadata["help"]).replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {' | '.join(cells)} | {meaning} |")
    return "\n".join(lines)


def _default(option: Option) -> str:
    if option.default == "":
        return "none"
    return f"`{str(option.default).lower() if option.type is bool else option.default}`"


def _range(option: Option) -> str:
    if choices := option.metadata.get("choices"):
        return ", ".join(f"`{choice}`" for choice in choices)
    low, high = option.metadata.get("minimum"), option.metadata.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return "" if high is None else f"at most {high}"


def _with_page_links(markdown: str) -> str:
    """Links between the repository's files as links between the site's pages."""

    def page(link: re.Match[str]) -> str:
        path = link["path"]
        return f"]({_PAGES.get(path, path.removeprefix('docs/'))}{link['anchor'] or ''})"

    return re.sub(r"\]\((?P<path>[\w./-]+)(?P<anchor>#[\w-]+)?\)", page, markdown)


_FILLED_BY = {
    "readme": readme,
    "include": include,
    "help": help_of,
    "options": reference,
    "fragments": fragments,
    "releases": releases,
}
