\restrict
\restrict ''
\unrestrict abc
\restrict abc
\echo hi
\restrict abc
\if true
\copy t from stdin
\d
\unrestrict
\unrestrict x
SELECT 1 AS a \gset
;
\unrestrict abc
\echo hi
\unrestrict abc
\if false
\restrict q
\endif
\echo hi
