create table t (id int, j jsonb);
insert into t values (1, '{"a": 1, "b": "x"}'), (2, '{}'), (3, null);
select id, g from t, generate_series(1.5, 3) g where id < 3 order by 1, 2;
select id, key, value from t, jsonb_each('{"k": [1], "l": null}') where id = 1 order by 2;
select id, key, value from t, jsonb_each_text('{"k": [1], "l": null}') where id = 1 order by 2;
select id, n, g from t, generate_series(1, 2, 0.5) with ordinality o(g, n) where id = 2 order by 2;
select sum(g), count(*) from t, generate_series(0.1, 1.0, 0.3) g;
select id from t, jsonb_array_elements('[]') e;
select id, generate_series(1.0, 2) from t order by 1, 2;
