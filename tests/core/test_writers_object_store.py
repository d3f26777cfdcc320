"""The writer on an object store: a small S3 of our own, in memory, and nothing mocked."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen
from uuid import uuid4
from xml.sax.saxutils import escape, unescape

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers import delta
from datacoolie_core.writers.maintain_layout import compact
from datacoolie_core.writers.maintain_log import checkpoint, log_cleanup
from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
from datacoolie_core.writers.maintain_vacuum import vacuum
from datacoolie_core.writers.request import Commit, WriteRequest
from datacoolie_core.writers.tables import Place


class S3(BaseHTTPRequestHandler):
    """Whole objects, ranges, uploads in parts, lists, and puts that must not overwrite."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def split(self):
        parts = urlsplit(self.path)
        return unquote(parts.path).lstrip("/"), parse_qs(parts.query, keep_blank_values=True)

    def reply(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if code != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def content(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_PUT(self):
        key, query = self.split()
        data = self.content()
        if "uploadId" in query:
            self.server.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = data
            return self.reply(200, ETag=f'"{uuid4().hex}"')
        with self.server.lock:
            if self.headers.get("If-None-Match") == "*" and key in self.server.objects:
                return self.reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            self.server.objects[key] = data
        return self.reply(200, ETag=f'"{hashlib.md5(data).hexdigest()}"')

    def do_POST(self):
        key, query = self.split()
        content = self.content().decode()
        if "delete" in query:
            gone = re.findall("<Key>(.*?)</Key>", content)
            for name in gone:
                self.server.objects.pop(f"{key.rstrip('/')}/{unescape(name)}", None)
            text = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in gone)
            return self.reply(200, f"<DeleteResult>{text}</DeleteResult>".encode())
        if "uploads" in query:
            upload = uuid4().hex
            self.server.uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self.reply(200, text.encode())
        parts = self.server.uploads.pop(query["uploadId"][0])
        self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
        text = '<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>'
        return self.reply(200, text.encode())

    def do_DELETE(self):
        self.server.objects.pop(self.split()[0], None)
        self.reply(204)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        key, query = self.split()
        if "list-type" in query:
            return self.reply(200, self.listed(key, query))
        if key not in self.server.objects:
            return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        data = self.server.objects[key]
        about = {
            "ETag": f'"{hashlib.md5(data).hexdigest()}"',
            "Last_Modified": "Wed, 01 Jan 2025 00:00:00 GMT",
        }
        if "Range" not in self.headers:
            return self.reply(200, data, **about)
        first, _, last = self.headers["Range"].split("=")[1].partition("-")
        size = len(data)
        start = int(first) if first else max(size - int(last), 0)
        end = min(int(last), size - 1) if first and last else size - 1
        about["Content_Range"] = f"bytes {start}-{end}/{size}"
        return self.reply(206, data[start : end + 1], **about)

    def listed(self, bucket, query):
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        after = query.get("start-after", [""])[0]
        found, folders = [], set()
        for key, data in sorted(self.server.objects.items()):
            name = key.removeprefix(f"{bucket.rstrip('/')}/")
            if name == key or not name.startswith(prefix) or name <= after:
                continue
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            found.append(
                f"<Contents><Key>{escape(name)}</Key><ETag>x</ETag><Size>{len(data)}</Size>"
                "<LastModified>2025-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        found += [f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in folders]
        text = (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(found)}</ListBucketResult>"
        )
        return text.encode()


@dataclass
class Bucket:
    port: int
    flow: object
    uri: str = "s3://bucket/lake/t"
    sequence: int = 0
    phases: list[str] = field(default_factory=list)

    @property
    def options(self):
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def load(self, frame, load_type="append", on_phase=lambda _: None, **given):
        here = delta.inspect(self.uri, "flow", self.options).sequence
        keys = ("id",) if load_type == "merge_upsert" else ()
        request = WriteRequest(
            dataflow=self.flow(load_type, keys=keys, partition_by=given.pop("partition_by", ())),
            uri=self.uri,
            storage_options=self.options,
            sequence=(here or 0) + 1,
            expected_sequence=here,
            run_id=f"run-{(here or 0) + 1}",
            **given,
        )
        decided = Commit({"format": 1})
        return delta.write(request, frame.lazy(), lambda _: decided, on_phase, sleep=lambda _: None)

    def rows(self):
        frame = pl.scan_delta(self.uri, storage_options=self.options).collect()
        arrow = DeltaTable(self.uri, storage_options=self.options).to_pyarrow_table()
        other = pl.DataFrame(arrow).select(frame.columns)
        assert sorted(map(str, frame.rows())) == sorted(map(str, other.rows()))
        return sorted(frame.rows())

    def files(self):
        with urlopen(f"http://127.0.0.1:{self.port}/bucket?list-type=2") as answer:
            keys = re.findall("<Key>(.*?)</Key>", answer.read().decode())
        return {key for key in keys if key.endswith(".parquet")}


def serve(port):
    server = ThreadingHTTPServer(("127.0.0.1", 0), S3)
    server.daemon_threads = True
    server.objects, server.uploads, server.lock = {}, {}, threading.Lock()
    port.send(server.server_port)
    server.serve_forever()


@pytest.fixture
def bucket(make_dataflow):
    # in a process of its own: delta-rs keeps the interpreter's lock while it waits for an answer
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    assert here.poll(60)
    yield Bucket(here.recv(), make_dataflow)
    process.terminate()
    process.join()


def test_loads_of_every_kind_work_on_a_store(bucket):
    bucket.load(pl.DataFrame({"id": [1, 2], "v": ["a", "b"]}))
    bucket.load(pl.DataFrame({"id": [3], "v": ["c"], "new": [1.5]}))
    result = bucket.load(pl.DataFrame({"id": [2, 4], "v": ["B", "d"]}), "merge_upsert")
    assert (result.rows_updated, result.rows_inserted, result.table_rows) == (1, 1, 4)
    bucket.load(
        pl.DataFrame({"id": [3], "v": ["w"]}), mode="replace_window", window=Window("id", 3, 9)
    )
    assert bucket.rows() == [(1, "a", None), (2, "B", None), (3, "w", None)]

    found = delta.inspect(bucket.uri, "flow", bucket.options)
    assert (found.sequence, found.commit["run_id"]) == (4, "run-4")
    assert delta.table_row_count(bucket.uri, bucket.options) == 3
    bucket.load(pl.DataFrame({"x": [1]}), "overwrite")
    assert bucket.rows() == [(1,)]


def test_awkward_partition_values_work_on_a_store(bucket):
    values = ["a b", "x/y", "50%", "ü", "c#d?e"]
    frame = pl.DataFrame({"id": range(5), "p": values})
    bucket.load(frame, partition_by=("p",))
    bucket.load(frame.with_columns(v=pl.lit(1)), "merge_upsert")
    assert bucket.rows() == [(number, value, 1) for number, value in enumerate(values)]


def test_a_lost_race_on_a_store_is_redone_and_leaves_no_file(bucket):
    bucket.load(pl.DataFrame({"id": [1], "v": ["a"]}))
    done = []

    def other(phase):
        if phase == "committing" and not done:
            done.append(1)
            row = pl.DataFrame({"id": [2], "v": ["x"]})
            write_deltalake(bucket.uri, row, mode="append", storage_options=bucket.options)

    bucket.load(pl.DataFrame({"id": [1, 2], "v": ["b", "b"]}), "merge_upsert", other)
    assert bucket.rows() == [(1, "b"), (2, "b")]
    assert len([name for name in bucket.files() if "run-2" in name]) == 1


def test_a_failed_load_on_a_store_leaves_no_file(bucket):
    bucket.load(pl.DataFrame({"id": [1]}))
    before = bucket.files()
    with pytest.raises(WriteError, match="is not exact"):
        bucket.load(pl.DataFrame({"t": pl.Series([1]).cast(pl.Datetime("ns"))}))
    assert bucket.files() == before


def test_a_large_load_goes_up_in_parts(bucket):
    frame = pl.DataFrame({"id": range(300_000)}).with_columns(
        text=pl.col("id").hash().cast(pl.String) + pl.col("id").hash(1).cast(pl.String)
    )
    result = bucket.load(frame)
    assert result.bytes_added > 5_000_000
    assert delta.table_row_count(bucket.uri, bucket.options) == 300_000


def test_a_table_on_a_store_is_compacted_and_cleaned_up(bucket):
    """Every object there is two years old, so that only the table says what is still needed."""
    for n in range(4):
        bucket.load(pl.DataFrame({"id": [n], "p": ["a b"]}), partition_by=("p",))
    place = Place(bucket.uri, bucket.options)
    assert compact(Upkeep(place, MaintainOptions(), "m")).files_removed == 4
    assert vacuum(Upkeep(place, MaintainOptions(), "m")).files_removed == 0
    assert checkpoint(Upkeep(place, MaintainOptions(), "m")).status == "succeeded"
    assert log_cleanup(Upkeep(place, MaintainOptions(), "m")).status == "succeeded"
    assert bucket.rows() == [(n, "a b") for n in range(4)]
    assert len(bucket.files()) == 6

    short = MaintainOptions(retention_hours=0, allow_short_retention=True)
    done = vacuum(Upkeep(place, short, "m"))
    assert done.files_removed == 4
    assert done.bytes_removed > 0
    bucket.load(pl.DataFrame({"id": [4], "p": ["a b"]}), partition_by=("p",))
    assert bucket.rows() == [(n, "a b") for n in range(5)]
