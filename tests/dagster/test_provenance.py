"""Which inputs an event says it saw: without that, the UI shows an asset as out of date."""

import dagster as dg


def inputs(event: dg.AssetMaterialization) -> dict[str, str]:
    """Return the tags of an event that speak of inputs."""
    return {name: text for name, text in event.tags.items() if name.startswith("dagster/input_")}


def test_an_incremental_job_tells_the_inputs_as_dagster_itself_does(lake):
    lake.flow("names")
    lake.csv("names", "1,ana", header="id,name")
    lake.flow("copies", stage="clean", source={"connection_name": "raw", "table": "names"})
    lake.materialize("raw/names")
    lake.materialize("clean/copies")
    [own] = lake.events("clean/copies")
    assert set(inputs(own)) == {
        "dagster/input_data_version/raw/names",
        "dagster/input_event_pointer/raw/names",
    }
    lake.incremental("clean")
    assert inputs(lake.events("clean/copies")[-1]) == inputs(own)


def test_a_source_that_was_never_seen_is_told_as_dagster_itself_does(lake):
    lake.flow("names")
    lake.csv("names", "1,ana", header="id,name")
    lake.materialize("raw/names")
    lake.incremental()
    own, ours = lake.events("raw/names")
    assert inputs(ours) == inputs(own) != {}


def test_each_chunk_and_each_marked_partition_tells_the_inputs(lake):
    lake.events_flow()
    lake.events_csv("2024-01-10", "2024-02-10", "2024-03-10")
    lake.materialize("raw/events", partitions=("2024-01", "2024-02"))
    lake.incremental()
    events = lake.events("raw/events")
    assert {"2024-01", "2024-02", None} <= {event.partition for event in events}
    assert [event.partition for event in events if not inputs(event)] == []
