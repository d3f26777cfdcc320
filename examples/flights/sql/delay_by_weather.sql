-- The weather in the hour and at the airport of the scheduled departure.
-- Bronze weather is text, so it is typed here. Hours without a report are left out.
WITH weather AS (
  SELECT
    origin,
    time_hour,
    CASE
      WHEN CAST(precip AS DOUBLE) = 0 THEN 'dry'
      WHEN CAST(temp AS DOUBLE) <= 32 THEN 'snow'
      ELSE 'rain'
    END AS precipitation,
    CASE
      WHEN CAST(visib AS DOUBLE) < 1 THEN '1: under 1 mile'
      WHEN CAST(visib AS DOUBLE) < 5 THEN '2: 1 to 5 miles'
      ELSE '3: 5 miles and more'
    END AS visibility
  FROM bronze.weather
)
SELECT
  f.origin,
  w.precipitation,
  w.visibility,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE f.cancelled) AS cancelled,
  ROUND(AVG(f.dep_delay), 2) AS mean_dep_delay,
  ROUND(QUANTILE_CONT(f.dep_delay, 0.9), 1) AS p90_dep_delay
FROM silver.flights AS f
JOIN weather AS w ON w.origin = f.origin AND w.time_hour = f.time_hour
GROUP BY f.origin, w.precipitation, w.visibility
ORDER BY f.origin, w.precipitation, w.visibility
