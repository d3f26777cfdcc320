"""Where a table's columns come from, in its definition and on its materializations."""


def deps(lineage):
    return {
        column: [(dep.asset_key.to_user_string(), dep.column_name) for dep in found]
        for column, found in lineage.deps_by_column.items()
    }


def test_columns_are_followed_through_renames_and_expressions(lake):
    lake.flow("people")
    lake.csv("people", "1,Ana,Li", header="id,first,last")
    lake.flow(
        "names",
        stage="clean",
        source={"connection_name": "raw", "table": "people"},
        transform={
            "additional_columns": [
                {"column": "full_name", "expression": "concat(first, ' ', last)"},
                {"column": "shout", "expression": "upper(full_name)"},
                {"column": "one", "expression": "1"},
            ],
            "rename_columns": {"id": "Person ID"},
        },
    )
    assert lake.materialize("raw/people").success
    assert lake.materialize("clean/names").success
    assert deps(lake.newest("clean/names")["dagster/column_lineage"]) == {
        "person_id": [("raw/people", "id")],
        "first": [("raw/people", "first")],
        "last": [("raw/people", "last")],
        "full_name": [("raw/people", "first"), ("raw/people", "last")],
        "shout": [("raw/people", "first"), ("raw/people", "last")],
    }
    assert deps(lake.newest("raw/people")["dagster/column_lineage"])["id"] == [
        ("landing/people.csv", "id")
    ]


def test_hints_give_lineage_before_anything_is_loaded(lake):
    hints = [{"column_name": "Seats", "data_type": "int"}]
    lake.flow("planes", transform={"schema_hints": hints})
    found = deps(lake.spec("raw/planes").metadata["dagster/column_lineage"])
    assert found == {"seats": [("landing/planes.csv", "Seats")]}


def test_a_query_is_not_guessed_at(lake):
    lake.flow("people")
    lake.csv("people", "1,Ana", header="id,first")
    lake.flow(
        "names",
        stage="clean",
        source={"connection_name": "raw", "table": None, "query": "-- all\nselect * from people"},
    )
    lake.materialize("raw/people")
    lake.materialize("clean/names")
    assert "dagster/column_lineage" not in lake.newest("clean/names")
