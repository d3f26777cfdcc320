-- One row per day, carrier and airport. Cancelled flights have no delay.
SELECT
  f.flight_date,
  a.name AS carrier_name,
  f.origin,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE f.cancelled) AS cancelled,
  ROUND(AVG(f.dep_delay), 2) AS mean_dep_delay,
  ROUND(QUANTILE_CONT(f.dep_delay, 0.9), 1) AS p90_dep_delay
FROM silver.flights AS f
JOIN bronze.airlines AS a ON a.carrier = f.carrier
GROUP BY f.flight_date, a.name, f.origin
ORDER BY f.flight_date, carrier_name, f.origin
