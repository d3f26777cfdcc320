"""Rules of a transform: its lists, its rules on values, and what they may not touch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from datacoolie_core.metadata.column_names import NameMode, clean_name
from datacoolie_core.metadata.hint_types import HintTypeError, hint_dialect, parse_type
from datacoolie_core.metadata.models import Dataflow, MaskingRule, SchemaHint, ValueRule
from datacoolie_core.metadata.patterns import pattern_problem
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.times import is_timezone

SYSTEM_COLUMNS = frozenset(
    {
        "__created_at",
        "__updated_at",
        "__updated_by",
        "__dataflow_run_id",
        "__file_name",
        "__file_path",
        "__file_modification_time",
        "__valid_from",
        "__valid_to",
        "__is_current",
    }
)
"""Columns that the product adds itself."""

Check = Callable[[Dataflow], Iterator[Finding]]


def check_transform(flow: Dataflow) -> Iterator[Finding]:
    """Yield what is wrong with the transform of one dataflow."""
    yield from _plugins(flow)
    if not flow.transform.model_fields_set:
        return
    for check in _CHECKS:
        yield from check(flow)


def _folded(names: Iterable[str]) -> set[str]:
    return {name.casefold() for name in names}


def _repeated(names: Iterable[str]) -> list[str]:
    folded = [name.casefold() for name in names]
    if len(set(folded)) == len(folded):
        return []
    counts = Counter(folded)
    return [name for name, count in counts.items() if count > 1]


_PLUGIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def _plugins(flow: Dataflow) -> Iterator[Finding]:
    for index, name in enumerate(flow.configure.datacoolie.transforms):
        if _PLUGIN.fullmatch(name) is None:
            message = f"'{name}' names no plug-in; write package.module:NAME"
            yield Finding(f"configure.datacoolie.transforms[{index}]", message)


class _Keys:
    """What no transform may take away: merge keys and partition columns.

    Metadata may name them as the source does, or as the table does.
    """

    def __init__(self, flow: Dataflow) -> None:
        self._mode: NameMode = flow.transform.configure.column_name_mode
        partitions = (column.column for column in flow.destination.partition_columns)
        self.reasons = dict.fromkeys(partitions, "a partition column")
        self.reasons |= dict.fromkeys(flow.destination.merge_keys, "a merge key")
        self._cleaned = {self._clean(name): why for name, why in self.reasons.items()}

    def _clean(self, name: str) -> str:
        return clean_name(name, self._mode).casefold()

    def why(self, column: str) -> str | None:
        """Return what a column is, None if it is no key."""
        return self._cleaned.get(self._clean(column))

    def absent(self, columns: Iterable[str]) -> list[str]:
        """Return the keys that are not among some columns."""
        there = {self._clean(column) for column in columns}
        return [name for name in self.reasons if self._clean(name) not in there]


def _projection(flow: Dataflow) -> Iterator[Finding]:
    transform = flow.transform
    if not (transform.select_columns or transform.drop_columns):
        return
    keys = _Keys(flow)
    for name in ("select_columns", "drop_columns"):
        for column in _repeated(getattr(transform, name)):
            yield Finding(f"transform.{name}", f"'{column}' is listed twice (case does not matter)")
    if transform.select_columns and transform.drop_columns:
        yield Finding("transform.drop_columns", "give select_columns or drop_columns, not both")
    if transform.select_columns:
        for column in keys.absent(transform.select_columns):
            message = f"'{column}' is {keys.reasons[column]} and must be selected too"
            yield Finding("transform.select_columns", message)
    for column in transform.drop_columns:
        if why := keys.why(column):
            message = f"'{column}' is {why} and can't be dropped"
            yield Finding("transform.drop_columns", message)
        elif column.casefold() in SYSTEM_COLUMNS:
            message = f"'{column}' is a system column and can't be dropped"
            yield Finding("transform.drop_columns", message)


def _renames(flow: Dataflow) -> Iterator[Finding]:
    renames = flow.transform.rename_columns
    if not renames:
        return
    keys, sources = _Keys(flow), _folded(renames)
    for column in _repeated(renames):
        yield Finding("transform.rename_columns", f"'{column}' is renamed twice")
    for column in _repeated(renames.values()):
        yield Finding("transform.rename_columns", f"two columns are renamed to '{column}'")
    for old, new in renames.items():
        field = f"transform.rename_columns.{old}"
        if why := keys.why(old):
            yield Finding(field, f"it is {why} and can't be renamed")
        elif {old.casefold(), new.casefold()} & SYSTEM_COLUMNS:
            yield Finding(field, "a system column can't be renamed or be a new name")
        elif old == new:
            yield Finding(field, "it is renamed to itself")
        elif old.casefold() != new.casefold() and new.casefold() in sources:
            yield Finding(field, f"'{new}' is itself renamed; no chains or cycles")


_NEEDED_FOR_VALUES = {
    "case": "mode",
    "regex_replace": "pattern",
    "fill_null": "value",
    "map": "mapping",
}


def _value_rules(flow: Dataflow) -> Iterator[Finding]:
    for index, rule in enumerate(flow.transform.value_rules):
        field = f"transform.value_rules[{index}]"
        needed = _NEEDED_FOR_VALUES.get(rule.operation)
        if needed is not None and getattr(rule, needed) in (None, {}):
            yield Finding(f"{field}.{needed}", f"operation {rule.operation} needs it")
        yield from _rule_columns(rule, field)
        problem = None if rule.pattern is None else pattern_problem(rule.pattern)
        if problem is not None:
            yield Finding(f"{field}.pattern", problem)


def _rule_columns(rule: ValueRule | MaskingRule, field: str) -> Iterator[Finding]:
    for column in _repeated(rule.columns):
        yield Finding(f"{field}.columns", f"'{column}' is listed twice (case does not matter)")


def _hash_columns(flow: Dataflow) -> Iterator[Finding]:
    hashes = flow.transform.hash_columns
    for target in _repeated(rule.target_column for rule in hashes):
        yield Finding("transform.hash_columns", f"two rules make the column '{target}'")
    for index, rule in enumerate(hashes):
        field = f"transform.hash_columns[{index}]"
        if rule.target_column.casefold() in SYSTEM_COLUMNS:
            yield Finding(f"{field}.target_column", "it is the name of a system column")
        for column in _repeated(rule.columns):
            yield Finding(f"{field}.columns", f"'{column}' is listed twice (case does not matter)")
        for column in rule.columns:
            if column.casefold() in SYSTEM_COLUMNS:
                yield Finding(f"{field}.columns", f"'{column}' is a system column")


_NEEDED_FOR_MASKS = {"redact": "value", "numeric_bucket": "bucket_size", "date_truncate": "unit"}


def _masking_rules(flow: Dataflow) -> Iterator[Finding]:
    rules = flow.transform.masking_rules
    if not rules:
        return
    keys = _Keys(flow)
    for column in _repeated(column for rule in rules for column in rule.columns):
        yield Finding("transform.masking_rules", f"'{column}' is masked more than once")
    for index, rule in enumerate(rules):
        field = f"transform.masking_rules[{index}]"
        needed = _NEEDED_FOR_MASKS.get(rule.method)
        if needed is not None and getattr(rule, needed) is None:
            yield Finding(f"{field}.{needed}", f"method {rule.method} needs it")
        if len(rule.mask_char) != 1:
            yield Finding(f"{field}.mask_char", "it must be one character")
        for column in rule.columns:
            if why := keys.why(column):
                message = f"'{column}' is {why} and can't be masked"
                yield Finding(f"{field}.columns", message)
            elif column.casefold() in SYSTEM_COLUMNS:
                yield Finding(f"{field}.columns", f"'{column}' is a system column")


def _schema_hints(flow: Dataflow) -> Iterator[Finding]:
    try:
        dialect = hint_dialect(flow.source.connection)
    except HintTypeError:
        return  # a problem of the connection
    yield from check_hints(flow.transform.schema_hints, dialect, "transform.schema_hints")


def check_hints(hints: Iterable[SchemaHint], dialect: str, field: str) -> Iterator[Finding]:
    """Yield what is wrong with a list of schema hints.

    Args:
        hints: The hints, local or shared.
        dialect: Whose type names they use.
        field: The path of the list.
    """
    listed = list(hints)
    for column in _repeated(hint.column_name for hint in listed):
        yield Finding(field, f"'{column}' has two hints")
    for index, hint in enumerate(listed):
        try:
            parse_type(hint.data_type, dialect, hint.precision, hint.scale)
        except HintTypeError as error:
            path = f"{field}[{index}].data_type"
            message = f"column '{hint.column_name}': {error}"
            yield Finding(path, message, error.suggestion)


def _configure(flow: Dataflow) -> Iterator[Finding]:
    zone = flow.transform.configure.timestamp_timezone
    if zone is not None and not is_timezone(zone):
        message = f"unknown timezone '{zone}'; write one such as Europe/Berlin"
        yield Finding("transform.configure.timestamp_timezone", message)


_CHECKS: tuple[Check, ...] = (
    _projection,
    _renames,
    _value_rules,
    _hash_columns,
    _masking_rules,
    _schema_hints,
    _configure,
)
