\set one 1
\set text 'it''s \\ ;'
\set name 'my "table"'
\set two 'SELECT :one; SELECT 2'
\set open '''abc'
\set self ':self + :one'
\set escape 'E''x''\n'
SELECT :one, ':one', ":one", $$:one$$ /* :one */ -- :one
, :'text', :"text", :'name', :"name";
SELECT :'one':"one":one, a:one, :none, :'none', :"none", :'no;
ne', :";";
SELECT 1::one, b := :one, arr[1:one], {:?one}, :{?one}, :{?none}, :{?}, :{one};
:two; SELECT 3;
SELECT :open;:one';
SELECT :self;
SELECT :escape'y\';
SELECT \:one;
\set one 'changed \\ \\echo a command in a variable'
SELECT :one
;
\unset one
SELECT :one;
