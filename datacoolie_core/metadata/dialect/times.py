"""Functions on dates and times."""

from __future__ import annotations

from datacoolie_core.metadata.dialect.function import function

TIMES = (
    function(
        "current_date, curdate, today", "", "The day of the load.", "current_date = curdate()"
    ),
    function(
        "current_timestamp, now, getdate",
        "",
        "The instant of the load: one for all rows and all expressions.",
        "current_timestamp = now()",
    ),
    function(
        "to_date, date",
        "text, [pattern]",
        "A date from a text (ISO, or a pattern of Java's letters) or from a timestamp.",
        "to_date('05.01.2024', 'dd.MM.yyyy')",
    ),
    function(
        "try_to_date", "text, [pattern]", "The same; null where it is none.", "try_to_date('soon')"
    ),
    function(
        "to_timestamp, timestamp, to_timestamp_ltz",
        "text, [pattern]",
        "An instant from a text, a date, or seconds since 1970.",
        "to_timestamp('2024-01-05T10:00:00+02:00')",
    ),
    function(
        "try_to_timestamp",
        "text, [pattern]",
        "The same; null where it is none.",
        "try_to_timestamp('x')",
    ),
    function(
        "to_timestamp_ntz",
        "text, [pattern]",
        "A timestamp without a zone.",
        "to_timestamp_ntz('2024-01-05 10:00')",
    ),
    function(
        "strptime",
        "text, pattern",
        "to_timestamp_ntz with a % pattern.",
        "strptime('5.1.2024', '%d.%m.%Y')",
    ),
    function(
        "date_format, strftime, to_char",
        "time, pattern",
        "A text from a date or time, by a pattern of Java's letters or of % letters.",
        "date_format(DATE '2024-01-05', 'yyyy/MM/dd EEE')",
    ),
    function(
        "date_trunc",
        "unit, time",
        "The start of the year, quarter, month, week, day, hour, minute or second.",
        "date_trunc('month', TIMESTAMP '2024-05-17 10:30:00')",
    ),
    function(
        "trunc",
        "date, unit",
        "The first day of the year, quarter, month or week, as a date.",
        "trunc(DATE '2024-05-17', 'MM')",
    ),
    function("date_add, adddate", "date, days", "Days later.", "date_add(DATE '2024-02-28', 2)"),
    function("date_sub, subdate", "date, days", "Days before.", "date_sub(DATE '2024-03-01', 1)"),
    function(
        "dateadd, timestampadd",
        "unit_or_date, number, [time]",
        "dateadd(unit, number, time), or dateadd(date, days).",
        "dateadd(MONTH, 1, DATE '2024-01-31')",
    ),
    function(
        "datediff, date_diff, timestampdiff",
        "unit_or_end, start, [end]",
        "Days from start to end; or datediff(unit, start, end): whole units between them.",
        "datediff(DATE '2024-03-01', DATE '2024-02-01')",
    ),
    function(
        "add_months",
        "date, months",
        "Months later, the day at most the month's last.",
        "add_months(DATE '2024-01-31', 1)",
    ),
    function(
        "months_between",
        "end, start, [round]",
        "Months with their fraction, in parts of 31 days.",
        "months_between(DATE '2024-03-31', DATE '2024-02-28')",
    ),
    function("last_day", "date", "The last day of the month.", "last_day(DATE '2024-02-03')"),
    function(
        "next_day",
        "date, weekday",
        "The next Monday, say, after it.",
        "next_day(DATE '2024-01-05', 'Mon')",
    ),
    function("make_date", "year, month, day", "A date from its parts.", "make_date(2024, 2, 29)"),
)

PARTS = (
    function("year", "date", "The year.", "year(DATE '2024-05-17')"),
    function("quarter", "date", "1 to 4.", "quarter(DATE '2024-05-17')"),
    function("month", "date", "1 to 12.", "month(DATE '2024-05-17')"),
    function("day, dayofmonth", "date", "1 to 31.", "day(DATE '2024-05-17')"),
    function("dayofweek", "date", "1 is Sunday, 7 Saturday.", "dayofweek(DATE '2024-05-17')"),
    function("weekday", "date", "0 is Monday, 6 Sunday.", "weekday(DATE '2024-05-17')"),
    function("dayofyear", "date", "1 to 366.", "dayofyear(DATE '2024-05-17')"),
    function("weekofyear, week", "date", "The ISO week.", "weekofyear(DATE '2024-12-30')"),
    function("hour", "time", "0 to 23.", "hour(TIMESTAMP '2024-05-17 10:30:45')"),
    function("minute", "time", "0 to 59.", "minute(TIMESTAMP '2024-05-17 10:30:45')"),
    function("second", "time", "0 to 59, whole.", "second(TIMESTAMP '2024-05-17 10:30:45.5')"),
    function("monthname", "date", "Jan, Feb, …", "monthname(DATE '2024-05-17')"),
    function("dayname", "date", "Mon, Tue, …", "dayname(DATE '2024-05-17')"),
    function(
        "date_part, datepart",
        "field, time",
        "A field by its name; EXTRACT(field FROM time) too: also YEAROFWEEK, DOW, DOY, EPOCH.",
        "date_part('YEAROFWEEK', DATE '2024-12-30')",
    ),
)

EPOCHS = (
    function(
        "unix_timestamp, to_unix_timestamp",
        "[time], [pattern]",
        "Whole seconds of an instant or a text; of the load without arguments.",
        "unix_timestamp('1970-01-02')",
    ),
    function(
        "from_unixtime",
        "seconds, [pattern]",
        "A text from seconds, yyyy-MM-dd HH:mm:ss unless told.",
        "from_unixtime(86400)",
    ),
    function(
        "timestamp_seconds", "seconds", "An instant from seconds.", "timestamp_seconds(86400)"
    ),
    function(
        "timestamp_millis", "number", "An instant from milliseconds.", "timestamp_millis(1500)"
    ),
    function(
        "timestamp_micros", "number", "An instant from microseconds.", "timestamp_micros(1500000)"
    ),
    function(
        "unix_seconds",
        "time",
        "Whole seconds of an instant.",
        "unix_seconds(TIMESTAMP '1970-01-02')",
    ),
    function(
        "unix_millis", "time", "Milliseconds of an instant.", "unix_millis(TIMESTAMP '1970-01-02')"
    ),
    function(
        "unix_micros", "time", "Microseconds of an instant.", "unix_micros(TIMESTAMP '1970-01-02')"
    ),
    function("unix_date", "date", "Days of a date.", "unix_date(DATE '1970-01-11')"),
    function("date_from_unix_date", "days", "A date from days.", "date_from_unix_date(10)"),
    function(
        "from_utc_timestamp",
        "time, zone",
        "The clock of a zone at that instant; it reads as UTC then.",
        "from_utc_timestamp(TIMESTAMP '2024-07-01 12:00:00', 'Europe/Berlin')",
    ),
    function(
        "to_utc_timestamp",
        "time, zone",
        "The instant at which the clock of a zone shows that time.",
        "to_utc_timestamp(TIMESTAMP '2024-07-01 12:00:00', 'Europe/Berlin')",
    ),
)
