"""Rules that span fields: each wrong combination is refused, its right neighbour is not."""

from __future__ import annotations

import pytest

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.checks import LOAD_TYPES
from datacoolie_core.metadata.expressions import sql_problem
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.metadata.patterns import pattern_problem

LAKE = {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}
FILES = {"name": "files", "format": "csv", "configure": {"base_path": "in"}}


def found(*, connections=(), connection=None, **parts):
    """Return ``field: message`` of each problem of one connection or dataflow."""
    flow = {
        "name": "f",
        "source": {"connection_name": "files", "table": "t"} | parts.pop("source", {}),
        "destination": {"connection_name": "lake", "table": "o"} | parts.pop("destination", {}),
        **parts,
    }
    document = {
        "connections": [LAKE, FILES, *connections, *([connection] if connection else [])],
        "dataflows": [flow],
    }
    try:
        metadata_from_documents([("m", document)])
    except MetadataError as error:
        return [f"{problem.field}: {problem.message}" for problem in error.problems]
    return []


def transform(**parts):
    destination = parts.pop("destination", {})
    return found(transform=parts, destination=destination)


MERGE = {"load_type": "merge_upsert", "merge_keys": "ID", "partition_columns": "day"}


class TestTransforms:
    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ({"select_columns": "a", "drop_columns": "b"}, "drop_columns: give select_columns or"),
            ({"select_columns": ["a", "A"]}, "select_columns: 'a' is listed twice"),
            ({"drop_columns": "__updated_at"}, "drop_columns: '__updated_at' is a system column"),
            ({"rename_columns": {"a": "b", "c": "B"}}, "two columns are renamed to 'b'"),
            ({"rename_columns": {"a": "b", "b": "c"}}, "rename_columns.a: 'b' is itself renamed"),
            ({"rename_columns": {"a": "a"}}, "rename_columns.a: it is renamed to itself"),
            ({"rename_columns": {"a": "__created_at"}}, "rename_columns.a: a system column"),
            ({"value_rules": [{"operation": "case", "columns": "a"}]}, "[0].mode: operation case"),
            (
                {"value_rules": [{"operation": "fill_null", "columns": "a"}]},
                "[0].value: operation fill_null needs it",
            ),
            ({"value_rules": [{"operation": "map", "columns": "a"}]}, "[0].mapping: operation map"),
            (
                {"value_rules": [{"operation": "regex_replace", "columns": "a"}]},
                "[0].pattern: operation regex_replace needs it",
            ),
            (
                {"value_rules": [{"operation": "regex_replace", "columns": "a", "pattern": r"\d"}]},
                r"[0].pattern: \d is not supported",
            ),
            ({"value_rules": [{"operation": "trim", "columns": "a, A"}]}, "'a' is listed twice"),
            ({"value_rules": [{"operation": "trim", "columns": []}]}, "at least one entry"),
            (
                {"value_rules": [{"operation": "trim", "columns": "a", "order": -1}]},
                "[0].order: it must be at least 0",
            ),
            (
                {"hash_columns": [{"target_column": "h", "columns": "a"}] * 2},
                "hash_columns: two rules make the column 'h'",
            ),
            (
                {"masking_rules": [{"method": "nullify", "columns": "a"}] * 2},
                "masking_rules: 'a' is masked more than once",
            ),
            (
                {"masking_rules": [{"method": "numeric_bucket", "columns": "a"}]},
                "[0].bucket_size: method numeric_bucket needs it",
            ),
            (
                {"masking_rules": [{"method": "date_truncate", "columns": "a"}]},
                "[0].unit: method date_truncate needs it",
            ),
            (
                {"masking_rules": [{"method": "partial", "columns": "a", "mask_char": "**"}]},
                "[0].mask_char: it must be one character",
            ),
            (
                {"masking_rules": [{"method": "nullify", "columns": "__file_name"}]},
                "'__file_name' is a system column",
            ),
            (
                {"schema_hints": [{"column_name": c, "data_type": "int"} for c in ("a", "A")]},
                "schema_hints: 'a' has two hints",
            ),
            (
                {"schema_hints": [{"column_name": "a", "data_type": "decimal(9,2)", "scale": 3}]},
                "has scale 2, but scale says 3",
            ),
            (
                {"configure": {"timestamp_timezone": "Mars/Olympus"}},
                "timestamp_timezone: unknown timezone 'Mars/Olympus'",
            ),
            (
                {"configure": {"missing_column_policy": "ignor"}},
                "missing_column_policy: expected one of error, ignore",
            ),
            ({"additional_columns": [{"column": "x", "expression": " "}]}, "it may not be blank"),
        ],
    )
    def test_a_wrong_transform_is_refused(self, parts, expected):
        (problem,) = transform(**parts)
        assert expected in problem

    @pytest.mark.parametrize("key", ["id", "DAY"])
    @pytest.mark.parametrize(
        "parts",
        [
            lambda key: {"select_columns": ["other", "day" if key == "id" else "id"]},
            lambda key: {"drop_columns": [key]},
            lambda key: {"rename_columns": {key: "x"}},
            lambda key: {"masking_rules": [{"method": "nullify", "columns": [key]}]},
        ],
    )
    def test_merge_and_partition_columns_can_not_be_taken_away(self, key, parts):
        (problem,) = transform(destination=MERGE, **parts(key))
        assert "a merge key" in problem if key == "id" else "a partition column" in problem

    def test_what_is_right_is_accepted(self):
        assert not transform(
            destination=MERGE,
            select_columns="id, day, a",
            rename_columns={"a": "A", "b": "c"},
            value_rules=[
                {"operation": "regex_replace", "columns": "a", "pattern": "[^0-9]+"},
                {"operation": "map", "columns": "a", "mapping": {"x": "y"}},
            ],
            masking_rules=[{"method": "partial", "columns": "x", "keep_end": 4}],
        )


class TestDestinations:
    @pytest.mark.parametrize("form", ["parquet", "csv", "json", "jsonl", "avro"])
    @pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite", "scd2"])
    def test_flat_files_can_not_merge(self, form, load_type):
        out = {"name": "out", "format": form, "configure": {"base_path": "o"}}
        destination = {"connection_name": "out", "load_type": load_type, "merge_keys": "id"}
        (problem,) = found(connection=out, destination=destination)
        assert problem.startswith(f"destination.load_type: {form} can't do {load_type}")

    @pytest.mark.parametrize("form", ["sql", "api", "function", "excel"])
    def test_what_can_not_be_written_is_no_destination(self, form):
        out = {"name": "out", "format": form, "configure": {"base_url": "http://x"}}
        (problem,) = found(connection=out, destination={"connection_name": "out"})
        assert (
            problem
            == f"destination.connection_name: connection 'out' is {form}, which can't be written"
        )

    def test_every_format_is_covered(self):
        assert all(LOAD_TYPES[form] for form in ("delta", "iceberg", "parquet"))

    def test_a_destination_needs_a_place(self):
        (problem,) = found(
            connection={"name": "out", "format": "delta"}, destination={"connection_name": "out"}
        )
        assert "connection 'out' has no configure.base_path to write to" in problem

    def test_replace_by_watermark_needs_a_look_back_and_merge_overwrite(self):
        window = {"merge_keys": "id", "configure": {"replace_by_watermark": True}}
        problems = found(destination={**window, "load_type": "merge_upsert"})
        assert [text.partition(": ")[2] for text in problems] == [
            "it needs load_type merge_overwrite, not merge_upsert",
            "it needs a look-back: set source.configure.backward",
        ]
        back = {"configure": {"backward_days": 3}}
        assert not found(destination={**window, "load_type": "merge_overwrite"}, source=back)

    def test_the_look_back_of_the_connection_counts(self):
        back = {
            "name": "back",
            "format": "csv",
            "configure": {"base_path": "x", "backward": {"days": 1}},
        }
        window = {
            "load_type": "merge_overwrite",
            "merge_keys": "id",
            "configure": {"replace_by_watermark": True},
        }
        assert not found(connection=back, source={"connection_name": "back"}, destination=window)

    def test_a_column_listed_twice_is_refused(self):
        (problem,) = found(destination={"load_type": "merge_upsert", "merge_keys": "id, ID"})
        assert problem.startswith("destination.merge_keys: a column is listed twice")


class TestSources:
    def test_a_function_source_needs_a_function(self):
        function = {"name": "fn", "format": "function"}
        assert found(connection=function, source={"connection_name": "fn"}) == [
            "source.python_function: a function source needs it"
        ]

    def test_a_database_source_needs_a_table_or_a_query(self):
        db = {"name": "db", "format": "sql", "configure": {"database_type": "sqlite"}}
        source = {"connection_name": "db", "table": None}
        assert found(connection=db, source=source) == [
            "source.table: a database source needs a table or a query"
        ]
        assert not found(connection=db, source={**source, "query": "SELECT 1"})

    def test_a_file_source_takes_no_query_and_no_function(self):
        fields = [
            text.partition(":")[0] for text in found(source={"query": "q", "python_function": "f"})
        ]
        assert sorted(fields) == ["source.python_function", "source.query"]

    def test_a_file_source_may_be_the_base_path_itself(self):
        assert not found(source={"table": None})


class TestConnections:
    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ({"connection_type": "lakehouse"}, "format: connection_type lakehouse goes with"),
            ({"connection_type": "streaming"}, "connection_type: streaming connections can't"),
            ({"connection_type": "FILE"}, "connection_type: expected one of file, lakehouse"),
            ({"format": "sql", "configure": {"database_type": "db2"}}, "unknown SQL dialect 'db2'"),
            (
                {"format": "sql", "configure": {"auth_type": "pasword"}},
                "configure.auth_type: expected",
            ),
            (
                {"format": "sql", "configure": {"auth_type": "access_token"}},
                "configure.token: auth_type",
            ),
            (
                {"format": "sql", "configure": {"host": "a.Datawarehouse.fabric.microsoft.com"}},
                "configure.auth_type: a Fabric host does not take passwords",
            ),
            ({"format": "api"}, "configure.base_url: it is required"),
            (
                {"format": "api", "configure": {"base_url": "x", "auth_type": "bearer"}},
                "configure.auth_token: auth_type bearer needs it",
            ),
            ({"secrets_ref": {"env:": ["password"]}}, "'password' is no text field of configure"),
            (
                {"configure": {"a": "K"}, "secrets_ref": {"env:": "a", "vault:": "a"}},
                "secrets_ref.vault:: 'a' is also listed under 'env:'",
            ),
            ({"secrets_ref": 5}, "secrets_ref: expected a mapping"),
            ({"configure": "{"}, "configure: expected a mapping, or text that is a JSON object"),
            ({"configure": "[1]"}, "configure: expected a JSON object, this text is a JSON list"),
            ({"name": "a/b"}, "name: it may not contain '/'"),
            ({"name": "a\nb"}, "name: it may not contain control characters"),
            ({"name": " "}, "name: it may not be blank"),
            ({"configure": {"schema_hint_type_system": "sparc"}}, "unknown SQL dialect 'sparc'"),
            ({"configure": {"datacoolie": {}}}, "configure.datacoolie: our own keys belong to"),
        ],
    )
    def test_a_wrong_connection_is_refused(self, parts, expected):
        assert any(expected in problem for problem in found(connection={"name": "c", **parts}))

    def test_the_type_is_derived_from_the_format(self):
        document = {
            "connections": [{"name": form, "format": form} for form in ("delta", "CSV ", "sql")]
        }
        loaded = metadata_from_documents([("m", document)])
        assert [one.connection_type for one in loaded.connections] == [
            "lakehouse",
            "file",
            "database",
        ]

    def test_a_shell_variable_is_not_taken_for_a_folder_name(self):
        """sec-missing-versus-blank-secret: ``${LAKE_ROOT}`` must not become a folder."""
        (problem,) = found(
            connection={
                "name": "c",
                "format": "delta",
                "configure": {"base_path": "${LAKE_ROOT}/x"},
            }
        )
        assert "'${LAKE_ROOT}' is not replaced" in problem
        assert "secrets_ref" in problem

    def test_the_placeholders_of_a_database_url_are_fine(self):
        url = "postgresql://{user}:{password}@{host}:{port}/{database}"
        assert not found(connection={"name": "c", "format": "sql", "configure": {"url": url}})


def options(**keys):
    return found(configure={"datacoolie": keys}, source={"watermark_columns": "at"})


class TestOptions:
    @pytest.mark.parametrize(
        ("replay", "expected"),
        [
            ({"chunk_interval": {"days": 0}}, "chunk_interval.days: must be at least 1"),
            ({"chunk_interval": {"day": 1}}, "chunk_interval.day: unknown unit 'day'"),
            ({"chunk_interval": 3}, "chunk_interval: 3 has no unit"),
            ({"chunk_interval": {}}, "chunk_interval: has no unit"),
            ({"chunk_interval": {"hours": 1}}, "hours and minutes need timestamps"),
            ({"chunk_interval": {"days": "1"}}, "chunk_interval.days: expected a whole number"),
            ({"step": 5}, "replay.step: start is a date or timestamp"),
            ({"start": 1, "chunk_interval": {"days": 1}}, "start is a number: give a step"),
            ({"start": 1, "step": 0}, "replay.step: must be at least 1"),
            ({"chunk_interval": {"days": 1}, "step": 1}, "give units or a step, not both"),
            ({"end": "2012-01-01"}, "replay.end: end 2012-01-01 is not after start"),
            ({"end": "2014-01-01T00:00:00"}, "start and end must be of one kind"),
            ({"end": 5}, "start and end must be of one kind"),
            ({"start": "yesterday"}, "replay.start: 'yesterday' is no date"),
            ({"start": True}, "replay.start: expected text or a whole number, got true"),
            (
                {"start": "2013-01-01T00:00:00", "end": "2014-01-01T00:00:00Z"},
                "one of start and end has an offset",
            ),
            ({"timezone": "New York"}, "replay.timezone: unknown timezone 'New York'"),
        ],
    )
    def test_a_replay_that_can_not_be_is_refused(self, replay, expected):
        problems = options(replay={"start": "2013-01-01", **replay})
        assert any(expected in problem for problem in problems), problems

    @pytest.mark.parametrize(
        "replay",
        [
            {"start": "2013-01-01", "end": "2014-01-01", "chunk_interval": {"months": 1}},
            {"start": "2013-01-01T00:00:00", "chunk_interval": {"hours": 6}},
            {"start": "2013-01-01T00:00:00+02:00", "end": "2013-02-01T00:00:00Z"},
            {"start": 1, "end": 100, "step": 10},
            {"start": 1, "chunk_interval": {"step": 10}},
        ],
    )
    def test_a_replay_that_can_be_is_accepted(self, replay):
        assert not options(replay=replay)

    def test_a_replay_needs_a_column(self):
        replay = {"start": "2013-01-01"}
        (problem,) = found(configure={"datacoolie": {"replay": replay}})
        assert "needs chunk_column" in problem

    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ({"cron": "every day"}, "cron: 'every day' is no cron line"),
            ({"cron": {"cron": "0 6 * * *", "timezone": "x"}}, "cron.timezone: unknown timezone"),
            ({"cron": 5}, "cron: expected a mapping or text, got the number 5"),
            ({"cron": {"crn": "0 6 * * *"}}, "cron.crn: unknown key 'crn'"),
            ({"automation": "on_cron"}, "automation: on_cron needs cron beside it"),
            ({"freshness": {"warn": "6"}}, "freshness.warn: '6' is no duration"),
            ({"retry_count": -1}, "retry_count: it must be at least 0"),
            ({"tags": {"a": 1}}, "tags.a: expected text, got the number 1"),
            ({"owner": "me"}, "owner: unknown key 'owner'"),
        ],
    )
    def test_a_wrong_option_is_refused(self, keys, expected):
        assert any(expected in problem for problem in options(**keys)), options(**keys)

    def test_right_options_are_accepted(self):
        assert not options(
            cron={"cron": "0 6 * * 1-5", "timezone": "Europe/Berlin"},
            automation="on_cron",
            freshness={"warn": "6h", "fail": "1d"},
            owners="ada, team:data",
            retry_delay=5,
        )

    @pytest.mark.parametrize("limit", ["now", "now + 1d", "now+90min", "2030-01-01T00:00:00Z"])
    def test_limits_of_watermarks(self, limit):
        assert not found(source={"configure": {"datacoolie": {"max_watermark": limit}}})

    @pytest.mark.parametrize("limit", ["tomorrow", "now + 1", "now - 1d"])
    def test_wrong_limits_of_watermarks(self, limit):
        (problem,) = found(source={"configure": {"datacoolie": {"max_watermark": limit}}})
        assert "write now, now + 1d or a timestamp" in problem


class TestNames:
    @pytest.mark.parametrize("field", ["name", "stage"])
    @pytest.mark.parametrize("text", ["a/b", "a\tb", "a\x7fb"])
    def test_names_become_asset_keys(self, field, text):
        (problem,) = found(**{field: text})
        assert problem.startswith(f"{field}: it may not contain")

    def test_an_id_may_have_slashes_unless_it_is_the_name(self):
        assert not found(dataflow_id="bronze/f")
        (problem,) = found(name=None, dataflow_id="bronze/f")
        assert problem.startswith("dataflow_id: it may not contain '/'")

    def test_a_dataflow_needs_a_name_or_an_id(self):
        assert found(name=None) == ["name: a dataflow needs a name or a dataflow_id"]

    def test_names_of_any_script_are_fine(self):
        assert not found(name="注文 Ünï", stage="银")


class TestSharedHints:
    def load(self, *groups, source=None, hints=(), configure=None):
        files = {**FILES, "configure": {**FILES["configure"], **(configure or {})}}
        flow = {
            "name": "f",
            "source": {"connection_name": "files", "table": "T", **(source or {})},
            "destination": {"connection_name": "lake", "table": "o"},
            "transform": {"schema_hints": list(hints)},
        }
        document = {"connections": [LAKE, files], "dataflows": [flow], "schema_hints": list(groups)}
        return metadata_from_documents([("m", document)])

    def group(self, column="a", **more):
        hints = [{"column_name": column, "data_type": "int"}]
        return {"connection_name": "files", "table_name": "t", "hints": hints, **more}

    def columns(self, *groups, **more):
        (flow,) = self.load(*groups, **more).dataflows
        return [hint.column_name for hint in flow.transform.schema_hints]

    def refused(self, *groups, **more):
        with pytest.raises(MetadataError) as caught:
            self.load(*groups, **more)
        return [f"{problem.field}: {problem.message}" for problem in caught.value.problems]

    def test_they_reach_the_dataflow_that_reads_the_table(self):
        assert self.columns(self.group(table_name="T"), self.group("b", table_name="u")) == ["a"]

    def test_local_hints_win_wholly(self):
        local = [{"column_name": "mine", "data_type": "date"}]
        assert self.columns(self.group(), hints=local) == ["mine"]

    def test_use_schema_hint_false_switches_all_hints_off(self):
        local = [{"column_name": "mine", "data_type": "date"}]
        assert self.columns(self.group(), hints=local, configure={"use_schema_hint": False}) == []

    def test_the_schema_tells_groups_apart(self):
        groups = (self.group("a", schema_name="X"), self.group("b", schema_name="y"))
        assert self.columns(*groups, source={"schema_name": "x"}) == ["a"]
        assert self.columns(*groups, source={"schema_name": "z"}) == []

    def test_several_schemas_without_a_wanted_one_are_ambiguous(self):
        groups = (self.group("a", schema_name="x"), self.group("b", schema_name="y"))
        (problem,) = self.refused(*groups)
        assert problem.startswith("source.schema_name: there are schema hints for this table in")

    def test_an_unknown_connection_a_twin_and_an_unknown_type_are_refused(self):
        assert self.refused(
            self.group(connection_name="flies"),
            self.group("b"),
            self.group("c", hints=[{"column_name": "c", "data_type": "strin"}]),
        ) == [
            "connection_name: no connection 'flies'",
            "hints[0].data_type: column 'c': unknown type 'strin'",
            "table_name: m has hints for this table too; put them in one group",
        ]

    def test_their_types_are_those_of_the_connection(self):
        group = self.group(hints=[{"column_name": "a", "data_type": "nvarchar(max)"}])
        assert self.columns(group, configure={"schema_hint_type_system": "SQL Server"}) == ["a"]


class TestExpressions:
    @pytest.mark.parametrize(
        "text",
        [
            "amount > 50",
            "region = 'North' AND amount < 1000",
            "status != 'cancelled' AND amount > 0",
            "CASE WHEN CAST(amount AS DOUBLE) > 100 THEN 'high' ELSE 'low' END",
            "EXTRACT(YEAR FROM order_date)",
            "amount::int % 2 = 0",
            "`order id` > 1",
            "x ~ '^a' OR y RLIKE 'b'",
            "date '2020-01-01' <= d",
            '"Order ID" IS NOT NULL',
            "note = 'a; b'",
            "coalesce(a, 'x') IN ('x', 'y')",
        ],
    )
    def test_expressions_of_several_dialects_are_read(self, text):
        assert sql_problem(text) is None

    @pytest.mark.parametrize(
        "text",
        [
            "amount >",
            "amount > 5 garbage",
            "SELECT 1",
            "DROP TABLE x",
            "a = 1; DELETE FROM x",
            "a = 1;",
            "foo(1,",
            "'open",
            "a) OR (b",
            "select = 1 and",
            "*",
            "a as b",
            "count(*) > 1",
            "row_number() over (order by a) = 1",
            "a in (select b from t)",
        ],
    )
    def test_what_is_no_expression_is_refused(self, text):
        assert sql_problem(text) is not None

    @pytest.mark.parametrize(
        ("parts", "field"),
        [
            ({"source": {"filter_expression": "a >"}}, "source.filter_expression"),
            ({"transform": {"filter_expression": "a >"}}, "transform.filter_expression"),
            (
                {"transform": {"additional_columns": [{"column": "x", "expression": "a >"}]}},
                "transform.additional_columns[0].expression",
            ),
            (
                {"destination": {"partition_columns": [{"column": "x", "expression": "a >"}]}},
                "destination.partition_columns[0].expression",
            ),
            (
                {"destination": {"configure": {"datacoolie": {"delete_when": "a >"}}}},
                "destination.configure.datacoolie.delete_when",
            ),
            (
                {"destination": {"configure": {"datacoolie": {"replay_filter": "a >"}}}},
                "destination.configure.datacoolie.replay_filter",
            ),
            (
                {"destination": {"configure": {"scd2_effective_column": "a >"}}},
                "destination.configure.scd2_effective_column",
            ),
        ],
    )
    def test_each_place_of_an_expression_is_checked(self, parts, field):
        assert found(**parts) == [f"{field}: 'a >' is not a SQL expression"]


class TestPatterns:
    @pytest.mark.parametrize(
        "pattern",
        [
            "-",
            "[^0-9]",
            "a+b*c?",
            "(?:ab)+",
            "(ab){2,3}",
            "a|b",
            r"\.\\[\]\-]",
            "^[A-Z]{3}$",
            r"\t|\n",
        ],
    )
    def test_the_subset_is_accepted(self, pattern):
        assert pattern_problem(pattern) is None

    @pytest.mark.parametrize(
        "pattern",
        [
            "(?=a)", "(?<!a)b", "(?P<n>a)", "(?i)a", r"(a)\1", r"\d", r"\w", r"\s", r"\b", r"[\d]",
            "a++", "a*+", "[a&&b]", "[a--b]", "[[a]b]", "(a+)+", "(a|b)*", "((a))+", "(a", "[", "a{2,1}",
        ],
    )  # fmt: skip
    def test_the_rest_is_refused(self, pattern):
        assert pattern_problem(pattern) is not None
