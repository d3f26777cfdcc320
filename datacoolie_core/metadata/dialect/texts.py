"""Functions on text."""

from __future__ import annotations

from datacoolie_core.metadata.dialect.function import function

TEXTS = (
    function("upper, ucase", "text", "The text in capital letters.", "upper('Straße 5')"),
    function("lower, lcase", "text", "The text in small letters.", "lower('ÄPFEL')"),
    function(
        "initcap", "text", "Each word with a capital, the rest small.", "initcap('the BIG one')"
    ),
    function(
        "length, len, char_length, character_length",
        "text",
        "The number of characters; of a binary value, of its bytes.",
        "length('naïve')",
    ),
    function("octet_length", "text", "The number of bytes in UTF-8.", "octet_length('naïve')"),
    function("bit_length", "text", "Eight times octet_length.", "bit_length('ab')"),
    function(
        "concat",
        "value, ...",
        "The values as one text; null if one is null.",
        "concat('a', 1, 'b')",
    ),
    function(
        "concat_ws",
        "separator, value, ...",
        "The values with the separator between them; nulls are left out.",
        "concat_ws('-', 'a', null, 'b')",
    ),
    function(
        "substring, substr, mid",
        "text, from, [length]",
        "A part of the text; the first character is 1, and -1 is the last.",
        "substring('lakehouse', 5, 3)",
    ),
    function("left", "text, length", "The first characters.", "left('lakehouse', 4)"),
    function("right", "text, length", "The last characters.", "right('lakehouse', 5)"),
    function(
        "trim, btrim",
        "text, [characters]",
        "The text without spaces (or the given characters) at both ends.",
        "trim('  a b  ')",
    ),
    function("ltrim", "text", "The text without spaces at its start.", "ltrim('  a')"),
    function("rtrim", "text", "The text without spaces at its end.", "rtrim('a  ')"),
    function(
        "lpad",
        "text, length, [fill]",
        "Filled at the left, or cut, to that length; both numbers and fill are constants.",
        "lpad('7', 3, '0')",
    ),
    function("rpad", "text, length, [fill]", "As lpad, at the right.", "rpad('ab', 4, '.')"),
    function(
        "replace",
        "text, search, [by]",
        "Every occurrence replaced, or removed.",
        "replace('1.234,5', '.', '')",
    ),
    function(
        "translate",
        "text, from, to",
        "Each character of `from` becomes the one at its place in `to`, or goes.",
        "translate('a-b_c', '-_', '  ')",
    ),
    function("reverse", "text", "The characters, or a list, from last to first.", "reverse('abc')"),
    function("repeat", "text, times", "The text that many times.", "repeat('ab', 3)"),
    function("space", "times", "That many spaces.", "length(space(4))"),
    function(
        "split_part",
        "text, separator, number",
        "One of the parts between separators, from 1; -1 is the last; '' where there is none.",
        "split_part('a/b/c', '/', 2)",
    ),
    function(
        "substring_index",
        "text, separator, count",
        "What stands before that many separators; with a negative count, behind.",
        "substring_index('www.a.org', '.', 2)",
    ),
    function(
        "instr, strpos", "text, part", "The place of the part, 0 if none.", "instr('abc', 'c')"
    ),
    function(
        "locate, position, charindex",
        "part, text, [from]",
        "The same with the part first; position('c' IN text) too.",
        "locate('b', 'abcb', 3)",
    ),
    function("contains", "text, part", "Whether the part is in the text.", "contains('abc', 'b')"),
    function(
        "startswith, starts_with", "text, part", "Whether it begins so.", "startswith('ab', 'a')"
    ),
    function("endswith, ends_with", "text, part", "Whether it ends so.", "endswith('ab', 'b')"),
    function("ascii", "text", "The code of the first character.", "ascii('A')"),
    function("chr, char", "number", "The character with that code (up to 255).", "chr(65)"),
    function("hex", "value", "The bytes of a text or binary value in base 16.", "hex('Az')"),
    function(
        "unhex", "text", "The bytes that hex wrote, as binary.", "cast(unhex('417A') AS STRING)"
    ),
    function("base64", "value", "A text's or binary value's bytes in base 64.", "base64('Az')"),
    function("unbase64", "text", "The bytes, as binary.", "cast(unbase64('QXo=') AS STRING)"),
    function(
        "get_json_object",
        "text, path",
        "A value inside a JSON text; null if there is none.",
        """get_json_object('{"a": {"b": 1}}', '$.a.b')""",
    ),
)

PATTERNS = (
    function(
        "regexp_replace",
        "text, pattern, by",
        "Every match replaced; $1 is the first group.",
        r"regexp_replace('+49 (0)30', '[^\\d]', '')",
    ),
    function(
        "regexp_extract, regexp_substr",
        "text, pattern, [group]",
        "The first match: its group (1 unless told; 0 is all of it), '' if there is none.",
        r"regexp_extract('order-17', '(\\d+)', 1)",
    ),
    function(
        "regexp_extract_all",
        "text, pattern",
        "All matches, as a list.",
        r"array_join(regexp_extract_all('a1b22', '\\d+'), ',')",
    ),
    function(
        "regexp_like, rlike, regexp",
        "text, pattern",
        "Whether a part of the text matches.",
        "regexp_like('abc', '^a')",
    ),
    function(
        "regexp_count", "text, pattern", "The number of matches.", "regexp_count('a1b22', '[0-9]+')"
    ),
    function(
        "split",
        "text, pattern, [limit]",
        "The parts between the matches, as a list; the limit may only be -1.",
        "split('a;b;c', ';')[1]",
    ),
    function(
        "string_to_array",
        "text, separator",
        "The same by a plain separator.",
        "string_to_array('a.b', '.')[0]",
    ),
)
