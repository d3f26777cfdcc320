"""Functions on nulls, on lists, and hashes."""

from __future__ import annotations

from datacoolie_core.metadata.dialect.function import function

CONDITIONS = (
    function("coalesce", "value, ...", "The first that is not null.", "coalesce(null, 2, 3)"),
    function(
        "nvl, ifnull", "value, instead", "The second where the first is null.", "nvl(null, 'none')"
    ),
    function(
        "nvl2", "value, then, else", "The second unless the first is null.", "nvl2(1, 'yes', 'no')"
    ),
    function("nullif", "value, other", "Null where the two are equal.", "nullif('', '')"),
    function("nullifzero", "number", "Null where it is 0.", "nullifzero(0)"),
    function("zeroifnull", "number", "0 where it is null.", "zeroifnull(null)"),
    function("if, iff", "condition, then, else", "CASE with one condition.", "if(1 > 2, 'a', 'b')"),
    function("isnull", "value", "Whether it is null.", "isnull(null)"),
    function("isnotnull", "value", "Whether it is not.", "isnotnull(1)"),
    function(
        "equal_null", "value, other", "Equal, or both null, as <=>.", "equal_null(null, null)"
    ),
    function("not", "condition", "The opposite.", "not(1 > 2)"),
)

LISTS = (
    function(
        "size, cardinality, array_size, array_length",
        "list",
        "How many elements; null of a null.",
        "size(array(1, 2))",
    ),
    function("array", "value, ...", "A list.", "array(1, 2)[0]"),
    function(
        "element_at",
        "list, number",
        "An element, from 1; -1 is the last; null beyond.",
        "element_at(array(1, 2), -1)",
    ),
    function(
        "get, array_get", "list, number", "An element, from 0; null beyond.", "get(array(1, 2), 5)"
    ),
    function(
        "array_contains",
        "list, value",
        "Whether the value is in it.",
        "array_contains(array(1, 2), 2)",
    ),
    function(
        "array_join, array_to_string",
        "list, separator",
        "One text, nulls left out.",
        "array_join(array('a', 'b'), '-')",
    ),
    function("array_distinct", "list", "Each element once.", "size(array_distinct(array(1, 1)))"),
    function("array_max", "list", "The greatest element.", "array_max(array(1, 3))"),
    function("array_min", "list", "The least element.", "array_min(array(1, 3))"),
    function(
        "array_position",
        "list, value",
        "Its place from 1, 0 if none.",
        "array_position(array(5, 6), 6)",
    ),
    function(
        "sort_array, array_sort", "list", "The elements in order.", "sort_array(array(2, 1))[0]"
    ),
    function("slice", "list, from, length", "A part, from 1.", "size(slice(array(1, 2, 3), 2, 2))"),
    function(
        "struct",
        "column, ...",
        "A struct of columns, or of struct(1, 2) as col1, col2.",
        "struct(1, 2).col2",
    ),
    function("named_struct", "name, value, ...", "A struct.", "named_struct('a', 1).a"),
)

HASHES = (
    function("md5", "value", "MD5 of a text's bytes, in base 16.", "md5('abc')"),
    function("sha1, sha", "value", "SHA-1.", "sha1('abc')"),
    function(
        "sha2", "value, bits", "SHA-2 with 224, 256 (or 0), 384 or 512 bits.", "sha2('abc', 256)"
    ),
    function(
        "xxhash64", "text", "xxHash64 of one text as in Spark: seed 42, signed.", "xxhash64('abc')"
    ),
)
