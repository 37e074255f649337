"""The words that mark a translated register, for code, messages, scripts and pages alike."""

import re

# Each word (a regular expression) with what to write instead.
INSTEAD = {
    r"whoever": "the caller, the operator, anyone who",
    r"somebody": "a person, a user, someone",
    r"who asks": "the caller",
    r"so many": "the number",
    r"so long": "the duration, as long",
    r"(?:is|are|was|were|be|been|being) told": "is notified, receives, is reported",
    r"(?:is|are|was|were|be|been|being) said": "is described, is reported",
    r"anew": "again",
    r"of before": "previous",
    r"to be said first": "note",
    r"let(?:s|ting)? go of": "drops, releases",
    r"what is known of": "the known state of",
    r"meanwhile": "until then, in that time, or a clause with `while`",
}
WORDS = re.compile("|".join(rf"\b(?P<w{number}>{word})\b" for number, word in enumerate(INSTEAD)), re.I)


def found(line):
    """The words of the list in a line, in names too (`is_told`), each with what to write instead."""
    advice = list(INSTEAD.values())
    for word in WORDS.finditer(line.replace("_", " ")):
        yield word[0], advice[int(word.lastgroup[1:])]
