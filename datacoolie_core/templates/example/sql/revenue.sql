SELECT
  c.name AS customer,
  year(o.ordered_at) AS order_year,
  month(o.ordered_at) AS order_month,
  count(*) AS orders,
  sum(o.amount) AS revenue
FROM bronze.orders AS o
JOIN silver.customers AS c ON c.id = o.customer_id
GROUP BY c.name, year(o.ordered_at), month(o.ordered_at)
