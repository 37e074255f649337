"""Rust source as the checks of language and typography read it, line by line."""

import re

# What a line may begin inside of: a block comment, a string, a raw string with its hashes, or code.
TOKEN = re.compile(
    r"""(?P<line>//.*)|(?P<block>/\*)|(?P<raw>\bb?c?r(?P<hashes>\#*)")|(?P<text>b?c?")|(?P<char>b?'(?:\\.[^']*|[^'\\])')"""
)


def code_lines(text):
    """The lines of a file, each with the content of its strings, characters and comments cut out."""
    closing = None
    for line in text.splitlines():
        kept, at = [], 0
        while at < len(line) or closing:
            if closing:
                end = closing.search(line, at)
                if not end:
                    break
                at, closing = end.end(), None
                continue
            token = TOKEN.search(line, at)
            if not token:
                kept.append(line[at:])
                break
            kept.append(line[at : token.start()])
            at = token.end()
            if token["block"]:
                closing = re.compile(r"\*/")
            elif token["raw"]:
                closing = re.compile('"' + token["hashes"])
            elif token["text"]:
                closing = re.compile(r'(?<!\\)(?:\\\\)*"')
        yield "".join(kept)


def functions(lines):
    """The range of lines between the braces of each function, as rustfmt sets them."""
    number = 0
    while number < len(lines):
        head = re.match(r"( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"\" )*fn \w", lines[number])
        if head:
            begin = number
            while begin < len(lines) and not lines[begin].rstrip().endswith(("{", ";", "}")):
                begin += 1
            end = begin + 1
            while end < len(lines) and not lines[end].startswith(f"{head[1]}}}"):
                end += 1
            if begin < len(lines) and lines[begin].rstrip().endswith("{"):
                yield range(begin + 1, end)
                number = end
        number += 1
