"""Excel workbooks as metadata: the same scope as from JSON, and problems with their cells."""

from __future__ import annotations

import json
from datetime import date, datetime

import openpyxl
import pytest
from inline_snapshot import snapshot

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.loader import load_metadata, metadata_from_documents
from tests.core.workbooks import CONNECTIONS, FLOWS, flows, save, workbook


def load(root, *paths, **options):
    return load_metadata(paths or ["m.xlsx"], project_dir=str(root), **options)


def found(root, *paths, **options):
    with pytest.raises(MetadataError) as caught:
        load(root, *paths, **options)
    return [str(problem).replace(str(root), "ROOT") for problem in caught.value.problems]


def one(root, **cells):
    """Return the dataflow of a workbook with these cells."""
    save(root / "m.xlsx", dataflows=flows(cells))
    return load(root).dataflows[0]


def scope(metadata):
    return metadata.connections, metadata.dataflows


def test_every_kind_of_column_gives_the_same_scope_as_json(tmp_path):
    """Prefixed columns, JSON and list cells, ``configure_<key>`` and hints, a row for each."""
    save(
        tmp_path / "m.xlsx",
        connections=[
            [
                "name",
                "connection_type",
                "format",
                "configure",
                "configure_base_path",
                "secrets_ref",
            ],
            ["files", "file", "csv", '{"read_options": {"sep": ";"}, "base_path": "x"}', "in"],
            ["lake", "lakehouse", "delta", None, "lake"],
            [
                *("shop", "database", "sql", '{"database_type": "sqlite", "password": "KEY"}'),
                None,
                '{"env": ["password"]}',
            ],
        ],
        dataflows=flows(
            {
                "dataflow_id": "7",
                "group_number": 2,
                "execution_order": -1,
                "is_active": True,
                "source_watermark_columns": "changed_at, id",
                "source_configure": '{"backward": {"days": 3}}',
                "destination_load_type": "merge_upsert",
                "destination_merge_keys": '["id", "line, no"]',
                "destination_partition_columns": '[{"column": "day", "expression": "date(t)"}]',
                "destination_configure": '{"datacoolie": {"delete_when": "gone"}}',
                "transform": '{"filter_expression": "id > 0", "drop_columns": ["x"]}',
                "transform_drop_columns": "y, z",
                "transform_additional_columns": '[{"column": "day", "expression": "date(t)"}]',
                "transform_rename_columns": '{"a": "b"}',
                "configure": '{"datacoolie": {"owners": ["ada"]}}',
            }
        ),
        schema_hints=[
            ["connection_name", "table_name", "column_name", "data_type", "precision", "scale"],
            ["files", "orders", "amount", "decimal", 18, "2"],
            ["files", "other", "id", "int", None, None],
            ["files", "orders", "id", "int", None, None],
        ],
    )
    document = {
        "connections": [
            {
                "name": "files",
                "connection_type": "file",
                "format": "csv",
                "configure": {"base_path": "in", "read_options": {"sep": ";"}},
            },
            {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
            {
                "name": "shop",
                "format": "sql",
                "configure": {"database_type": "sqlite", "password": "KEY"},
                "secrets_ref": {"env": ["password"]},
            },
        ],
        "dataflows": [
            {
                "name": "flow_0",
                "dataflow_id": "7",
                "stage": "bronze",
                "group_number": 2,
                "execution_order": -1,
                "source": {
                    "connection_name": "files",
                    "table": "orders",
                    "watermark_columns": ["changed_at", "id"],
                    "configure": {"backward": {"days": 3}},
                },
                "destination": {
                    "connection_name": "lake",
                    "table": "orders",
                    "load_type": "merge_upsert",
                    "merge_keys": ["id", "line, no"],
                    "partition_columns": [{"column": "day", "expression": "date(t)"}],
                    "configure": {"datacoolie": {"delete_when": "gone"}},
                },
                "transform": {
                    "filter_expression": "id > 0",
                    "drop_columns": ["y", "z"],
                    "additional_columns": [{"column": "day", "expression": "date(t)"}],
                    "rename_columns": {"a": "b"},
                },
                "configure": {"datacoolie": {"owners": ["ada"]}},
            }
        ],
        "schema_hints": [
            {
                "connection_name": "files",
                "table_name": "orders",
                "hints": [
                    {
                        "column_name": "amount",
                        "data_type": "decimal",
                        "precision": 18,
                        "scale": 2,
                    },
                    {"column_name": "id", "data_type": "int"},
                ],
            },
            {
                "connection_name": "files",
                "table_name": "other",
                "hints": [{"column_name": "id", "data_type": "int"}],
            },
        ],
    }
    assert scope(load(tmp_path)) == scope(metadata_from_documents([("a", document)]))


class TestCells:
    @pytest.mark.parametrize(
        ("cell", "active"),
        [(True, True), ("TRUE", True), ("yes", True), (1, True), ("0", False), (" Off ", False)],
    )
    def test_a_boolean_may_be_text_or_a_number(self, tmp_path, cell, active):
        """W49"""
        assert one(tmp_path, is_active=cell).is_active is active

    @pytest.mark.parametrize("cell", [2, 2.0, "2", " 2 ", "2.0"])
    def test_a_whole_number_may_be_text(self, tmp_path, cell):
        """W55"""
        assert one(tmp_path, group_number=cell).group_number == 2

    @pytest.mark.parametrize(
        ("cell", "text"),
        [
            (2024, "2024"),
            (2024.0, "2024"),
            (1.5, "1.5"),
            (date(2024, 5, 1), "2024-05-01"),
            (datetime(2024, 5, 1, 6, 30), "2024-05-01T06:30:00"),
            ("007", "007"),
        ],
    )
    def test_a_text_that_the_program_made_a_number_or_a_date_of_is_text(self, tmp_path, cell, text):
        assert one(tmp_path, source_table=cell).source.table == text

    def test_json_in_a_cell_keeps_its_own_types(self, tmp_path):
        """Only what the sheet itself makes text of is coerced; a quoted number in JSON is not."""
        save(
            tmp_path / "m.xlsx",
            dataflows=flows({"destination_configure": '{"replace_by_watermark": "false"}'}),
        )
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet dataflows, row 2, column destination_configure: dataflow 'bronze/flow_0', destination.configure.replace_by_watermark: expected true or false, got text 'false'; write it without quotes."
            ]
        )

    def test_what_xml_can_not_hold_is_read_as_it_was_meant(self, tmp_path):
        flow = one(tmp_path, description="a_x000D_b _x005F_x0041_ _xD83D_")
        assert flow.description == "a\rb _x0041_ _xD83D_"

    def test_a_key_of_the_layer_below_keeps_its_case_and_its_type(self, tmp_path):
        save(
            tmp_path / "m.xlsx",
            connections=[
                [
                    *CONNECTIONS[0],
                    "configure_maxRetries",
                    "configure_tags",
                    "configure_use_schema_hint",
                ],
                [*CONNECTIONS[1], 5.0, '["a"]', "no"],
                [*CONNECTIONS[2], "5", "[a]", None],
            ],
        )
        files, lake = load(tmp_path).connections
        assert files.configure.model_extra == {"maxRetries": 5, "tags": ["a"]}
        assert lake.configure.model_extra == {"maxRetries": "5", "tags": "[a]"}
        assert (files.configure.use_schema_hint, lake.configure.use_schema_hint) == (False, True)

    def test_what_can_not_be_read_is_told_with_sheet_row_and_column(self, tmp_path):
        save(
            tmp_path / "m.xlsx",
            dataflows=flows(
                {},
                {"is_active": "maybe", "group_number": "two", "execution_order": 1.5},
                {"destination_merge_keys": '["id"', "configure": "owners: ada"},
                {"source_configure": "[1]", "transform_rename_columns": '{"a": 1, "a": 2}'},
            ),
        )
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet dataflows, row 3, column is_active: dataflow 'bronze/flow_1', is_active: expected true or false, got text 'maybe'.",
                "m.xlsx, sheet dataflows, row 3, column group_number: dataflow 'bronze/flow_1', group_number: expected a whole number, got text 'two'.",
                "m.xlsx, sheet dataflows, row 3, column execution_order: dataflow 'bronze/flow_1', execution_order: expected a whole number, got 1.5.",
                "m.xlsx, sheet dataflows, row 4, column configure: dataflow 'bronze/flow_2', configure: expected a JSON object; broken JSON at character 1: Expecting value.",
                "m.xlsx, sheet dataflows, row 4, column destination_merge_keys: dataflow 'bronze/flow_2', destination.merge_keys: expected a list, with commas or as JSON; broken JSON at character 6: Expecting ',' delimiter.",
                "m.xlsx, sheet dataflows, row 5, column source_configure: dataflow 'bronze/flow_3', source.configure: expected a JSON object.",
                "m.xlsx, sheet dataflows, row 5, column transform_rename_columns: dataflow 'bronze/flow_3', transform.rename_columns: the key 'a' is given twice in one mapping.",
            ]
        )


class TestProblems:
    """What the models find, at the cell that it came from."""

    def test_everything_is_told_at_once_with_the_name_that_was_meant(self, tmp_path):
        save(
            tmp_path / "m.xlsx",
            connections=[*CONNECTIONS, [None, "file", "csv"], ["x", "lakehouse", "csvv"]],
            dataflows=flows(
                {"source_connection_name": "filse"},
                {"destination_load_type": "upsert", "transform": '{"drop_colums": ["a"]}'},
                {"destination_table": None, "transform_value_rules": '[{"operation": "trim"}]'},
                {"source_configure": '{"datacoolie": {"null_watermark": "skip"}}'},
            ),
            schema_hints=[
                ["connection_name", "table_name", "column_name", "data_type"],
                ["files", "orders", "id", "int"],
                ["files", "orders", "amount", "DECIML"],
            ],
        )
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet connections, row 4, column name: connection '#3', name: it is required.",
                "m.xlsx, sheet connections, row 5, column format: connection 'x', format: expected one of delta, iceberg, parquet, csv, json, jsonl, avro, excel, sql, api, function, got text 'csvv'. Did you mean 'csv'?",
                "m.xlsx, sheet dataflows, row 2, column source_connection_name: dataflow 'bronze/flow_0', source.connection_name: no connection 'filse'. Did you mean 'files'?",
                "m.xlsx, sheet dataflows, row 3, column destination_load_type: dataflow 'bronze/flow_1', destination.load_type: expected one of append, overwrite, full_load, merge_upsert, merge_overwrite, scd2, got text 'upsert'. Did you mean 'merge_upsert'?",
                "m.xlsx, sheet dataflows, row 3, column transform: dataflow 'bronze/flow_1', transform.drop_colums: unknown key 'drop_colums'. Did you mean 'drop_columns'?",
                "m.xlsx, sheet dataflows, row 4, column destination_table: dataflow 'bronze/flow_2', destination.table: it is required.",
                "m.xlsx, sheet dataflows, row 4, column transform_value_rules: dataflow 'bronze/flow_2', transform.value_rules[0].columns: it is required.",
                "m.xlsx, sheet dataflows, row 5, column source_configure: dataflow 'bronze/flow_3', source.configure.datacoolie.null_watermark: expected one of first_load, include, exclude, fail, got text 'skip'.",
                "m.xlsx, sheet schema_hints, row 3, column data_type: schema_hints 'orders', hints[1].data_type: column 'amount': unknown type 'DECIML'. Did you mean 'decimal'?",
            ]
        )

    def test_an_unknown_column_is_told_once_with_the_one_that_was_meant(self, tmp_path):
        save(
            tmp_path / "m.xlsx",
            dataflows=flows({"source_watermark_column": "a", "note": None}, {"note": "b"}),
        )
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet dataflows, row 1: unknown column 'source_watermark_column'. Did you mean 'source_watermark_columns'?",
                "m.xlsx, sheet dataflows, row 1: unknown column 'note'.",
            ]
        )
        warnings = [str(warning) for warning in load(tmp_path, strict=False).warnings]
        assert warnings == snapshot(
            [
                "m.xlsx, sheet dataflows, row 1: unknown column 'source_watermark_column', ignored. Did you mean 'source_watermark_columns'?",
                "m.xlsx, sheet dataflows, row 1: unknown column 'note', ignored.",
            ]
        )

    def test_rows_that_use_an_unknown_column_do_not_run(self, tmp_path):
        save(tmp_path / "m.xlsx", dataflows=flows({}, {"destination_merge_key": "id"}))
        metadata = load(tmp_path, on_invalid="quarantine")
        assert [flow.name for flow in metadata.dataflows] == ["flow_0"]
        assert "bronze/flow_1" in [broken.label for broken in metadata.invalid]

    def test_two_columns_of_one_name_are_an_error(self, tmp_path):
        save(tmp_path / "m.xlsx", dataflows=[[*FLOWS[0], "Stage"], [*FLOWS[1], "silver"]])
        assert found(tmp_path) == snapshot(
            ["m.xlsx, sheet dataflows, row 1: there are two columns 'stage'."]
        )

    def test_a_value_below_no_header_is_an_error(self, tmp_path):
        save(tmp_path / "m.xlsx", dataflows=[FLOWS[0], [*FLOWS[1], None, "x"]])
        assert found(tmp_path) == snapshot(
            ["m.xlsx, sheet dataflows, row 2: column H has a value but no name."]
        )

    def test_merged_cells_are_an_error(self, tmp_path):
        book = workbook(connections=CONNECTIONS, dataflows=flows({}, {}))
        book["dataflows"].merge_cells("B2:B3")
        save(tmp_path / "m.xlsx", book)
        assert load(tmp_path, on_invalid="quarantine").dataflows == ()
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet dataflows, row 2: the cells B2:B3 are merged, so all but the first are empty. Unmerge them."
            ]
        )

    def test_a_formula_without_a_value_is_an_error(self, tmp_path):
        """A program that never calculated it stores no result, and a reader would see a blank."""
        save(tmp_path / "m.xlsx", dataflows=flows({"stage": '=CONCAT("a", "b")'}))
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet dataflows, row 2, column stage: dataflow 'flow_0', stage: this formula has no stored value. Open and save the workbook in a spreadsheet program, or write the value itself."
            ]
        )

    def test_an_error_in_a_cell_is_an_error(self, tmp_path):
        save(tmp_path / "m.xlsx", dataflows=flows({"stage": "#REF!"}))
        assert found(tmp_path) == snapshot(
            [
                "m.xlsx, sheet dataflows, row 2, column stage: dataflow 'flow_0', stage: it shows the error #REF!."
            ]
        )

    def test_a_password_in_a_cell_is_not_shown(self, tmp_path):
        save(
            tmp_path / "m.xlsx",
            connections=[[*CONNECTIONS[0], "colour"], ["a", "file", "csv", "S3cr3t!", "S3cr3t!"]],
        )
        assert "S3cr3t!" not in "\n".join(found(tmp_path))


class TestSheets:
    def test_blank_rows_and_blank_columns_are_passed_over(self, tmp_path):
        blank = [None] * len(FLOWS[0])
        rows = [blank, FLOWS[0], blank, FLOWS[1], ["  "], [*FLOWS[1][:0], "b", *FLOWS[1][1:]]]
        save(tmp_path / "m.xlsx", dataflows=[[None, *row] for row in rows])
        assert [flow.name for flow in load(tmp_path).dataflows] == ["orders", "b"]

    def test_names_of_sheets_and_columns_are_read_in_any_case(self, tmp_path):
        book = workbook(
            Connections=[[name.upper() for name in CONNECTIONS[0]], *CONNECTIONS[1:]],
            DATAFLOWS=[[f" {name.replace('_', ' ').title()} " for name in FLOWS[0]], FLOWS[1]],
        )
        hints = book.create_sheet("Schema Hints")
        hints.append(["connection_name", "table_name", "column_name", "data_type"])
        hints.append(["files", "ORDERS", "id", "int"])
        save(tmp_path / "m.xlsx", book)
        (flow,) = load(tmp_path).dataflows
        assert [hint.column_name for hint in flow.transform.schema_hints] == ["id"]

    def test_other_sheets_are_free_unless_they_look_misspelt(self, tmp_path):
        save(tmp_path / "m.xlsx", notes=[["anything"], [1]])
        assert len(load(tmp_path).dataflows) == 1
        save(tmp_path / "m.xlsx", dataflow=FLOWS)
        assert found(tmp_path) == snapshot(
            ["m.xlsx, sheet dataflow: a sheet of this name is not read. Did you mean 'dataflows'?"]
        )

    def test_a_hidden_sheet_is_read_with_a_word_about_it(self, tmp_path):
        book = workbook(connections=CONNECTIONS, dataflows=FLOWS)
        book["dataflows"].sheet_state = "hidden"
        save(tmp_path / "m.xlsx", book)
        metadata = load(tmp_path)
        assert len(metadata.dataflows) == 1
        assert [str(warning) for warning in metadata.warnings] == snapshot(
            ["m.xlsx, sheet dataflows: this sheet is hidden; it is read all the same."]
        )

    def test_a_wrong_size_in_the_file_cuts_no_rows_off(self, tmp_path):
        """Some programs write a dimension of A1 into sheets of any size."""
        import zipfile

        save(tmp_path / "a.xlsx", dataflows=flows({}, {}, {}))
        with (
            zipfile.ZipFile(tmp_path / "a.xlsx") as read,
            zipfile.ZipFile(tmp_path / "m.xlsx", "w") as write,
        ):
            for name in read.namelist():
                content = read.read(name)
                start = content.find(b"<dimension ref=")
                if start >= 0:
                    end = content.index(b"/>", start)
                    content = content[:start] + b'<dimension ref="A1"' + content[end:]
                write.writestr(name, content)
        assert len(load(tmp_path).dataflows) == 3

    def test_a_sheet_without_rows_is_empty(self, tmp_path):
        save(tmp_path / "m.xlsx", schema_hints=[], dataflows=[FLOWS[0]])
        assert len(load(tmp_path).dataflows) == 0


class TestFiles:
    def test_a_workbook_in_a_folder_is_read_with_the_other_files(self, tmp_path):
        save(tmp_path / "m/a.xlsx", workbook(connections=CONNECTIONS))
        (tmp_path / "m/b.json").write_text(
            json.dumps(
                {
                    "dataflows": [
                        {
                            "name": "x",
                            "source": {"connection_name": "files", "table": "t"},
                            "destination": {"connection_name": "lake", "table": "t"},
                        }
                    ]
                }
            )
        )
        (tmp_path / "m/~$a.xlsx").write_bytes(b"left by a program that has a.xlsx open")
        assert len(load(tmp_path, "m").dataflows) == 1

    def test_what_is_no_workbook_is_told(self, tmp_path):
        (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 and then nothing")
        (tmp_path / "locked.xlsx").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 64)
        (tmp_path / "empty.xlsx").write_bytes(b"")
        save(tmp_path / "other.xlsx", workbook(Sheet1=[["a"], [1]]))
        problems = found(tmp_path, "broken.xlsx", "locked.xlsx", "empty.xlsx", "other.xlsx")
        assert problems == snapshot(
            [
                "broken.xlsx: is no .xlsx workbook, or a broken one: File is not a zip file.",
                "locked.xlsx: is no .xlsx workbook: it has a password, or is an older .xls. Save it as .xlsx.",
                "empty.xlsx: is no .xlsx workbook, or a broken one: File is not a zip file.",
                "other.xlsx: holds none of the sheets connections, dataflows and schema_hints.",
            ]
        )

    @pytest.mark.parametrize("name", ["m.xls", "m.XLS", "m.xlsb", "m.ods"])
    def test_other_formats_are_refused_with_the_way_out(self, tmp_path, name):
        (tmp_path / "metadata").mkdir()
        (tmp_path / "metadata" / name).write_bytes(b"?")
        (problem,) = found(tmp_path, "metadata")
        assert problem.endswith(
            f"{name}: only .xlsx workbooks can be read; open it in a spreadsheet program and "
            "save it as .xlsx."
        )

    def test_one_broken_workbook_stops_no_other_file_in_quarantine(self, tmp_path):
        save(tmp_path / "m/a.xlsx")
        (tmp_path / "m/b.xlsx").write_bytes(b"no workbook")
        (tmp_path / "m/c.xls").write_bytes(b"no workbook")
        metadata = load(tmp_path, "m", on_invalid="quarantine")
        assert len(metadata.dataflows) == 1
        assert {broken.label for broken in metadata.invalid} == {"m/b.xlsx", "m/c.xls"}


def test_openpyxl_is_imported_for_a_workbook_alone(tmp_path):
    import subprocess
    import sys

    (tmp_path / "a.json").write_text('{"connections": []}')
    code = (
        "import sys; from datacoolie_core.metadata.loader import load_metadata; "
        f"load_metadata('a.json', project_dir={str(tmp_path)!r}); print('openpyxl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert openpyxl.__version__
