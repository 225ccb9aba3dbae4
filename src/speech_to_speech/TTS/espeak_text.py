"""Respells what espeak-ng, Piper's phonemiser, says wrongly, as its phonemes show."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from speech_to_speech.TTS.abbreviations import ALWAYS_ABBREVIATED

_Rule: TypeAlias = "tuple[str, str | Callable[[re.Match[str]], str]]"


def for_espeak(text: str, language: str) -> str:
    """Respell `text` for the espeak voice of `language` (BCP-47 or espeak's own name)."""
    rules = _ANY_LANGUAGE + (_ENGLISH if language.casefold().startswith("en") else [])
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text.strip()


def _compiled(*rules: _Rule) -> list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]:
    return [(re.compile(pattern), replacement) for pattern, replacement in rules]


# --- numbers with a unit ------------------------------------------------------------------------------------------

_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
_UNITS = {
    "km/h": "kilometer per hour",
    "mph": "mile per hour",
    "km": "kilometer",
    "cm": "centimeter",
    "mm": "millimeter",
    "kg": "kilogram",
    "lb": "pound",
    "lbs": "pound",
    "oz": "ounce",
    "ml": "milliliter",
    "ft": "foot",
    "mi": "mile",
}
_TENS = ("", "", "twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties")


def _plural(unit: str, amount: str) -> str:
    if amount == "1" or unit == "yen":
        return unit
    first, *rest = unit.split()
    return " ".join(["feet" if first == "foot" else f"{first}s", *rest])


def _money(match: re.Match[str]) -> str:
    """Says "5 dollars 50" for $5.50, "1.5 million dollars" for $1.5 million; espeak: "dollar five point five zero"."""
    unit, amount, cents, scale = _CURRENCIES[match["sign"]], match["amount"], match["cents"], match["scale"]
    if scale:
        return f"{amount}{'.' + cents if cents else ''} {scale} {_plural(unit, '')}"
    if amount == "0" and cents and len(cents) == 2 and unit in ("dollar", "euro"):
        return f"{cents.lstrip('0') or '0'} cents"
    whole = f"{amount} {_plural(unit, amount)}"
    if cents and len(cents) != 2:
        return f"{amount}.{cents} {_plural(unit, '')}"
    return whole if not cents or cents == "00" else f"{whole} {cents.lstrip('0')}"


def _measure(match: re.Match[str]) -> str:
    return f"{match['amount']} {_plural(_UNITS[match['unit']], match['amount'])}"


def _decade(match: re.Match[str]) -> str:
    return f"{match['century']} {_TENS[int(match['tens'])]}"


_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"

_ANY_LANGUAGE = _compiled(
    (r"\x00", ""),  # the end of a C string
    (r"\[\[|\]\]", " "),  # Piper reads [[…]] as phonemes
    # A stop after a title makes two sentences with a pause between them: "doctor. Smith".
    (r"\b(?:[A-Z]\.){2,}(?=\s+\S)", lambda match: match[0].replace(".", " ").strip()),
    (rf"\b((?i:{'|'.join(sorted(ALWAYS_ABBREVIATED))})|[A-HJ-Z])\.(?=\s+\S)", r"\1"),
)

_ENGLISH = _compiled(
    # Read out as "Chinese letter, Chinese letter".
    (r"[぀-ヿ㐀-鿿가-힯豈-﫿]+", " "),
    (
        r"(?P<sign>[$€£¥₹])\s?(?P<amount>\d+(?:,\d{3})*)(?:\.(?P<cents>\d+))?"
        r"(?:\s(?P<scale>thousand|million|billion|trillion)\b)?",
        _money,
    ),
    (rf"(?P<amount>{_NUMBER})\s?(?P<unit>{'|'.join(sorted(_UNITS, key=len, reverse=True))})\b(?!/)", _measure),
    (r"\b(?P<century>1[1-9]|20)(?P<tens>[2-9])0'?s\b", _decade),
    (r"(?<![\d.,:$#-])\b(1[1-9])([1-9]\d)\b(?![.,:]?\d|-\d)", r"\1 \2"),  # "nineteen hundred eighty four"
    (r"(?<=\d)\s?–\s?(?=\d)", " to "),
    (r"(?<![\d-])(\d{1,3})-(\d{1,3})(?![\d-])", r"\1 to \2"),  # a range or a score, not a date or a telephone number
    (r"~\s?(?=\d)", "about "),
    (r"#\s?(?=\d)", "number "),
    (r"\b([CF])#", r"\1 sharp"),
    (r"\b24/7\b", "24 7"),
    (r"\band/or\b", "and or"),
    (r"(?<=[A-Za-z])/(?=[A-Za-z])", " or "),
    (r"(?<=\w)\s<\s(?=\w)", " is less than "),
    (r"(?<=\w)\s>\s(?=\w)", " is greater than "),
    (r"\^2\b", " squared"),
    (r"(?<=[a-z])²", " squared"),
)
